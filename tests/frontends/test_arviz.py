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
    return pt.temper(pt.from_numpyro(source, *args, **kwargs), seed=1, budget=40_000, progress=False)


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
