"""Pareto k-hat of importance ratios such as 1/p(a), with the atoms at the flat ends of a link kept out.

In a flat end of the link every draw has the same ratio. Such ties are no tail: a cutoff that falls among them
makes the fit to the tail meaningless, and it alarms or passes by accident. Nor do they carry information
about the tail, for the shape k belongs to the continuous part of the distribution of the ratios, and an atom
adds one bounded value. Since p(a) is continuous, the draws just outside a flat end have the same ratio as
those inside, so a flat end that is hardly visited still shows. Hence k-hat is that of the draws between the
flat ends, and their number sets the threshold: where nearly all draws sit in the flat ends, few are left and
the bar is higher.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.api.arguments import positive_number, whole_number
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import vector

FEWEST_DRAWS = 25
"""The tail is a fifth of a small sample, and a tail needs five draws."""

SAME_RATIO = 1e-12
"""Log ratios closer than this are equal but for rounding."""


@dataclass(frozen=True)
class Khat:
    """Pareto k-hat and the threshold it is held against.

    Parameters
    ----------
    value
        Estimated shape of the right tail of the ratios: NaN with fewer than 25 draws to tell, ``-inf`` when
        the largest ratios are all equal and there is no tail.
    threshold
        min(1 - 1/log10(draws), 0.7).
    draws
        Number of draws that k-hat is computed from.
    """

    value: float
    threshold: float
    draws: int

    @property
    def passed(self) -> bool:
        """True when k-hat is known and below its threshold."""
        return bool(self.value < self.threshold)


def khat(log_ratio: ArrayLike, *, flat: ArrayLike | None = None, r_eff: float = 1.0) -> Khat:
    """Pareto k-hat of importance ratios by PSIS (Vehtari et al. 2024; the paper's Step 4).

    Parameters
    ----------
    log_ratio
        Log importance ratio of each draw, -log p(a) for the marginal of the path, any shape of n values.
    flat
        True for draws in a flat end of the link, n values; none when None.
    r_eff
        Effective sample size divided by the number of draws.

    >>> exponential = -np.log(np.linspace(0.0005, 0.9995, 1000))
    >>> heavy = khat(0.9 * exponential)  # ratios with a Pareto tail of shape 0.9
    >>> bool(0.8 < heavy.value < 1.0), heavy.passed
    (True, False)
    """
    ratio, r_eff = vector("log_ratio", log_ratio), positive_number("r_eff", r_eff)
    if np.isposinf(ratio).any():
        raise InputError("log_ratio must be less than infinity; p(a) is zero at some draw")
    if flat is not None:
        mask = np.ravel(np.asarray(flat, dtype=bool))
        if mask.size != ratio.size:
            raise InputError(f"flat must have {ratio.size} values, one for each draw, and has {mask.size}")
        ratio = ratio[~mask]
    value = _tail_shape(ratio, r_eff)
    return Khat(value, khat_threshold(ratio.size), ratio.size)


def khat_threshold(draws: int) -> float:
    """Largest k-hat at which importance sampling with that many draws is reliable: min(1 - 1/log10(S), 0.7).

    >>> round(khat_threshold(100), 3), khat_threshold(10_000)
    (0.5, 0.7)
    """
    whole_number("draws", draws, least=1)
    return min(1.0 - 1.0 / math.log10(draws), 0.7) if draws > 10 else 0.0


def _tail_shape(ratio: FloatArray, r_eff: float) -> float:
    """k-hat by the library, on distinct ratios where ties reach from the cutoff into the tail."""
    if ratio.size < FEWEST_DRAWS:
        return float("nan")
    size = min(ratio.size // 5, math.floor(3.0 * math.sqrt(ratio.size / r_eff)))
    tail = np.sort(ratio)[-size - 1 :] - ratio.max()
    # The first is the cutoff, below the tail.
    if tail[1] > -SAME_RATIO:
        return float("-inf")
    if tail[size // 4] - tail[0] < SAME_RATIO:
        distinct = np.unique(ratio)
        return _tail_shape(distinct, r_eff) if distinct.size < ratio.size else float("nan")
    from arviz_stats.base import array_stats  # slow to import

    return float(array_stats.psislw(-ratio, r_eff=r_eff)[1])
