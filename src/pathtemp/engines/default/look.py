"""What a look at the target draws may cost: it finds modes that the search before the rounds has missed."""

from __future__ import annotations

from pathtemp.modes.ascent import CHUNK, LANES
from pathtemp.modes.core import EXCESS_DENSITIES
from pathtemp.modes.refine import REFINE_DENSITIES

LOOK_SHARE = 0.01
"""Share of the budget for each look at target draws; there is none where that does not pay for a first step."""

LEAST_LOOK = 4 * LANES * CHUNK
"""Gradient evaluations of a look at least, enough for most ascents to arrive."""

LOOK_SLOPES = 0.25
"""Share of the gradient evaluations of a look that go to the draws themselves."""

LOOK_DRAWS = 1024
"""Draws whose density is looked at where densities are counted."""

AFTERWARDS = REFINE_DENSITIES + EXCESS_DENSITIES
"""Densities after the ascents: of the law of a new mode, and of the mass at the top of one."""


def look_cost(planned: float, price: float) -> float:
    """Gradient equivalents that a look may cost in a run of ``planned`` ones, where a density costs ``price``.

    >>> look_cost(1e4, 0.25), look_cost(1e5, 0.0), look_cost(1e5, 0.25)
    (0.0, 1024.0, 2816.0)
    """
    share = LOOK_SHARE * planned
    return 0.0 if share < LANES * CHUNK else float(max(share, LEAST_LOOK) + price * (LOOK_DRAWS + AFTERWARDS))
