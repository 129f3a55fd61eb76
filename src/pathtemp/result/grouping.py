"""Kept draws as the rectangle (chain, draw) that ArviZ and people read: chains side by side, joined to a few long ones.

A run has many chains that each hold few draws. R-hat and ESS of such short chains say little, and plots of 64 chains
are hard to read. So chains are joined to eight groups at most, and each group is handed over as one chain: the draws of
its first chain, then those of the next. Between groups nothing is shared, so R-hat keeps its meaning, and within a
group the draws of each chain keep their order, so that ESS sees how they depend on each other.

Chains start in order along the path, from the base to the target. Each group has every so-manieth of them, so that all
groups start alike: where chains are many and short, groups of neighbours would differ by where they started. Islands
start apart, and share no group where there are eight of them at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.kernels.kept import Kept

MOST_GROUPS = 8
"""Groups of chains that are handed over."""


@dataclass(frozen=True)
class Grouped:
    """Draws in groups; G groups of n draws.

    Parameters
    ----------
    theta
        Shape (G, n, dim).
    chain, tour
        The chain of each draw, and the number of its tour in that chain, shape (G, n).
    """

    theta: FloatArray
    chain: IntArray
    tour: IntArray

    @property
    def size(self) -> int:
        """Number of draws."""
        return int(self.chain.size)

    @property
    def numbered_tours(self) -> IntArray:
        """The tour of each draw by a number that no other chain uses, shape (G, n)."""
        return np.asarray(self.chain * (int(self.tour.max(initial=0)) + 1) + self.tour)

    @property
    def flat(self) -> FloatArray:
        """All draws, shape (G n, dim)."""
        return self.theta.reshape(self.size, self.theta.shape[2])


def grouped(kept: Kept, chains: int, *, most: int | None = None, islands: int = 1) -> Grouped:
    """The draws of a run with so many chains, ``most`` in all; evenly thinned where there are more.

    Groups differ a little in size, as chains differ in how often they came by: all are thinned to the same length.
    Where some fell far short, the rectangle with most draws is taken.
    """
    count = int(kept.size)
    theta, chain, tour = (np.asarray(x)[:count] for x in (kept.theta, kept.chain, kept.tour))
    group, groups = _group(chain, chains, islands)
    rows = [np.flatnonzero(group == g) for g in range(groups)]
    length = _length([len(r) for r in rows], most)
    taken = [r[np.argsort(chain[r], kind="stable")][_evenly(len(r), length)] for r in rows if len(r) >= length]
    index = np.stack(taken) if length else np.empty((groups, 0), np.int64)
    return Grouped(theta[index].reshape(*index.shape, theta.shape[1]), chain[index], tour[index])


def _group(chain: IntArray, chains: int, islands: int) -> tuple[IntArray, int]:
    """The group of each draw, by its ``chain`` (n,) of so many, and the number of groups.

    >>> _group(np.arange(16), 16, 1)[0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
    >>> _group(np.arange(8), 8, 2)[0].tolist(), _group(np.arange(12), 12, 12)[1]
    ([0, 1, 2, 3, 4, 5, 6, 7], 8)
    """
    own = chains // islands
    each = min(max(MOST_GROUPS // islands, 1), own)
    groups = min(MOST_GROUPS, each * islands)
    return np.asarray((chain // own * each + chain % own % each) * groups // (each * islands)), groups


def _length(sizes: list[int], most: int | None) -> int:
    """Draws of each group in the rectangle with most draws.

    >>> _length([10, 9, 11, 2], None), _length([10, 9, 11, 2], 15)
    (9, 5)
    """
    held = {n: n * sum(size >= n for size in sizes) for n in sorted({0, *sizes})}
    length = max(held, key=lambda n: held[n])
    if most is None or held[length] <= most or length == 0:
        return length
    return max(1, most // (held[length] // length))


def _evenly(count: int, wanted: int) -> IntArray:
    """``wanted`` of the numbers 0 to ``count`` - 1, evenly spread.

    >>> _evenly(10, 5).tolist(), _evenly(3, 3).tolist()
    ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    return np.arange(wanted) * count // max(wanted, 1)
