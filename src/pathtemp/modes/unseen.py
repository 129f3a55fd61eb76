"""How much has not been seen: of the basins, by Good and Turing, and of the mass."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from pathtemp._types import FloatArray, IntArray

CONFIDENCE = 0.95
"""Of the bound."""

RARELY = 5
"""Points in the basin of a mode up to which it was come upon rarely."""


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
    return float(betaincinv(once + 1, starts - once, CONFIDENCE)) if starts > once else 1.0


def missing_mass(counts: IntArray, shares: FloatArray) -> float:
    """About how much of the mass is in modes that were not found: as much as in those that were come upon rarely.

    ``counts`` are the evaluated points in the basin of each mode, and ``shares`` what it has of the known mass. Where
    the sizes of basins are spread evenly over magnitudes, as they are where modes differ in width, those of one to a
    few points hold about as much mass as those of less than one point, which are unseen.

    >>> round(missing_mass(np.array([40, 3, 1]), np.array([0.8, 0.15, 0.05])), 2)
    0.2
    """
    return float(np.sum(shares[counts <= RARELY]))
