"""Divide and conquer end to end: errors against standard errors, refusals, two modes, several margins.

One run of each engine is in the fast tier; many seeds, and the kinds of margins, are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from tempered import PAPER_MARGIN, assert_mean, converged, first_that, neck

import pathtemp as pt
from pathtemp.api.diagnose_margin import MarginDiagnosis
from pathtemp.model.bases import Automatic
from pathtemp.model.layout import Layout
from pathtemp.model.transforms import Positive
from pathtemp.result.marginal import Estimated, Marginal
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_rate, assert_scores, combined

CHAINS = 32
FUNNEL = pt.testing.funnel().model
LAW = pt.testing.neal_funnel().law
TAILS = np.array([-6.0, -9.0])


@cache
def funnel(seed: int) -> pt.MarginFit:
    return pt.divide_and_conquer(FUNNEL, margin="y", budget=120_000, chains=CHAINS, seed=seed, progress=False)


def marginal(fit: pt.MarginFit) -> Marginal:
    assert fit.marginal is not None
    return fit.marginal


def assert_right(fit: pt.MarginFit, found: Estimated, exact: np.ndarray | float) -> None:
    """Within the standard errors, which are of the jackknife over so many groups of chains."""
    assert_close(found.value, exact, found.se, df=len(marginal(fit).without) - 1)


def funnel_numbers(fit: pt.MarginFit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The standard deviation of y and two lower tails: values, standard errors, and the truth."""
    deviation, tails = marginal(fit).sd(), marginal(fit).cdf(TAILS)
    return (
        np.append(deviation.value, tails.value),
        np.append(deviation.se, tails.se),
        np.append(3.0, LAW.cdf(TAILS)),
    )


class TestNealsFunnel:
    def test_the_marginal_is_right(self) -> None:
        values, se, exact = funnel_numbers(funnel(0))
        assert_close(values, exact, se, df=CHAINS - 1)

    def test_so_is_the_evidence(self) -> None:
        value, se = funnel(0).log_marginal_likelihood
        # The transport of a funnel is all but exact; what is left is the cells of the curve, and rounding.
        assert_close(value, 0.0, np.hypot(se, 1e-4), df=CHAINS - 1)

    def test_nearly_all_converge(self) -> None:
        assert first_that(converged, funnel).warnings == []

    def test_draws_of_the_whole_posterior(self) -> None:
        fit = funnel(0)
        assert_mean(fit.posterior["y"].values, 0.0)
        assert_mean(fit.posterior["y"].values ** 2, 9.0)
        assert fit.draws is not None
        y, log_weight = fit.draws["y"].values, fit.draws["log_weight"].values
        assert_mean(np.abs(y) < 3.0, 0.682689, np.exp(log_weight - log_weight.max()))
        # x given y has its law along all of the margin
        assert_mean(np.mean(fit.draws["x"].values ** 2, axis=2) * np.exp(-y), 1.0)

    def test_the_same_seed_gives_the_same_fit(self) -> None:
        again = pt.divide_and_conquer(FUNNEL, margin="y", budget=120_000, chains=CHAINS, seed=0, progress=False)
        np.testing.assert_array_equal(again.log_z.mean, funnel(0).log_z.mean)

    def test_summary_and_figure(self) -> None:
        text = str(funnel(0).summary())
        assert "margin" in text
        assert "quantile 0.5" in text
        pytest.importorskip("matplotlib").use("Agg")
        funnel(0).plot()

    def test_every_gate_is_explained(self) -> None:
        page = (Path(__file__).parents[1] / "docs" / "verdict.md").read_text()
        section = page.split("### Along a margin or a path")[1].split("\n## ")[0]
        names = {check.name for check in funnel(0).diagnostics.checks} | {"finished", "log z error"}
        assert {"interval", "beyond", "precision", "R-hat given lam"} <= names
        assert not [name for name in names if f"| {name} |" not in section]

    def test_draws_that_miss_the_neck_are_told_from_good_ones(self) -> None:
        fit = first_that(converged, funnel)

        def compared(seed: int, lowest: float) -> MarginDiagnosis:
            y = np.maximum(3.0 * np.random.default_rng(seed).normal(size=(4, 1000)), lowest)
            return pt.diagnose_margin(xr.Dataset({"y": (("chain", "draw"), y)}), FUNNEL, "y", fit=fit)

        good = first_that(lambda found: found.agrees, lambda seed: compared(seed, -np.inf))
        assert "do not have its marginal" not in good.message
        # A sixth of the mass is missing, of 4000 draws: far beyond any chance.
        bad = compared(0, -3.0)
        assert not bad.agrees
        assert "do not have its marginal" in bad.message

    def test_it_survives_a_file(self, tmp_path: Path) -> None:
        fit = funnel(0)
        fit.save(tmp_path / "fit.nc")
        back = pt.load(tmp_path / "fit.nc")
        assert isinstance(back, pt.MarginFit)
        assert float(marginal(back).sd().value) == float(marginal(fit).sd().value)
        assert back.log_marginal_likelihood == fit.log_marginal_likelihood
        assert back.converged == fit.converged


