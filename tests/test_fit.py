import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from synthetic import FAILED, cauchy_fit, fit_of, odd_model, run_of

from pathtemp.errors import InputError
from pathtemp.model.model import AboutBase
from pathtemp.result.fit import Fit
from pathtemp.result.summary import posterior_table, with_error
from pathtemp.settings import PAPER
from pathtemp.testing import cauchy_pair


@pytest.fixture(scope="module")
def fit() -> Fit:
    return cauchy_fit()


def test_a_fit_holds_what_the_engine_handed_over():
    problem = cauchy_pair()
    run = run_of(problem)
    fit = Fit.from_run(run, problem.model, seed=7, settings=PAPER)
    np.testing.assert_array_equal(fit.posterior["theta"], run.target)
    np.testing.assert_array_equal(fit.base["theta"], run.base)
    for name in ("a", "lam", "delta", "theta0"):
        assert fit.path[name].dims == ("chain", "iteration")
        np.testing.assert_array_equal(fit.path[name], getattr(run, name))
    assert fit.log_z is run.log_z
    assert fit.history is run.history
    assert (fit.seed, fit.settings, fit.name, fit.exact_base) == (7, PAPER, "cauchy_pair", True)
    assert fit.versions["pathtemp"]


def test_the_path_has_no_theta_where_the_engine_kept_none():
    assert "theta0" not in fit_of(odd_model()).path


def test_log_marginal_likelihood_is_the_end_of_the_curve(fit):
    value, se = fit.log_marginal_likelihood
    assert value == fit.log_z(1.0) == fit.log_z.mean[-1]
    assert se == fit.log_marginal_likelihood.se == fit.log_z.se(1.0)


def test_verdict_and_warnings_are_those_of_the_checks(fit):
    assert fit.converged
    assert fit.warnings == []
    failed = cauchy_fit(checks=FAILED)
    assert not failed.converged
    assert failed.warnings == [FAILED[1].message]
    assert f"converged; log z {with_error(fit.log_z(1.0), fit.log_z.se(1.0))}" in repr(fit)
    assert "NOT converged (1 of 2 checks failed)" in repr(failed)


def test_the_arviz_tree_has_its_groups_and_can_be_summarised(fit):
    from arviz_stats import rhat

    tree = fit.to_datatree()
    assert set(tree.children) == {"posterior", "base", "sample_stats", "path", "path_draws"}
    xr.testing.assert_identical(tree["posterior"].to_dataset(), fit.posterior)
    xr.testing.assert_identical(tree["base"].to_dataset(), fit.base)
    assert tree.attrs["inference_library"] == "pathtemp"
    assert tree.attrs["log_marginal_likelihood"] == fit.log_marginal_likelihood.value
    # Of exact draws, sixteen half chains of 50: the square exceeds 1 by a fiftieth of chi2(15) / 15, a tenth at most.
    assert float(rhat(tree)["theta"][0]) < 1.1


def test_names_with_a_slash_can_stand_in_a_tree():
    names = ("scope/mu", "scope%2Fmu", "tau")
    tree = fit_of(odd_model(names)).to_datatree()
    assert list(tree["posterior"].data_vars) == ["scope%2Fmu", "scope%252Fmu", "tau"]


def test_the_summary_opens_with_the_verdict_and_says_why():
    text = str(cauchy_fit(checks=FAILED).summary()).splitlines()
    assert text[0] == "cauchy_pair: NOT converged, 1 of 2 checks failed (coverage)"
    assert text[1] == f"  - {FAILED[1].message}"
    assert str(cauchy_fit().summary()).startswith("cauchy_pair: converged, all 2 checks passed\n")


def test_the_summary_has_the_numbers(fit):
    text = str(fit.summary())
    value, se = fit.log_marginal_likelihood
    for part in (
        f"log marginal likelihood  {value:.3f} ± {se:.3f}",
        "round trips              200",
        "k-hat of 1/p(a)          0.31",
        "1.004",
        "812 bulk, inf tail",
        "3.2, hardest at lam = 0.05",
        "50,000 gradients, 120,000 densities",
        "3.8   (compile 2.5, anneal 0.2, sample 1.0)",
        "800   (chains x draws: 8 x 100)",
        "theta[0]",
        "eti89_lb",
    ):
        assert part in text
    assert repr(fit.summary()) == text


