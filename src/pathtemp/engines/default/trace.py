"""What the frozen rounds leave on the host, in bounded memory: the joint path, where moves were accepted, tours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.learner import NO_DENSITY, along_path
from pathtemp.engines.rows import Rows
from pathtemp.estimators.khat import khat
from pathtemp.estimators.tours import TargetVisits
from pathtemp.io.persistent import persistent
from pathtemp.kernels.rounds import Record
from pathtemp.kernels.transported_hmc import KernelParameters
from pathtemp.result.curve import LogZ
from pathtemp.result.run import PathPoints, points_kept
from pathtemp.verdict.travel import BINS

MOST_POINTS = 2**17
"""Points of the path that are kept, a megabyte for each of its four numbers; iterations are thinned beyond."""

FEWEST_ROWS = 64
"""Iterations that are kept at least; where there are many chains, those of the first."""

KHAT_POINTS = 8192
"""Points from which the k-hat of a round is computed."""


@persistent("rows", "whole", "rounds", "visits", "returns", "bins", "at_ends", "moves", "accepted")
class Trace:
    """The path of the frozen rounds.

    ``a``, ``lam``, ``delta``, ``first`` have shape (chain, iteration), evenly thinned; ``points`` are fewer, with all
    of theta. All that is counted is exact.
    ``bins`` and ``at_ends`` are the visits to the bins between the ends of the path, and to the ends.
    """

    def __init__(self, chains: int) -> None:
        self._chains = chains
        self._shown = min(chains, MOST_POINTS // FEWEST_ROWS)
        self.rows, self.whole = Rows(MOST_POINTS // self._shown), Rows(points_kept(1))
        self.rounds = 0
        self.visits = TargetVisits(chains)
        self.returns = np.zeros(chains, int)
        self.bins, self.at_ends = np.zeros(BINS), np.zeros(2)
        self.moves, self.accepted = np.zeros(BINS), np.zeros(BINS)

    def add(self, record: Record, position: FloatArray) -> None:
        """Add one round; ``position`` (n, C) of its lam along the path."""
        self.rounds += 1
        shown = slice(0, self._shown)
        names = ("a", "lam", "delta", "first")
        self.rows.add(**{name: np.asarray(getattr(record, name))[:, shown] for name in names})
        self._add_whole(record)
        lam = np.asarray(record.lam)
        self.returns += np.asarray(record.regenerated).sum(axis=0)
        self.visits.add(record.regenerated, lam >= 1)
        self.bins += np.histogram(position[(lam > 0) & (lam < 1)], BINS, (0.0, 1.0))[0]
        self.at_ends += np.array([np.count_nonzero(lam <= 0), np.count_nonzero(lam >= 1)])
        mean, count = along_path(record.position, record.acceptance, BINS)
        self.moves += count
        self.accepted += mean * count

    def _add_whole(self, record: Record) -> None:
        """Add points with all of theta, which the record has at the end of every block of iterations."""
        blocks, chains, dim = record.theta.shape
        most = points_kept(dim)
        shown = slice(0, min(chains, max(1, most // FEWEST_ROWS)))
        self.whole.most = max(1, most // shown.stop)
        ends = slice(len(record.lam) // blocks - 1, None, len(record.lam) // blocks)
        a, lam = (np.asarray(x)[ends, shown] for x in (record.a, record.lam))
        self.whole.add(theta=np.asarray(record.theta)[:, shown], a=a, lam=lam)

    @classmethod
    def joined(cls, parts: Sequence[Trace]) -> Trace:
        """The paths of the chains of several runs of the same shape, as those of one.

        Where a run keeps the path of some of its chains alone, the path is that of the first run's.
        """
        whole = cls(sum(part._chains for part in parts))
        shown = [part for part in parts if part.rows.fields]
        if any(part._shown < part._chains for part in parts):
            shown = shown[:1]
        if shown:
            whole.rows.fields = _side_by_side([part.rows.fields for part in shown])
            whole.whole.fields = _side_by_side([part.whole.fields for part in shown])
        whole.rounds = min(part.rounds for part in parts)
        whole.visits = TargetVisits.joined([part.visits for part in parts])
        whole.returns = np.concatenate([part.returns for part in parts])
        for name in ("bins", "at_ends", "moves", "accepted"):
            setattr(whole, name, np.sum([getattr(part, name) for part in parts], axis=0))
        return whole

    def _field(self, name: str) -> FloatArray:
        return self.rows.fields[name].T if self.rows.fields else np.empty((self._chains, 0))

    @property
    def a(self) -> FloatArray:
        """Sampled coordinate in [0, 2)."""
        return self._field("a")

    @property
    def lam(self) -> FloatArray:
        """Inverse temperature."""
        return self._field("lam")

    @property
    def delta(self) -> FloatArray:
        """Derivative dlog q/dlam, -inf where the target has no density."""
        delta = self._field("delta")
        return np.where(delta < NO_DENSITY, -np.inf, delta)

    @property
    def first(self) -> FloatArray:
        """First coordinate of theta."""
        return self._field("first")

    @property
    def points(self) -> PathPoints | None:
        """Some points with all of theta; None before the first round."""
        kept = self.whole.fields
        return PathPoints.thinned(kept["theta"], kept["a"], kept["lam"]) if kept else None

    @property
    def acceptance(self) -> FloatArray:
        """Mean HMC acceptance at 20 equispaced positions from end to end; their number of moves is in ``moves``."""
        return np.asarray(self.accepted / np.maximum(self.moves, 1e-12))

    def khat(self, curve: LogZ, parameters: KernelParameters, *, most: int = MOST_POINTS) -> float:
        """k-hat of 1/p(a) = c/z at the sampled a (Step 4), the flat ends kept out; from ``most`` points."""
        lam = self.lam
        lam = lam[:, :: max(1, lam.size // most)]
        log_c = np.interp(lam, parameters.link.nodes, parameters.prior.log_c)
        ratio = log_c - curve(lam)
        flat = (lam <= 0) | (lam >= 1)
        return khat(ratio.ravel(), flat=flat.ravel()).value if np.isfinite(ratio).all() else float("nan")


def _side_by_side(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    """Rows of several runs, (iteration, chain, ...), with the chains of all; as many rows as the shortest has."""
    length = min(len(part["a"]) for part in parts)
    return {name: np.concatenate([part[name][:length] for part in parts], axis=1) for name in parts[0]}
