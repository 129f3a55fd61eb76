"""The log normalising constant as a curve with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, shown
from pathtemp.errors import InputError

ROUNDING = 1e-9
"""Share of the path by which a lam may lie beyond its ends, as it was computed."""


@dataclass(frozen=True, repr=False)
class LogZ:
    """log z(lam) - log z(0) on nodes, interpolated linearly in the position along the path.

    Parameters
    ----------
    lam
        Increasing nodes from 0 to 1, shape (n,).
    mean, stderr
        Estimate and standard error at the nodes; the first is zero.

    >>> curve = LogZ(np.array([0.0, 1.0]), np.array([0.0, -2.0]), np.array([0.0, 0.1]))
    >>> curve
    <LogZ: -2 ± 0.1 at lam = 1, 2 nodes from lam = 0>
    >>> float(curve(0.5)), float(curve.se(0.5))
    (-1.0, 0.05)
    """

    lam: FloatArray
    mean: FloatArray
    stderr: FloatArray

    def __repr__(self) -> str:
        end, error = (f"{float(x[-1]):.6g}" for x in (self.mean, self.stderr))
        first, last = (f"{float(x):g}" for x in (self.lam[0], self.lam[-1]))
        return f"<LogZ: {end} ± {error} at lam = {last}, {len(self.lam)} nodes from lam = {first}>"

    def __call__(self, lam: float | FloatArray) -> FloatArray:
        """Estimate at any lam of the path."""
        return np.asarray(np.interp(self._inside(lam), self.lam, self.mean))

    def se(self, lam: float | FloatArray) -> FloatArray:
        """Standard error at any lam of the path."""
        return np.asarray(np.interp(self._inside(lam), self.lam, self.stderr))

    def _inside(self, lam: float | FloatArray) -> FloatArray:
        """``lam`` as numbers; InputError where the path does not reach."""
        at = finite_array("lam", lam)
        low, high = self.lam[0], self.lam[-1]
        if np.any((at < low - ROUNDING * (high - low)) | (at > high + ROUNDING * (high - low))):
            raise InputError(f"lam: the path runs from {low:g} to {high:g}, and it is {shown(lam)}")
        return at


def unknown(lam: FloatArray) -> LogZ:
    """A curve of which nothing is known but its start, on nodes ``lam``.

    >>> unknown(np.array([0.0, 1.0]))
    <LogZ: nan ± inf at lam = 1, 2 nodes from lam = 0>
    """
    start = lam <= 0
    return LogZ(lam, np.where(start, 0.0, np.nan), np.where(start, 0.0, np.inf))
