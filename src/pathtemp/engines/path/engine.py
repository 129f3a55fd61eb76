"""The engine along a path: adaptive rounds that refit the transport and widen the interval, then frozen ones."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.path.chains import CELLS, PathChains, round_gradients
from pathtemp.engines.path.trace import PathTrace
from pathtemp.engines.path.transport import NodalTransport
from pathtemp.engines.path.widen import edge_noise, wanted_interval
from pathtemp.engines.protocol import ChainsEngine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.estimators.khat import khat
from pathtemp.io.persistent import persistent
from pathtemp.kernels.path_rounds import PathRecord
from pathtemp.model.evaluate import agree
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, RoundRecord

LONGEST = 0.65
"""Share of the budget after which the kernel is frozen, settled or not, where the interval has to be found as well."""

SETTLED = 0.1
"""Change of log c between rounds, largest over the path, below which the kernel may be frozen."""

FEWEST_ADAPTATIONS = 4
"""Adaptive rounds, those with pinned chains left out, before which the kernel is not frozen."""


class Found(NamedTuple):
    """What the search gives: the first transport, theta (chains, dim), lam (chains,), and what it cost."""

    learned: NodalTransport
    theta: FloatArray
    lam: FloatArray
    counts: Counts


@persistent("chains", "trace", "khat", "interval", "settled")
class PathEngine(ChainsEngine):
    """A run along a path; see the subclasses.

    Parameters
    ----------
    chains, dim
        The chains, and the number of coordinates of theta.
    widen
        Whether the interval follows the mass at its ends while adapting.
    pinned
        First adaptive rounds in which every chain is held at its lam.
    """

    settled: bool = False

    chains: PathChains

    def __init__(self, chains: PathChains, *, dim: int, widen: bool, pinned: int = 0) -> None:
        self.chains, self._widen, self._pinned = chains, widen, pinned
        self.density_price, self._dim = chains.settings.price, dim
        self.trace = PathTrace(chains.settings.chains, dim)
        self.khat = float("nan")
        self.settled = False
        self.interval: tuple[float, float] | None = None

    @abstractmethod
    def search(self, host: Host) -> Found:
        """Find where the chains begin, and the first transport."""

    @abstractmethod
    def outcome(self, history: tuple[RoundRecord, ...]) -> Fit:
        """What the frozen rounds give, of which there is one at least."""

    def schedule(self, budget: float | None) -> Schedule:
        """All of the budget."""
        assert budget is not None
        settings = self.chains.settings
        longest = max(settings.adapt_share, LONGEST) if self._widen else settings.adapt_share
        least = settings.adapt_least * budget
        price = self.density_price
        return Schedule(most=budget, planned=budget, adapt_least=least, adapt_most=longest * budget, price=price)

    @property
    def gradient_share(self) -> float:
        """Share of what rounds cost that is gradients."""
        gradients = round_gradients(self._dim, self.chains.settings)
        return gradients / (gradients + self.price * self.round_densities)

    def prepare(self, host: Host) -> None:
        """Search, and fit the first transport."""
        host.progress.compile("search")
        found = self.search(host)
        self.chains.begin(found.learned, found.theta, found.lam)
        self.chains.counts = self.chains.counts + found.counts + Counts(0, len(found.theta))
        self.chains.pin(self._pinned > 0)

    def compile(self) -> None:
        """Compile the round."""
        self.chains.compile()

    def round(self) -> PathRecord:
        """Run one round."""
        return self.chains.round()

    def adapt(self, record: PathRecord, number: int, *, last: bool) -> Line:
        """Refit transport, log c and step sizes; say how far the interval should reach."""
        chains = self.chains
        old_curve, old_lam = chains.log_z, (chains.low, chains.high)
        change = chains.adapt(record, interval=self.interval, pinned=number < self._pinned)
        self.khat = self._successive_khat(record, old_curve, old_lam)
        if self._widen:
            noise = edge_noise(np.asarray(record.s).ravel(), np.asarray(record.u).ravel())
            self.interval = wanted_interval(chains.low, chains.high, chains.log_z, noise)
        self.settled = number >= self._pinned + FEWEST_ADAPTATIONS and change < SETTLED and self.interval is None
        return self._line("pin" if number <= self._pinned else "adapt", record)

    def freeze(self) -> None:
        """End adaptation, and forget what only adapting needs."""
        self.chains.pin(False)
        self.chains.pool = type(self.chains.pool)()

    def keep(self, record: PathRecord) -> Line:
        """Count a frozen round."""
        trips = self.trace.add(record, self.chains)
        return self._line("sample", record, trips=trips)

    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        """Of the rounds so far; of one on the kernel as it is, which is then forgotten, where none counts yet."""
        if self.trace.rounds:
            return self.outcome(history)
        other = copy.copy(self)
        other.chains, other.trace = self.chains.copy(), PathTrace(self.chains.settings.chains, self.chains.dim)
        other.chains.pin(False)
        other.keep(other.chains.round())
        return other.outcome(history)

    def restored(self) -> None:
        """Hold the path against the log densities at the chains that were kept."""
        state = self.chains.state
        now = self.chains.log_densities(np.asarray(state.theta), self.chains.lam_of(np.asarray(state.a)))
        if not agree(now, np.asarray(state.log_q)):
            raise InputError(
                "model: its log densities at the chains of the checkpoint are not those in the file; give the model, "
                "data and margin, or the function and its arguments, that the run was of"
            )

    def _successive_khat(self, record: PathRecord, old: FloatArray, old_lam: tuple[float, float]) -> float:
        """k-hat of p_j / p_(j-1) at the draws of a round (Algorithm 2)."""
        lam = self.chains.lam_of(record.a).ravel()
        new = np.interp(lam, np.linspace(self.chains.low, self.chains.high, CELLS + 1), self.chains.log_z)
        return khat(new - np.interp(lam, np.linspace(*old_lam, CELLS + 1), old)).value

    def _line(self, phase: str, record: PathRecord, *, trips: int = 0) -> Line:
        chains = self.chains
        lam, error = np.linspace(chains.low, chains.high, CELLS + 1), np.full(CELLS + 1, np.nan)
        curve = LogZ(lam, chains.log_z - chains.log_z[0], error)
        return Line(phase, curve, trips, float(np.mean(record.acceptance)), self.khat, changed=phase != "sample")
