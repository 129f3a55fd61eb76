"""What a run was asked to do: with the model and the state, all that it takes to go on."""

from __future__ import annotations

from dataclasses import dataclass

from pathtemp.adapt import AdaptiveRun
from pathtemp.engine import Engine
from pathtemp.model import Model
from pathtemp.modes.run import ModesRun, Start
from pathtemp.progress import Progress
from pathtemp.seeds import seed_word
from pathtemp.settings import PaperSettings, Settings

AnyRun = AdaptiveRun | ModesRun


@dataclass(frozen=True)
class Plan:
    """A run of the default engine as it was asked for.

    Parameters
    ----------
    seed, settings
        As the user gave them.
    draws, must_draw
        Target draws kept for each chain, and whether that many are wanted.
    budget
        Gradient evaluations, None for a run that stops by itself.
    least, warm, most
        Gradient evaluations until which the kernel adapts at least, those until which it may, and in all.
    look
        Whether to look for separated modes.
    """

    seed: int
    settings: Settings
    draws: int
    must_draw: bool
    budget: float | None
    least: float
    warm: float
    most: float
    look: bool


@dataclass(frozen=True)
class MarginPlan:
    """A run along a margin as it was asked for; see :func:`pathtemp.divide_and_conquer`.

    Parameters
    ----------
    margin, by_name
        Name of the margin, and whether that is all there is to it; otherwise it was a ``pt.Margin``.
    target_marginal
        Its name; "given" for a function.
    """

    seed: int
    settings: Settings | PaperSettings
    margin: str
    by_name: bool
    target_marginal: str
    interval: tuple[float, float] | None
    budget: float


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


@dataclass(frozen=True)
class PaperPlan:
    """A run of the paper's engine as it was asked for."""

    seed: int
    settings: PaperSettings
    draws: int | None


StepsPlan = MarginPlan | PathPlan | PaperPlan


def make_run(plan: Plan, model: Model, start: Start, progress: Progress) -> AnyRun:
    """The run of a plan, before its first step; ``start`` are theta (chains, dim) and energies (chains, 2)."""
    word = seed_word(plan.seed)

    def make_engine(model: Model, start: Start) -> Engine:
        return Engine(model, seed=word, draws=plan.draws, must_draw=plan.must_draw, settings=plan.settings, start=start)

    if plan.look:
        return ModesRun(model, start, make_engine, progress, seed=word, budget=plan.budget)
    return AdaptiveRun(make_engine(model, start), progress)
