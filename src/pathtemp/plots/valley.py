"""Whether draws of one scalar lie in heaps with a valley between, told by these draws alone."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray

FEWEST = 100
"""Draws of a heap, at least, with which it is told from chance; and one in 25 of all."""

APART = 4.0
"""Widths between the medians of two heaps, at least; the halves of a normal are 2.2 apart, those of a uniform 2.7."""


def valley(values: FloatArray) -> float:
    """Distance of two heaps in units of the wider one, of draws of any shape; 0 where no valley lies between any.

    >>> heap = np.linspace(-1.0, 1.0, 1001)
    >>> valley(heap), valley(np.concatenate([heap, heap + 10.0])) > 10
    (0.0, True)
    """
    x = np.sort(values[np.isfinite(values)])
    x = x[x.size // 100 : x.size - x.size // 100]  # a far tail is no heap
    return _in_sorted(x, fewest=max(FEWEST, x.size // 25))


def _in_sorted(x: FloatArray, *, fewest: int) -> float:
    """The same of sorted draws, where a heap has ``fewest`` at least."""
    if x.size < 2 * fewest or x[0] == x[-1]:
        return 0.0
    # The split that leaves the least variance within the two sides (Otsu).
    left = np.arange(1, x.size)
    mean = np.cumsum(x)[:-1] / left
    rest = (x.sum() - left * mean) / (x.size - left)
    at = 1 + int(np.argmax(left * (x.size - left) * (rest - mean) ** 2))
    sides = x[:at], x[at:]
    found = _between(x, *sides) if min(side.size for side in sides) >= fewest else 0.0
    # A side may be two heaps in turn.
    return found or max(_in_sorted(side, fewest=fewest) for side in sides)


def _between(x: FloatArray, below: FloatArray, above: FloatArray) -> float:
    """Distance of the two sides of ``x``; 0 where they are near, or no valley lies between their middles."""
    width = max(float(np.subtract(*np.quantile(side, [0.75, 0.25]))) / 1.349 for side in (below, above))
    low, high = float(np.median(below)), float(np.median(above))
    if width <= 0 or high - low <= APART * width:
        return 0.0
    near = [int(np.sum(np.abs(x - place) <= 0.25 * width)) for place in np.linspace(low, high, 41)]
    return (high - low) / width if min(near) < 0.5 * min(near[0], near[-1]) else 0.0
