"""Draws of all adaptive rounds, kept in units of lam, so that they outlive every change of interval and transport.

The conditionals theta | lam never change, so draws may be pooled (section 2.1, Step 4). The oldest third is dropped: it
had not reached equilibrium at every lam, and its gradients, taken along a poorer transport, vary most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.io.persistent import persistent, storable

MOST_DRAWS = 12_000
"""Draws of theta that a refit uses."""


@storable
@dataclass(frozen=True)
class Slopes:
    """Gradients dlog q/dlam along the orbit (u) and at fixed theta (plain), and their lam, shape (n,) each."""

    lam: FloatArray
    u: FloatArray
    plain: FloatArray


@persistent("_slopes", "_draws", "_dropped")
class Pool:
    """What the adaptive rounds have seen."""

    def __init__(self) -> None:
        self._slopes: list[Slopes] = []
        self._draws: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        self._dropped = 0

    def add(self, slopes: Slopes, lam: FloatArray, theta: FloatArray, gradient: FloatArray) -> None:
        """Add a round, and drop what is too old."""
        finite = np.isfinite(slopes.u) & np.isfinite(slopes.plain)
        self._slopes.append(Slopes(slopes.lam[finite], slopes.u[finite], slopes.plain[finite]))
        self._draws.append((lam, theta, gradient))
        excess = (self._dropped + len(self._draws)) // 3 - self._dropped
        if excess > 0:
            del self._draws[:excess], self._slopes[:excess]
            self._dropped += excess

    def draws(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(lam, theta, gradient) of the rounds kept, thinned to a bounded number."""
        lam, theta, gradient = (np.concatenate([draws[i] for draws in self._draws]) for i in range(3))
        keep = slice(None, None, -(-len(lam) // MOST_DRAWS))
        return lam[keep], theta[keep], gradient[keep]

    def curve(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Path sampling (eq. path1) at nodes ``lam`` (K + 1).

        With it, in each cell (K,), the root of E U^2 along the orbit, and the standard deviation of the plain gradient.

        Each round counts by the precision of its gradients. Beyond the draws the gradient is continued as it is near
        the last of them.
        """
        cells = len(lam) - 1
        total, weight, square, count, first, second = (np.zeros(cells) for _ in range(6))
        for slopes in self._slopes:
            cell = np.floor((slopes.lam - lam[0]) / (lam[-1] - lam[0]) * cells).astype(int)
            inside = (cell >= 0) & (cell < cells)
            cell, u, plain = cell[inside], slopes.u[inside], slopes.plain[inside]
            if len(u) < 8:
                continue
            precision = 1.0 / max(_noise(slopes.lam[inside], u), 1e-12)
            total += precision * np.bincount(cell, u, cells)
            square += precision * np.bincount(cell, u**2, cells)
            weight += precision * np.bincount(cell, minlength=cells)
            count += np.bincount(cell, minlength=cells)
            first += np.bincount(cell, plain, cells)
            second += np.bincount(cell, plain**2, cells)
        seen = np.flatnonzero(weight > 0)
        if seen.size == 0:
            return np.zeros(cells + 1), np.ones(cells), np.ones(cells)
        slope = total[seen] / weight[seen]
        # One cell alone is too noisy to be continued: the ends take the mean of a sixteenth of the path.
        near = seen.size if seen.size < 8 else 8
        slope[0], slope[-1] = slope[:near].mean(), slope[-near:].mean()
        filled = np.interp(np.arange(cells), seen, slope)
        root = np.sqrt(np.interp(np.arange(cells), seen, square[seen] / weight[seen]))
        variance = second[seen] / count[seen] - (first[seen] / count[seen]) ** 2
        spread = np.sqrt(np.maximum(np.interp(np.arange(cells), seen, variance), 0.0))
        step = (lam[-1] - lam[0]) / cells
        return np.concatenate([[0.0], np.cumsum(filled) * step]), root, spread


def _noise(lam: FloatArray, u: FloatArray) -> float:
    """Variance of gradients given lam, from differences of neighbours."""
    ordered = u[np.argsort(lam)]
    return float(0.5 * np.mean(np.diff(ordered) ** 2))
