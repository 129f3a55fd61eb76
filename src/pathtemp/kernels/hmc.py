"""Hamiltonian Monte Carlo on z given lam, by position Verlet.

Position Verlet takes the gradient at the middle of each step, so a move of L steps costs L gradients and one density
at its end, and needs no gradient at its start: moves of lam and fresh base draws in between cost no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from pathtemp._types import Array


class Chart(Protocol):
    """An affine map from z to theta."""

    def forward(self, z: Array) -> Array:
        """Theta of z."""
        ...

    def adjoint(self, v: Array) -> Array:
        """The gradient in z of a gradient in theta."""
        ...


class Proposal(NamedTuple):
    """End of a trajectory.

    Parameters
    ----------
    theta, z
        Where it ends, shape (dim,).
    kinetic_fall
        The fall of kinetic energy along it.
    no_gradient
        The first theta on it at which the gradient was no number, which makes all that comes after NaN; where there is
        none, that of its start.
    """

    theta: Array
    z: Array
    kinetic_fall: Array
    no_gradient: Array


def propose(
    momentum: Array, z: Array, chart: Chart, gradient: Callable[[Array], Array], step: Array, steps: Array
) -> Proposal:
    """Trajectory of ``steps`` position-Verlet steps of size ``step`` in z, from a standard normal ``momentum``.

    ``gradient`` is that of the log density in theta; ``chart`` maps z to theta. The proposal is accepted with
    probability min(1, exp(log density at its end - log density at its start + kinetic_fall)).
    """

    def body(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, p, no_gradient = state
        z = z + 0.5 * step * p
        theta = chart.forward(z)
        slope = gradient(theta)
        p = p + step * chart.adjoint(slope)
        first = ~jnp.isfinite(jnp.sum(slope)) & jnp.isfinite(jnp.sum(theta))
        return z + 0.5 * step * p, p, jnp.where(first, theta, no_gradient)

    z, p, no_gradient = jax.lax.fori_loop(0, steps, body, (z, momentum, chart.forward(z)))
    return Proposal(chart.forward(z), z, 0.5 * (momentum @ momentum - p @ p), no_gradient)


def acceptance(log_ratio: Array) -> Array:
    """Metropolis acceptance probability of a log ratio, zero where the ratio is NaN."""
    return jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
