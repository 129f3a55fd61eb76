"""Priors that a transform restricts: their densities are normalised, so that log z is an evidence from any base."""

from __future__ import annotations

import pytest

pytest.importorskip("pymc", reason="PyMC is not installed")
pytest.importorskip("numpyro", reason="NumPyro is not installed")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm

import pathtemp as pt
from pathtemp.testing.calibration import assert_close

Y = np.array([-1.0, 0.5, 2.0])


def ordered(alike: bool = True) -> pm.Model:
    """Two normals in order: half of their prior's mass, of which log z must know nothing."""
    with pm.Model() as model:
        centre = np.zeros(2) if alike else pm.Data("centre", np.zeros(2))
        mu = pm.Normal("mu", centre, 2.0, shape=2, transform=pm.distributions.transforms.ordered)
        pm.Normal("y", mu.sum(), 1.0, observed=Y)
    return model


def exact_evidence() -> float:
    """Of the sum of two normals, which the order does not touch."""
    covariance = np.eye(3) + 8.0 * np.ones((3, 3))
    return float(-0.5 * (Y @ np.linalg.solve(covariance, Y) + np.linalg.slogdet(2 * np.pi * covariance)[1]))


@pytest.mark.parametrize("alike", [True, False])
def test_an_ordered_prior_has_mass_one(alike: bool) -> None:
    """Draws that are exchangeable are sorted, and others drawn again; the mass is 1 in 2 for both, counted or known."""
    model = pt.from_pymc(ordered(alike))
    x = jnp.array([0.3, -0.2])
    mu = np.array([0.3, 0.3 + np.exp(-0.2)])
    plain = float(np.sum(-0.5 * (mu / 2.0) ** 2 - np.log(2.0) - 0.5 * np.log(2 * np.pi))) - 0.2
    # Where the share of the prior in order is counted, it has a relative error of .004: five of them.
    assert float(model.log_base(x)) - plain == pytest.approx(np.log(2.0), abs=1e-6 if alike else 0.02)
    likelihood = float(np.sum(-0.5 * (Y - mu.sum()) ** 2 - 0.5 * np.log(2 * np.pi)))
    assert float(model.log_target(x) - model.log_base(x)) == pytest.approx(likelihood, abs=1e-9)
    assert model.base.evidence
    assert model.base.prior


@pytest.mark.slow
def test_a_simplex_and_a_half_normal_are_normalised_as_they_are() -> None:
    """Their transforms change nothing: importance sampling of the density from a wide normal gives mass 1."""
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.array([2.0, 3.0, 1.5]))
        s = pm.HalfNormal("s", 1.5)
        pm.Normal("y", w[0] + s, 1.0, observed=Y)
    log_base = pt.from_pymc(model).log_base
    rng = np.random.default_rng(0)
    x = 3.0 * rng.standard_t(4, size=(40_000, 3)) / np.sqrt(2.0)
    from scipy.stats import t

    log_q = t.logpdf(x * np.sqrt(2.0) / 3.0, 4).sum(axis=1) + 3 * np.log(np.sqrt(2.0) / 3.0)
    weight = np.exp(np.asarray(jax.jit(jax.vmap(log_base))(jnp.asarray(x))) - log_q)
    assert_close(float(weight.mean()), 1.0, float(weight.std() / np.sqrt(len(weight))))


@pytest.mark.programs_full
@pytest.mark.parametrize("base", [None, "auto", pt.normal(0.0, 3.0, shape=(2,))], ids=["prior", "auto", "given"])
@pytest.mark.filterwarnings("ignore:no base was given")
def test_the_evidence_is_that_given_the_order_from_any_base(base: object) -> None:
    fit = pt.temper(ordered(), base=base, seed=1, budget=180_000, progress=False)
    value, se = fit.log_marginal_likelihood
    assert_close(value, exact_evidence(), se)


def regression(x: jax.Array, y: jax.Array | None = None) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    numpyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)


def test_data_and_predictions_of_a_numpyro_model() -> None:
    x = jnp.arange(3.0)
    model = pt.from_numpyro(regression, x, y=jnp.asarray(Y))
    np.testing.assert_array_equal(model.data["observed_data"]["y"], Y)
    np.testing.assert_array_equal(model.data["constant_data"]["x"], x)
    assert model.predictive is not None
    made = model.predictive.draw({"slope": np.array([0.0, 100.0])}, 0)["y"]
    assert made.shape == (2, 3)
    # Standard normal errors: nine of them.
    np.testing.assert_allclose(made, np.outer([0.0, 100.0], x), atol=9.0)


def test_one_distribution_that_observes_many_predicts_many() -> None:
    def coin(y: jax.Array) -> None:
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    model = pt.from_numpyro(coin, jnp.asarray(Y))
    assert model.predictive is not None
    assert model.predictive.draw({"mu": np.zeros(4)}, 0)["y"].shape == (4, 3)


def test_data_and_predictions_of_a_pymc_model() -> None:
    with pm.Model(coords={"i": ["a", "b", "c"]}) as source:
        x = pm.Data("x", np.arange(3.0), dims="i")
        pm.Normal("y", pm.Normal("slope", 0.0, 2.0) * x, 1.0, observed=Y, dims="i")
    model = pt.from_pymc(source)
    assert model.data["observed_data"]["y"].dims == ("i",)
    np.testing.assert_array_equal(model.data["constant_data"]["x"], np.arange(3.0))
    assert model.predictive is not None
    made = model.predictive.draw({"slope": np.array([0.0, 100.0])}, 0)["y"]
    np.testing.assert_allclose(made, np.outer([0.0, 100.0], np.arange(3.0)), atol=9.0)


def test_a_model_that_decides_by_a_value_is_one_sentence() -> None:
    def decides(y: jax.Array) -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        if mu > 0:
            numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    with pytest.raises(pt.InputError, match="decides takes a site out of JAX, by `if`"):
        pt.from_numpyro(decides, jnp.asarray(Y))
    with pytest.raises(pt.InputError, match="decides fails with the arguments given"):
        pt.from_numpyro(decides)
