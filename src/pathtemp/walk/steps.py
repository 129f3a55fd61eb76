"""A walk from its starts to its fit, in steps between which it can be stopped, kept in a file and taken up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.evaluate import agree
from pathtemp.fit import Fit
from pathtemp.kernels.walk import Walker
from pathtemp.progress import Progress
from pathtemp.walk.engine import Walk
from pathtemp.walk.learn import Chart
from pathtemp.walk.pool import Pool
from pathtemp.walk.run import WalkRun

OF_WALK = ("chart", "counts", "rounds", "rejected", "seconds", "log_z", "log_c", "log_step")
OF_RUN = ("history", "records", "khat", "adapted", "frozen", "burnt_in", "limit", "interval")
"""What is kept of a walk and of its run, beside the chains, the pool and the trips."""


class WalkTask(Protocol):
    """What is to be done along a margin or a path."""

    @property
    def budget(self) -> float:
        """Gradient evaluations, everything included."""
        ...

    def walk_from(self, starts: FloatArray, progress: Progress) -> Walk:
        """The walk after the search, from starts (n, dim)."""
        ...

    def walk_at(self, chart: Chart, start: tuple[FloatArray, FloatArray]) -> Walk:
        """The walk on a transport, from theta and lam of all chains."""
        ...

    def run_of(self, walk: Walk, progress: Progress) -> WalkRun:
        """Its rounds, before the first."""
        ...

    def fit(self, run: WalkRun) -> Fit:
        """What the frozen rounds give."""
        ...


class WalkSteps:
    """The run of a task; see :class:`pathtemp.checkpoint.steps.Steps`."""

    def __init__(self, task: WalkTask, starts: FloatArray, progress: Progress) -> None:
        self.task, self._starts, self._progress = task, starts, progress
        self._run: WalkRun | None = None
        self._after_round: Callable[[], None] = lambda: None

    @property
    def run(self) -> WalkRun:
        """The rounds under way."""
        assert self._run is not None
        return self._run

    @property
    def after_round(self) -> Callable[[], None]:
        """Called between rounds."""
        return self._after_round

    @after_round.setter
    def after_round(self, call: Callable[[], None]) -> None:
        self._after_round = call
        if self._run is not None:
            self._run.after_round = call

    @property
    def most(self) -> float:
        """Gradient evaluations that it may spend in all."""
        return self.task.budget if self._run is None or self._run.limit is None else self._run.limit

    def carry_out(self) -> None:
        """Do what is left."""
        if self._run is None:
            self._take(self.task.run_of(self.task.walk_from(self._starts, self._progress), self._progress))
        self.run.carry_out(self.task.budget)

    def go_on(self, *, draws: int | None, budget: float | None) -> None:
        """More rounds."""
        if draws is not None or budget is None:
            raise InputError("extend: give budget= alone; how many draws of the target it makes depends on the margin")
        self.run.go_on(budget)

    def fit(self) -> Fit:
        """Of the rounds so far."""
        run = self.run
        if run.records:
            return self.task.fit(run)
        run.glance()
        try:
            return self.task.fit(run)
        finally:
            run.forget()

    def state(self) -> dict[str, Any]:
        """All that the model and the plan do not give again."""
        run, walk = self.run, self.run.walk
        return {
            "walk": {name: getattr(walk, name) for name in OF_WALK},
            "chains": jax.tree.map(np.asarray, walk.chains),
            "pinned": bool(walk.parameters.pinned),
            # A frozen kernel learns no more.
            "pool": (Pool() if run.frozen else walk.pool).state(),
            "run": {name: getattr(run, name) for name in OF_RUN},
            "trips": run.trips.trips,
            "stage": run.trips._stage,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the run stood when its state was kept; InputError where it was of another density."""
        chains, kept = state["chains"], state["walk"]
        walk = self.task.walk_at(kept["chart"], (chains.theta, np.full(len(chains.a), kept["chart"].lam[0])))
        for name in OF_WALK:
            setattr(walk, name, kept[name])
        # A copy each, since a round donates them.
        walk.chains = Walker(*(jnp.array(x) for x in chains))
        walk.pool.restore(state["pool"])
        run = self.task.run_of(walk, self._progress)
        for name in OF_RUN:
            setattr(run, name, state["run"][name])
        run.trips.trips, run.trips._stage = state["trips"], state["stage"]
        walk.renew(pinned=state["pinned"])
        _check(walk, chains)
        self._take(run)

    def _take(self, run: WalkRun) -> None:
        self._run = run
        run.after_round = self._after_round


def _check(walk: Walk, chains: Walker) -> None:
    """Hold the path against the log densities at the chains that were kept."""
    now = walk.log_densities(np.asarray(chains.theta), walk.lam_of(np.asarray(chains.a)))
    if not agree(now, np.asarray(chains.log_q)):
        raise InputError(
            "model: its log densities at the chains of the checkpoint are not those in the file; give the model, data "
            "and margin, or the function and its arguments, that the run was of"
        )
