"""Runs whose every draw near the target is looked at: which modes did any phase of a run visit?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import pathtemp as pt
from pathtemp._types import FloatArray
from pathtemp.engines.default import engine
from pathtemp.engines.default.chains import Chains
from pathtemp.kernels.rounds import Record

NEAR_TARGET = 0.9
"""Lam from which a draw counts as a visit to the mode that its label names."""


class Witness:
    """Visits to each mode of ``problem``, by phase: annealing pass, adaptive rounds, frozen rounds."""

    def __init__(self, problem: pt.testing.Problem) -> None:
        self._problem = problem
        modes = 1 if problem.shares is None else len(problem.shares)
        self.visits = {phase: np.zeros(modes, int) for phase in ("anneal", "adapt", "sample")}

    def see(self, phase: str, lam: FloatArray, theta: FloatArray) -> None:
        """Count draws ``theta`` (n, dim) at ``lam`` (n,)."""
        if self._problem.labels is None:
            return
        near = theta[lam >= NEAR_TARGET]
        if len(near):
            labels = self._problem.labels(near)
            self.visits[phase] += np.bincount(labels, minlength=len(self.visits[phase]))

    @property
    def seen(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which modes were visited in any phase, ``(modes,)``."""
        return np.asarray(sum(self.visits.values()) > 0)


@contextmanager
def watched(problem: pt.testing.Problem) -> Iterator[Witness]:
    """Everything that ``pt.temper`` runs inside is seen by the witness; the draws are as they would be without."""
    witness = Witness(problem)

    class WatchedChains(Chains):
        phase = "adapt"

        def anneal(self, *args: Any, **options: Any) -> None:
            super().anneal(*args, **options)
            witness.see("anneal", *self.pool.lam_theta())

        def round(self) -> Record:
            record = super().round()
            theta = np.asarray(record.theta).reshape(-1, record.theta.shape[-1])
            witness.see(self.phase, np.asarray(record.theta_lam).ravel(), theta)
            return record

        def freeze(self, orbit_pays: bool) -> None:
            super().freeze(orbit_pays)
            self.phase = "sample"

    with patch.object(engine, "Chains", WatchedChains):
        yield witness
