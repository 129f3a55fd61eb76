"""One island: a run of the default engine in steps, each a pure function of the state that the one before left.

So a step gives the same wherever it runs, and can be made again where a machine was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.engine import TemperEngine
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.driver import Driver, Stage
from pathtemp.engines.interrupts import Interrupts
from pathtemp.engines.progress import Progress
from pathtemp.io.persistent import restore, state_of
from pathtemp.model.inputs import check_model, starts
from pathtemp.model.meter import metered
from pathtemp.model.model import Model
from pathtemp.result.run import Counts
from pathtemp.seeds import seed_word


class Step(Enum):
    """What an island does before it waits for the others."""

    SEARCH = "search"
    """Annealing pass and search for modes."""
    ADAPT = "adapt"
    """Adaptive rounds, from a base that knows the modes of all islands."""
    SAMPLE = "sample"
    """Frozen rounds; before them the base once more, where adapting has shown another island a further mode."""
    MORE = "more"
    """Further frozen rounds."""


@dataclass(frozen=True)
class Task:
    """One step of one island: with the model, all that its outcome depends on.

    Parameters
    ----------
    island
        Its number, from zero.
    plan
        What is asked of the island, with its own seed.
    step
        What to do.
    state
        What the step before left; None at first.
    modes
        Points (n, dim) near modes: at first those that the user knows of, then those that other islands found.
    about, spent
        How the base was made if by us, and what that cost.
    draws, budget
        Of further rounds: more target draws for each chain, or more gradient equivalents.
    """

    island: int
    plan: TemperPlan
    step: Step
    state: Mapping[str, Any] | None = None
    modes: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    about: str = ""
    spent: Counts = field(default_factory=Counts)
    draws: int | None = None
    budget: float | None = None


class Done(NamedTuple):
    """What a step left, and whether it came to its end or was stopped before."""

    state: dict[str, Any]
    finished: bool


def driver_of(
    model: Model, plan: TemperPlan, state: Mapping[str, Any], progress: Progress, interrupts: Interrupts | None = None
) -> Driver:
    """The run of an island as a step left it."""
    empty = np.zeros((plan.settings.chains, model.dim)), np.zeros((plan.settings.chains, 2))
    engine = TemperEngine(model, plan, empty)
    driver = Driver(engine, engine.schedule(plan.budget), model=model, progress=progress, interrupts=interrupts)
    restore(driver, state)
    return driver


def carry_out(model: Model, task: Task, progress: Progress, interrupts: Interrupts | None = None) -> Done:
    """Do one step of an island."""
    if task.state is None:
        driver = _begun(model, task, progress, interrupts)
    else:
        driver = driver_of(model, task.plan, task.state, progress, interrupts)
    finished = _advanced(driver, task)
    return Done(state_of(driver), finished)


def _advanced(driver: Driver, task: Task) -> bool:
    """Take the run through a step; whether it came to its end."""
    if task.step is Step.SEARCH:
        return driver.advance(Stage.PREPARED)
    if task.step is Step.MORE:
        driver.plan_more(draws=task.draws, budget=task.budget)
        return driver.advance(Stage.DONE)
    engine = driver.engine
    assert isinstance(engine, TemperEngine)
    with driver.timed("search"):
        again = bool(len(task.modes)) and engine.learn(task.modes, driver)
    if again:
        driver.begin_again()
    if task.step is Step.ADAPT:
        return driver.advance(Stage.ADAPTED)
    if again and not driver.advance(Stage.ADAPTED):
        return False
    driver.freeze()
    return driver.advance(Stage.DONE)


def _begun(model: Model, task: Task, progress: Progress, interrupts: Interrupts | None) -> Driver:
    """The run of an island before its first step."""
    plan = task.plan
    with metered() as meter:
        theta = starts(model, count=plan.settings.chains, seed=seed_word(plan.seed))
        start = theta, check_model(model, theta)
    engine = TemperEngine(model, plan, start, hints=task.modes, about=task.about)
    engine.chains.counts = task.spent + Counts(meter.gradients, meter.densities)
    return Driver(engine, engine.schedule(plan.budget), model=model, progress=progress, interrupts=interrupts)
