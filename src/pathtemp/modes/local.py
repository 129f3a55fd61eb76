"""The normal law around a mode: from curvature, as diagonal scales and a low-rank part (Laplace's method)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, LogDensity
from pathtemp.compilation import compiled_once

BLOCK = 64
"""Gradients evaluated at once."""

DENSE_DIM = 512
"""Largest dimension in which the whole matrix of curvatures is computed, at two gradients a dimension."""

FLAT = 1e-3
"""Precision, in units of the base's spread, below which a direction counts as flat: 30 times as wide as the base."""

MOST_RANK = 64
"""Largest rank of the correlated part of a local law beyond as many dimensions."""

NEGLIGIBLE = 0.1
"""Eigenvalues of a correlation matrix so near to 1, in their logarithm, are left out of the low-rank part."""


@dataclass(frozen=True)
class Local:
    """A normal (or Student-t) law theta = centre + scale * (z + basis (gain * basis' z)).

    Parameters
    ----------
    centre, scale
        Location and diagonal, (dim,).
    basis, gain
        Orthonormal columns (dim, rank) and their gains (rank,), all above -1.
    height
        Log density of the target at the centre.
    heavy
        Whether z is Student-t rather than normal.
    flat
        Whether some direction has no curvature to speak of: the mode is a ridge, not an isolated point.
    rise
        How far below the top of the parabola the end of the ascent was, in nats; far below, it is no mode.
    """

    centre: FloatArray
    scale: FloatArray
    basis: FloatArray
    gain: FloatArray
    height: float
    heavy: bool = False
    flat: bool = False
    rise: float = 0.0

    @property
    def log_det(self) -> float:
        """Log of the volume of the map z -> theta."""
        return float(np.sum(np.log(self.scale)) + np.sum(np.log1p(self.gain)))

    @property
    def log_evidence(self) -> float:
        """Log of the target's mass around the mode, by Laplace's method."""
        return self.height + 0.5 * len(self.centre) * float(np.log(2 * np.pi)) + self.log_det

    def standardise(self, theta: FloatArray) -> FloatArray:
        """The z of points theta (n, dim)."""
        u = (theta - self.centre) / self.scale
        return u - (u @ self.basis) * (self.gain / (1.0 + self.gain)) @ self.basis.T

    def spread_out(self, z: FloatArray) -> FloatArray:
        """The theta of points z (n, dim)."""
        return self.centre + self.scale * (z + (z @ self.basis) * self.gain @ self.basis.T)


def from_covariance(centre: FloatArray, covariance: FloatArray, height: float) -> Local:
    """The local law with a given covariance (dim, dim); correlations beyond the largest rank are left out.

    >>> law = from_covariance(np.zeros(2), np.array([[4.0, 1.0], [1.0, 1.0]]), 0.0)
    >>> z = law.standardise(np.array([[2.0, 0.0]]))
    >>> bool(abs(np.sum(z**2) - 4.0 / 3.0) < 1e-12)  # 4 times the first element of the precision
    True
    """
    scale = np.sqrt(np.diagonal(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    log_values = np.log(np.maximum(values, 1e-12))
    order = np.argsort(-np.abs(log_values))[: max(MOST_RANK, 1)]
    kept = order[np.abs(log_values[order]) > NEGLIGIBLE]
    gain = np.exp(0.5 * log_values[kept]) - 1.0
    return Local(centre, scale, vectors[:, kept], gain, height)


def law_gradients(dim: int) -> int:
    """Gradient evaluations that the law at a mode takes.

    >>> law_gradients(1), law_gradients(DENSE_DIM + 1)
    (3, 0)
    """
    return 2 * dim + 1 if dim <= DENSE_DIM else 0


def local_law(
    log_density: LogDensity, mode: FloatArray, height: float, *, scale: FloatArray, spread: float
) -> tuple[Local, int]:
    """The local law at a mode, by differences of gradients, and the gradient evaluations it took.

    ``spread`` is a typical local standard deviation in units of ``scale`` (dim,), the base's spread; it sets the width
    of the differences. No direction is taken to be wider than 30 times the base; beyond ``DENSE_DIM`` dimensions all
    directions have the width ``spread``. The centre is moved to the top of the parabola.

    >>> law, spent = local_law(lambda x: -2.0 * jnp.sum(x**2), np.zeros(1), 0.0, scale=np.ones(1), spread=0.5)
    >>> law.scale.round(6).tolist(), spent
    ([0.5], 3)
    """
    dim = len(mode)
    if dim > DENSE_DIM:
        return Local(mode, spread * scale, np.zeros((dim, 0)), np.zeros(0), height), 0
    step = 1e-3 * spread
    shifts = step * np.concatenate([np.zeros((1, dim)), np.eye(dim), -np.eye(dim)])
    slopes = gradients_at(log_density, mode + shifts * scale) * scale
    precision = -(slopes[1 : dim + 1] - slopes[dim + 1 :]) / (2.0 * step)
    precision = 0.5 * (precision + precision.T)
    if not np.isfinite(precision).all():
        return Local(mode, spread * scale, np.zeros((dim, 0)), np.zeros(0), height, flat=True), 2 * dim + 1
    values, vectors = np.linalg.eigh(precision)
    inverse = (vectors / np.maximum(values, FLAT)) @ vectors.T
    to_top = inverse @ slopes[0]
    rise = 0.5 * float(slopes[0] @ to_top)
    law = from_covariance(mode + scale * to_top, inverse * np.outer(scale, scale), height + rise)
    return replace(law, flat=bool(values[0] < FLAT), rise=rise), 2 * dim + 1


def gradients_at(log_density: LogDensity, theta: FloatArray) -> FloatArray:
    """Gradients (n, dim) of a log density at points (n, dim), through a program of one fixed shape."""
    count, dim = theta.shape
    program, _ = compiled_once(_make_gradients, (log_density,), (np.zeros((BLOCK, dim)),))
    padded = np.concatenate([theta, np.repeat(theta[-1:], -count % BLOCK, axis=0)])
    return np.concatenate([np.asarray(program(block)) for block in padded.reshape(-1, BLOCK, dim)])[:count]


def _make_gradients(log_density: LogDensity) -> Callable[[Array], Array]:
    return jax.vmap(jax.grad(lambda x: jnp.asarray(log_density(x))))
