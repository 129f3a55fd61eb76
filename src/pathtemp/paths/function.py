"""Any path: log q(theta, lam) as one function, its derivatives by automatic differentiation (section 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.paths.geometric import as_energies

LogPath = Callable[..., Array]
"""Log density of one point at one lam: ``(theta (dim,), lam (), *args) -> ()``."""


@dataclass(frozen=True)
class FunctionPath:
    """log q(theta, lam, ...) with further arguments ``args``: arrays that stay fixed in a run.

    >>> path = FunctionPath(lambda theta, lam: -0.5 * jnp.sum((theta - lam) ** 2))
    >>> theta, lam = jnp.zeros(1), jnp.asarray(2.0)
    >>> float(path.log_density(theta, lam, ())), float(path.gradients(theta, lam, ())[1])
    (-2.0, -2.0)
    """

    log_q: LogPath

    def log_density(self, theta: Array, lam: Array, args: tuple[Any, ...]) -> Array:
        """Log q; NaN and +inf count as zero density."""
        return as_energies(self.value(theta, lam, args))

    def value(self, theta: Array, lam: Array, args: tuple[Any, ...]) -> Array:
        """Log q as the function gives it."""
        return jnp.asarray(self.log_q(theta, lam, *args))

    def gradient(self, theta: Array, lam: Array, args: tuple[Any, ...]) -> Array:
        """Derivative by theta, shape (dim,)."""
        return jax.grad(self.log_q)(theta, lam, *args)

    def gradients(self, theta: Array, lam: Array, args: tuple[Any, ...]) -> tuple[Array, Array]:
        """Derivatives by theta (dim,) and by lam ()."""
        by_theta, by_lam = jax.grad(self.log_q, argnums=(0, 1))(theta, lam, *args)
        return by_theta, by_lam
