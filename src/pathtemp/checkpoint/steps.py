"""Runs other than those of the default engine, to their fit with checkpoints, whether new, resumed or extended.

Margins, paths and the paper's engine know themselves what their state is; see :class:`Steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pathtemp.checkpoint.carry_out import about
from pathtemp.checkpoint.keeper import Keeper, Stopped
from pathtemp.checkpoint.plan import StepsPlan
from pathtemp.fit import Fit
from pathtemp.model import Model
from pathtemp.progress import Progress
from pathtemp.run import Check


class Steps(Protocol):
    """A run between whose rounds it can be stopped, kept and taken up again.

    ``after_round`` is called between rounds and may raise to stop the run there.
    """

    after_round: Callable[[], None]

    @property
    def most(self) -> float:
        """Gradient evaluations that it may spend in all; infinite where nobody said."""
        ...

    def carry_out(self) -> None:
        """Do what is left."""
        ...

    def go_on(self, *, draws: int | None, budget: float | None) -> None:
        """More rounds than were asked for at first."""
        ...

    def fit(self) -> Fit:
        """Of the rounds so far."""
        ...

    def state(self) -> dict[str, Any]:
        """All that the model and the plan do not give again, as records and arrays."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the run stood when ``state`` was kept."""
        ...


class StepsContinuation:
    """A run in steps that can go on; ``extends`` says whether beyond what was asked for, too."""

    def __init__(
        self, run: Steps, plan: StepsPlan, model: Model, progress: Progress, place: Path | None, *, extends: bool
    ) -> None:
        self._run, self._progress, self._extends = run, progress, extends
        known = about(model)
        self._keeper = Keeper(run, lambda: {"plan": plan, "model": known, "state": run.state()}, place)

    def carry_out(self) -> Fit:
        """Do what is left; the fit of it."""
        most = self._run.most
        # A bar needs an end to move towards.
        if most < float("inf"):
            self._progress.start(int(most))
        return self._fit_after(self._run.carry_out)

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """Go on where the run stopped; the fit of all rounds together."""
        return self._fit_after(lambda: self._run.go_on(draws=draws, budget=budget))

    def _fit_after(self, rounds: Callable[[], None]) -> Fit:
        stopped = False
        try:
            with self._keeper.listening():
                rounds()
        except Stopped:
            stopped = True
        finally:
            self._progress.finish()
        fit = self._run.fit()
        diagnostics = fit.diagnostics
        if stopped:
            diagnostics = replace(diagnostics, checks=(self._unfinished(fit), *diagnostics.checks))
        return replace(fit, diagnostics=diagnostics, continuation=self if self._extends else None)

    def _unfinished(self, fit: Fit) -> Check:
        """The gate that says that the rounds are not all."""
        spent, most = fit.counts.gradients, self._run.most
        ways = ["fit.extend"] if self._extends else []
        ways += ["pt.resume on its checkpoint"] if self._keeper.place is not None else []
        of = f" of at most {most:,.0f}" if most < float("inf") else ""
        again = f"go on with {', or '.join(ways)}" if ways else "run it again, with checkpoint= to be able to go on"
        message = f"The run was interrupted after {spent:,} gradient evaluations{of}; {again}."
        return Check("finished", spent, most, False, message)


def carry_out(
    run: Steps, plan: StepsPlan, model: Model, progress: Progress, place: Path | None, *, extends: bool = True
) -> Fit:
    """Do what is left of a run, with checkpoints at ``place``; the fit of it."""
    return StepsContinuation(run, plan, model, progress, place, extends=extends).carry_out()
