"""What a run of the default engine is asked to do: with the model and the state, all that it takes to go on."""

from __future__ import annotations

from dataclasses import dataclass

from pathtemp.io.persistent import storable
from pathtemp.settings import Settings


@storable
@dataclass(frozen=True)
class TemperPlan:
    """A run of the default engine as it was asked for.

    Parameters
    ----------
    seed, settings
        As the user gave them.
    draws, must_draw
        Target draws kept for each chain, and whether that many are wanted.
    budget
        Gradient equivalents, None for a run that stops by itself.
    search
        Whether to look for separated modes.
    """

    seed: int
    settings: Settings
    draws: int
    must_draw: bool
    budget: float | None
    search: bool
