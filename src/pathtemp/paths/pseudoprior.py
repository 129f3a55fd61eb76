"""Families of the log pseudo-prior log c(lam), the function that the adaptive loop keeps setting to log z.

Every family is a pytree of arrays whose shapes do not change from round to round, so it can be an argument
of a compiled function; it is a function of lam with a derivative in lam, zero at lam = 0, and is made from
a curve by ``fit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, PPoly

from pathtemp._types import Array, FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import increasing, vector
from pathtemp.io.persistent import storable
from pathtemp.paths.links import interpolate

RIDGE = 1e-12
"""Ridge on the kernel coefficients, relative to the largest squared singular value of the scaled kernels."""


class PseudoPrior(Protocol):
    """log c(lam), with log c(0) = 0."""

    def __call__(self, lam: Array) -> Array:
        """Log c at lam."""
        ...

    def derivative(self, lam: Array) -> Array:
        """Derivative dlog c/dlam at lam."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PiecewiseLinear:
    """log c linear between nodes, so that lam given theta is piecewise exponential.

    On the nodes of a :class:`~pathtemp.paths.links.MetricLink` it is linear in the position s along the path as
    well.

    Parameters
    ----------
    lam
        Increasing nodes from 0 to 1, shape (K + 1,).
    values
        log c at the nodes; the first is zero.

    >>> log_c = PiecewiseLinear.fit([0.0, 0.5, 1.0], [1.0, 0.0, -3.0])
    >>> float(log_c(0.75)), float(log_c.derivative(0.75)), float(log_c.at(jnp.asarray(0.25)))
    (-2.5, -6.0, -0.5)
    """

    lam: Array
    values: Array

    @classmethod
    def fit(cls, lam: ArrayLike, log_z: ArrayLike) -> Self:
        """Through the curve ``log_z`` at the nodes ``lam``."""
        x, y = _curve(lam, log_z)
        return cls(jnp.asarray(x), jnp.asarray(y))

    def __call__(self, lam: Array) -> Array:
        """Log c at lam."""
        return jnp.interp(lam, self.lam, self.values)

    def at(self, s: Array) -> Array:
        """Log c at position s in [0, 1], the nodes being equispaced in s; s is a scalar."""
        return interpolate(self.values, s)

    def derivative(self, lam: Array) -> Array:
        """Slope dlog c/dlam of the cell that lam is in."""
        cell = _cell(self.lam, lam)
        return ((self.values[1:] - self.values[:-1]) / (self.lam[1:] - self.lam[:-1]))[cell]


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kernels:
    """A line plus J Gaussian and J logit kernels (eq. kernel): the paper's family.

    Centres are j/(J + 1) and widths 1/J. The kernels nearly span the line and one another, so each enters
    with its value at 0 and its own least-squares slope taken off: ``slope`` is then the slope of the whole
    curve, identified whatever the kernels do, and may be replaced by itself.

    Parameters
    ----------
    slope
        Least-squares slope of the curve through the origin, shape ().
    tilt
        Slope that the kernels have together, which the line takes off again, shape ().
    gaussian, logit
        Coefficients of the kernels, shape (J,) each.

    >>> lam = np.linspace(0.0, 1.0, 101)
    >>> log_c = Kernels.fit(lam, -4.0 * lam)
    >>> round(float(log_c.slope), 6), round(float(log_c(jnp.asarray(0.5))), 6)
    (-4.0, -2.0)
    """

    slope: Array
    tilt: Array
    gaussian: Array
    logit: Array

    @classmethod
    def fit(cls, lam: ArrayLike, log_z: ArrayLike, *, kernels: int = 10) -> Self:
        """Least squares on the curve ``log_z`` at the grid ``lam`` (eq. estimation_beta); J = ``kernels``."""
        x, y = _curve(lam, log_z)
        if kernels < 1:
            raise InputError(f"kernels must be at least 1, and is {kernels}")
        basis = _kernel_values(x, kernels) - _kernel_values(np.zeros(1), kernels)
        line = x / np.sqrt(x @ x)
        tilts = line @ basis
        basis = basis - np.outer(line, tilts)
        coefficients = _ridge(basis, y - line * (line @ y))
        per_lam = 1.0 / np.sqrt(x @ x)
        return cls(
            jnp.asarray(per_lam * (line @ y)),
            jnp.asarray(per_lam * (tilts @ coefficients)),
            jnp.asarray(coefficients[:kernels]),
            jnp.asarray(coefficients[kernels:]),
        )

    def __call__(self, lam: Array) -> Array:
        """Log c at lam."""
        return self._raw(jnp.asarray(lam)) - self._raw(jnp.zeros(()))

    def _raw(self, lam: Array) -> Array:
        x = self._scaled(lam)
        kernels = jnp.exp(-0.5 * x**2) @ self.gaussian + jax.nn.sigmoid(x) @ self.logit
        return (self.slope - self.tilt) * lam + kernels

    def derivative(self, lam: Array) -> Array:
        """Derivative dlog c/dlam in closed form."""
        x = self._scaled(jnp.asarray(lam))
        sigmoid = jax.nn.sigmoid(x)
        kernels = (-x * jnp.exp(-0.5 * x**2)) @ self.gaussian + (sigmoid * (1.0 - sigmoid)) @ self.logit
        return self.slope - self.tilt + self.gaussian.shape[0] * kernels

    def _scaled(self, lam: Array) -> Array:
        """(lam - centre) / width for each kernel, shape (..., J)."""
        j = self.gaussian.shape[0]
        return (lam[..., None] - jnp.arange(1, j + 1) / (j + 1)) * j


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CubicSpline:
    """A cubic spline by least squares; it introduces no periodic ripple, as Gaussian kernels do.

    Parameters
    ----------
    knots
        Increasing, from the first to the last of the grid, shape (n + 1,).
    coefficients
        Of the cubic in each cell, highest power first, in lam minus the left knot, shape (4, n).

    >>> lam = np.linspace(0.0, 1.0, 101)
    >>> log_c = CubicSpline.fit(lam, lam**3, cells=4)
    >>> round(float(log_c(jnp.asarray(0.5))), 6), round(float(log_c.derivative(jnp.asarray(0.5))), 6)
    (0.125, 0.75)
    """

    knots: Array
    coefficients: Array

    @classmethod
    def fit(cls, lam: ArrayLike, log_z: ArrayLike, *, cells: int = 20) -> Self:
        """Least squares on the curve ``log_z`` at the grid ``lam``, as many of its points in each cell."""
        x, y = _curve(lam, log_z)
        if not 1 <= cells <= x.size - 3:
            raise InputError(f"cells must lie between 1 and {x.size - 3} with {x.size} points of lam, and is {cells}")
        knots = np.interp(np.linspace(0.0, x.size - 1.0, cells + 1), np.arange(x.size), x)
        padded = np.concatenate([[x[0]] * 3, knots, [x[-1]] * 3])
        # The first basis function alone is not zero at the first point: leaving it out anchors the curve.
        basis = BSpline.design_matrix(x, padded, 3).toarray()[:, 1:]
        free = np.linalg.lstsq(basis, y)[0]
        pieces = PPoly.from_spline((padded, np.concatenate([[0.0], free]), 3))
        coefficients = np.asarray(pieces.c[:, 3:-3])
        return cls(jnp.asarray(knots), jnp.asarray(coefficients))

    def __call__(self, lam: Array) -> Array:
        """Log c at lam."""
        cell, x = self._place(lam)
        c = self.coefficients
        return c[3, cell] + x * (c[2, cell] + x * (c[1, cell] + x * c[0, cell]))

    def derivative(self, lam: Array) -> Array:
        """Derivative dlog c/dlam."""
        cell, x = self._place(lam)
        c = self.coefficients
        return c[2, cell] + x * (2.0 * c[1, cell] + 3.0 * x * c[0, cell])

    def _place(self, lam: Array) -> tuple[Array, Array]:
        lam = jnp.clip(lam, self.knots[0], self.knots[-1])
        cell = _cell(self.knots, lam)
        return cell, lam - self.knots[cell]


