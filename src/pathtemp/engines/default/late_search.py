"""What a search among the target draws may cost: it finds modes that the search before the rounds has missed."""

from __future__ import annotations

from pathtemp.modes.ascent import CHUNK, LANES
from pathtemp.modes.core import EXCESS_DENSITIES
from pathtemp.modes.refine import REFINE_DENSITIES

LATE_SHARE = 0.01
"""Share of the budget for each search among target draws; there is none where that does not pay for a first step."""

FEWEST_LATE = 4 * LANES * CHUNK
"""Gradient evaluations of such a search at least, enough for most ascents to arrive."""

LATE_SLOPES = 0.25
"""Share of the gradient evaluations of such a search that go to the draws themselves."""

LATE_DRAWS = 1024
"""Draws whose density is evaluated where densities are counted."""

AFTERWARDS = REFINE_DENSITIES + EXCESS_DENSITIES
"""Densities after the ascents: of the law of a new mode, and of the mass at the top of one."""


def late_search_cost(planned: float, price: float) -> float:
    """Gradient equivalents that such a search may cost in a run of ``planned`` ones, where a density costs ``price``.

    >>> late_search_cost(1e4, 0.25), late_search_cost(1e5, 0.0), late_search_cost(1e5, 0.25)
    (0.0, 1024.0, 2816.0)
    """
    share = LATE_SHARE * planned
    return 0.0 if share < LANES * CHUNK else float(max(share, FEWEST_LATE) + price * (LATE_DRAWS + AFTERWARDS))
