"""What the frozen rounds along a path leave, in bounded memory: sums that are exact, and rows that are thinned."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.learner import along_path
from pathtemp.engines.path.chains import CELLS, STEPS, PathChains
from pathtemp.engines.path.estimates import Curves, cell_sums, curves_of, rao_blackwell
from pathtemp.engines.rows import Rows
from pathtemp.estimators.tours import TripCounter
from pathtemp.io.persistent import persistent
from pathtemp.kernels.path_rounds import PathRecord
from pathtemp.verdict.travel import BINS

MOST_POINTS = 2**17
"""Points of the path that are kept, a megabyte for each of their numbers; iterations are thinned beyond."""

MOST_NUMBERS = 2**20
"""Numbers in the draws of theta that are kept (8 MB)."""

FEWEST_ROWS = 64
"""Iterations that are kept at least."""

NEAR_END = 0.05
"""A chain has been to an end of the path when it came this near to it."""

ALONG = ("s", "a", "u", "plain", "log_ratio")
"""Numbers that are kept of every point; see :class:`pathtemp.kernels.path_rounds.PathRecord`."""


@persistent("rounds", "path", "draws", "cells", "masses", "ends", "moves", "accepted", "visits", "trips")
class PathTrace:
    """The frozen rounds of chains along a path.

    Parameters
    ----------
    chains, dim
        Their number, and that of the coordinates of theta.

    ``path`` holds ``ALONG`` and ``draws`` theta with its a, iterations first, evenly thinned. All else is of every
    iteration: ``ends`` the lowest and the highest s of each chain, ``visits`` those to the bins of s, ``moves`` and
    ``accepted`` the moves along the path and the sum of their acceptance.
    """

    def __init__(self, chains: int, dim: int) -> None:
        self.rounds = 0
        self.path = Rows(max(FEWEST_ROWS, MOST_POINTS // chains))
        self.draws = Rows(max(FEWEST_ROWS, MOST_NUMBERS // (chains * dim)))
        self.cells: tuple[FloatArray, FloatArray] | None = None
        self.masses: FloatArray = np.zeros((chains, CELLS + 2))
        self.ends: FloatArray = np.tile([[np.inf], [-np.inf]], (1, chains))
        self.moves, self.accepted, self.visits = np.zeros(STEPS), np.zeros(STEPS), np.zeros(BINS)
        self.trips = TripCounter(chains)

    def add(self, record: PathRecord, chains: PathChains) -> int:
        """Add one round of chains whose kernel is frozen; returns their round trips in it."""
        self.rounds += 1
        s, a, u = (np.asarray(x) for x in (record.s, record.a, record.u))
        self.path.add(**{name: getattr(record, name) for name in ALONG})
        self.draws.add(theta=record.theta, theta_a=record.theta_a)
        weight = np.exp(np.interp(s, np.linspace(0.0, 1.0, CELLS + 1), chains.log_c - chains.log_z)) * chains.inside(a)
        new = cell_sums(s, u, weight, CELLS)
        self.cells = new if self.cells is None else (self.cells[0] + new[0], self.cells[1] + new[1])
        self.masses = self.masses + np.asarray(record.masses)
        self.ends = np.stack([np.minimum(self.ends[0], s.min(axis=0)), np.maximum(self.ends[1], s.max(axis=0))])
        mean, count = along_path(s, record.acceptance, STEPS)
        self.moves, self.accepted = self.moves + count, self.accepted + mean * count
        self.visits = self.visits + np.histogram(s, BINS, (0.0, 1.0))[0]
        return self.trips.add(s < NEAR_END, s > 1.0 - NEAR_END)

    def stacked(self, name: str) -> FloatArray:
        """One field of the rows that are kept, iterations first."""
        return np.asarray((self.draws if name in self.draws.fields else self.path).fields[name])

    def curves(self, log_c: FloatArray) -> tuple[Curves, Curves]:
        """Path sampling along the orbit, and Rao-Blackwell, over s."""
        assert self.cells is not None
        return curves_of(*self.cells), rao_blackwell(self.masses, log_c)
