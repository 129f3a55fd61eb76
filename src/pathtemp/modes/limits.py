"""How long the search for modes goes on, and in what stages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

FIRST_SCAN, FIRST_STARTS, FIRST_HELD = 16_384, 2048, (16, 128)
"""Draws of the base that are scanned first, starts that are made then, and points that planted modes are held
against."""

WORTH, FIRST_WORTH = 0.1, 0.02
"""Gain of power that all further starts together must promise to be made; less where they may spare a second scan."""

LAST = 3
"""How many times larger the last stage is than those before it: in draws that are scanned, and in starts."""

MOST_FURTHER = 1_200_000
"""Gradient evaluations of the last stage, where no budget is given."""

MOST_SCANNED = 8_000_000
"""Numbers in the base draws that are scanned at once (64 MB)."""

MOST_NUMBERS = 6_000_000
"""Numbers in the points of a scan up to which it has a last stage: beyond, holding them against modes takes minutes."""


@dataclass(frozen=True)
class Limits:
    """How long to search.

    Parameters
    ----------
    gradients
        Gradient equivalents until little is unseen; the densities of the scan and of the power come on top.
    scan
        Draws of the base whose density is looked at.
    slopes
        Points of the scan whose gradient is looked at as well, at most; None for what ``gradients`` leave room for.
    starts
        Starts from the base beyond these, for the sake of power, at most.
    colder
        Whether to look for spikes beyond lam = 1, which costs some ten thousand gradients more.
    held
        Points that each planted mode is held against to state the power: those next to it, and draws of the base.
    worth
        Gain of power that all further starts together must promise to be made.
    power
        Density evaluations for stating it, at most; where that is too few to hold a mode against one point, no power
        is stated.
    further
        Gradient equivalents for a last stage, of ``LAST`` times the size of the others, where modes of some mass were
        come upon rarely, so that others may be missing; none without.
    """

    gradients: float
    scan: int
    slopes: int | None = None
    starts: int = 0
    colder: bool = False
    held: tuple[int, int] = (8, 32)
    worth: float = WORTH
    power: float = np.inf
    further: float = 0.0


def stages_of(limits: Limits, dim: int) -> list[tuple[int, Limits]]:
    """Draws of the base that are scanned at a time, and limits for each time.

    A few, the rest if these are too few, and more if modes were come upon rarely all the same.

    >>> [size for size, _ in stages_of(Limits(1e5, 100_000, slopes=100_000, starts=4096, further=1e6), 2)]
    [16384, 83616, 300000]
    >>> [(size, here.further) for size, here in stages_of(Limits(1e4, 1024, slopes=1024, further=1e6), 2)]
    [(1024, 0.0)]
    """
    usual = replace(limits, further=0.0)
    stages = [(limits.scan, usual)]
    if limits.slopes is None or not limits.starts:
        return stages
    near, often = np.minimum(limits.held, FIRST_HELD).tolist()
    if limits.scan > FIRST_SCAN:
        starts = min(limits.starts, FIRST_STARTS)
        first = replace(usual, scan=FIRST_SCAN, starts=starts, held=(near, often), worth=FIRST_WORTH)
        stages = [(FIRST_SCAN, first), (limits.scan - FIRST_SCAN, usual)]
    size = min(LAST * limits.scan, MOST_NUMBERS // dim - limits.scan)
    last = replace(limits, starts=LAST * limits.starts, held=(near, often), worth=np.inf)
    return [*stages, (size, last)] if limits.further and size > 0 else stages
