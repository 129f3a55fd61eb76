"""How much has not been seen: the estimate of Good and Turing, and a bound on it."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from pathtemp._types import IntArray

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