def _curve(lam: ArrayLike, log_z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The grid and the curve on it, moved to zero at its first point."""
    x = increasing("lam", lam)
    y = vector("log_z", log_z, size=x.size)
    if x.size < 2 or x[0] != 0:
        raise InputError("lam must start at 0, where log c is zero, and have at least two points")
    if not np.isfinite(y).all():
        raise InputError("log_z must be finite at every lam")
    return x, y - y[0]


def _cell(nodes: Array, lam: Array) -> Array:
    return jnp.clip(jnp.searchsorted(nodes, lam, side="right") - 1, 0, nodes.shape[0] - 2)


def _kernel_values(lam: FloatArray, j: int) -> FloatArray:
    """Gaussian, then logit kernels at lam, shape (n, 2 J)."""
    x = (lam[:, None] - np.arange(1, j + 1) / (j + 1)) * j
    return np.concatenate([np.exp(-0.5 * x**2), 1.0 / (1.0 + np.exp(-x))], axis=1)


def _ridge(basis: FloatArray, y: FloatArray) -> FloatArray:
    """Least squares on columns scaled to unit length, with a ridge on their coefficients, by SVD."""
    scale = np.sqrt((basis**2).sum(axis=0))
    u, d, vt = np.linalg.svd(basis / scale, full_matrices=False)
    return np.asarray(vt.T @ (d / (d**2 + RIDGE * d[0] ** 2) * (u.T @ y)) / scale)
