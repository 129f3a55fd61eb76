"""Learning the transport: moments along the path, robust to tails, duplicates and few draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp._types import FloatArray
from pathtemp.engines.default.transport import fit_transport, median_spread
from pathtemp.kernels.transport import Transport
from pathtemp.testing.calibration import assert_close


def matrix(transport: Transport, s: float) -> FloatArray:
    """F at s as a matrix."""
    chart = transport.at(jnp.asarray(s))
    return np.asarray(jax.vmap(chart.linear)(jnp.eye(len(chart.scale)))).T


def whitened(transport: Transport, s: FloatArray, theta: FloatArray) -> FloatArray:
    return np.asarray(jax.jit(jax.vmap(lambda s, x: transport.at(s).inverse(x)))(s, theta))


def moving_normals(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """Draws whose mean, scale and correlation all depend on s."""
    s = rng.uniform(size=count)
    z = rng.normal(size=(count, 3))
    rho = (0.9 * np.sin(3.0 * s))[:, None]
    y = np.concatenate([z[:, :1], rho * z[:, :1] + np.sqrt(1 - rho**2) * z[:, 1:2], z[:, 2:]], axis=1)
    return s, mean_at(s) + scale_at(s) * y


def mean_at(s: FloatArray) -> FloatArray:
    return np.stack([10.0 * s, np.cos(3.0 * s), 0.0 * s - 5.0], axis=-1)


def scale_at(s: FloatArray) -> FloatArray:
    return np.exp(np.stack([-3.0 * s, 1.0 + 0.0 * s, 2.0 * s**2 - 1.0], axis=-1))


@pytest.mark.parametrize("full", [True, False])
def test_location_and_scale_follow_normals_along_the_path(full: bool) -> None:
    transport = fit_transport(*moving_normals(np.random.default_rng(0), 30_000), positions=13, full=full)
    for s in np.linspace(0.0, 1.0, 11):
        chart = transport.at(jnp.asarray(s))
        sd = np.sqrt(np.diag(matrix(transport, s) @ matrix(transport, s).T))
        scale = scale_at(np.asarray(s))
        # Of some 2000 draws around each position: errors of .03 at most, and the curvature of what is fitted.
        np.testing.assert_allclose((chart.location - mean_at(np.asarray(s))) / scale, 0.0, atol=0.3)
        # One basis for all positions cannot follow a correlation that changes sign.
        np.testing.assert_allclose(np.log(sd / scale), 0.0, atol=0.25 if full else 0.4)


def test_correlation_follows_normals_along_the_path() -> None:
    transport = fit_transport(*moving_normals(np.random.default_rng(0), 30_000), positions=13, full=True)
    for s in np.linspace(0.0, 1.0, 11):
        covariance = matrix(transport, s) @ matrix(transport, s).T
        correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        # Standard errors are below .02.
        assert correlation[0, 1] == pytest.approx(0.9 * np.sin(3.0 * s), abs=0.2)
        assert abs(correlation[0, 2]) < 0.2


def test_what_is_whitened_is_standard_normal_at_every_position() -> None:
    rng = np.random.default_rng(1)
    transport = fit_transport(*moving_normals(rng, 30_000), positions=13, full=True)
    s, theta = moving_normals(rng, 20_000)
    z = whitened(transport, s, theta)
    for part in np.array_split(np.argsort(s), 8):
        # Errors of the transport and of 2500 draws are .03 together.
        np.testing.assert_allclose(z[part].mean(axis=0), 0.0, atol=0.25)
        np.testing.assert_allclose(np.cov(z[part].T), np.eye(3), atol=0.4)


@pytest.mark.parametrize("full", [True, False])
def test_cauchy_columns_do_not_blow_up_scale_or_correlation(full: bool) -> None:
    rng = np.random.default_rng(2)
    count = 24_000
    s = rng.uniform(size=count)
    theta = np.column_stack([rng.standard_cauchy(count), rng.normal(size=count), 5.0 + rng.standard_cauchy(count)])
    theta[0] = 1e30
    transport = fit_transport(s, theta, positions=7, full=full)
    scale = np.exp(np.asarray(transport.log_scale))
    # The interquartile range of a standard Cauchy is 2, that of a normal 1.35.
    assert np.all((scale[:, [0, 2]] > 1.0) & (scale[:, [0, 2]] < 4.0))
    assert np.all((scale[:, 1] > 0.8) & (scale[:, 1] < 1.2))
    # Over seeds the standard deviation is .2 at the ends of the path, and .1 between them.
    np.testing.assert_allclose(transport.location, np.array([0.0, 0.0, 5.0]) + np.zeros((7, 3)), atol=1.5)
    for node in np.linspace(0, 1, 7):
        f = matrix(transport, node)
        correlation = (f @ f.T) / np.sqrt(np.outer(np.diag(f @ f.T), np.diag(f @ f.T)))
        assert np.abs(correlation - np.eye(3)).max() < 0.2


def test_low_rank_finds_a_planted_direction_and_leaves_the_rest_alone() -> None:
    rng, dim, count = np.random.default_rng(3), 150, 6000
    direction = np.ones(dim) / np.sqrt(dim)
    s = rng.uniform(size=count)
    excess = 1.0 + 6.0 * s
    theta = rng.normal(size=(count, dim)) + (excess * rng.normal(size=count))[:, None] * direction
    transport = fit_transport(s, theta, positions=5, full=False)
    gain = np.asarray(transport.gain)
    assert np.count_nonzero(gain.any(axis=0)) <= 3
    f_base, f_target = matrix(transport, 0.0), matrix(transport, 1.0)
    # Standard deviation along the direction: sqrt(1 + excess^2). The window at either end sees what is further inside:
    # 6% too little at the target, 32% too much at the base, each with a standard deviation of 2%.
    assert np.linalg.norm(f_target.T @ direction) == pytest.approx(np.sqrt(1 + 49.0), rel=0.2)
    assert np.linalg.norm(f_base.T @ direction) == pytest.approx(np.sqrt(2.0), rel=0.5)
    other = rng.normal(size=dim)
    other -= other @ direction * direction
    assert np.linalg.norm(f_target.T @ other) / np.linalg.norm(other) == pytest.approx(1.0, abs=0.25)


def test_low_rank_of_pure_noise_is_the_identity() -> None:
    rng = np.random.default_rng(4)
    transport = fit_transport(rng.uniform(size=3000), rng.normal(size=(3000, 120)), positions=5, full=False)
    assert np.count_nonzero(np.asarray(transport.gain)) == 0


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    "theta",
    [
        np.zeros((200, 3)),
        np.repeat([[1.0, 2.0, 3.0]], 200, axis=0),
        np.repeat([[1.0, 2.0, 3.0], [0.0, 5.0, -1.0]], 100, axis=0),
        np.column_stack([np.zeros(200), np.arange(200.0), 1e-300 * np.arange(200.0)]),
        np.column_stack([np.arange(200.0)] * 3),
        np.random.default_rng(0).normal(size=(2, 3)),
        np.random.default_rng(0).normal(size=(5, 3)),
        1e100 * np.random.default_rng(0).normal(size=(200, 3)),
    ],
    ids=["zeros", "one point", "two points", "constant column", "same columns", "two draws", "five draws", "huge"],
)
def test_degenerate_draws_give_a_finite_invertible_map(theta: FloatArray, full: bool) -> None:
    transport = fit_transport(np.linspace(0.0, 1.0, len(theta)), theta, positions=4, full=full)
    for s in (0.0, 0.4, 1.0):
        chart = transport.at(jnp.asarray(s))
        z = jnp.array([0.3, -1.0, 2.0])
        assert np.all(np.isfinite(chart.forward(z)))
        np.testing.assert_allclose(chart.inverse(chart.forward(z)), z, rtol=1e-5, atol=1e-5)
        assert np.isfinite(float(chart.log_det()))


@pytest.mark.parametrize("full", [True, False])
def test_draws_at_the_ends_alone(full: bool) -> None:
    """No draw inside: the map between is still finite, and right at the ends."""
    rng = np.random.default_rng(5)
    s = np.repeat([0.0, 1.0], 400)
    theta = rng.normal(size=(800, 2)) * np.where(s > 0, 0.1, 3.0)[:, None] + 4.0 * s[:, None]
    transport = fit_transport(s, theta, positions=13, full=full)
    assert np.all(np.isfinite(transport.location))
    # 400 draws at each end: standard errors of a location are .06 of the scale at most, those of a scale too.
    np.testing.assert_allclose(transport.location[0], 0.0, atol=7 * 0.06 * 3.0)
    np.testing.assert_allclose(transport.location[-1], 4.0, atol=7 * 0.06 * 0.1)
    np.testing.assert_allclose(np.exp(transport.log_scale[0]), 3.0, rtol=7 * 0.06)
    np.testing.assert_allclose(np.exp(transport.log_scale[-1]), 0.1, rtol=7 * 0.06)


def test_fewer_draws_than_dimensions_still_give_a_positive_definite_factor() -> None:
    rng = np.random.default_rng(6)
    transport = fit_transport(rng.uniform(size=40), rng.normal(size=(40, 60)), positions=5, full=True)
    assert transport.factor is not None
    assert np.asarray(jnp.diagonal(transport.factor, axis1=1, axis2=2)).min() > 1e-3


def test_median_and_spread_of_a_normal() -> None:
    x = np.random.default_rng(7).normal(3.0, 2.0, size=(20_000, 2))
    centre, spread = median_spread(x, most=20_000)
    # The median of n normals has variance pi / 2 n, their interquartile range over 1.349 has 1.36 / n.
    assert_close(centre, 3.0, 2.0 * np.sqrt(np.pi / 2 / 20_000))
    assert_close(spread, 2.0, 2.0 * np.sqrt(1.36 / 20_000))
