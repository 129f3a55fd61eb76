"""The walk leaves the joint law unchanged, whatever its transport; its gradients have the mean they should."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pathtemp.kernels.triangular import TriangularTransport
from pathtemp.kernels.walk import Walker, WalkParameters, WalkShape, make_round
from pathtemp.paths.function import FunctionPath

CHAINS = 40_000
LOW, HIGH = -2.0, 1.0


def log_q(theta: jax.Array, lam: jax.Array) -> jax.Array:
    """Two normals of mean lam and scale exp(lam), correlated; log z = lam."""
    x = (theta - lam) * jnp.exp(-lam)
    return -0.5 * (x[0] ** 2 + (x[1] - 0.6 * x[0]) ** 2 / 0.64) - 2 * lam + lam


def parameters(ends: tuple[float, float], *, transport_error: float) -> WalkParameters:
    """A transport that is wrong in location, scale and correlation, and a pseudo-prior that is right."""
    s = np.linspace(0.0, 1.0, 5)
    lam = LOW + (HIGH - LOW) * s
    wrong = transport_error * np.sin(5.0 * s)
    location = np.column_stack([lam + wrong, lam - 0.5 * wrong])
    log_diagonal = np.column_stack([lam + wrong, lam + np.log(0.8) + 0.3 * wrong])
    lower = np.tile(np.eye(2), (5, 1, 1))
    lower[:, 1, 0] = 0.6 - wrong
    return WalkParameters(
        jnp.asarray([LOW, HIGH]),
        jnp.asarray(ends),
        jnp.linspace(LOW, HIGH, 9),  # log c = log z = lam
        TriangularTransport(jnp.asarray(location), jnp.asarray(log_diagonal), jnp.asarray(lower)),
        jnp.full(3, jnp.log(0.8)),
        jnp.asarray(False),
        (),
    )


def exact(ends: tuple[float, float], rng: np.random.Generator) -> Walker:
    a = rng.uniform(0.0, 2.0, CHAINS)
    s = np.clip((1.0 - np.abs(1.0 - a) - ends[0]) / (1.0 - sum(ends)), 0.0, 1.0)
    lam = LOW + (HIGH - LOW) * s
    x = rng.normal(size=(CHAINS, 2)) * np.array([1.0, 0.8])
    x[:, 1] += 0.6 * x[:, 0]
    theta = lam[:, None] + np.exp(lam)[:, None] * x
    return Walker(jnp.asarray(theta), jnp.asarray(a), jax.vmap(log_q)(jnp.asarray(theta), jnp.asarray(lam)))


@pytest.fixture(scope="module", params=[(0.0, 0.0), (0.1, 0.2)], ids=["margin", "flat ends"])
def after(request: pytest.FixtureRequest) -> tuple[WalkParameters, Walker, Any]:
    chosen = parameters(request.param, transport_error=0.5)
    start = exact(request.param, np.random.default_rng(0))
    program = jax.jit(make_round(FunctionPath(log_q), WalkShape(iterations=4, leapfrogs=2, points=5)))
    chains, record = program(np.uint32(1), np.uint32(0), start, chosen)
    return chosen, chains, record


def test_the_joint_law_is_unchanged(after: tuple[WalkParameters, Walker, Any]) -> None:
    chosen, chains, _ = after
    a = np.asarray(chains.a)
    assert stats.kstest(a / 2.0, "uniform").pvalue > 1e-3
    s = np.asarray(jax.vmap(chosen.position)(chains.a))
    lam = LOW + (HIGH - LOW) * s
    x = (np.asarray(chains.theta) - lam[:, None]) * np.exp(-lam)[:, None]
    second = (x[:, 1] - 0.6 * x[:, 0]) / 0.8
    for values in (x[:, 0], second):
        assert stats.kstest(values, "norm").pvalue > 1e-3
        for part in np.array_split(np.argsort(lam + 1e-9 * a), 4):  # also at each part of the path
            assert stats.kstest(values[part], "norm").pvalue > 1e-4
    assert abs(stats.pearsonr(x[:, 0], second).statistic) < 0.02


def test_the_chains_moved(after: tuple[WalkParameters, Walker, Any]) -> None:
    assert float(after[2].jump) > 0.05
    assert 0.2 < float(np.mean(after[2].acceptance)) < 1.0


def test_both_gradients_have_the_slope_of_log_z_as_their_mean(after: tuple[WalkParameters, Walker, Any]) -> None:
    _, _, record = after
    inside = (np.asarray(record.s) > 0) & (np.asarray(record.s) < 1)
    for values in (np.asarray(record.u), np.asarray(record.plain)):
        here = values[inside]
        error = here.std() / np.sqrt(CHAINS)
        assert abs(here.mean() - (HIGH - LOW)) < 5.0 * error


def test_masses_are_probabilities(after: tuple[WalkParameters, Walker, Any]) -> None:
    np.testing.assert_allclose(np.asarray(after[2].masses).sum(axis=1), 4.0)


def test_an_exact_transport_leaves_no_noise_in_the_gradient() -> None:
    chosen = parameters((0.0, 0.0), transport_error=0.0)
    start = exact((0.0, 0.0), np.random.default_rng(0))
    program = jax.jit(make_round(FunctionPath(log_q), WalkShape(iterations=2, leapfrogs=1, points=4)))
    _, record = program(np.uint32(1), np.uint32(0), start, chosen)
    assert np.std(np.asarray(record.u)) < 1e-6
    assert np.std(np.asarray(record.plain)) > 1.0
