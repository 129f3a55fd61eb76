"""One walk from its first adaptive round to its estimates."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
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
    """The rounds of a walk, and what they hold.

    Parameters
    ----------
    walk
        The engine.
    progress
        Who is told.
    widen
        Whether the interval follows the mass at its ends while adapting.
    """

    walk: Walk
    progress: Progress
    widen: bool
    history: list[RoundRecord] = field(default_factory=list)
    records: list[WalkRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trips = TripCounter(self.walk.settings.chains)
        self.khat = float("nan")

    def adapt(self, budget: float, *, pinned: int = 0) -> None:
        """Adaptive rounds, the first ``pinned`` with every chain held at its lam, until the kernel has settled."""
        walk, settings = self.walk, self.walk.settings
        begin = time.perf_counter()
        interval: tuple[float, float] | None = None
        number = 0
        walk.pin(pinned > 0)
        while True:
            record = walk.round()
            number += 1
            old_curve, old_lam = walk.log_z, (walk.low, walk.high)
            change = walk.adapt(record, interval=interval, pinned=number < pinned)
            self.khat = self._successive_khat(record, old_curve, old_lam)
            if self.widen:
                noise = edge_noise(np.asarray(record.s).ravel(), np.asarray(record.u).ravel())
                interval = wanted_interval(walk.low, walk.high, walk.log_z, noise)
            self._note("pin" if number <= pinned else "adapt", record, walk.log_z, np.full(CELLS + 1, np.nan))
            spent = walk.counts.gradients / budget
            settled = number >= pinned + 4 and change < SETTLED and interval is None and spent >= settings.adapt_least
            if settled or spent >= (max(settings.adapt_share, LONGEST) if self.widen else settings.adapt_share):
                break
        walk.pin(False)
        walk.seconds["adapt"] += time.perf_counter() - begin

    def sample(self, budget: float) -> None:
        """Frozen rounds until the budget is spent; the first is burn-in."""
        walk = self.walk
        begin = time.perf_counter()
        self.trips = TripCounter(walk.settings.chains)
        walk.round()
        while walk.counts.gradients + walk.round_gradients <= budget or not self.records:
            record = walk.round()
            self.records.append(record)
            trips = self.trips.add(record.s < NEAR_END, record.s > 1.0 - NEAR_END)
            self._note("sample", record, walk.log_z, np.full(CELLS + 1, np.nan), trips=trips)
        walk.seconds["sample"] += time.perf_counter() - begin

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
