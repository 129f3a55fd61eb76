"""How much has not been seen: of the basins, by Good and Turing, and of the mass."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from pathtemp._types import FloatArray, IntArray

CONFIDENCE = 0.95
"""Of the bound."""

MOST_NATS, TINY = 700.0, 1e-9
"""Largest exponent of a number that is finite, and a range of log widths that is next to none."""

FEW_MODES = 4
"""Modes from which others are expected to be like them."""

RARELY = 5
"""Points in the basin of a mode up to which it was come upon rarely."""


def unseen_bound(counts: IntArray, starts: int) -> float:
    """Upper bound on the probability that the next start ends in a mode that none has reached yet.

    The estimate is the number of modes that were reached once, divided by the ``starts`` (Good 1953); the bound is that
    of Clopper and Pearson for such a proportion. ``counts`` are the starts that ended in each mode. The starts must be
    independent. With none it is one.

    >>> round(unseen_bound(np.array([64]), 64), 3), round(unseen_bound(np.array([60, 3, 1]), 64), 3)
    (0.046, 0.072)
    >>> unseen_bound(np.array([0]), 0)
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


def narrower_modes(widths: FloatArray, counts: IntArray, dim: int) -> float:
    """About what share of all modes is missing because they are narrower than the known ones, and were not come upon.

    ``widths`` (n,) are those of the known modes relative to the widest, and ``counts`` (n,) the evaluated points in
    their basins, whose volume goes with the width to the power of ``dim``: so the narrowest mode tells at what width
    one point is left. Where the known widths go down to about there, nothing says that there are none below; where they
    end far above it, narrower ones are unlikely. Log widths are taken as uniform from 0 to -X, with a prior of 1/X^2 on
    the range X. A few modes say nothing of a range: then it is zero.

    >>> spread, alike = np.array([1.0, 0.97, 0.86, 0.8, 0.74]), np.array([1.0, 0.99, 0.97, 0.96, 0.95])
    >>> counts = np.array([3000, 2000, 200, 60, 25])
    >>> round(narrower_modes(spread, counts, 20), 2), round(narrower_modes(alike, counts, 20), 3)
    (0.2, 0.002)
    """
    count, narrowest = len(widths), int(np.argmin(widths))
    if count < FEW_MODES:
        return 0.0
    reached = -float(np.log(widths[narrowest]))
    limit = reached + float(np.log(max(counts[narrowest], 1))) / dim
    # The range is beyond the limit with these odds; then half of the modes are, on average.
    steeper = np.expm1(min(count * float(np.log(max(limit, TINY) / max(reached, TINY))), MOST_NATS))
    return float(0.5 * count / (count + steeper))
