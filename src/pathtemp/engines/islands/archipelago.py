"""A run of several islands: steps done side by side, lists of modes united between them, one fit of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.engine import MOST_GRADIENTS, TemperEngine, good_enough
from pathtemp.engines.default.modes import ModeSearch
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.default.verdict import judge
from pathtemp.engines.driver import SPARE
from pathtemp.engines.islands.island import Done, Step, Task, driver_of
from pathtemp.engines.islands.pool import joined_history, pooled
from pathtemp.engines.islands.workers import Workers
from pathtemp.engines.progress import Progress, Silent
from pathtemp.errors import InputError
from pathtemp.io.persistent import restore
from pathtemp.model.model import Model
from pathtemp.modes.search import Search
from pathtemp.modes.union import united
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, Run
from pathtemp.seeds import island_word, seed_word
from pathtemp.verdict.draws import FEW_DRAWS
from pathtemp.verdict.modes import MATTERS
from pathtemp.verdict.travel import check_finished, check_islands, when_interrupted

MORE_ROUNDS = 0.5
"""Further frozen rounds, as a share of those so far, where all islands together are not good enough yet."""


@dataclass(frozen=True)
class Begun:
    """What all islands start from.

    Parameters
    ----------
    plan
        What the user asked for, of all islands together.
    islands
        Their number.
    hints, about, spent
        Points (n, dim) near modes that the user knows of; how the base was made if by us, and what that cost.
    seconds
        Wall seconds so far.
    """

    plan: TemperPlan
    islands: int
    hints: FloatArray | None
    about: str = ""
    spent: Counts = field(default_factory=Counts)
    seconds: float = 0.0

    def tasks(self) -> list[Task]:
        """The first step of each island; the budget is shared, and so is the precision asked for."""
        plan, count = self.plan, self.islands
        budget = None if plan.budget is None else plan.budget / count
        settings = plan.settings.replace(log_z_se=plan.settings.log_z_se * np.sqrt(count))
        word = seed_word(plan.seed)
        own = [replace(plan, seed=island_word(word, k), settings=settings, budget=budget) for k in range(count)]
        # What the base has cost is counted once.
        spent = [self.spent, *[Counts()] * (count - 1)]
        given = np.empty((0, 0)) if self.hints is None else self.hints
        return [Task(k, own[k], Step.SEARCH, modes=given, about=self.about, spent=spent[k]) for k in range(count)]


class Archipelago:
    """A run of several islands; it can be extended.

    Parameters
    ----------
    model, begun
        The user's model, and what the islands start from.
    workers
        Who does their steps.
    progress
        Who is told.
    """

    def __init__(self, model: Model, begun: Begun, workers: Workers, progress: Progress) -> None:
        self._model, self._begun, self.workers, self._progress = model, begun, workers, progress
        self._tasks = begun.tasks()
        self._seconds = begun.seconds
        self._run: Run | None = None

    def carry_out(self) -> Fit:
        """The fit of all steps."""
        budget = self._begun.plan.budget
        # A bar moves by gradients.
        gradients = 0.0 if budget is None else budget * self._round_gradients / self._round_cost
        self._progress.start(int(MOST_GRADIENTS * self._begun.islands if budget is None else gradients))
        return self._fit_after(self._all_steps)

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """Go on where the islands stopped; the budget is shared."""
        share = None if budget is None else budget / len(self._tasks)
        least = SPARE * self._round_cost
        if share is not None and share < least:
            raise InputError(
                f"extend: budget must be {least * len(self._tasks):.0f} gradient equivalents at least, one round of "
                f"each island, and is {budget}"
            )
        return self._fit_after(partial(self._more, draws, share))

    @property
    def _round_gradients(self) -> float:
        return self._begun.plan.settings.round_gradients_in(self._model.dim)

    @property
    def _round_cost(self) -> float:
        """Gradient equivalents of a round in a budget."""
        return self._begun.plan.settings.round_cost_in(self._model.dim)

    def _all_steps(self) -> bool:
        """Take all islands through all steps; whether none was stopped."""
        if not all(self._do(step) for step in (Step.SEARCH, Step.ADAPT, Step.SAMPLE)):
            return False
        while self._begun.plan.budget is None and not self._good_enough():
            budget = min(self._room(task.state) for task in self._tasks if task.state is not None)
            if budget < SPARE * self._round_gradients:
                break
            # What islands may spend by themselves counts gradients alone.
            if not self._more(None, budget * self._round_cost / self._round_gradients):
                return False
        return True

    def _more(self, draws: int | None, budget: float | None) -> bool:
        return self._do(Step.MORE, draws=draws, budget=budget)

    def _do(self, step: Step, *, draws: int | None = None, budget: float | None = None) -> bool:
        """Let each island do a step, told of the modes that others know; whether none was stopped."""
        told = [task.modes for task in self._tasks] if step is Step.SEARCH else self._news(step)
        tasks = [
            replace(task, step=step, modes=modes, draws=draws, budget=budget)
            for task, modes in zip(self._tasks, told, strict=True)
        ]
        done: list[Done] = self.workers.do(tasks)
        self._tasks = [replace(task, state=left.state) for task, left in zip(tasks, done, strict=True)]
        self._run = None
        return all(left.finished for left in done)

    def _news(self, step: Step) -> list[FloatArray]:
        """For each island, modes (n, dim) of some mass that another knows and it does not."""
        none: list[FloatArray] = [np.empty((0, self._model.dim))] * len(self._tasks)
        if step is Step.MORE or len(self._tasks) == 1 or not self._begun.plan.search:
            return none
        union = united([self._search(task.state) for task in self._tasks if task.state is not None])
        return [union.lacking(number, least=MATTERS) for number in range(len(self._tasks))]

    def _search(self, state: Mapping[str, Any]) -> Search:
        path = GeometricPath(self._model.log_base, self._model.log_target)
        search = Search(path, scale=np.ones(self._model.dim), seed=0)
        restore(search, state["engine"]["modes"]["_search"])
        return search

    def _room(self, state: Mapping[str, Any]) -> float:
        """Gradient evaluations that an island may still spend, half of what its frozen rounds have at most."""
        history = state["history"]
        spent = [record.gradients for record in history]
        frozen = sum(
            after - before
            for before, after, record in zip([0, *spent], spent, history, strict=False)
            if record.phase == "sample"
        )
        charged = spent[-1] - state["engine"]["free"]
        return float(min(max(MORE_ROUNDS * frozen, SPARE * self._round_gradients), MOST_GRADIENTS - charged))

    def _good_enough(self) -> bool:
        run, plan = self._outcome(), self._begun.plan
        few = plan.draws * plan.settings.chains * len(self._tasks) < FEW_DRAWS
        return bool(run.log_z.stderr[-1] <= plan.settings.log_z_se) and good_enough(run, few=few)

    def _outcome(self) -> Run:
        """Draws, estimates and verdict of all islands together."""
        if self._run is None:
            self._run = together(self._model, self._begun.plan, self._tasks)
        return self._run

    def _fit_after(self, work: Callable[[], bool]) -> Fit:
        began = time.perf_counter()
        try:
            with self.workers.heard():
                finished = work()
        finally:
            self._progress.finish()
        run, plan = self._outcome(), self._begun.plan
        self._seconds += time.perf_counter() - began
        if not finished:
            stopped = check_finished(run.counts.gradients, ["fit.extend"])
            checks = when_interrupted(stopped, run.diagnostics.checks)
            run = replace(run, diagnostics=replace(run.diagnostics, checks=checks))
        seconds = {} if self.workers.aside else dict(run.seconds)
        seconds["other"] = max(self._seconds - sum(seconds.values()), 0.0)
        fit = Fit.from_run(run, self._model, seed=plan.seed, settings=plan.settings)
        return replace(fit, seconds=seconds, continuation=self)


def together(model: Model, plan: TemperPlan, tasks: Sequence[Task]) -> Run:
    """Draws, estimates and verdict of islands as their last steps left them; ``plan`` is that of all."""
    drivers = [driver_of(model, task.plan, task.state, Silent()) for task in tasks if task.state is not None]
    engines = [driver.engine for driver in drivers if isinstance(driver.engine, TemperEngine)]
    # Those that were stopped before their first frozen round have nothing to add.
    used = [engine for engine in engines if engine.trace.rounds] or engines
    parts = [engine.frozen() for engine in used]
    whole = pooled(parts, plan.settings, same_path=all(engine.mixture is None for engine in used))
    counts = sum((engine.counts for engine in engines), start=Counts())
    run = judge(replace(whole, counts=counts), joined_history([driver.history for driver in drivers]))
    ends = np.array([(part.curve.mean[-1], part.curve.stderr[-1]) for part in parts])
    checks = (*run.diagnostics.checks, *([check_islands(*ends.T)] if len(parts) > 1 else []))
    run = replace(run, diagnostics=replace(run.diagnostics, checks=checks))
    searches = [engine.modes for engine in used if engine.modes is not None]
    return ModeSearch.united(searches).added_to(run, whole) if searches else run
