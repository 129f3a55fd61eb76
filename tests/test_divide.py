"""Divide and conquer end to end: errors against standard errors, refusals, two modes, several margins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp.bases import Automatic
from pathtemp.layout import Layout
from pathtemp.transforms import Positive

CHAINS = 32


@pytest.fixture(scope="module")
def funnels() -> list[pt.MarginFit]:
    model = pt.testing.funnel().model
    return [
        pt.divide_and_conquer(model, margin="y", budget=60_000, chains=CHAINS, seed=seed, progress=False)
        for seed in range(6)
    ]


def test_neals_funnel_is_right_within_its_errors(funnels: list[pt.MarginFit]) -> None:
    law = pt.testing.neal_funnel().law
    z = []
    for fit in funnels:
        assert fit.converged, fit.warnings
        assert fit.marginal is not None
        deviation, tails = fit.marginal.sd(), fit.marginal.cdf(np.array([-6.0, -9.0]))
        assert deviation.value == pytest.approx(3.0, rel=0.01)
        np.testing.assert_allclose(tails.value, law.cdf(np.array([-6.0, -9.0])), rtol=0.05)
        z += [(float(deviation.value) - 3.0) / float(deviation.se)]
        z += list((tails.value - law.cdf(np.array([-6.0, -9.0]))) / tails.se)
        z += [fit.log_marginal_likelihood.value / fit.log_marginal_likelihood.se]
    assert np.sqrt(np.mean(np.square(z))) < 1.8
    assert np.abs(z).max() < 5.0


def test_draws_of_the_whole_posterior(funnels: list[pt.MarginFit]) -> None:
    y = np.concatenate([fit.posterior["y"].values.ravel() for fit in funnels])
    assert y.std() == pytest.approx(3.0, rel=0.12)
    fit = funnels[0]
    assert fit.draws is not None
    weight = np.exp(fit.draws["log_weight"].values - fit.draws["log_weight"].values.max())
    inside = np.average(np.abs(fit.draws["y"].values) < 3.0, weights=weight)
    assert inside == pytest.approx(0.6827, abs=0.05)
    scaled = fit.draws["x"].values * np.exp(-0.5 * fit.draws["y"].values)[..., None]
    assert scaled.std() == pytest.approx(1.0, rel=0.05)  # x given y has its law along all of the margin


def test_the_same_seed_gives_the_same_fit(funnels: list[pt.MarginFit]) -> None:
    again = pt.divide_and_conquer(
        pt.testing.funnel().model, margin="y", budget=60_000, chains=CHAINS, seed=0, progress=False
    )
    np.testing.assert_array_equal(again.log_z.mean, funnels[0].log_z.mean)


def test_summary_and_figure(funnels: list[pt.MarginFit]) -> None:
    text = str(funnels[0].summary())
    assert "margin" in text
    assert "quantile 0.5" in text
    pytest.importorskip("matplotlib").use("Agg")
    funnels[0].plot()


def test_every_gate_is_explained(funnels: list[pt.MarginFit]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "verdict.md").read_text()
    section = page.split("### Along a margin or a path")[1].split("\n## ")[0]
    names = {check.name for check in funnels[0].diagnostics.checks} | {"finished", "log z error"}
    assert {"interval", "beyond", "precision", "R-hat given lam"} <= names
    assert not [name for name in names if f"| {name} |" not in section]


def test_eight_schools_within_an_interval_given_by_the_user() -> None:
    problem = pt.testing.eight_schools_flat()
    fit = pt.divide_and_conquer(
        problem.model, margin="tau", interval=problem.interval, budget=60_000, chains=CHAINS, seed=1, progress=False
    )
    assert fit.marginal is not None
    level = np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    quantile = fit.marginal.quantile(level)
    exact = problem.law.quantile(level)
    np.testing.assert_allclose(quantile.value, exact, rtol=0.03)
    assert np.abs((quantile.value - exact) / quantile.se).max() < 4.5
    assert fit.marginal.interval == pytest.approx((0.1, 100.0))


def test_a_margin_with_two_modes_is_found() -> None:
    problem = pt.testing.two_mode_scale()
    fit = pt.divide_and_conquer(problem.model, margin="tau", budget=80_000, chains=CHAINS, seed=0, progress=False)
    assert fit.marginal is not None
    share = fit.marginal.cdf(1.0)
    assert not fit.converged or abs(float(share.value) - float(problem.law.cdf(1.0))) < 0.05


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


def test_several_margins_in_turn() -> None:
    fits = pt.divide_and_conquer(
        two_scales(), margin=["tau[0]", "tau[1]"], budget=30_000, chains=16, seed=1, progress=False
    )
    assert list(fits) == ["tau[0]", "tau[1]"]
    for name, scale in (("tau[0]", 1.0), ("tau[1]", 0.3)):
        marginal = fits[name].marginal
        assert marginal is not None
        upper = marginal.quantile(0.975)
        error = np.log(upper.value) - 1.96 * scale
        assert abs(error) < 4.0 * upper.se / upper.value + 0.01


def test_a_transformed_parameter_of_one_parameter_is_a_margin() -> None:
    fit = pt.divide_and_conquer(two_scales(), margin="variance", budget=30_000, chains=16, seed=2, progress=False)
    assert fit.marginal is not None
    upper = fit.marginal.quantile(0.975)
    assert abs(np.log(upper.value) - 2 * 1.96) < 4.0 * upper.se / upper.value + 0.01


def test_no_base_is_needed() -> None:
    model = replace(two_scales(), log_base=Automatic(), sample_base=None)
    fit = pt.divide_and_conquer(model, margin="tau[0]", budget=30_000, chains=16, seed=3, progress=False)
    assert fit.marginal is not None
    upper = fit.marginal.quantile(0.975)
    assert abs(np.log(upper.value) - 1.96) < 4.0 * upper.se / upper.value + 0.01


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
    fit = pt.divide_and_conquer(model, margin=ratio, budget=30_000, chains=16, seed=1, progress=False)
    assert fit.marginal is not None
    assert float(fit.marginal.moment(1).value) == pytest.approx(-1.0, abs=0.03)
    assert float(fit.marginal.sd().value) == pytest.approx(np.sqrt(5.0), rel=0.02)
    wrong = pt.Margin(lambda p: p["a"] + p["b"], lambda v, p: v + p["b"], replaces="a")
    with pytest.raises(pt.InputError, match="does not undo"):
        pt.divide_and_conquer(model, margin=wrong)


@pytest.mark.parametrize("target", ["prior", lambda x: -0.5 * np.log(x) ** 2 - np.log(x)])
def test_other_target_marginals_give_the_same_law(target: object) -> None:
    model = pt.testing.eight_schools(centred=True).model
    fit = pt.divide_and_conquer(
        model,
        margin="tau",
        target_marginal=target,  # type: ignore[arg-type]
        interval=(0.5, 20.0),
        budget=40_000,
        chains=CHAINS,
        progress=False,
    )
    law = pt.testing.eight_schools_tau()
    inside = (law.cdf(3.0) - law.cdf(0.5)) / (law.cdf(20.0) - law.cdf(0.5))
    assert fit.marginal is not None
    assert float(fit.marginal.cdf(3.0).value) == pytest.approx(float(inside), abs=0.02)


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
        ({"margin": 3}, "expected a name"),
        ({"margin": []}, "the list is empty"),
        ({"margin": "tau[0]", "interval": (2.0, 1.0)}, "interval: expected two finite numbers, the lower first"),
        ({"margin": "tau[0]", "interval": (1.0, 1.0)}, "interval: expected two finite numbers"),
        ({"margin": "tau[0]", "interval": (-1.0, 1.0)}, "interval: 'tau\\[0\\]' lies between"),
        ({"margin": "tau[0]", "target_marginal": "flat"}, "target_marginal: expected 'optimal'"),
        ({"margin": "tau[0]", "target_marginal": "prior"}, "needs a base that can be sampled"),
        ({"margin": "tau[0]", "budget": 0}, "budget: it must be a positive number"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(pt.InputError, match=message) as caught:
        pt.divide_and_conquer(two_scales(), **options)  # type: ignore[call-overload]
    assert "\n" not in str(caught.value)


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(pt.InputError, match="budget: 2000 gradient evaluations are too few"):
        pt.divide_and_conquer(two_scales(), margin="tau[0]", budget=2000, progress=False)


def test_the_papers_engine() -> None:
    problem = pt.testing.eight_schools_flat()
    fit = pt.divide_and_conquer(
        problem.model,
        margin="tau",
        interval=problem.interval,
        settings=pt.settings.PAPER.replace(draws=2000, adaptations=4, stop=False),
        seed=1,
        progress=False,
    )
    assert fit.marginal is not None
    median = fit.marginal.quantile(0.5)
    assert abs(float(median.value) - float(problem.law.quantile(0.5))) < max(4 * float(median.se), 0.5)
    assert len(fit.history) == 4


def test_draws_that_miss_the_neck_are_told_from_good_ones(funnels: list[pt.MarginFit]) -> None:
    rng = np.random.default_rng(0)
    good = 3.0 * rng.normal(size=(4, 1000))
    model = pt.testing.funnel().model
    for draws, agrees in ((good, True), (np.maximum(good, -3.0), False)):
        import xarray as xr

        idata = xr.Dataset({"y": (("chain", "draw"), draws)})
        found = pt.diagnose_margin(idata, model, "y", fit=funnels[0])
        assert found.agrees is agrees
        assert ("do not have its marginal" in found.message) is not agrees


def test_a_fit_of_a_margin_survives_a_file(funnels: list[pt.MarginFit], tmp_path: Path) -> None:
    funnels[0].save(tmp_path / "fit.nc")
    back = pt.load(tmp_path / "fit.nc")
    assert isinstance(back, pt.MarginFit)
    assert back.marginal is not None
    assert funnels[0].marginal is not None
    assert float(back.marginal.sd().value) == float(funnels[0].marginal.sd().value)
    assert back.log_marginal_likelihood == funnels[0].log_marginal_likelihood
    assert back.converged == funnels[0].converged
