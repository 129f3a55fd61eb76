"""Where on the path it is hard: thermodynamic length per unit of lam."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.result.run import Diagnostics


def hardness(diagnostics: Diagnostics) -> FloatArray:
    """Length per unit of lam in each bin of the path, NaN where a bin has no width.

    Bins are given by their centres; they part half way between, and end at lam = 0 and 1.
    """
    lam = np.asarray(diagnostics.lam, float)
    if lam.size == 0:
        return np.empty(0)
    width = np.diff(bin_edges(lam))
    safe = np.where(width > 0, width, np.nan)
    return np.asarray(diagnostics.local_length, float) / safe


def bin_edges(centres: FloatArray) -> FloatArray:
    """Edges of bins on [0, 1] with these centres.

    >>> [float(x) for x in bin_edges(np.array([0.25, 0.75]))]
    [0.0, 0.5, 1.0]
    """
    return np.concatenate([[0.0], 0.5 * (centres[1:] + centres[:-1]), [1.0]])
