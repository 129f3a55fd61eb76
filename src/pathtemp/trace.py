"""What the frozen rounds leave on the host: the joint path, and how long tours stay at the target."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
from pathtemp.estimators.khat import khat
from pathtemp.kernels.rounds import Record
from pathtemp.kernels.transported_hmc import KernelParameters
from pathtemp.learner import NO_DENSITY, along_path
from pathtemp.tours import TargetVisits

MOST_POINTS = 4_000_000
"""Points of the path kept in memory; where there would be more, those of the first chains."""


class Trace:
    """The path of the frozen rounds.

    ``a``, ``lam``, ``delta``, ``first`` have shape (chain, iteration).
    """

    def __init__(self, chains: int) -> None:
        self._records: list[tuple[FloatArray, ...]] = []
        self._chains = chains
        self.visits = TargetVisits(chains)
        self.returns = np.zeros(chains, int)
        self._acceptance: list[tuple[FloatArray, FloatArray]] = []

    @property
    def rounds(self) -> int:
        """Number of frozen rounds."""
        return len(self._records)

    def add(self, record: Record) -> None:
        """Add one round."""
        kept = slice(0, max(1, MOST_POINTS // (64 * record.lam.shape[0])))
        self._records.append(tuple(np.asarray(x)[:, kept] for x in record[:4]))
        at_base = record.regenerated | (record.lam <= 0)
        self.returns += at_base.sum(axis=0)
        self.visits.add(at_base, record.lam >= 1)
        self._acceptance.append(along_path(record.position, record.acceptance, 20))

    def _field(self, index: int) -> FloatArray:
        if not self._records:
            return np.empty((self._chains, 0))
        return np.concatenate([r[index] for r in self._records]).T

    @property
    def a(self) -> FloatArray:
        """Sampled coordinate in [0, 2)."""
        return self._field(0)

    @property
    def lam(self) -> FloatArray:
        """Inverse temperature."""
        return self._field(1)

    @property
    def delta(self) -> FloatArray:
        """Derivative dlog q/dlam, -inf where the target has no density."""
        delta = self._field(2)
        return np.where(delta < NO_DENSITY, -np.inf, delta)

    @property
    def first(self) -> FloatArray:
        """First coordinate of theta."""
        return self._field(3)

    def acceptance(self) -> tuple[FloatArray, FloatArray]:
        """Mean HMC acceptance at 20 equispaced positions, and the number of moves there."""
        if not self._acceptance:
            return np.zeros(20), np.zeros(20)
        count = sum(c for _, c in self._acceptance)
        total = sum(m * c for m, c in self._acceptance)
        return np.asarray(total / np.maximum(count, 1e-12)), np.asarray(count)

    def khat(self, curve: LogZ, parameters: KernelParameters) -> float:
        """k-hat of 1/p(a) = c/z at the sampled a (Step 4), the flat ends kept out."""
        lam = self.lam
        log_c = np.interp(lam, parameters.link.nodes, parameters.prior.log_c)
        ratio = log_c - curve(lam)
        flat = (lam <= 0) | (lam >= 1)
        return khat(ratio.ravel(), flat=flat.ravel()).value if np.isfinite(ratio).all() else float("nan")
