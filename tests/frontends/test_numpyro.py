"""NumPyro models against NumPyro itself: densities, prior draws, names, dims."""

# ruff: noqa: E402
from __future__ import annotations

import dataclasses
import functools
import sys

import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import arviz_base
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from agreement import assert_draws_have_the_density, precisions
from numpyro import handlers
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import initialize_model
from numpyro_models import MODELS, regression
from scipy import stats

import pathtemp as pt
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.result.draws import draws_dataset

ENUMERATED = {"enumerated_mixture", "spike_and_slab", "hidden_markov"}
QUICK = {"hierarchical", "spike_and_slab"}
"""Models of the default suite; `-m programs_full` runs the others."""

EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.programs_full) for name in MODELS]

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Missing a plate statement:UserWarning")


@functools.cache
def built(name):
    if name in ENUMERATED:
        pytest.importorskip("funsor", reason="funsor, which enumeration needs, is not installed")
    model, args, kwargs = MODELS[name]
    program = pt.from_numpyro(model, *args, **kwargs)
    assert program.sample_base is not None
    return program


def _points(model, count=3):
    return jax.random.normal(jax.random.key(5), (count, model.dim))


@pytest.mark.parametrize("name", EVERY)
def test_the_target_is_the_density_that_nuts_samples(name):
    model = built(name)
    source, args, kwargs = MODELS[name]
    own = initialize_model(jax.random.key(0), source, model_args=args, model_kwargs=kwargs, validate_grad=False)

    @jax.jit
    @jax.vmap
    def both(x):
        return model.log_target(x), -own.potential_fn(model.layout.unravel(x))

    np.testing.assert_allclose(*both(_points(model)), rtol=1e-12)
    assert precisions(jax.value_and_grad(model.log_target), model.dim) == {"float64"}


@pytest.mark.parametrize("name", EVERY)
def test_the_base_is_the_sum_of_the_latent_sites_and_their_jacobians(name):
    model = built(name)
    source, args, kwargs = MODELS[name]
    for x in _points(model, 2):
        values = {k: jnp.asarray(v[0]) for k, v in model.draws(np.asarray(x)[None]).items() if k in model.layout.shapes}
        sites = handlers.trace(handlers.substitute(handlers.seed(source, 0), data=values)).get_trace(*args, **kwargs)
        total = 0.0
        for site, free in model.layout.unravel(x).items():
            fn = sites[site]["fn"]
            transform = dist.biject_to(fn.support)
            total += jnp.sum(transform.log_abs_det_jacobian(free, values[site]))
            if name == "spike_and_slab":
                parts = [
                    np.log(0.3) + stats.norm(0, 2).logpdf(values[site]),
                    np.log(0.7) + stats.norm(0, 0.1).logpdf(values[site]),
                ]
                total += np.logaddexp(*parts)
            else:
                total += jnp.sum(fn.log_prob(values[site]))
        np.testing.assert_allclose(model.log_base(x), total, rtol=1e-10)


@pytest.mark.programs_full
@pytest.mark.parametrize("name", MODELS)
def test_prior_draws_have_the_prior_density(name):
    assert_draws_have_the_density(built(name))


def test_prior_draws_of_another_scale_are_seen():
    model = built("hierarchical")
    wider = dataclasses.replace(model, sample_base=lambda key: 1.2 * model.sample_base(key))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_draws_have_the_density(wider)


NAMED = ("hierarchical", "noncentred", "correlated", "potential", "enumerated_mixture", "random_walk", "crossed_plates")
"""Models with plates, deterministic and reparametrised sites, sites summed out and scans."""


@pytest.mark.programs_full
@pytest.mark.parametrize("name", NAMED)
def test_names_and_dims_are_those_of_mcmc(name):
    source, args, kwargs = MODELS[name]
    model = built(name)
    mcmc = MCMC(NUTS(source, max_tree_depth=1), num_warmup=1, num_samples=2, progress_bar=False)
    mcmc.run(jax.random.key(0), *args, **kwargs)
    own = arviz_base.from_numpyro(mcmc).posterior.dataset
    ours = draws_dataset(model, np.asarray(_points(model, 2))[None])
    assert {k: v.shape for k, v in ours.data_vars.items()} == {k: v.shape for k, v in own.data_vars.items()}
    assert {k: v.dims for k, v in ours.data_vars.items()} == {k: v.dims for k, v in own.data_vars.items()}
    assert {k: list(v.values) for k, v in ours.coords.items()} == {k: list(v.values) for k, v in own.coords.items()}


