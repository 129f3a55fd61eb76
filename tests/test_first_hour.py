"""What a user of another library types first: pickles, reprs, chosen variables, ArviZ, extending what was loaded."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import tempered
import xarray as xr
from synthetic import cauchy_fit, diagnostics, fit_of, odd_model

import pathtemp as pt
from pathtemp.model.inputs import nan_in_data
from pathtemp.model.layout import Layout
from pathtemp.model.model import AboutBase, Model, Pointwise, Predictive
from pathtemp.result import arviz
from pathtemp.result.fit import Fit


def observing(**changes: Any) -> Model:
    """A model that says what it observed, its likelihood and new data."""
    y = np.array([1.0, 2.0])
    data = {"observed_data": xr.Dataset({"y": ("i", y)}), "constant_data": xr.Dataset({"x": ("i", 2 * y)})}

    def terms(draws: Any) -> dict[str, np.ndarray]:
        return {"y": -0.5 * (y - draws["mu"][:, None]) ** 2}

    def new(draws: Any, seed: int) -> dict[str, np.ndarray]:
        return {"y": draws["mu"][:, None] + np.random.default_rng(seed).normal(size=(len(draws["mu"]), 2))}

    whole = {"data": data, "pointwise": Pointwise(terms, {"y": ("i",)}), "predictive": Predictive(new, {"y": ("i",)})}
    return replace(odd_model(), **(whole | changes))


def test_a_tree_has_the_data_and_the_likelihood_where_that_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fit_of(observing())
    tree = fit.to_datatree()
    assert {"observed_data", "constant_data", "log_likelihood"} <= set(tree.children)
    np.testing.assert_allclose(tree["log_likelihood"]["y"][..., 1], -0.5 * (2.0 - fit.posterior["mu"]) ** 2)
    monkeypatch.setattr(arviz, "MOST_TERMS", 2 * 60 - 1)
    assert "log_likelihood" not in fit.to_datatree().children
    assert "log_likelihood" in fit.to_datatree(log_likelihood=True).children


def test_the_base_is_called_the_prior_where_it_is() -> None:
    assert "prior" not in fit_of(observing()).to_datatree().children
    about = AboutBase("the prior", evidence=True, prior=True)
    tree = fit_of(observing(about=about)).to_datatree()
    assert "prior" in tree.children
    assert "log_marginal_likelihood" in tree.attrs


@pytest.mark.parametrize(("installed", "is_tree"), [("1.2.0", True), ("0.23.4", False)])
def test_arviz_gets_what_its_version_takes(monkeypatch: pytest.MonkeyPatch, installed: str, is_tree: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ 0.23 announces version 1.0
        az = pytest.importorskip("arviz", reason="ArviZ is not installed")
    if not hasattr(az, "InferenceData") and not is_tree:
        pytest.skip("ArviZ 1.0 has no InferenceData")
    monkeypatch.setattr(arviz, "version", lambda name: installed)
    data = fit_of(observing()).to_arviz()
    assert isinstance(data, xr.DataTree if is_tree else az.InferenceData)
    assert set(data["posterior"].data_vars) == {"mu", "theta", "tau"}


def test_a_fit_pickles_and_goes_on_as_one_that_was_loaded(tmp_path: Any) -> None:
    fit = tempered.fit()
    fit.save(tmp_path / "fit.nc")
    loaded, unpickled = pt.load(tmp_path / "fit.nc"), pickle.loads(pickle.dumps(fit))
    for again in (loaded, unpickled):
        xr.testing.assert_identical(again.posterior, fit.posterior)
        xr.testing.assert_identical(again.sample_stats, fit.sample_stats)
        assert again.log_constant == fit.log_constant
        assert again.model is None
    with pytest.raises(pt.InputError, match=r"^extend: .* give it: extend\(model"):
        loaded.extend(budget=60_000)
    with pytest.raises(pt.InputError, match=r"^model: the checkpoint is of"):
        loaded.extend(odd_model(), budget=60_000)
    model = tempered.problem("mixture_1d").model
    longer = [again.extend(model, budget=60_000) for again in (loaded, unpickled)]
    assert longer[0].counts.gradients > fit.counts.gradients
    assert longer[0].diagnostics.tours > fit.diagnostics.tours
    xr.testing.assert_identical(longer[0].posterior, longer[1].posterior)
    xr.testing.assert_identical(pt.load(tmp_path / "fit.nc", model=model).base, fit.base)


def test_the_model_of_a_loaded_fit_must_be_its_own(tmp_path: Any) -> None:
    fit_of(observing()).save(tmp_path / "fit.nc")
    with pytest.raises(pt.InputError, match=r"^model: it has 'nu', and the fit of odd does not"):
        pt.load(tmp_path / "fit.nc", model=odd_model(("mu", "nu", "tau")))
    assert pt.load(tmp_path / "fit.nc", model=observing()).predict()["y"].shape == (3, 20, 2)


def test_draws_have_their_density_and_their_tour() -> None:
    fit = tempered.fit()
    stats, theta = fit.sample_stats, fit.posterior["theta"].values
    log_target = tempered.problem("mixture_1d").model.log_target
    for chain, draw in ((0, 0), (3, 7)):
        assert float(stats["lp"][chain, draw]) == pytest.approx(float(log_target(jnp.asarray(theta[chain, draw]))))
    # Draws of one tour are of one chain of the run, and no chain is in two groups.
    pairs = np.stack([stats["tour"].values.ravel(), stats["walker"].values.ravel()], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0]))
    assert sum(len(np.unique(group)) for group in stats["walker"].values) == len(np.unique(stats["walker"]))
    assert stats["lam_visits"].sum() > 0


def test_predictions_are_drawn_at_the_posterior() -> None:
    fit = fit_of(observing())
    made = fit.predict(seed=3)["y"]
    assert made.dims == ("chain", "draw", "i")
    # 120 standard normal errors about the draws: their mean is 5 standard errors off once in two million.
    assert abs(float((made - fit.posterior["mu"]).mean())) < 5 / np.sqrt(120)
    xr.testing.assert_identical(fit.predict(seed=3)["y"], made)
    generated = replace(fit, model=None, posterior=fit.posterior.assign(y_rep=fit.posterior["theta"]))
    assert list(generated.predict().data_vars) == ["y_rep"]


def test_chosen_variables_are_shown_and_drawn() -> None:
    fit = fit_of(odd_model())
    assert list(fit.summary(var_names=["tau", "mu"]).table.index) == ["tau", "mu"]
    assert list(fit.summary(var_names="mu").table.index) == ["mu"]
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    assert len(fit.plot(var_names=["theta", "tau"]).axes) == 8
    pyplot.close("all")


def test_a_variable_called_draw_keeps_its_name_where_it_is_shown() -> None:
    fit = fit_of(odd_model(("draw", "theta", "tau")))
    assert fit.summary().table.index[0] == "draw"
    assert list(fit.summary(var_names=["draw"]).table.index) == ["draw"]
    assert fit.stan_variable("draw").shape == (60,)


def test_indices_begin_where_the_language_has_them() -> None:
    one = replace(odd_model(), layout=Layout({"mu": (5,)}, first_index=1))
    fit = fit_of(one)
    assert fit.summary().table.index[0] == "mu[1]"
    assert fit.posterior["chain"].values.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "thing",
    [odd_model(), pt.normal(0.0, np.ones(50)), pt.function_base(jnp.sum, dim=3), cauchy_fit().log_z, cauchy_fit()],
    ids=["model", "normal", "base", "curve", "fit"],
)
def test_reprs_are_short(thing: Any) -> None:
    assert len(repr(thing)) < 160
    assert "\n" not in repr(thing)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("samples", r"; fit\.posterior has the draws"),
        ("theta", r"; fit\.posterior\['theta'\]"),
        ("log_evidence", r"; fit\.log_marginal_likelihood"),
        ("idata", r"; fit\.to_arviz\(\)"),
        ("stan_variables", r"; fit\.posterior has all"),
        ("diagnose", r"; fit\.warnings"),
        ("nonsense", "$"),
    ],
)
def test_names_of_other_libraries_are_answered(name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=f"^'Fit' object has no attribute '{name}'{says}"):
        getattr(cauchy_fit(), name)


def test_functions_of_other_libraries_are_answered() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sample'; pt\.temper\(model\) runs"):
        pt.sample  # noqa: B018


def test_what_is_no_evidence_is_not_called_so() -> None:
    about = AboutBase("the base as given", evidence=False, remedy="leave base= out")
    fit = fit_of(odd_model())
    other = fit_of(replace(odd_model(), about=about), seed=1)
    with pytest.warns(UserWarning, match=r"^log_marginal_likelihood: .* no evidence: .*; leave base= out"):
        value = other.log_marginal_likelihood
    assert value == other.log_constant
    assert "log_constant" in other.to_datatree().attrs
    assert "log constant of the kernel" in str(other.summary())
    with pytest.warns(UserWarning, match=r"bayes_factor: fit_b may not be compared: .*; leave base= out"):
        pt.bayes_factor(fit, other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit.log_marginal_likelihood == fit.log_constant


def test_without_round_trips_there_is_no_log_z() -> None:
    fit: Fit = replace(fit_of(odd_model()), diagnostics=replace(diagnostics(), tours=0))
    assert np.isnan(fit.log_constant.value)
    assert fit.log_constant.se == np.inf
    assert "unknown" in repr(fit)
    assert "no chain made a round trip" in str(fit.summary())
    early = replace(fit, diagnostics=replace(fit.diagnostics, khat=float("nan"), length=float("nan"))).summary()
    assert dict(early.facts)["k-hat of 1/p(a)"] == "unknown"
    assert dict(early.facts)["length of the path"].startswith("unknown")
    with pytest.raises(pt.InputError, match="no chain made a round trip"):
        pt.compare({"a": fit_of(odd_model(), seed=1), "b": fit})


def test_a_model_without_data_is_told() -> None:
    model = odd_model()
    with pytest.raises(pt.InputError, match="observes no data"):
        pt.temper(replace(model, log_target=model.log_base), progress=False)


def test_nan_in_the_data_is_told_with_its_place() -> None:
    bad = {"observed_data": xr.Dataset({"y": ("i", [1.0, np.nan])})}
    model = replace(odd_model(), log_target=lambda x: jnp.sum(x) * jnp.nan, data=bad)
    with pytest.raises(pt.InputError, match=r"^data: 'y' has NaN at 1 of 2 places, the first at 1"):
        pt.temper(model, progress=False)
    with pytest.raises(pt.InputError, match=r"^target: the log density is NaN at all"):
        pt.temper(replace(model, data={}), progress=False)


def test_infinity_in_the_data_is_told_with_its_place() -> None:
    data = {"observed_data": xr.Dataset({"y": ("i", [1.0, np.inf])})}
    assert nan_in_data(replace(odd_model(), data=data), infinite=True) == (
        "'y' has infinity at 1 of 2 places, the first at 1"
    )


def test_a_run_keeps_draws_along_its_path_by_name() -> None:
    """Each is a point of the path, with the a and lam that it had."""
    fit = tempered.fit()
    at, lam = fit.path["point_a"].values, fit.path["point_lam"].values
    # The run is short, so that every iteration is in the path, and a tells them apart.
    path = {
        a: (lam, x) for a, lam, x in zip(*(fit.path[k].values.ravel() for k in ("a", "lam", "theta0")), strict=True)
    }
    assert [path[a] for a in at] == list(zip(lam, fit.path_draws["theta"].values[0, :, 0], strict=True))
    assert {0.0, 1.0} <= set(lam)
