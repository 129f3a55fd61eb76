"""Gates of the verdict about modes."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.diagnostics import MORE
from pathtemp.modes.search import FEW_UNSEEN
from pathtemp.run import Check

MATTERS = 0.01
"""Expected share from which a known mode must have been visited."""


def check_unseen(unseen: float, starts: int) -> Check:
    """The estimated unseen share of the basins is small.

    >>> check_unseen(0.002, 500).passed, check_unseen(0.05, 100).passed
    (True, False)
    """
    passed = not unseen > FEW_UNSEEN
    message = (
        f"Of {starts} starts {round(unseen * starts)} ended in a mode that no other reached: about {100 * unseen:.0f}% "
        f"of the basins are unseen, and their mass would be missing; {MORE}, or a base that covers fewer of them."
    )
    return Check("unseen modes", unseen, FEW_UNSEEN, passed, "" if passed else message)


def check_visits(visits: IntArray, expected: FloatArray, *, fewest: int = 5) -> Check:
    """Every known mode of some mass was visited by a few tours; ``expected`` are the shares from local masses.

    >>> check_visits(np.array([50, 0]), np.array([0.9, 0.1])).passed
    False
    """
    few = np.flatnonzero((visits < fewest) & (expected >= MATTERS))
    worst = int(visits[few].min()) if len(few) else int(visits.min(initial=np.iinfo(np.int64).max))
    if len(few) == 0:
        return Check("mode visits", worst, fewest, True)
    k = int(few[np.argmax(expected[few])])
    message = (
        f"{len(few)} of {len(visits)} known modes were visited by fewer than {fewest} tours at the target (lam = 1); "
        f"the largest of them, whose local mass suggests a share of {100 * expected[k]:.0f}%, by {visits[k]}: its "
        f"share is not known; {MORE}."
    )
    return Check("mode visits", worst, fewest, False, message)


def check_unknown(new: FloatArray) -> Check:
    """No target draw belongs to a mode that the base does not know; ``new`` are the expected shares of such modes.

    More rounds with the same base do not open this gate: they are no evidence that the base knows all modes.

    >>> check_unknown(np.array([])).passed
    True
    """
    found = new[new >= MATTERS]
    message = (
        f"Target draws (lam = 1) led to {len(found)} modes that were not known while the kernel was adapted, the "
        f"largest with an expected share of {100 * new.max(initial=0.0):.0f}%: others may be hidden as well, and "
        "extending this run does not change its base; run anew with a larger budget, and with modes= points "
        "near the modes that fit.modes says were found by draws."
    )
    return Check("unknown modes", len(found), 0, len(found) == 0, "" if len(found) == 0 else message)
