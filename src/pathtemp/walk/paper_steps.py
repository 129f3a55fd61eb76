"""The adaptations of the paper's divide and conquer, one by one (Algorithm 2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
from pathtemp.errors import InputError
from pathtemp.estimators.khat import khat
from pathtemp.evaluate import agree
from pathtemp.margin_fit import MarginFit
from pathtemp.progress import Progress
from pathtemp.run import Counts, RoundRecord
from pathtemp.walk.paper import ChainDraws, PaperMargin, covered_share


class PaperMarginSteps:
    """The run along a margin by the paper's engine; see :class:`pathtemp.checkpoint.steps.Steps`."""

    def __init__(self, task: PaperMargin, starts: FloatArray, progress: Progress) -> None:
        self._task, self._starts, self._progress = task, starts, progress
        self.rounds: list[ChainDraws] = []
        self._history: list[RoundRecord] = []
        self._counts = Counts()
        self._seconds = {"compile": 0.0, "adapt": 0.0}
        self._done = False
        self.after_round: Callable[[], None] = lambda: None

    @property
    def most(self) -> float:
        """It stops by k-hat, not by a budget."""
        return float("inf")

    def carry_out(self) -> None:
        """The adaptations that are left."""
        adaptation, compiling = self._task.compiled(self._starts)
        self._seconds["compile"] += compiling
        while not self._done:
            begin = time.perf_counter()
            self._adapt(adaptation)
            self._seconds["adapt"] += time.perf_counter() - begin
            self.after_round()

    def _adapt(self, adaptation: Callable[[int, Any], ChainDraws]) -> None:
        settings, rounds = self._task.settings, self.rounds
        old = self._task.smoothed(rounds) if rounds else (np.arange(2.0), np.zeros(2))
        rounds.append(adaptation(len(rounds), self._task.bias_after(rounds)))
        self._counts = self._counts + Counts(int(rounds[-1].gradients.sum()), 0)
        grid, log_p = self._task.smoothed(rounds)
        at = np.asarray(rounds[-1].lam).ravel()
        tail = khat(np.interp(at, grid, log_p) - np.interp(at, *old)).value
        self._history.append(_line(self._counts, tail, rounds[-1], grid, log_p))
        self._progress.round(self._history[-1])
        # k-hat does not see what was never visited.
        settled = len(rounds) > 1 and tail < settings.khat and covered_share(rounds, grid) == 1.0
        self._done = (settings.stop and settled) or len(rounds) == settings.adaptations

    def go_on(self, *, draws: int | None, budget: float | None) -> None:
        """It does not."""
        raise InputError("extend: the paper's engine stops by k-hat; run it again with more adaptations")

    def fit(self) -> MarginFit:
        """Of the adaptations so far."""
        return self._task.fit(self.rounds, tuple(self._history), self._counts, dict(self._seconds))

    def posterior(self) -> FloatArray:
        """Flat draws of the posterior, shape (chain, draw, dim)."""
        return self._task.posterior(self.rounds)

    def state(self) -> dict[str, Any]:
        """All that the model and the plan do not give again."""
        return {
            "rounds": self.rounds,
            "history": self._history,
            "counts": self._counts,
            "seconds": self._seconds,
            "done": self._done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the run stood when its state was kept; InputError where it was of another density."""
        self.rounds, self._history, self._counts = state["rounds"], state["history"], state["counts"]
        self._seconds, self._done = state["seconds"], state["done"]
        last = self.rounds[-1]
        now = jax.vmap(jax.grad(self._task.path.log_q, argnums=1))(last.theta[:, -1], last.lam[:, -1])
        if not agree(np.asarray(now), np.asarray(last.u[:, -1])):
            raise InputError(
                "model: its gradients at the chains of the checkpoint are not those in the file; give the model, data "
                "and margin that the run was of"
            )


def _line(counts: Counts, tail: float, draws: ChainDraws, grid: FloatArray, log_p: FloatArray) -> RoundRecord:
    return RoundRecord(
        phase="adapt",
        gradients=counts.gradients,
        tours=0,
        log_z=float(log_p[-1] - log_p[0]),
        log_z_se=float("nan"),
        khat=tail,
        acceptance=float(np.mean(draws.acceptance)),
        curve=LogZ(grid, log_p, np.full(len(grid), np.nan)),
    )
