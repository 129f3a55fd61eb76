"""What a run of the paper's engine was asked for; apart from it, so that blackjax is not needed to read a plan."""

from __future__ import annotations

from dataclasses import dataclass

from pathtemp.io.persistent import storable
from pathtemp.settings import PaperSettings


@storable
@dataclass(frozen=True)
class PaperPlan:
    """A run of the paper's engine as it was asked for.

    Parameters
    ----------
    seed, settings
        As the user gave them.
    draws
        Most draws of the target, and of the base, to hand over per chain; all when None. There may be fewer,
        or none: they are the visits of the chains to lam = 1.
    budget
        Gradient and density evaluations that no adaptation may be expected to pass; None for any number.
    """

    seed: int
    settings: PaperSettings
    draws: int | None = None
    budget: float | None = None
