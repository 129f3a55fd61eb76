"""What a fit says of the modes of its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray, IntArray

MOST_LINES = 12
"""Modes that are printed; the table holds them all."""


ONE_IN = 3
"""With n draws of the base none of which is in a basin, the basin has less than 3 / n of it, by 95%."""


@dataclass(frozen=True, repr=False)
class Modes:
    """The modes that a run knows, largest share first.

    Parameters
    ----------
    centre
        Place of each mode by variable, constrained, ``{name: (modes, ...)}``.
    log_density
        Log density of the target there on the unconstrained scale, (modes,).
    share, share_se
        Share of the target draws at lam = 1 and its standard error, from tours, (modes,).
    visits
        Tours that came by at lam = 1, (modes,).
    found_by
        How each was found: by a start from the "base", "far" outside it or along the "annealing" pass, by the
        "scan" of the base's draws for density that the known modes do not explain, from "draws" of the target
        between rounds, from a mode that another "island" found, or from a point that was "given".
    starts
        Random starts that ended in each, (modes,).
    starts_made
        Random starts in all.
    unseen
        Good-Turing estimate of the share of the basins that no start has reached; NaN where the target has no
        isolated modes to list.
    mixture
        Whether the path starts from a mixture of these modes and a leg of the user's base, or from the user's base.
    why
        Why that was chosen, in words.
    looked_at
        Draws of the base from which a mode could have been noticed: starts, and draws whose density was compared with
        that of the known modes.
    """

    centre: Mapping[str, FloatArray]
    log_density: FloatArray
    share: FloatArray
    share_se: FloatArray
    visits: IntArray
    found_by: tuple[str, ...]
    starts: IntArray
    starts_made: int
    unseen: float
    mixture: bool
    why: str
    looked_at: int = 0

    def __len__(self) -> int:
        return len(self.found_by)

    def __str__(self) -> str:
        lines = [f"{'mode':>4}  {'share':>7}  {'se':>7}  {'tours':>6}  {'starts':>6}  {'log density':>12}  found by"]
        for k in range(min(len(self), MOST_LINES)):
            lines.append(
                f"{k:>4}  {self.share[k]:>7.4f}  {self.share_se[k]:>7.4f}  {self.visits[k]:>6}  {self.starts[k]:>6}  "
                f"{self.log_density[k]:>12.2f}  {self.found_by[k]}"
            )
        if len(self) > MOST_LINES:
            lines.append(f"... and {len(self) - MOST_LINES} more in fit.modes")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def headline(self) -> str:
        """The modes in one line."""
        if np.isnan(self.unseen):
            return "no list of isolated modes (a ridge, or a density without a maximum)"
        known = f"{len(self)} known; estimated unseen share of the basins {100 * self.unseen:.1f}%"
        if self.looked_at < ONE_IN:
            return known
        return f"{known}; a basin under 1 in {_two_digits(self.looked_at / ONE_IN):,} of the base may be missed"


def _two_digits(value: float) -> int:
    """Rounded down to two digits.

    >>> _two_digits(43690.7)
    43000
    """
    size = 10 ** max(0, len(str(int(value))) - 2)
    return int(value) // size * size