@pytest.mark.slow
class TestManySeeds:
    """128 funnels show errors of half or twice their size, and a bias of one standard error, 998 times in 1000."""

    @staticmethod
    @cache
    def fits() -> list[pt.MarginFit]:
        return [funnel(seed) for seed in range(ENOUGH)]

    def test_errors_are_honest(self) -> None:
        values, se, exact = (np.array(x) for x in zip(*map(funnel_numbers, self.fits()), strict=True))
        assert_scores(combined((values - exact) / se), df=CHAINS - 1)

    def test_nearly_all_say_that_they_have_converged(self) -> None:
        assert_rate(sum(fit.converged for fit in self.fits()), ENOUGH, at_least=0.9)


@pytest.mark.slow
def test_eight_schools_within_an_interval_given_by_the_user() -> None:
    problem = pt.testing.eight_schools_flat()
    fit = pt.divide_and_conquer(
        problem.model, margin="tau", interval=problem.interval, budget=120_000, chains=CHAINS, seed=1, progress=False
    )
    level = np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    assert_right(fit, marginal(fit).quantile(level), problem.law.quantile(level))
    assert marginal(fit).interval == pytest.approx((0.1, 100.0))


@pytest.mark.slow
def test_a_margin_with_two_modes_is_found() -> None:
    problem = pt.testing.two_mode_scale()
    exact = float(problem.law.cdf(1.0))

    def run(seed: int) -> pt.MarginFit:
        return pt.divide_and_conquer(
            problem.model, margin="tau", budget=160_000, chains=CHAINS, seed=seed, progress=False
        )

    fits = [run(seed) for seed in range(16)]
    for fit in fits:
        share = marginal(fit).cdf(1.0)
        if fit.converged:
            assert_right(fit, share, exact)
    # Without this nothing is said by a verdict that is always no.
    assert_rate(sum(fit.converged for fit in fits), len(fits), at_least=0.5)


def two_scales() -> pt.Model:
    """Two funnels, tau[0] and tau[1], a simplex-like total, a square and a constant among the draws."""
    layout = Layout({"tau": (2,), "x": (2,)}, {"tau": Positive()})

    def log_target(v: jnp.ndarray) -> jnp.ndarray:
        log_tau, x = v[:2], v[2:]
        return jnp.sum(-0.5 * (log_tau / jnp.array([1.0, 0.3])) ** 2 - 0.5 * (x * jnp.exp(-log_tau)) ** 2 - log_tau)

    def draws(flat: np.ndarray) -> dict[str, np.ndarray]:
        named = layout.constrain_draws(flat)
        rng = np.random.default_rng(len(flat))
        return {
            **named,
            "total": named["tau"].sum(axis=1),
            "square": flat[:, 2] ** 2,
            "count": np.floor(1e-9 * np.abs(flat[:, 0])).astype(int),
            "noise": rng.normal(size=len(flat)),
            "variance": np.exp(2.0 * np.minimum(flat[:, 0], 300.0)),
        }

    return pt.Model(lambda v: -0.5 * jnp.sum(v**2), log_target, layout, constrain_draws=draws, name="two scales")


def quick(model: pt.Model, margin: str | pt.Margin, seed: int) -> pt.MarginFit:
    return pt.divide_and_conquer(model, margin=margin, budget=60_000, chains=16, seed=seed, progress=False)


UPPER = 0.9750021
"""Level of the quantile at 1.96 of a standard normal."""


@pytest.mark.slow
def test_several_margins_in_turn() -> None:
    fits = pt.divide_and_conquer(
        two_scales(), margin=["tau[0]", "tau[1]"], budget=60_000, chains=16, seed=1, progress=False
    )
    assert list(fits) == ["tau[0]", "tau[1]"]
    for name, scale in (("tau[0]", 1.0), ("tau[1]", 0.3)):
        assert_right(fits[name], marginal(fits[name]).quantile(UPPER), np.exp(1.96 * scale))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "margin", "exact"),
    [
        (two_scales, "variance", 2 * 1.96),
        (lambda: replace(two_scales(), log_base=Automatic(), sample_base=None), "tau[0]", 1.96),
    ],
    ids=["a transformed parameter of one parameter", "no base is needed"],
)
def test_further_margins(make: Callable[[], pt.Model], margin: str, exact: float) -> None:
    fit = quick(make(), margin, seed=2)
    assert_right(fit, marginal(fit).quantile(UPPER), np.exp(exact))


