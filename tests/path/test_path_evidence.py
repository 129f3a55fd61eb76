"""The integral of the target, by bridge sampling: errors against standard errors, where the transport is no help."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

import pathtemp as pt
from pathtemp.engines.path.evidence import weighted_bridge
from pathtemp.model.layout import Layout
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_rate, assert_scores


def correlated(rng: np.random.Generator, iterations: int, chains: int, rho: float) -> np.ndarray:
    """Chains of the standard normal with autocorrelation rho."""
    x = np.empty((iterations, chains))
    x[0] = rng.normal(size=chains)
    for i in range(1, iterations):
        x[i] = rho * x[i - 1] + np.sqrt(1.0 - rho**2) * rng.normal(size=chains)
    return x


@pytest.mark.parametrize("independent", [60.0, 600.0, 6000.0])
def test_the_bridge_knows_its_error(independent: float) -> None:
    # A skewed density of integral 3, 3 exp(x - e^x), from a normal(0, 1.5), with chains of normal(0, 1) for weighting.
    rng, z = np.random.default_rng(0), []

    def log_ratio(x: np.ndarray) -> np.ndarray:
        return np.log(3.0) + x - np.exp(x) + 0.5 * (x / 1.5) ** 2 + np.log(1.5 * np.sqrt(2 * np.pi))

    def log_weight(x: np.ndarray) -> np.ndarray:
        return x - np.exp(x) + 0.5 * (x / 2.0) ** 2

    for _ in range(ENOUGH):
        draws = 2.0 * correlated(rng, 100, 16, 0.8)
        value, se = weighted_bridge(
            log_ratio(1.5 * rng.normal(size=3000)), log_ratio(draws), log_weight(draws), independent=independent
        )
        z.append((value - np.log(3.0)) / se)
    assert_scores(z)


def test_draws_without_weight_do_not_count() -> None:
    rng = np.random.default_rng(1)
    reference, draws = rng.normal(scale=0.1, size=1000), rng.normal(scale=0.1, size=(50, 8))
    half = np.where(np.arange(8) < 4, 0.0, -np.inf) * np.ones((50, 1))
    spoilt = np.where(half == 0.0, draws, 1e6)
    assert weighted_bridge(reference, spoilt, half, independent=50.0)[0] == pytest.approx(
        weighted_bridge(reference, draws[:, :4], np.zeros((50, 4)), independent=50.0)[0]
    )


def skewed() -> pt.Model:
    """y ~ normal(0, 1), x = exp(y) v, exp(v) ~ gamma(1/2): no linear transport makes v normal. The integral is 1."""

    def log_target(w: jnp.ndarray) -> jnp.ndarray:
        y, v = w[0], w[1:] * jnp.exp(-w[0])
        one = 0.5 * v - jnp.exp(v) - float(gammaln(0.5)) - y
        return -0.5 * y**2 - 0.5 * float(np.log(2 * np.pi)) + jnp.sum(one)

    layout = Layout({"y": (), "x": (3,)})
    return pt.Model(lambda w: -0.5 * jnp.sum(w**2), log_target, layout, name="skewed")


@pytest.mark.slow
def test_evidence_is_honest_where_theta_given_lam_is_not_normal() -> None:
    model, z, runs = skewed(), [], 24
    for seed in range(runs):
        fit = pt.divide_and_conquer(model, margin="y", budget=120_000, chains=32, seed=100 * seed, progress=False)
        value, se = fit.log_marginal_likelihood
        if fit.converged:
            z.append(value / se)
    assert_rate(len(z), runs, at_least=0.75)
    assert_scores(z)


@pytest.mark.slow
def test_evidence_does_not_depend_on_the_nodes_of_the_curve() -> None:
    # The trapezoid through the nodes alone would be .001 too high.
    problem = pt.testing.two_mode_scale()
    fit = pt.divide_and_conquer(problem.model, margin="tau", budget=160_000, chains=32, seed=1, progress=False)
    value, se = fit.log_marginal_likelihood
    assert se < 0.0005
    assert_close(value, problem.log_evidence, se)
