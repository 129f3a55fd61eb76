"""One walk from its first adaptive round to its estimates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
from pathtemp.errors import InputError
from pathtemp.estimators.khat import khat
from pathtemp.kernels.walk import WalkRecord
from pathtemp.progress import Progress
from pathtemp.run import RoundRecord
from pathtemp.tours import TripCounter
from pathtemp.walk.engine import CELLS, Walk
from pathtemp.walk.estimates import Curves, path_sampled, rao_blackwell
from pathtemp.walk.widen import edge_noise, wanted_interval

NEAR_END = 0.05
"""A walk has been to an end of the path when it came this near to it."""

LONGEST = 0.65
"""Share of the budget after which the kernel is frozen, settled or not, where the interval has to be found as well."""

SETTLED = 0.1
"""Change of log c between rounds, largest over the path, below which the kernel may be frozen."""


@dataclass
class WalkRun:
    """The rounds of a walk, and what they hold; can be continued.

    Parameters
    ----------
    walk
        The engine.
    progress
        Who is told.
    widen
        Whether the interval follows the mass at its ends while adapting.
    pinned
        First adaptive rounds in which every chain is held at its lam.
    after_round
        Called between rounds, where the whole state can be kept and taken up again; it may raise to stop the run there.
    """

    walk: Walk
    progress: Progress
    widen: bool
    pinned: int = 0
    after_round: Callable[[], None] = lambda: None
    history: list[RoundRecord] = field(default_factory=list)
    records: list[WalkRecord] = field(default_factory=list)
    khat: float = float("nan")
    adapted: int = 0
    frozen: bool = False
    burnt_in: bool = False
    limit: float | None = None
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self.trips = TripCounter(self.walk.settings.chains)
        self.walk.pin(self.pinned > 0)

    def carry_out(self, budget: float) -> None:
        """Adaptive rounds until the kernel has settled, then frozen rounds until the budget is spent, as are left."""
        while not self.frozen:
            begin = time.perf_counter()
            self._adapt(budget)
            self.walk.seconds["adapt"] += time.perf_counter() - begin
            self.after_round()
        if self.limit is None:
            self.limit = budget
        while self.walk.counts.gradients + self.walk.round_gradients <= self.limit or not self.records:
            begin = time.perf_counter()
            self._sample()
            self.walk.seconds["sample"] += time.perf_counter() - begin
            self.after_round()

    def go_on(self, budget: float) -> None:
        """Rounds for ``budget`` more gradient evaluations; the kernel, once frozen, stays as it is."""
        if not budget >= self.walk.round_gradients:
            raise InputError(
                f"extend: budget must be {self.walk.round_gradients:.0f} gradient evaluations at least, those of one "
                f"round, and is {budget:.0f}"
            )
        most = self.walk.counts.gradients + budget
        if self.frozen:
            self.limit = most
        self.carry_out(most)

    def _adapt(self, budget: float) -> None:
        """One adaptive round."""
        walk, settings = self.walk, self.walk.settings
        record = walk.round()
        self.adapted += 1
        old_curve, old_lam = walk.log_z, (walk.low, walk.high)
        change = walk.adapt(record, interval=self.interval, pinned=self.adapted < self.pinned)
        self.khat = self._successive_khat(record, old_curve, old_lam)
        if self.widen:
            noise = edge_noise(np.asarray(record.s).ravel(), np.asarray(record.u).ravel())
            self.interval = wanted_interval(walk.low, walk.high, walk.log_z, noise)
        self._note("pin" if self.adapted <= self.pinned else "adapt", record, walk.log_z, np.full(CELLS + 1, np.nan))
        spent = walk.counts.gradients / budget
        calm = self.adapted >= self.pinned + 4 and change < SETTLED and self.interval is None
        longest = max(settings.adapt_share, LONGEST) if self.widen else settings.adapt_share
        if (calm and spent >= settings.adapt_least) or spent >= longest:
            self.frozen = True
            walk.pin(False)

    def _sample(self) -> None:
        """One frozen round; the first is burn-in."""
        record = self.walk.round()
        if not self.burnt_in:
            self.burnt_in = True
            return
        self.keep(record)

    def keep(self, record: WalkRecord) -> None:
        """Count a round among those that the estimates come from."""
        # Gradients serve adaptation alone, and are half of all there is.
        none: Any = np.empty((0, *np.shape(record.gradient)[1:]))
        self.records.append(record._replace(gradient=none))
        trips = self.trips.add(record.s < NEAR_END, record.s > 1.0 - NEAR_END)
        self._note("sample", record, self.walk.log_z, np.full(CELLS + 1, np.nan), trips=trips)

    def glance(self) -> None:
        """One round on the kernel as it is, where a run was stopped before any other counted."""
        self.walk.pin(False)
        self.keep(self.walk.round())

    def forget(self) -> None:
        """Undo what a glance counted, so that the run can go on adapting."""
        self.records.clear()
        self.trips = TripCounter(self.walk.settings.chains)
        self.walk.pin(self.adapted < self.pinned)

    def stacked(self, name: str) -> FloatArray:
        """One field of all frozen rounds, iterations first."""
        return np.concatenate([np.asarray(getattr(record, name)) for record in self.records])

    def curves(self) -> tuple[Curves, Curves]:
        """Path sampling along the orbit, and Rao-Blackwell, over s, from the frozen rounds."""
        s, u, a = (self.stacked(name) for name in ("s", "u", "a"))
        nodes = np.linspace(0.0, 1.0, CELLS + 1)
        weight = np.exp(np.interp(s, nodes, self.walk.log_c - self.walk.log_z)) * self.walk.inside(a)
        masses = np.sum([np.asarray(record.masses) for record in self.records], axis=0)
        return path_sampled(s, u, weight, CELLS), rao_blackwell(masses, self.walk.log_c)

    def _successive_khat(self, record: WalkRecord, old: FloatArray, old_lam: tuple[float, float]) -> float:
        """k-hat of p_j / p_(j-1) at the draws of a round (Algorithm 2)."""
        lam = self.walk.lam_of(record.a).ravel()
        new = np.interp(lam, np.linspace(self.walk.low, self.walk.high, CELLS + 1), self.walk.log_z)
        return khat(new - np.interp(lam, np.linspace(*old_lam, CELLS + 1), old)).value

    def _note(self, phase: str, record: WalkRecord, log_z: FloatArray, se: FloatArray, *, trips: int = 0) -> None:
        lam = np.linspace(self.walk.low, self.walk.high, CELLS + 1)
        line = RoundRecord(
            phase=phase,
            gradients=self.walk.counts.gradients,
            tours=trips,
            log_z=float(log_z[-1] - log_z[0]),
            log_z_se=float("nan"),
            khat=self.khat,
            acceptance=float(np.mean(record.acceptance)),
            curve=LogZ(lam, log_z - log_z[0], se) if phase != "sample" else None,
        )
        self.history.append(line)
        self.progress.round(line)
