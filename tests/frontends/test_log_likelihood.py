"""The likelihood of each observation: PyMC's and NumPyro's own numbers, names and dims, and LOO from them."""

# ruff: noqa: E402
from __future__ import annotations

import importlib

import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import arviz_base
import jax
import jax.numpy as jnp
import numpy as np
import numpyro_models
import xarray as xr
from arviz_stats import loo
from closed_forms import SAMPLE
from numpyro.infer import MCMC, NUTS
from scipy import stats

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.model.model import model as plain_model
from pathtemp.result.draws import draws_dataset, log_likelihood_dataset

SLOW = pytest.mark.programs_full
PYMC = ["regression", "ordinal", "correlated", "censored", "mixture", "missing_values"]
NUMPYRO = ["hierarchical", "simplex", "correlated", "censored", "random_walk", "crossed_plates"]


def at_points(model):
    """Draws at random points, and the likelihoods there."""
    posterior = draws_dataset(model, np.asarray(jax.random.normal(jax.random.key(2), (2, 3, model.dim))))
    return posterior, log_likelihood_dataset(model, posterior)


def assert_same(ours, own):
    assert {k: v.dims for k, v in ours.data_vars.items()} == {k: v.dims for k, v in own.data_vars.items()}
    for name in own.data_vars:
        np.testing.assert_allclose(ours[name].values, own[name].values, rtol=1e-10)
    for name in own.coords:
        assert list(ours[name].values) == list(own[name].values)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "regression" else SLOW) for name in PYMC])
def test_pymc(name):
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    from pytensor.compile.mode import Mode

    source = importlib.import_module("pymc_models").MODELS[name]()
    posterior, ours = at_points(pt.from_pymc(source))
    own = pm.compute_log_likelihood(
        arviz_base.convert_to_datatree(posterior) if int(pm.__version__[0]) > 5 else {"posterior": posterior},
        model=source,
        extend_inferencedata=False,
        progressbar=False,
        compile_kwargs={"mode": Mode(linker="py", optimizer="fast_compile")},
    )
    assert_same(ours, own)


@SLOW
@pytest.mark.parametrize("name", NUMPYRO)
def test_numpyro(name):
    source, args, kwargs = numpyro_models.MODELS[name]
    posterior, ours = at_points(pt.from_numpyro(source, *args, **kwargs))
    mcmc = MCMC(NUTS(source, max_tree_depth=1), num_warmup=1, num_samples=3, num_chains=2, progress_bar=False)
    mcmc.run(jax.random.key(0), *args, **kwargs)
    shapes = {k: v.shape for k, v in mcmc.get_samples(group_by_chain=True).items() if k in posterior}
    assert shapes == {k: posterior[k].shape for k in shapes}
    mcmc._states["z"] = {k: jnp.asarray(posterior[k].values) for k in shapes}
    assert_same(ours, arviz_base.from_numpyro(mcmc, log_likelihood=True)["log_likelihood"].dataset)


@SLOW
def test_data_are_those_of_the_day_the_model_was_made():
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    with pm.Model() as source:
        x = pm.Data("x", np.zeros(2))
        pm.Normal("y", pm.Normal("mu") + x, 1.0, observed=np.zeros(2))
    model = pt.from_pymc(source)
    with source:
        pm.set_data({"x": np.ones(2)})
    posterior, ours = at_points(model)
    np.testing.assert_allclose(ours["y"], stats.norm(posterior["mu"].values[..., None]).logpdf(np.zeros(2)))


@SLOW
def test_models_with_initial_values():
    """PyMC's own transformations of models refuse them."""
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    with pm.Model() as source:
        sigma = pm.HalfNormal("sigma", 1.0, initval=0.7)
        pm.Normal("y", 0.0, sigma, observed=[0.3, -1.2])
    posterior, ours = at_points(pt.from_pymc(source))
    np.testing.assert_allclose(ours["y"], stats.norm(0, posterior["sigma"].values[..., None]).logpdf([0.3, -1.2]))


@SLOW
@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_loo_is_that_of_the_conjugate_model(language):
    """mu ~ N(0, 2), y ~ N(mu, 1): each observation is predicted by a normal. Draws are those of the exact posterior."""
    if language == "pymc":
        pytest.importorskip("pymc", reason="PyMC is not installed")
        model = pt.from_pymc(importlib.import_module("pymc_models").CLOSED_FORMS["normal_mean"]())
    else:
        model = pt.from_numpyro(numpyro_models.CLOSED_FORMS["normal_mean"])
    variance = 1 / (1 / 4 + len(SAMPLE))
    mu = variance * SAMPLE.sum() + np.sqrt(variance) * np.random.default_rng(0).normal(size=(4, 5000, 1))
    posterior = draws_dataset(model, mu)
    likelihood = log_likelihood_dataset(model, posterior)
    data = xr.DataTree.from_dict({"posterior": posterior, "log_likelihood": likelihood})
    rest = 1 / (1 / 4 + len(SAMPLE) - 1)
    exact = stats.norm(rest * (SAMPLE.sum() - SAMPLE), np.sqrt(1 + rest)).logpdf(SAMPLE)
    # 1 / likelihood has a relative standard deviation of 1.1 at most under this posterior: .008 over 20,000 draws
    np.testing.assert_allclose(loo(data, pointwise=True).elpd_i, exact, atol=0.05)


def test_what_has_no_single_observations_says_so():
    pytest.importorskip("funsor", reason="funsor, which enumeration needs, is not installed")
    source, args, kwargs = numpyro_models.MODELS["spike_and_slab"]
    with pytest.raises(InputError, match=r"log_likelihood: sites \['on'\] were summed out"):
        at_points(pt.from_numpyro(source, *args, **kwargs))
    with pytest.raises(InputError, match="gives no likelihood of single observations"):
        at_points(plain_model(lambda x: -jnp.sum(x**2), pt.normal(shape=(1,))))
