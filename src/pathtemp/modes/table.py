"""What a fit says of the modes of its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.api.arguments import positive_number
from pathtemp.api.arguments import share as check_share
from pathtemp.errors import InputError
from pathtemp.modes.power import Power

MOST_LINES = 12
"""Modes that are printed; the table holds them all."""


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
        Upper bound (95%) on the share of the basins that no start from the base has reached, by Good and Turing; NaN
        where the target has no isolated modes to list.
    mixture
        Whether the path starts from a mixture of these modes and a leg of the user's base, or from the user's base.
    why
        Why that was chosen, in words.
    looked_at
        Draws of the base from which a mode could have been noticed: starts, and draws whose density was compared with
        that of the known modes.
    noticed
        Where planted modes would have been noticed, for :meth:`power`; None where there is no list of modes.
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
    noticed: Power | None = None

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

    def power(self, *, width: float = 0.7, share: float = 0.05) -> float:
        """Probability that a further mode would have been noticed by the search; NaN where there is no list of modes.

        The mode lies as the known ones do, or between them and a draw of the base where they are fewer than four. It
        has this ``share`` of the mass, and the shape and tails of the known modes, made narrower than the widest by the
        factor ``width`` in every direction. Ascents along the annealing pass and from target draws might have found it
        as well. A mode unlike the known ones may be found less often.
        """
        if positive_number("width", width) > 1.0:
            raise InputError(f"width: it must be above 0 and at most 1, and is {width!r}")
        check_share("share", share)
        return float("nan") if self.noticed is None else self.noticed(width=width, share=share)

    @property
    def headline(self) -> str:
        """The modes in one line."""
        if np.isnan(self.unseen):
            why = "a ridge, a density without a maximum, or too many modes"
            return f"no list of isolated modes ({why}); the power to find a further one is not known"
        known = f"{len(self)} known; at most {100 * self.unseen:.1f}% of the basins unseen"
        if self.noticed is None:
            return known
        chances = [_percent(self.power(width=width, share=0.1)) for width in (1.0, 0.5)]
        return (
            f"{known}; another like them with 10% of the mass would have been found with probability {chances[0]} if "
            f"as wide as the widest, {chances[1]} if half as wide"
        )


def _percent(probability: float) -> str:
    """A probability in percent, never more certain than the places it was computed at.

    >>> _percent(1.0), _percent(0.123), _percent(0.0)
    ('99%', '12%', '1%')
    """
    return f"{100 * min(max(probability, 0.01), 0.99):.0f}%"