def test_the_summary_says_when_the_base_is_not_normalised():
    text = str(fit_of(odd_model(exact_base=False)).summary())
    assert "log constant of the kernel" in text
    assert "log marginal likelihood" not in text


def test_the_summary_says_what_the_base_is_and_what_log_z_is():
    about = AboutBase("no base in the program: it says nothing of tau\nmore", evidence=False)
    made = Fit.from_run(run_of(cauchy_pair()), replace(cauchy_pair().model, about=about), seed=7, settings=PAPER)
    text = str(made.summary())
    assert "log constant of the kernel" in text
    assert "log marginal likelihood" not in text
    assert "no base in the program: it says nothing of tau\n" in text
    assert not made.is_evidence


def test_a_variable_as_stan_users_have_it(fit):
    assert fit.stan_variable("theta").shape == (800, 1)
    np.testing.assert_array_equal(fit.stan_variable("theta")[:100], fit.posterior["theta"].values[0])
    with pytest.raises(InputError, match="there is no 'mu'; there are theta"):
        fit.stan_variable("mu")


def test_the_log_likelihood_that_a_stan_program_generates_is_a_group(fit):
    with_it = replace(fit, posterior=fit.posterior.assign(log_lik=fit.posterior["theta"] * 2))
    for asked in (True, None):
        tree = with_it.to_datatree(log_likelihood=asked)
        np.testing.assert_array_equal(tree["log_likelihood"]["log_lik"], 2 * fit.posterior["theta"])
        assert "log_lik" not in tree["posterior"]
    assert "log_likelihood" not in with_it.to_datatree(log_likelihood=False).children


def test_the_table_is_that_of_arviz_and_is_cut_where_asked(fit):
    table = posterior_table(fit.posterior)
    draws = fit.posterior["theta"].values
    assert table.loc["theta[0]", "mean"] == pytest.approx(draws.mean(), rel=1e-12)
    assert table.loc["theta[0]", "sd"] == pytest.approx(draws.std(), rel=1e-12)
    odd = fit_of(odd_model(("a/b", "chain", "<script>")))
    cut = odd.summary(rows=2)
    assert list(cut.table.index) == ["a/b", "chain[Choate]"]
    assert "... and 3 more" in str(cut)
    assert "more" not in str(odd.summary(rows=None))


@pytest.mark.parametrize("draws", [0, 1, 3])
def test_too_few_draws_for_a_table_still_give_a_summary(draws):
    summary = fit_of(odd_model(), draws=draws).summary()
    assert len(summary.table) == 0
    assert "round trips" in str(summary)


def test_control_characters_do_not_reach_the_terminal():
    fit = fit_of(dataclasses.replace(odd_model(("\x1b[31m", "b", "c")), name="x\x1b[2J"))
    assert "\x1b" not in str(fit.summary())
    assert "\x1b" not in repr(fit)


def test_numbers_of_any_size_print_readably():
    rng = np.random.default_rng(0)
    scales = {"tiny": 1e-12, "small": 1e-3, "large": 1e7}
    draws = {name: 3 * s + s * rng.normal(size=(4, 50)) for name, s in scales.items()}
    data = xr.Dataset({name: (("chain", "draw"), x) for name, x in draws.items()})
    fit = dataclasses.replace(fit_of(odd_model()), posterior=data)
    rows = {line.split()[0]: line.split()[1:3] for line in str(fit.summary()).splitlines()[-3:]}
    assert "e-12" in rows["tiny"][0]
    for name, column, exact in (("tiny", 0, 3e-12), ("small", 0, 3e-3), ("large", 1, 1e7)):
        draw = draws[name].mean() if column == 0 else draws[name].std()
        # Three digits at least are printed.
        assert float(rows[name][column]) == pytest.approx(draw, rel=2e-3, abs=0.0)
        assert draw == pytest.approx(exact, rel=0.6)
        assert len(rows[name][column]) <= 10


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (1234.5678, 12.0, "1235 ± 12"),
        (0.5, 0.0, "0.5 ± 0"),
        (-1e-5, 2e-7, "-0.00001000 ± 0.00000020"),
        (float("nan"), float("inf"), "unknown"),
    ],
)
def test_values_print_with_two_digits_of_their_error(value, se, text):
    assert with_error(value, se) == text
