"""From a run that is ready to its fit, with checkpoints, whether it is new, resumed or extended."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp.checkpoint.cover import cover_of
from pathtemp.checkpoint.keeper import Keeper, Stopped
from pathtemp.checkpoint.plan import AnyRun, Plan
from pathtemp.checkpoint.state import state_of
from pathtemp.fit import Fit, library_versions
from pathtemp.inputs import naming
from pathtemp.model import Model
from pathtemp.progress import Progress
from pathtemp.run import Check, Run


class Continuation:
    """A run that can go on.

    Parameters
    ----------
    run, plan, model
        The run, what it was asked to do, and the user's model.
    progress
        Who is told.
    place
        File of its checkpoint; None for none.
    """

    def __init__(self, run: AnyRun, plan: Plan, model: Model, progress: Progress, place: Path | None) -> None:
        self._run, self._plan, self._model, self._progress = run, plan, model, progress
        known = about(model)
        self._keeper = Keeper(run, lambda: {"plan": plan, "model": known, "state": state_of(run)}, place)

    def carry_out(self) -> Run:
        """Do what is left of the plan."""
        plan, run = self._plan, self._run
        most = plan.most if run.limit is None else run.limit[0]
        self._progress.start(int(most))
        try:
            with self._keeper.listening(), self._naming():
                run.warm_up(plan.warm, least=plan.least)
                if run.limit is None:
                    run.sample(plan.most, until_done=plan.budget is None)
                else:
                    run.sample_on()
        except Stopped:
            return self._unfinished(most)
        finally:
            self._progress.finish()
        return run.result()

    def _naming(self) -> AbstractContextManager[None]:
        """Let a log density of +inf be told by name, and what can be done about the rounds there are."""
        kept = "" if self._keeper.place is None else "; pt.resume goes on from the rounds before once it is mended"
        return naming(self._model, more=kept)

    def fit(self, done: Run) -> Fit:
        """The fit of what the run has handed over."""
        return Fit.from_run(done, self._model, seed=self._plan.seed, settings=self._plan.settings, continuation=self)

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """More frozen rounds; the fit of all rounds together."""
        return self.fit(self._go_on(draws=draws, budget=budget))

    def _go_on(self, *, draws: int | None, budget: float | None) -> Run:
        """More frozen rounds, see :meth:`pathtemp.adapt.AdaptiveRun.go_on`."""
        try:
            with self._keeper.listening(), self._naming():
                return self._run.go_on(draws=draws, budget=budget)
        except Stopped:
            return self._unfinished((self._run.limit or (np.inf, False))[0])
        finally:
            self._progress.finish()

    def _unfinished(self, most: float) -> Run:
        """What there is, with a gate that says that it is not all."""
        run, place = self._run.result(), self._keeper.place
        spent = run.counts.gradients
        again = "" if place is None else ", or pt.resume on its checkpoint"
        message = (
            f"The run was interrupted after {spent:,} gradient evaluations of at most {most:,.0f}; go on with "
            f"fit.extend{again}."
        )
        unfinished = Check("finished", spent, most, False, message)
        checks = (unfinished, *run.diagnostics.checks)
        return replace(run, diagnostics=replace(run.diagnostics, checks=checks))


def carry_out(run: AnyRun, plan: Plan, model: Model, progress: Progress, place: Path | None) -> Fit:
    """Do what is left of a plan; the fit of it."""
    continuation = Continuation(run, plan, model, progress, place)
    return continuation.fit(continuation.carry_out())


def about(model: Model) -> dict[str, Any]:
    """What a checkpoint says of its model."""
    known = {"name": model.name, "dim": model.dim, "versions": library_versions(), "recipe": model.recipe}
    return known | cover_of(model)