@pytest.mark.slow
def test_a_function_of_the_parameters_with_its_inverse() -> None:
    layout = Layout({"a": (), "b": ()}, {"a": Positive(), "b": Positive()})
    model = pt.Model(
        lambda v: -0.5 * jnp.sum(v**2),
        lambda v: -0.5 * v[0] ** 2 - 0.5 * ((v[1] - 1.0) / 2.0) ** 2,
        layout,
        name="logs",
    )
    ratio = pt.Margin(
        lambda p: jnp.log(p["a"] / p["b"]), lambda v, p: jnp.exp(v) * p["b"], replaces="a", name="log ratio"
    )
    fit = quick(model, ratio, seed=1)
    assert_right(fit, marginal(fit).moment(1), -1.0)
    assert_right(fit, marginal(fit).sd(), np.sqrt(5.0))
    wrong = pt.Margin(lambda p: p["a"] + p["b"], lambda v, p: v + p["b"], replaces="a")
    with pytest.raises(pt.InputError, match="does not undo"):
        pt.divide_and_conquer(model, margin=wrong)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["prior", lambda x: -0.5 * np.log(x) ** 2 - np.log(x)])
def test_other_target_marginals_give_the_same_law(target: object) -> None:
    model = pt.testing.eight_schools(centred=True).model
    fit = pt.divide_and_conquer(
        model,
        margin="tau",
        target_marginal=target,  # type: ignore[arg-type]
        interval=(0.5, 20.0),
        budget=80_000,
        chains=CHAINS,
        progress=False,
    )
    law = pt.testing.eight_schools_tau()
    inside = (law.cdf(3.0) - law.cdf(0.5)) / (law.cdf(20.0) - law.cdf(0.5))
    assert_right(fit, marginal(fit).cdf(3.0), float(inside))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": "sigma"}, "the model has no 'sigma'; it has 'tau', 'x'"),
        ({"margin": "tau"}, "name one element, such as tau\\[0\\]"),
        ({"margin": "tau[5]"}, "no index '5'; indices run from 0 to 1"),
        ({"margin": "tau[0,1]"}, "gives 2 indices"),
        ({"margin": "total"}, "function of 2 parameters and cannot be inverted"),
        ({"margin": "square"}, "not a one-to-one function"),
        ({"margin": "count"}, "does not vary with any continuous parameter"),
        ({"margin": "noise"}, "is random given the parameters"),
        ({"margin": 3}, "margin: it must be the name of a parameter"),
        ({"margin": []}, "the list is empty"),
        ({"margin": "tau[0]", "interval": (2.0, 1.0)}, "interval: expected two finite numbers, the lower first"),
        ({"margin": "tau[0]", "interval": (1.0, 1.0)}, "interval: expected two finite numbers"),
        ({"margin": "tau[0]", "interval": (-1.0, 1.0)}, "interval: 'tau\\[0\\]' lies between"),
        ({"margin": "tau[0]", "target_marginal": "flat"}, "target_marginal: expected 'optimal'"),
        ({"margin": "tau[0]", "target_marginal": "prior"}, "needs a base that can be sampled"),
        ({"margin": "tau[0]", "budget": 0}, "budget: it must be a positive number"),
        (
            {"margin": "tau[0]", "settings": pt.settings.DEFAULT.replace(batch=8)},
            "settings: batch is of pt.temper alone",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(pt.InputError, match=message) as caught:
        pt.divide_and_conquer(two_scales(), **options)  # type: ignore[call-overload]
    assert "\n" not in str(caught.value)


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(pt.InputError, match="budget: 2000 gradient equivalents are too few"):
        pt.divide_and_conquer(two_scales(), margin="tau[0]", budget=2000, progress=False)


def test_the_papers_engine() -> None:
    fit = pt.divide_and_conquer(neck(), margin="tau", settings=PAPER_MARGIN, seed=2, progress=False)
    level = np.array([0.16, 0.5, 0.84])
    assert_right(fit, marginal(fit).quantile(level), np.exp(stats.norm.ppf(level)))
    assert len(fit.history) == PAPER_MARGIN.adaptations
    assert fit.posterior.sizes["chain"] == PAPER_MARGIN.chains


@pytest.mark.slow
def test_the_papers_engine_on_eight_schools() -> None:
    problem = pt.testing.eight_schools_flat()
    settings = pt.settings.PAPER.replace(draws=2000, adaptations=4, stop=False)
    for seed in range(4):
        fit = pt.divide_and_conquer(
            problem.model, margin="tau", interval=problem.interval, settings=settings, seed=seed, progress=False
        )
        assert_right(fit, marginal(fit).quantile(0.5), problem.law.quantile(0.5))
