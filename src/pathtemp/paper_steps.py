"""The paper's engine in steps between which it can be stopped, kept in a file and taken up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pathtemp.checkpoint.plan import PaperPlan
from pathtemp.errors import InputError
from pathtemp.evaluate import energies_of
from pathtemp.fit import Fit
from pathtemp.model import Model
from pathtemp.paper import PaperRun
from pathtemp.paths.geometric import GeometricPath
from pathtemp.progress import Progress
from pathtemp.seeds import seed_word

SAME = 1e-6
"""Relative difference of log densities within which a model counts as the one that a state was kept of."""

KEPT = ("traces", "history", "counts", "rejections", "seconds", "done")
"""Attributes of the run that are its state."""


class PaperSteps:
    """A run of the paper's engine; see :class:`pathtemp.checkpoint.steps.Steps`."""

    def __init__(self, model: Model, plan: PaperPlan, progress: Progress) -> None:
        self._model, self._plan = model, plan
        self._run = PaperRun(model, seed=seed_word(plan.seed), draws=plan.draws, settings=plan.settings)
        self._run.progress = progress.round

    @property
    def after_round(self) -> Callable[[], None]:
        """Called between adaptations."""
        return self._run.after_round

    @after_round.setter
    def after_round(self, call: Callable[[], None]) -> None:
        self._run.after_round = call

    @property
    def most(self) -> float:
        """It stops by k-hat, not by a budget."""
        return float("inf")

    def carry_out(self) -> None:
        """The adaptations that are left."""
        self._run.carry_out()

    def go_on(self, *, draws: int | None, budget: float | None) -> None:
        """It does not."""
        raise InputError("extend: the paper's engine stops by k-hat; run it again with more adaptations")

    def fit(self) -> Fit:
        """Of the adaptations so far."""
        return Fit.from_run(self._run.result(), self._model, seed=self._plan.seed, settings=self._plan.settings)

    def state(self) -> dict[str, Any]:
        """All that the model and the plan do not give again."""
        return {name: getattr(self._run, name) for name in KEPT}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the run stood when its state was kept; InputError where it was of another model."""
        for name in KEPT:
            setattr(self._run, name, state[name])
        last = self._run.traces[-1]
        base, target = energies_of(GeometricPath(self._model.log_base, self._model.log_target), last.theta[:, -1]).T
        with np.errstate(invalid="ignore"):
            now = target - base
        then = last.delta[:, -1]
        both = np.isfinite(now) & np.isfinite(then)
        if np.any(np.abs(now - then)[both] > SAME * (1.0 + np.abs(then[both]))) or np.any(
            np.isfinite(now) != np.isfinite(then)
        ):
            raise InputError(
                "model: its log densities at the chains of the checkpoint are not those in the file; give the model, "
                "data and base that the run was of"
            )
