"""The geometric path: log q(theta, lam) = (1 - lam) log psi(theta) + lam log q(theta) (section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pathtemp._types import Array, HostArray, LogDensity

LOG_ZERO = -1e30
"""Stands for log 0 in differences: far below any log density, yet finite, so that lam * LOG_ZERO is never NaN."""

HUGE = -LOG_ZERO
"""Log density above which a value counts as +inf."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeometricPath:
    """From the base psi at lam = 0 to the target q at lam = 1.

    A base may hold arrays: the path is a tree, so that they reach compiled programs as arguments.

    A point's *energies* are (log psi, log q): they give the log density at every lam without another evaluation.
    """

    log_base: LogDensity
    log_target: LogDensity

    def values(self, theta: Array) -> Array:
        """(log psi, log q) at ``theta`` as the two functions give them, shape (2,)."""
        return jnp.stack([self.log_base(theta), self.log_target(theta)])

    def energies(self, theta: Array) -> Array:
        """(log psi, log q) at ``theta``, shape (2,); NaN and +inf count as zero density."""
        return as_energies(self.values(theta))

    def gradient(self, theta: Array, lam: Array) -> Array:
        """Gradient of the log density in theta, shape (dim,); the part of zero weight is left out, even if NaN."""
        base, target = jax.grad(self.log_base)(theta), jax.grad(self.log_target)(theta)
        return jnp.where(lam < 1, (1 - lam) * base, 0.0) + jnp.where(lam > 0, lam * target, 0.0)


def as_energies(values: HostArray) -> Array:
    """Log densities of any shape with NaN and +inf as zero density, which callers count and report."""
    return jnp.where(jnp.isnan(values) | (values > HUGE), -jnp.inf, values)


def log_density(energies: Array, lam: Array) -> Array:
    """Log density (1 - lam) log psi + lam log q of energies (..., 2), with 0 * -inf = 0."""
    base, target = energies[..., 0], energies[..., 1]
    return jnp.where(lam < 1, (1 - lam) * base, 0.0) + jnp.where(lam > 0, lam * target, 0.0)


def delta(energies: Array) -> Array:
    """Derivative dlog q/dlam = log q - log psi, bounded below by LOG_ZERO where the target has no density."""
    return jnp.maximum(energies[..., 1], LOG_ZERO) - energies[..., 0]
