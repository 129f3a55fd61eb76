"""log z of a geometric path by isotonic regression of delta on lam, and from chains pinned at fixed lam."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

from pathtemp._types import FloatArray
from pathtemp.estimators.estimate import increasing
from pathtemp.estimators.support import PathDraws, path_draws

ROUNDING = 1e-10
"""Relative distance below which two lams are the same."""


def isotonic(lam: ArrayLike, delta: ArrayLike, grid: ArrayLike, *, weights: ArrayLike | None = None) -> FloatArray:
    """Thermodynamic integration (eq. gradient) with E[delta | lam] kept non-decreasing.

    log z of a geometric path is convex in lam, since its second derivative is Var(delta | lam), so its
    slope E[delta | lam] never falls: isotonic regression is a regulariser without a tuning constant. Block
    means are put at block centroids, joined by a monotone cubic, and integrated; the slope is constant
    beyond the outermost centroids.

    Parameters
    ----------
    lam, delta
        Draws: lam in [0, 1] and delta = log q - log psi at theta, any shape of n values. ``-inf`` may occur
        at lam = 0.
    grid
        Increasing lam at which the curve is wanted, shape (K,).
    weights
        Weight of each draw, n values; all equal when None.

    Returns
    -------
    log z(grid) - log z(grid[0]), shape (K,).

    >>> isotonic([0.0, 0.5, 1.0], [-1.0, -1.0, -1.0], [0.0, 0.5, 1.0])
    array([ 0. , -0.5, -1. ])
    """
    nodes = increasing("grid", grid)
    draws = path_draws(lam, delta, weights)
    return draws.add_jumps(nodes, isotonic_curve(draws, nodes))


def isotonic_curve(draws: PathDraws, nodes: FloatArray) -> FloatArray:
    """:func:`isotonic` of the draws with finite delta, without the jumps at the ends."""
    at, mean, weight = _mean_by_lam(draws)
    fit = isotonic_regression(mean, weights=weight)
    start = fit.blocks[:-1]
    centroid = np.add.reduceat(at * weight, start) / np.add.reduceat(weight, start)
    return _integrate(centroid, fit.x[start], nodes)


def pinned(lam: ArrayLike, delta: ArrayLike, grid: ArrayLike, *, weights: ArrayLike | None = None) -> FloatArray:
    """Integrate over chains that were held at fixed lam: mean delta per lam, made non-decreasing.

    Parameters and result are those of :func:`isotonic`; every mean stays at its own lam, for the lams of
    pinned chains are a design that was spread on purpose and each carries many draws.

    >>> pinned([0.0, 0.0, 1.0, 1.0], [-3.0, -1.0, 0.5, 1.5], [0.0, 1.0])
    array([ 0. , -0.5])
    """
    nodes = increasing("grid", grid)
    draws = path_draws(lam, delta, weights)
    at, mean, weight = _mean_by_lam(draws)
    return draws.add_jumps(nodes, _integrate(at, isotonic_regression(mean, weights=weight).x, nodes))


def _mean_by_lam(draws: PathDraws) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct lams in order, the weighted mean of delta at each, and its weight.

    Lams that differ by rounding alone count as one: between them there is nothing to integrate.
    """
    distinct, index = np.unique(draws.lam, return_inverse=True)
    first = np.concatenate([[True], np.diff(distinct) > ROUNDING * distinct[1:]])
    group = (np.cumsum(first) - 1)[index]
    weight = np.bincount(group, draws.weights).astype(np.float64)
    return distinct[first], np.bincount(group, draws.weights * draws.delta) / weight, weight


def _integrate(x: FloatArray, slope: FloatArray, grid: FloatArray) -> FloatArray:
    """Integral of a monotone cubic through (x, slope), flat beyond its ends, from grid[0] to each of grid."""
    if x.size == 1:
        return np.asarray(slope[0] * (grid - grid[0]))
    curve = PchipInterpolator(x, slope).antiderivative()

    def integral(at: FloatArray) -> FloatArray:
        below, above = np.minimum(at - x[0], 0.0), np.maximum(at - x[-1], 0.0)
        return np.asarray(curve(np.clip(at, x[0], x[-1])) + slope[0] * below + slope[-1] * above)

    return integral(grid) - integral(grid[:1])
