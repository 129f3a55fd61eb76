"""What runs along a margin or a path are asked to do: with the model and the state, all that it takes to go on."""

from __future__ import annotations

from dataclasses import dataclass

from pathtemp.io.persistent import storable
from pathtemp.settings import PaperSettings, Settings


@storable
@dataclass(frozen=True)
class MarginPlan:
    """A run along a margin as it was asked for; see :func:`pathtemp.divide_and_conquer`.

    Parameters
    ----------
    margin, by_name
        Name of the margin, and whether that is all there is to it; otherwise it was a ``pt.Margin``.
    target_marginal
        Its name; "given" for a function.
    budget
        None for a run of the paper's engine that stops by k-hat alone.
    """

    seed: int
    settings: Settings | PaperSettings
    margin: str
    by_name: bool
    target_marginal: str
    interval: tuple[float, float] | None
    budget: float | None


@storable
@dataclass(frozen=True)
class PathPlan:
    """A run along a path as it was asked for; see :func:`pathtemp.path_sample`."""

    seed: int
    settings: Settings
    dim: int
    interval: tuple[float, float]
    target_marginal: str
    budget: float
    name: str
