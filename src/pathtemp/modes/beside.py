"""Isolated modes beside a ridge: there is no list of modes to complete, and some of the mass may be apart all the same.

Shares of the points of a ridge mean nothing, so the mass of an isolated mode is held against that of all the rest, as
the annealing pass or the run has it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.modes.search import Search

MATTERS = 0.01
"""Estimated share from which a mode beside a ridge has to be led to."""

HELD = 0.2
"""Share of the draws in a mode, relative to its due, below which it was left out."""

FIRST_BATCH, MOST_STARTS = 256, 4096
"""Starts from the base that are made at first beside a ridge, and in all."""


def search_beside(search: Search, base_draws: Callable[[int], FloatArray], *, most: int) -> None:
    """Make further starts, so many at ``most``, while most of what is known is ridges, and more can be listed.

    None where starts do not arrive anywhere: the density rises without end.
    """
    made, batch = 0, FIRST_BATCH
    most = min(most, MOST_STARTS)
    while made < most and search.modes and search.ridges and not search.unlisted and not search.rises:
        batch = min(batch, most - made)
        search.climb(base_draws(batch), found_by="base", random=True, most_gradients=np.inf)
        search.isolate()
        made, batch = made + batch, 2 * batch


def beside(search: Search, log_mass: float) -> list[int]:
    """Numbers of the isolated modes that have some mass where all else has ``log_mass``; none where there is a list.

    Only a mass that importance sampling has measured counts.
    """
    if not search.ridges or not np.isfinite(log_mass):
        return []
    least = log_mass + np.log(MATTERS)
    modes = [(k, m) for k, m in enumerate(search.modes) if m.refined and not m.law.flat]
    return [k for k, m in modes if m.log_mass > least and m.log_mass != m.law.log_evidence]


def left_out(search: Search, log_mass: float, theta: FloatArray) -> FloatArray:
    """Expected shares of the isolated modes that draws (n, dim) hold too little of; ``log_mass`` is that of all."""
    dim, shares = theta.shape[1], []
    for k in beside(search, log_mass):
        mode = search.modes[k]
        share = float(np.exp(mode.log_mass - np.logaddexp(mode.log_mass, log_mass)))
        # Of a normal nearly all lies within, and of a Student-t more than half.
        inside = np.mean(mode.law.square(theta) < dim + 4.0 * np.sqrt(2.0 * dim)) if len(theta) else 0.0
        if inside < HELD * share:
            shares.append(share)
    return np.array(shares)
