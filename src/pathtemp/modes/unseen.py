"""How much has not been seen: of the basins, by Good and Turing, and of the mass."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from pathtemp._types import FloatArray, IntArray

CONFIDENCE = 0.95
"""Of the bound."""


def most_unseen(counts: IntArray, starts: int) -> float:
    """Upper bound on the probability that the next start ends in a mode that none has reached yet.

    The estimate is the number of modes that were reached once, divided by the ``starts`` (Good 1953); the bound is that
    of Clopper and Pearson for such a proportion. ``counts`` are the starts that ended in each mode. The starts must be
    independent. With none it is one.

    >>> round(most_unseen(np.array([64]), 64), 3), round(most_unseen(np.array([60, 3, 1]), 64), 3)
    (0.046, 0.072)
    >>> most_unseen(np.array([0]), 0)
    1.0
    """
    once = int(np.count_nonzero(counts == 1))
    return float(beta.ppf(CONFIDENCE, once + 1, starts - once)) if starts > once else 1.0


def most_missing(counts: IntArray, shares: FloatArray, starts: int) -> float:
    """About how much of the mass may be missing: the unseen basins, with as much mass as any basin known.

    ``counts`` are the points, of so many ``starts``, in the basin of each mode, and ``shares`` what it has of the known
    mass. A narrow mode has much mass in a small basin; where one is known, others like it may be unseen.

    >>> equal = np.array([30, 34]), np.array([0.5, 0.5])
    >>> round(most_missing(*equal, 64), 3), round(most_missing(np.array([60, 4]), np.array([0.5, 0.5]), 64), 3)
    (0.047, 0.293)
    >>> most_missing(np.array([], int), np.array([]), 0)
    1.0
    """
    if starts == 0:
        return 1.0
    density = float(np.max(shares * starts / (counts + 1.0), initial=1.0))
    return min(1.0, most_unseen(counts, starts) * density)
