"""The transport against dense linear algebra and automatic differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stationary import rough_transport

from pathtemp.kernels.transport import AffineMap, Transport, identity, regressions

DIM, POSITIONS = 4, 5
Z = jnp.array([0.7, -1.2, 0.1, 2.0])
THETA = jnp.array([-0.4, 0.9, 1.7, -2.2])


def dense(chart: AffineMap) -> np.ndarray:
    """F as a matrix, from its parts."""
    r = np.eye(len(chart.location))
    if chart.factor is not None:
        r = np.asarray(chart.factor)
    elif chart.basis is not None:
        basis, gain = np.asarray(chart.basis), np.asarray(chart.gain)
        r = r + basis @ np.diag(gain) @ basis.T
    inner = np.ones(len(r)) if chart.inner is None else np.asarray(chart.inner)
    return np.diag(chart.scale) @ r @ np.diag(inner)


def rough_regressions(*, full: bool) -> Transport:
    """One of a path of another kind: unit lower triangular, or diagonal."""
    rng = np.random.default_rng(1)
    lower = np.eye(DIM) + np.tril(rng.normal(size=(POSITIONS, DIM, DIM)), -1)
    location, log_diagonal = (jnp.asarray(rng.normal(size=(POSITIONS, DIM))) for _ in range(2))
    return regressions(location, log_diagonal, jnp.asarray(lower) if full else None)


MAKE = {
    "full": lambda: rough_transport(DIM, full=True, positions=POSITIONS),
    "low rank": lambda: rough_transport(DIM, full=False, positions=POSITIONS),
    "regressions": lambda: rough_regressions(full=True),
    "diagonal": lambda: rough_regressions(full=False),
}


@pytest.fixture(params=MAKE)
def transport(request: pytest.FixtureRequest) -> Transport:
    return MAKE[request.param]()


@pytest.mark.parametrize("s", [0.0, 0.13, 0.25, 0.8, 1.0])
def test_map_against_its_matrix(transport: Transport, s: float) -> None:
    chart = transport.at(jnp.asarray(s))
    matrix, location = dense(chart), np.asarray(chart.location)
    np.testing.assert_allclose(chart.forward(Z), location + matrix @ Z, rtol=1e-12)
    np.testing.assert_allclose(chart.linear(Z), matrix @ Z, rtol=1e-12)
    np.testing.assert_allclose(chart.adjoint(Z), matrix.T @ Z, rtol=1e-12)
    np.testing.assert_allclose(chart.inverse(THETA), np.linalg.solve(matrix, THETA - location), rtol=1e-10)
    np.testing.assert_allclose(chart.log_det(), np.linalg.slogdet(matrix)[1], rtol=1e-10)


def test_map_against_automatic_differentiation(transport: Transport) -> None:
    chart = transport.at(jnp.asarray(0.37))
    jacobian = np.asarray(jax.jacobian(chart.forward)(Z))
    np.testing.assert_allclose(jacobian, dense(chart), atol=1e-12)
    np.testing.assert_allclose(chart.log_det(), np.linalg.slogdet(jacobian)[1], rtol=1e-10)
    np.testing.assert_allclose(jax.jacobian(chart.inverse)(THETA), np.linalg.inv(jacobian), atol=1e-10)

    def log_density(theta: jax.Array) -> jax.Array:
        return -jnp.sum(theta**4) + theta[0] * theta[1]

    np.testing.assert_allclose(
        chart.adjoint(jax.grad(log_density)(chart.forward(Z))),
        jax.grad(lambda z: log_density(chart.forward(z)))(Z),
        rtol=1e-10,
    )


def test_inverse_undoes_forward(transport: Transport) -> None:
    chart = transport.at(jnp.asarray(0.61))
    np.testing.assert_allclose(chart.inverse(chart.forward(Z)), Z, rtol=1e-10)
    np.testing.assert_allclose(chart.forward(chart.inverse(THETA)), THETA, rtol=1e-10)


def test_orbit_is_the_map_at_every_position(transport: Transport) -> None:
    s = jnp.array([0.0, 0.1, 0.25, 0.49, 0.5, 0.77, 1.0])
    thetas, log_dets = transport.orbit(Z, s)
    for i, position in enumerate(s):
        chart = transport.at(position)
        np.testing.assert_allclose(thetas[i], chart.forward(Z), rtol=1e-12)
        np.testing.assert_allclose(log_dets[i], chart.log_det(), rtol=1e-10)


def test_tables_are_met_at_their_positions(transport: Transport) -> None:
    for b in range(POSITIONS):
        chart = transport.at(jnp.asarray(b / (POSITIONS - 1)))
        np.testing.assert_allclose(chart.location, transport.location[b], rtol=1e-12)
        np.testing.assert_allclose(chart.scale, np.exp(transport.log_scale[b]), rtol=1e-12)
        log_inner = None if chart.inner is None else np.log(chart.inner)
        tables = (transport.factor, transport.gain, transport.log_inner)
        for table, part in zip(tables, (chart.factor, chart.gain, log_inner), strict=True):
            assert (table is None) == (part is None)
            if table is not None:
                np.testing.assert_allclose(part, table[b], rtol=1e-12)


def test_map_of_a_batch_of_positions_is_that_of_each(transport: Transport) -> None:
    s = jnp.linspace(0.0, 1.0, 9)
    z = jnp.asarray(np.random.default_rng(0).normal(size=(9, DIM)))
    together = jax.jit(jax.vmap(lambda s, z: transport.at(s).forward(z)))(s, z)
    np.testing.assert_allclose(together, [transport.at(p).forward(x) for p, x in zip(s, z, strict=True)], rtol=1e-12)


def test_identity_moves_and_scales_each_coordinate_alone() -> None:
    plain = identity(3, 4, location=jnp.array([1.0, 2.0, 3.0]), scale=jnp.array([0.5, 1.0, 2.0]))
    chart = plain.at(jnp.asarray(0.9))
    np.testing.assert_allclose(dense(chart), np.diag([0.5, 1.0, 2.0]), atol=1e-15)
    np.testing.assert_allclose(chart.forward(jnp.ones(3)), [1.5, 3.0, 5.0])
    assert float(chart.log_det()) == pytest.approx(0.0)
