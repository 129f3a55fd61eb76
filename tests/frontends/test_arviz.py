"""A fit in ArviZ itself, before and after its version 1.0: tables, LOO and pictures."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("numpyro", reason="NumPyro is not installed")

import numpy as np
import xarray as xr
from numpyro_models import MODELS

import pathtemp as pt


@pytest.fixture(scope="module")
def fit():
    source, args, kwargs = MODELS["regression"]
    return pt.temper(pt.from_numpyro(source, *args, **kwargs), seed=1, budget=120_000, progress=False)


@pytest.mark.programs_full
@pytest.mark.filterwarnings("ignore")
def test_arviz_takes_a_fit(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ 0.23 announces version 1.0
        az = pytest.importorskip("arviz", reason="ArviZ is not installed")
    data = fit.to_arviz()
    table = az.summary(data)
    assert list(table.index) == ["b[0]", "b[1]", "sigma"]
    np.testing.assert_allclose(
        table["mean"].astype(float),
        [*fit.posterior["b"].mean(("chain", "draw")), fit.posterior["sigma"].mean()],
        atol=0.01,
    )
    loo = az.loo(data)
    assert np.isfinite(getattr(loo, "elpd_loo", None) or loo.elpd)
    assert loo.n_data_points == 12
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")
    from matplotlib import pyplot

    for plot in ("plot_posterior", "plot_dist", "plot_pair", "plot_forest", "plot_trace"):
        # ArviZ 1.0 calls plot_posterior plot_dist, which before took arrays.
        if plot == ("plot_dist" if hasattr(az, "plot_posterior") else "plot_posterior"):
            continue
        assert getattr(az, plot)(data) is not None
    new = fit.predict(seed=1)
    if hasattr(data, "add_groups"):  # before 1.0
        data.add_groups(posterior_predictive=new)
        assert az.plot_ppc(data, num_pp_samples=20) is not None
    else:
        data["posterior_predictive"] = xr.DataTree(new)
        assert az.plot_ppc_dist(data, num_samples=20) is not None
    pyplot.close("all")


@pytest.mark.programs_full
@pytest.mark.filterwarnings("ignore")
def test_pymc_predicts_from_a_fit():
    """By its own function, for the data that there are, for new data, and into the same object."""
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    with pm.Model(coords={"i": ["a", "b", "c"]}) as model:
        x = pm.Data("x", [1.0, 2.0, -1.0], dims="i")
        slope = pm.Normal("slope", 0.0, 3.0)
        pm.Normal("y", pm.Deterministic("mean", slope * x, dims="i"), 1.0, observed=[1.5, 3.9, -2.2], dims="i")
    fit = pt.temper(model, seed=1, budget=60_000, progress=False)
    data = fit.to_arviz()
    slope = fit.posterior["slope"]
    # What is left after the slope of each draw is standard normal: six standard errors of a mean.
    margin = 6.0 / np.sqrt(slope.size)
    with model:
        new = pm.sample_posterior_predictive(data, random_seed=1, progressbar=False).posterior_predictive["y"]
        assert new.dims == ("chain", "draw", "i")
        assert list(new["i"].values) == ["a", "b", "c"]
        left = new - slope * xr.DataArray([1.0, 2.0, -1.0], dims="i")
        assert np.all(np.abs(left.mean(("chain", "draw"))) < margin)
        extended = pm.sample_posterior_predictive(data, extend_inferencedata=True, random_seed=1, progressbar=False)
        np.testing.assert_array_equal(extended.posterior_predictive["y"], new)
        pm.set_data({"x": [10.0]}, coords={"i": ["d"]})
        ahead = pm.sample_posterior_predictive(data, predictions=True, random_seed=2, progressbar=False).predictions[
            "y"
        ]
    assert abs(float((ahead.isel(i=0) - 10.0 * slope).mean())) < margin


@pytest.mark.programs_full
def test_inside_the_context_of_a_pymc_model_it_need_not_be_named():
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    with pytest.raises(pt.InputError, match=r"^temper: give a model"):
        pt.temper()
    with pm.Model(), pytest.raises(pt.InputError, match="the model has no free variables"):
        pt.temper()
    with pm.Model(), pytest.raises(pt.InputError, match="the model has no free variables"):
        pt.divide_and_conquer(margin="tau")
