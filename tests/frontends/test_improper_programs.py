"""Priors of PyMC and NumPyro models that are improper, in part or as a whole: none is refused for want of a base."""

# ruff: noqa: E402
from __future__ import annotations

import warnings
from typing import Any

import pytest

pm = pytest.importorskip("pymc", reason="PyMC is not installed")
numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from scipy import stats

import pathtemp as pt
from pathtemp.model.bases import Automatic, ProperPart
from pathtemp.model.model import Model
from pathtemp.testing.calibration import assert_close

Y = np.array([1.0, 2.5, 0.3, 1.7, 2.2])


def half_pymc() -> Any:
    """A flat mean, of which ``group`` depends; the others have priors of their own, one of them given an order."""
    with pm.Model() as model:
        k = pm.Normal("k", 1.0, 2.0, shape=2, transform=pm.distributions.transforms.ordered)
        mean = pm.Flat("mean")
        sigma = pm.HalfNormal("sigma", 2.0)
        group = pm.Normal("group", mean, 1.0)
        pm.Normal("y", group + k.sum(), sigma, observed=Y)
    return model


def half_numpyro(y: Any) -> None:
    k = numpyro.sample("k", dist.Normal(1.0, 2.0).expand([2]).to_event(1))
    mean = numpyro.sample("mean", dist.ImproperUniform(dist.constraints.real, (), ()))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    group = numpyro.sample("group", dist.Normal(mean, 1.0))
    numpyro.sample("y", dist.Normal(group + k.sum(), sigma), obs=y)


def the_part(model: Model) -> ProperPart:
    assert isinstance(model.log_base, Automatic)
    assert model.log_base.proper is not None
    assert not model.base.evidence
    return model.log_base.proper


def log_sigma(x: float) -> float:
    """Log density of the logarithm of a half-normal variable of scale 2."""
    return float(stats.halfnorm(scale=2.0).logpdf(np.exp(x)) + x)


def assert_moments(part: ProperPart, columns: list[int], exact: list[float]) -> None:
    draws = np.asarray(jax.jit(jax.vmap(part.sample))(jax.random.split(jax.random.key(2), 2000)))[:, columns]
    assert_close(draws.mean(axis=0), exact, draws.std(axis=0) / np.sqrt(len(draws)))


MEAN_LOG_HALF_NORMAL = float(np.log(2.0) - 0.5 * (np.euler_gamma + np.log(2.0)))
"""Of a half-normal variable of scale 2: half the mean log of a chi square of one degree of freedom, and log 2."""


def test_the_proper_part_of_a_numpyro_prior_is_kept() -> None:
    model = pt.from_numpyro(half_numpyro, jnp.asarray(Y))
    part = the_part(model)
    assert str(model.base) == (
        "the prior of k, sigma, drawn exactly; the prior of site 'mean' is improper and cannot be sampled; "
        "pt.temper finds a law of the rest"
    )
    assert (part.rest, part.names) == ((2, 4), ("mean", "group"))
    # A point at which the rest overflows: it has no influence.
    x = jnp.array([0.5, 0.7, 1e308, -0.2, 900.0])
    exact = stats.norm(1.0, 2.0).logpdf([0.5, 0.7]).sum() + log_sigma(-0.2)
    value, slope = jax.value_and_grad(part.log_prob)(x)
    np.testing.assert_allclose(value, exact, rtol=1e-12)
    np.testing.assert_allclose(slope, [0.125, 0.075, 0.0, 1.0 - np.exp(-0.4) / 4.0, 0.0], rtol=1e-12)
    assert_moments(part, [0, 1, 3], [1.0, 1.0, MEAN_LOG_HALF_NORMAL])


@pytest.mark.programs_full
def test_the_proper_part_of_a_pymc_prior_is_kept() -> None:
    model = pt.from_pymc(half_pymc())
    part = the_part(model)
    assert str(model.base).startswith("the prior of k, sigma, drawn exactly; the priors of ['mean'] are improper")
    assert (part.rest, part.names) == ((2, 4), ("mean", "group"))
    x = jnp.array([0.5, 0.7, 1e308, -0.2, 900.0])
    k = np.array([0.5, 0.5 + np.exp(0.7)])
    # Divided by the half of the prior that has the order.
    exact = stats.norm(1.0, 2.0).logpdf(k).sum() + 0.7 + np.log(2.0) + log_sigma(-0.2)
    value, slope = jax.value_and_grad(part.log_prob)(x)
    np.testing.assert_allclose(value, exact, atol=1e-7)  # PyMC has its constants in single precision
    assert slope[2] == slope[4] == 0.0
    # The least of two normals is 1/sqrt(pi) standard deviations below their mean.
    assert_moments(part, [0, 3], [1.0 - 2.0 / np.sqrt(np.pi), MEAN_LOG_HALF_NORMAL])


def test_where_nothing_is_proper_all_is_found() -> None:
    with pm.Model() as flat:
        pm.Normal("y", pm.Flat("mu"), pm.HalfFlat("sigma"), observed=Y)

    def masked(y: Any) -> None:
        with handlers.mask(mask=False):
            mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    for model, why in (
        (pt.from_pymc(flat), "the priors of ['mu', 'sigma'] are improper"),
        (pt.from_numpyro(masked, jnp.asarray(Y)), "site 'mu' is masked"),
    ):
        assert isinstance(model.log_base, Automatic)
        assert model.log_base.proper is None
        assert str(model.base).startswith(f"no base in the model: {why}")
        assert not model.base.evidence


def test_a_base_that_is_given_is_used_and_log_z_is_no_evidence() -> None:
    def improper(y: Any) -> None:
        mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    with pytest.warns(UserWarning, match="log z is no evidence"):
        model = pt.from_numpyro(improper, 0.3, base={"mu": dist.Normal(0.0, 3.0)})
    np.testing.assert_allclose(model.log_target(jnp.zeros(1)), stats.norm.logpdf(0.3))
    np.testing.assert_allclose(model.log_base(jnp.zeros(1)), stats.norm(0.0, 3.0).logpdf(0.0))
    assert not model.base.evidence


@pytest.mark.programs_full
@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_log_z_is_that_of_the_kernel(language: str) -> None:
    """With a flat mean the data say nothing of what is added to it, and integrate to a known constant."""

    def shifted(y: Any) -> None:
        mean = numpyro.sample("mean", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("y", dist.Normal(mean + numpyro.sample("k", dist.Normal(1.0, 2.0)), 1.0), obs=y)

    with pm.Model() as source:
        pm.Normal("y", pm.Flat("mean") + pm.Normal("k", 1.0, 2.0), 1.0, observed=Y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no base was given for mean")
        model = pt.from_pymc(source) if language == "pymc" else pt.from_numpyro(shifted, jnp.asarray(Y))
        fit = pt.temper(model, seed=1, budget=60_000, progress=False)
    n, squares = len(Y), np.sum((Y - Y.mean()) ** 2)
    exact = -0.5 * (squares + (n - 1) * np.log(2 * np.pi) + np.log(n))
    assert_close(fit.log_constant.value, exact, fit.log_constant.se)
    assert fit.log_constant.se < 0.5
    assert not fit.is_evidence
    k = fit.posterior["k"].mean("draw")
    assert_close(float(k.mean()), 1.0, float(k.std(ddof=1) / np.sqrt(k.size)), df=k.size - 1)
