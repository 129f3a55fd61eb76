"""How much has not been seen: the estimate of Good and Turing."""

from __future__ import annotations

import numpy as np

from pathtemp._types import IntArray


def unseen_share(counts: IntArray, starts: int) -> float:
    """Probability that the next start ends in a mode that none has reached yet: modes seen once / starts.

    ``counts`` are the starts that ended in each mode (Good 1953). With no start it is one.

    >>> unseen_share(np.array([5, 1, 2]), 8)
    0.125
    >>> unseen_share(np.array([8]), 8)
    0.0
    """
    return float(np.count_nonzero(counts == 1) / starts) if starts else 1.0


def most_unseen(starts: int, *, chance: float = 0.05) -> float:
    """Largest share that a mode may have of the starts and still be missed by all of them with this ``chance``.

    >>> round(most_unseen(100), 3)
    0.03
    """
    return float(1.0 - chance ** (1.0 / starts)) if starts else 1.0