def test_deterministic_sites_are_computed_from_the_draws():
    model = built("hierarchical")
    draws = model.draws(np.asarray(_points(model)))
    np.testing.assert_allclose(draws["shrinkage"], draws["theta"] - draws["mu"][:, None])


@pytest.mark.programs_full
def test_bases_other_than_the_prior():
    _, args, kwargs = MODELS["regression"]

    def other(x, y=None):
        numpyro.sample("b", dist.Normal(1.0, 3.0).expand([2]).to_event(1))
        numpyro.sample("sigma", dist.LogNormal(0.5, 0.7))

    named = {"b": dist.Normal(1.0, 3.0).expand([2]).to_event(1), "sigma": dist.LogNormal(0.5, 0.7)}
    x = jnp.array([0.4, -0.3, 0.2])
    exact = stats.norm(1, 3).logpdf([0.4, -0.3]).sum() + stats.norm(0.5, 0.7).logpdf(0.2)
    for base in (other, named):
        model = pt.from_numpyro(regression, *args, base=base, **kwargs)
        np.testing.assert_allclose(model.log_base(x), exact, rtol=1e-12)
        assert_draws_have_the_density(model, draws=500)
    flat = pt.from_numpyro(regression, *args, base=dist.Normal(0.0, 2.0).expand([3]).to_event(1), **kwargs)
    np.testing.assert_allclose(flat.log_base(x), stats.norm(0, 2).logpdf(x).sum(), rtol=1e-12)


def test_a_scaled_prior_is_only_a_density():
    def scaled():
        with handlers.scale(scale=2.0):
            numpyro.sample("x", dist.Normal(0.0, 1.0))

    model = pt.from_numpyro(scaled)
    assert model.sample_base is None
    np.testing.assert_allclose(model.log_base(jnp.array([0.5])), 2 * stats.norm.logpdf(0.5))


def test_a_mass_that_is_rounded_to_zero_makes_no_infinite_density():
    """Of observations between bounds far above their mean: their density is divided by the mass between the bounds."""

    def truncated(y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.TwoSidedTruncatedDistribution(dist.Normal(mu, 0.1), 2.0, 3.0), obs=y)

    y = jnp.array([2.2, 2.5])
    model = pt.from_numpyro(truncated, y)
    assert model.log_target(jnp.array([-6.0])) == -jnp.inf
    exact = stats.norm.logpdf(2.4) + stats.truncnorm(-4.0, 6.0, 2.4, 0.1).logpdf(y).sum()
    np.testing.assert_allclose(model.log_target(jnp.array([2.4])), exact, rtol=1e-9)


def test_what_cannot_be_tempered_is_named():
    def poisson():
        k = numpyro.sample("k", dist.Poisson(3.0))
        numpyro.sample("x", dist.Normal(k, 1.0))

    def unplated(y):
        w = numpyro.sample("w", dist.Beta(1.0, 1.0))
        z = numpyro.sample("z", dist.Bernoulli(w).expand([len(y)]))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)

    def subsampled(y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", len(y), subsample_size=2) as index:
            numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[index])

    with pytest.raises(InputError, match="is a dict"):
        pt.from_numpyro({})
    with pytest.raises(InputError, match="no continuous latent sites"):
        pt.from_numpyro(lambda: numpyro.sample("y", dist.Normal(0.0, 1.0), obs=0.0))
    with pytest.raises(InputError, match="site 'k' is a Poisson"):
        pt.from_numpyro(poisson)
    with pytest.raises(InputError, match="site 'z' has batch shape"):
        pt.from_numpyro(unplated, jnp.zeros(3))
    with pytest.raises(InputError, match="plate 'data' subsamples 2 of 3"):
        pt.from_numpyro(subsampled, jnp.zeros(3))


def test_without_numpyro_or_funsor_the_error_says_what_to_install(monkeypatch):
    model, args, kwargs = MODELS["spike_and_slab"]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numpyro.contrib.funsor", None)
        with pytest.raises(MissingExtraError, match="funsor is not installed"):
            pt.from_numpyro(model, *args, **kwargs)
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathtemp\[numpyro\]'"):
        pt.from_numpyro(regression, None)
