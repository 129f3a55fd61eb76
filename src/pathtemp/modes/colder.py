"""A search beyond lam = 1: where the target is raised to a high power, a spike inside a wide mode holds the mass."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from pathtemp._types import Array, FloatArray, LogDensity
from pathtemp.modes.explore import Population, explore

POWER = 16.0
"""Power of the target."""

POPULATION = 32
"""Chains of the search."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Colder:
    """Log density of a target raised to ``POWER``; callable on one point (dim,)."""

    log_target: LogDensity

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        return POWER * self.log_target(theta)


def colder(log_target: LogDensity, theta: FloatArray, *, seed: int) -> Population:
    """Move target draws (n, dim) about under the target raised to a power; some ``POPULATION`` of them are used.

    >>> import jax.numpy as jnp
    >>> draws = np.random.default_rng(0).normal(size=(64, 2))
    >>> found = colder(lambda x: -0.5 * jnp.sum(x**2), draws, seed=0)
    >>> bool(0.1 < found.theta.std() < 0.5)  # a quarter of the target's
    True
    """
    starts = np.resize(theta, (POPULATION, theta.shape[1]))
    low, high = np.quantile(theta, [0.16, 0.84], axis=0)
    scale = np.maximum(0.5 * (high - low), 1e-8) / np.sqrt(POWER)
    return explore(Colder(log_target), starts, scale=scale, seed=seed)
