"""The normal law around a mode: from curvature, as diagonal scales and a low-rank part (Laplace's method)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, LogDensity
from pathtemp.model.blocks import begin_blocks, in_blocks
from pathtemp.model.evaluate import BLOCK
from pathtemp.model.meter import note

HEAVY_DF = 5
"""Degrees of freedom of heavy-tailed local laws."""

DENSE_DIM = 2048
"""Largest dimension in which the whole matrix of curvatures is computed, at two gradients a dimension."""

SUSPECT = 1e-3
"""Precision, in units of ``scale``, below which a direction is looked at again: it is 30 times as wide, or flat."""

UNLIKE = 1e8
"""Ratio of the largest to the least precision from which differences of one width do not serve all directions."""

AS_CURVED = (0.1, 10.0)
"""Curvature on the second look, relative to the first, between which it is real; else the direction is flat."""

LOW_RANK = 64
"""Rank of the correlated part of a local law that is kept whatever it is worth."""

NEGLIGIBLE = 0.1
"""Eigenvalues of a correlation matrix so near to 1, in their logarithm, are left out of the low-rank part."""

ROWS = 4096
"""Points that are held against a law at once: what is made of them on the way stays in the processor's cache."""

LEFT_OUT = 1.0
"""Length of path that the correlations may add which are left out beyond the low rank."""


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

    @property
    def matrix(self) -> FloatArray:
        """The map z -> theta as a matrix (dim, dim)."""
        return self.scale[:, None] * (np.eye(len(self.scale)) + (self.basis * self.gain) @ self.basis.T)

    def standardise(self, theta: FloatArray) -> FloatArray:
        """The z of points theta (n, dim)."""
        z, shrunk = np.empty(theta.shape), self.gain / (1.0 + self.gain)
        for first in range(0, len(theta), ROWS):
            u = (theta[first : first + ROWS] - self.centre) / self.scale
            z[first : first + ROWS] = u - (u @ self.basis) * shrunk @ self.basis.T
        return z

    def square(self, theta: FloatArray) -> FloatArray:
        """The squared length of the z of points theta (n, dim); the basis is orthonormal.

        >>> law, x = from_covariance(np.zeros(2), np.array([[4.0, 1.0], [1.0, 1.0]]), 0.0), np.array([[2.0, -1.0]])
        >>> bool(abs(law.square(x)[0] - np.sum(law.standardise(x) ** 2)) < 1e-12)
        True
        """
        if len(theta) > ROWS:
            return np.concatenate([self.square(theta[first : first + ROWS]) for first in range(0, len(theta), ROWS)])
        return self._stretched((theta - self.centre) / self.scale, 1.0 / (1.0 + self.gain))

    def square_and_cosine(self, theta: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The squared length of the z of points theta (n, dim), and the cosine of gradients there with the way inwards.

        The cosine, taken between z's, is that of the gradient (n, dim) with the way to the centre. Without a finite
        gradient it is one: nothing can be said.
        """
        if len(theta) > ROWS:
            parts = [slice(first, first + ROWS) for first in range(0, len(theta), ROWS)]
            found = [self.square_and_cosine(theta[rows], gradient[rows]) for rows in parts]
            return np.concatenate([x for x, _ in found]), np.concatenate([x for _, x in found])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            way = theta - self.centre
            square = self._stretched(way / self.scale, 1.0 / (1.0 + self.gain))
            slope = self._stretched(gradient * self.scale, 1.0 + self.gain)
            # The matrix of one is the inverse of the other's: their product is that of the two in theta.
            value = -np.einsum("ij,ij->i", way, gradient) / (np.sqrt(square) * np.sqrt(slope))
        return square, np.where(np.isfinite(value), np.clip(value, -1.0, 1.0), 1.0)

    def _stretched(self, u: FloatArray, factor: FloatArray) -> FloatArray:
        """The squared length of u (n, dim) once it is stretched by the factors (rank,) along the basis."""
        whole, along = np.einsum("ij,ij->i", u, u), (u @ self.basis) ** 2
        # In the bulk of a law that is much wider along its basis, the difference would be rounding alone.
        return np.maximum(whole + along @ (factor**2 - 1.0), along @ factor**2)

    def spread_out(self, z: FloatArray) -> FloatArray:
        """The theta of points z (n, dim)."""
        return self.centre + self.scale * (z + (z @ self.basis) * self.gain @ self.basis.T)


def from_covariance(centre: FloatArray, covariance: FloatArray, height: float) -> Local:
    """The local law with a given covariance (dim, dim).

    The path to a normal law from one that lacks some eigenvalues of its correlation matrix is about as long as the root
    of half the sum of their squared logarithms. The rank is as large as it must be to leave out little of that.

    >>> law = from_covariance(np.zeros(2), np.array([[4.0, 1.0], [1.0, 1.0]]), 0.0)
    >>> z = law.standardise(np.array([[2.0, 0.0]]))
    >>> bool(abs(np.sum(z**2) - 4.0 / 3.0) < 1e-12)  # 4 times the first element of the precision
    True
    """
    scale = np.sqrt(np.diagonal(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    log_values = np.log(np.maximum(values, 1e-12))
    order = np.argsort(-np.abs(log_values))
    beyond = np.sqrt(0.5 * np.cumsum(log_values[order[::-1]] ** 2))[::-1]
    worth = (np.arange(len(order)) < LOW_RANK) | (beyond > LEFT_OUT)
    kept = order[worth & (np.abs(log_values[order]) > NEGLIGIBLE)]
    gain = np.exp(0.5 * log_values[kept]) - 1.0
    return Local(centre, scale, vectors[:, kept], gain, height)


def power_of_two(count: int) -> int:
    """The least power of two that is not below a count: arrays of few sizes compile seldom.

    >>> [power_of_two(count) for count in (0, 1, 5, 64)]
    [1, 1, 8, 64]
    """
    return 1 << max(count - 1, 0).bit_length()


def law_gradients(dim: int) -> int:
    """Gradient evaluations that the law at a mode takes.

    >>> law_gradients(1), law_gradients(DENSE_DIM + 1)
    (3, 0)
    """
    return 2 * dim + 1 if dim <= DENSE_DIM else 0


def local_law(
    log_density: LogDensity,
    mode: FloatArray,
    height: float,
    *,
    scale: FloatArray,
    spread: float,
    unit: FloatArray | None = None,
) -> tuple[Local, int]:
    """The local law at a mode, by differences of gradients, and the gradient evaluations it took.

    ``spread`` is a typical local standard deviation in units of ``scale`` (dim,), the base's spread; it sets the width
    of the differences, or ``unit`` (dim, dim) does, whose columns are steps of about one standard deviation. Where some
    direction is much wider than the base, or than others, all are looked at once more over widths of their own: where
    the curvature is the same it is real, however wide that is; else the mode is flat, and no direction is taken to be
    wider than 30 times the base.
    Beyond ``DENSE_DIM`` dimensions all directions have the width ``spread``. The centre is moved to the top of the
    parabola.

    >>> law, spent = local_law(lambda x: -2.0 * jnp.sum(x**2), np.zeros(1), 0.0, scale=np.ones(1), spread=0.5)
    >>> law.scale.round(6).tolist(), spent
    ([0.5], 3)
    """
    dim = len(mode)
    if dim > DENSE_DIM:
        return Local(mode, spread * scale, np.zeros((dim, 0)), np.zeros(0), height), 0
    plain, spent = unit is None, 2 * dim + 1
    unit = spread * np.diag(scale) if unit is None else unit
    slope, precision = _curvature(log_density, mode, unit)
    if not np.isfinite(precision).all():
        return Local(mode, spread * scale, np.zeros((dim, 0)), np.zeros(0), height, flat=True), spent
    values, vectors = np.linalg.eigh(precision)
    # In many dimensions an eigendecomposition takes seconds.
    back = np.eye(dim) / spread if plain else np.linalg.inv(unit / scale[:, None])
    in_scale, turned = (values / spread**2, vectors) if plain else np.linalg.eigh(back.T @ precision @ back)
    flat = False
    if in_scale[0] < SUSPECT or values[-1] > UNLIKE * values[0]:
        flat = not values[0] > 0.0
        if not flat:
            own = unit @ (vectors / np.sqrt(values))
            slope_again, again = _curvature(log_density, mode, own)
            spent += 2 * dim + 1
            flat = not np.isfinite(again).all()
            if not flat:
                values_again, vectors_again = np.linalg.eigh(again)
                flat = not (AS_CURVED[0] < values_again[0] and values_again[-1] < AS_CURVED[1])
        if not flat:
            unit, slope, values, vectors = own, slope_again, values_again, vectors_again
    if flat:
        unit, slope = np.diag(scale), back.T @ slope
        values, vectors = np.maximum(in_scale, SUSPECT), turned
    inverse = (vectors / values) @ vectors.T
    to_top = inverse @ slope
    rise = 0.5 * float(slope @ to_top)
    law = from_covariance(mode + unit @ to_top, unit @ inverse @ unit.T, height + rise)
    return replace(law, flat=flat, rise=rise), spent


def _curvature(log_density: LogDensity, mode: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient (dim,) and negative second derivatives (dim, dim) at a mode, along the columns of ``unit``."""
    dim, step = len(mode), 1e-3
    shifts = step * np.concatenate([np.zeros((1, dim)), unit.T, -unit.T])
    slopes = gradients_at(log_density, mode + shifts) @ unit
    precision = -(slopes[1 : dim + 1] - slopes[dim + 1 :]) / (2.0 * step)
    return slopes[0], 0.5 * (precision + precision.T)


def gradients_at(log_density: LogDensity, theta: FloatArray) -> FloatArray:
    """Gradients (n, dim) of a log density at points (n, dim)."""
    return values_and_gradients(log_density, theta)[1]


def values_and_gradients(log_density: LogDensity, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log densities (n,) and gradients (n, dim) at points (n, dim), through a program of one fixed shape.

    >>> values, gradients = values_and_gradients(lambda x: -jnp.sum(x**2), np.array([[1.0], [2.0]]))
    >>> values.tolist(), gradients.tolist()
    ([-1.0, -4.0], [[-2.0], [-4.0]])
    """
    count, dim = theta.shape
    if count == 0:
        return np.empty(0), np.empty((0, dim))
    note(gradients=count)
    values, gradients = in_blocks(_make_gradients, (log_density,), (), (theta,), block=BLOCK)
    return values, gradients


def begin_gradients(log_density: LogDensity, dim: int) -> None:
    """Let the program of :func:`values_and_gradients` be compiled, while this thread goes on."""
    begin_blocks(_make_gradients, (log_density,), (), (np.empty((1, dim)),), block=BLOCK)


def _make_gradients(log_density: LogDensity) -> Callable[[tuple[()], Array], tuple[Array, Array]]:
    return lambda _, theta: jax.value_and_grad(lambda x: jnp.asarray(log_density(x)))(theta)
