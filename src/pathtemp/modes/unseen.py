"""How much has not been seen: of the basins, by Good and Turing, and of the mass, by Horvitz and Thompson."""

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


def missing_mass(counts: IntArray, shares: FloatArray) -> float:
    """Mass of the modes that were not found, relative to that of the known ones (Horvitz and Thompson 1952).

    ``counts`` are the evaluated points in the basin of each mode, and ``shares`` what it has of the known mass. A mode
    that one point led to might as well have been missed: it stands for others like it. A mode that none led to, and
    that was found otherwise, counts as one of half a point.

    >>> round(missing_mass(np.array([40, 1]), np.array([0.9, 0.1])), 3)
    0.058
    >>> missing_mass(np.array([], int), np.array([]))
    0.0
    """
    found = -np.expm1(-np.maximum(counts, 0.5))
    return float(np.sum(shares * (1.0 / found - 1.0)))
