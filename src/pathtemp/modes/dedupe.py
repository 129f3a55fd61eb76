"""Whether two ends of ascents are one mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.local import Local

BETWEEN = np.linspace(0.0, 1.0, 18)[1:-1]
"""Where on the way from one end to the other the density is looked at."""

BARRIER = 0.5
"""Fall of the log density on the way, in nats, from which two ends are two modes."""

NEAREST = 3
"""Known modes to which the way is looked at."""


def near(law: Local, theta: FloatArray) -> float:
    """Squared distance of a point (dim,) in the local metric, in units of that of an ascent's usual inaccuracy.

    >>> from pathtemp.modes.local import from_covariance
    >>> near(from_covariance(np.zeros(1), np.eye(1), 0.0), np.array([3.0])) < 1.0
    False
    """
    return float(np.sum(law.standardise(theta[None]) ** 2) / _usual(len(theta)))


def nearest_mode(laws: Sequence[Local], theta: FloatArray) -> IntArray:
    """The number of the mode at whose centre each of the points (n, dim) lies, -1 where it lies at none, (n,).

    >>> from pathtemp.modes.local import from_covariance
    >>> laws = [from_covariance(np.full(1, x), np.eye(1), 0.0) for x in (0.0, 9.0)]
    >>> nearest_mode(laws, np.array([[9.01], [3.0], [0.0]])).tolist()
    [1, -1, 0]
    """
    if len(laws) == 0 or len(theta) == 0:
        return np.full(len(theta), -1, np.int64)
    distance = np.stack([np.sum(law.standardise(theta) ** 2, axis=1) for law in laws]) / _usual(theta.shape[1])
    return np.where(distance.min(axis=0) < 1.0, np.argmin(distance, axis=0), -1)


def _usual(dim: int) -> float:
    """Squared distance from a mode, in its local metric, that is an ascent's usual inaccuracy."""
    return 0.2 + 0.05 * dim


def same_mode(
    laws: Sequence[Local], theta: FloatArray, height: float, log_target: Callable[[FloatArray], FloatArray]
) -> int | None:
    """Which of the known modes an end (dim,) of this ``height`` belongs to; None for a new one.

    It is the nearest in its local metric where that is near; else one of the nearest to which the straight way leads
    without a fall of density. ``log_target`` takes points (n, dim).
    """
    distance = np.array([near(law, theta) for law in laws])
    if len(laws) == 0:
        return None
    nearest = np.argsort(distance)
    if distance[nearest[0]] < 1.0:
        return int(nearest[0])
    for k in nearest[:NEAREST]:
        law = laws[int(k)]
        way = log_target(theta + BETWEEN[:, None] * (law.centre - theta))
        if np.min(way) >= min(height, law.height) - BARRIER:
            return int(k)
    return None
