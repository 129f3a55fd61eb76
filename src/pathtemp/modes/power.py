"""How likely a mode would have been noticed: modes are planted on paper among the points that were evaluated.

A planted mode lies at a draw of the base, has a share of the mass, and the shape of the widest known mode, made
narrower, with tails as those of the known modes. An ascent from a point leads to it where its density there exceeds
that of all other modes; so the log density that was met at each start is all that has to be known. A point that was
only looked at must also have been picked. No further evaluation is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.local import Local
from pathtemp.modes.scan import Scan, cosine
from pathtemp.modes.shape import Shape

PLACES = 128
"""Planted modes."""

WIDTHS = (1.0, 0.7, 0.5, 0.3)
"""Widths, relative to the widest known mode, for which the best point is looked for."""

BLOCK = 4096
"""Points that are held against all planted modes at a time."""


class Goal(NamedTuple):
    """A planted mode: its width relative to the widest known mode, and its share of the mass."""

    width: float
    share: float


@dataclass(frozen=True)
class Power:
    """The points at which planted modes would have been noticed first.

    Parameters
    ----------
    square
        Squared distance of each of P places to the best point for each of W widths, in the metric of the widest known
        mode, (P, W).
    height
        Log density, relative to the log mass of all known modes, that a planted mode must exceed there, (P, W).
    shape
        What planted modes are like.
    """

    square: FloatArray
    height: FloatArray
    shape: Shape

    def __call__(self, *, width: float, share: float) -> float:
        """Probability that a mode of this relative width and share of the mass would have been noticed.

        >>> from pathtemp.modes.local import from_covariance
        >>> from pathtemp.modes.shape import normal_shape
        >>> law = from_covariance(np.zeros(1), np.eye(1), 0.0)
        >>> near = Power(np.array([[0.0], [0.0], [8.0], [90.0]]), np.full((4, 1), -6.0), normal_shape(law))
        >>> near(width=1.0, share=0.5), near(width=0.3, share=0.5)
        (0.75, 0.5)
        """
        return float(np.mean(np.any(self._excess(width, share) > 0, axis=1))) if len(self.square) else 0.0

    def joined(self, other: Power) -> Power:
        """The power of two ways to notice the same planted modes."""
        square, height = np.hstack([self.square, other.square]), np.hstack([self.height, other.height])
        return replace(self, square=square, height=height)

    def _excess(self, width: float, share: float) -> FloatArray:
        """Log density of each planted mode at its best points beyond what it must exceed, (P, W)."""
        return log_planted(self.shape, self.square, Goal(width, share)) - self.height


def log_planted(shape: Shape, square: FloatArray, goal: Goal) -> FloatArray:
    """Log density of a planted mode at squared distances, relative to the mass of the known modes.

    The distances are in the metric of the shape. The share counts the planted mode in the whole mass.
    """
    odds = np.log(goal.share) - np.log1p(-goal.share)
    return np.asarray(odds + shape.log_density(square**shape.exponent, goal.width))


def power_at(shape: Shape, log_mass: float, places: FloatArray, points: FloatArray, height: FloatArray) -> Power:
    """Plant modes at ``places`` (P, dim) among ``points`` (n, dim), where each must exceed ``height`` (n,).

    >>> from pathtemp.modes.local import from_covariance
    >>> from pathtemp.modes.shape import normal_shape
    >>> rng = np.random.default_rng(0)
    >>> known, points = normal_shape(from_covariance(np.zeros(2), np.eye(2), 0.0)), 5.0 * rng.normal(size=(2000, 2))
    >>> found = power_at(known, 1.8, 5.0 * rng.normal(size=(100, 2)), points, -0.5 * np.sum(points**2, axis=1))
    >>> found(width=0.5, share=0.1) > 0.5, found(width=1e-3, share=0.1) < 0.2
    (True, True)
    """
    best, square = best_points(shape, places, points, height)
    level = np.where(best < 0, np.inf, height[best] - log_mass) if len(points) else np.full(best.shape, np.inf)
    return Power(square, level, shape)


def best_points(
    shape: Shape, places: FloatArray, points: FloatArray, height: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The point (n, dim) at which each mode planted at ``places`` (P, dim) exceeds ``height`` (n,) most, by width.

    Returns the numbers of the points (P, W), -1 for none, and the squared distances to them (P, W).
    """
    usable = np.flatnonzero(np.isfinite(points).all(axis=1) & (height < np.inf))
    # Single precision: errors of a hundredth of a nat change no answer.
    z = shape.law.standardise(points[usable]).astype(np.float32)
    planted = shape.law.standardise(places).astype(np.float32)
    size, rows = (len(places), len(WIDTHS)), np.arange(len(places))
    value, square, best = np.full(size, -np.inf), np.full(size, np.inf), np.full(size, -1)
    for first in range(0, len(z), BLOCK):
        part = z[first : first + BLOCK]
        must = np.maximum(height[usable[first : first + BLOCK]], -1e30).astype(np.float32)
        distance = _squares(planted, part)
        powered = distance ** np.float32(shape.exponent)
        for k, width in enumerate(WIDTHS):
            excess = shape.log_density(powered, width) - must
            at = np.argmax(excess, axis=1)
            better = excess[rows, at] > value[:, k]
            value[better, k], square[better, k] = excess[rows, at][better], distance[rows, at][better]
            best[better, k] = usable[first + at[better]]
    return best, square


def power_by_turn(
    shape: Shape, log_mass: float, places: FloatArray, scan: Scan, laws: Sequence[Local], *, limit: float
) -> Power:
    """The power of gradients that point elsewhere: planted modes show at points whose cosine is below ``limit``.

    An ascent from the point must lead to the planted mode as well.
    """
    count = len(scan.gradient)
    points, log_q = scan.theta[:count], scan.log_q[:count]
    best, square = best_points(shape, places, points, log_q)
    level = np.full(best.shape, np.inf)
    if count:
        at, to = points[best].reshape(-1, points.shape[1]), np.repeat(places, best.shape[1], axis=0)
        inverse = np.linalg.inv(shape.law.matrix)
        slope = (to - at) @ inverse.T @ inverse
        turn = np.max([cosine(law, law.standardise(at), slope) for law in laws], axis=0).reshape(best.shape)
        level = np.where((best >= 0) & (turn < limit), log_q[best] - log_mass, np.inf)
    return Power(square, level, shape)


def basin_shares(
    shape: Shape, log_mass: float, places: FloatArray, points: FloatArray, log_q: FloatArray, goal: Goal
) -> FloatArray:
    """Share of the points (n, dim) of log density ``log_q`` (n,) that lie in the basin of each planted mode, (P,)."""
    z, planted = shape.law.standardise(points), shape.law.standardise(places)
    ahead = log_planted(shape, _squares(planted, z), goal)
    return np.asarray(np.mean(ahead > log_q - log_mass, axis=1))


def _squares(planted: Any, z: Any) -> Any:
    """Squared distances (P, n) between planted modes (P, dim) and points (n, dim), in single precision or double."""
    square = np.sum(planted**2, axis=1)[:, None] + np.sum(z**2, axis=1) - 2.0 * planted @ z.T
    return np.maximum(square, planted.dtype.type(0.0))
