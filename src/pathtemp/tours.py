"""Estimates and standard errors from tours: the independent stretches of a chain between regenerations at lam = 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray, HostArray
from pathtemp.curve import LogZ
from pathtemp.links import A_MAX, A_MIN

FEWEST_TOURS = 5
"""Finished tours per chain from which tours rather than chains give the standard error."""


class Masses(NamedTuple):
    """Sums of the conditional bin probabilities of one estimator, on the host; K + 2 bins.

    Parameters
    ----------
    total
        By chain, shape (C, K + 2).
    square, cross, finished
        Over finished tours: sums of x_k^2, of x_k x_0 and of x_k, shape (K + 2,).
    tours
        Number of finished tours.
    """

    total: FloatArray
    square: FloatArray
    cross: FloatArray
    finished: FloatArray
    tours: int


def rao_blackwell(masses: Masses, lam_nodes: FloatArray, log_c: FloatArray, at_base: float) -> LogZ:
    """Log z(lam) - log z(0) = log c + log p(a), with p(a) averaged over the conditional laws of a (section 3).

    ``lam_nodes`` and ``log_c`` are those of the link and the pseudo-prior under which the sums were collected. The
    curve is given at lam = 0, at the middle of each cell, and at lam = 1.
    """
    cells = len(lam_nodes) - 1
    prior = np.concatenate([[A_MIN], np.full(cells, (A_MAX - A_MIN) / cells), [1.0 - A_MAX]])
    middle = 0.5 * (log_c[1:] + log_c[:-1])
    offset = np.concatenate([[at_base], middle, log_c[-1:]])
    lam = np.concatenate([[0.0], 0.5 * (lam_nodes[1:] + lam_nodes[:-1]), [1.0]])
    pooled = masses.total.sum(axis=0)
    seen = pooled > 0
    with np.errstate(divide="ignore"):
        log_p = np.log(pooled) - np.log(prior)
    mean = offset + log_p
    mean = np.interp(lam, lam[seen], (mean - mean[0])[seen]) if seen.any() and seen[0] else np.full(len(lam), np.nan)
    return LogZ(lam, mean, np.where(seen, standard_error(masses), np.inf))


def standard_error(masses: Masses) -> FloatArray:
    """Standard error of log(x_k / x_0) by the delta method, over tours, or over chains where tours are few."""
    chains = len(masses.total)
    if masses.tours >= FEWEST_TOURS * chains and masses.finished[0] > 0:
        x = np.maximum(masses.finished, 1e-150)
        relative = masses.square / x**2 - 2.0 * masses.cross / (x * x[0]) + masses.square[0] / x[0] ** 2
        return np.sqrt(np.maximum(relative, 0.0))
    total = masses.total
    mean = np.maximum(total.mean(axis=0), 1e-300)
    relative = total / mean - total[:, :1] / mean[0]
    return np.sqrt(np.sum((relative - relative.mean(axis=0)) ** 2, axis=0) / max(chains - 1, 1) / chains)


class TripCounter:
    """Counts round trips base -> target -> base of every chain across rounds."""

    def __init__(self, chains: int) -> None:
        self._stage = np.zeros(chains, int)
        self.trips = np.zeros(chains, int)

    def add(self, at_base: HostArray, at_target: HostArray) -> int:
        """Feed one round, arrays of shape (iterations, chains); returns the round trips finished in it.

        >>> counter = TripCounter(1)
        >>> counter.add(np.array([[1], [0], [0], [1]], bool), np.array([[0], [0], [1], [0]], bool))
        1
        """
        before = int(self.trips.sum())
        for base, target in zip(np.asarray(at_base), np.asarray(at_target), strict=True):
            self.trips += (self._stage == 2) & base
            self._stage = np.where(base, 1, self._stage)
            self._stage = np.where(target & (self._stage == 1), 2, self._stage)
        return int(self.trips.sum()) - before


class TargetVisits:
    """Counts the target draws of every tour, by chain, across rounds."""

    def __init__(self, chains: int) -> None:
        self._current = np.zeros(chains)
        self._finished: list[FloatArray] = []

    def add(self, at_base: HostArray, at_target: HostArray) -> None:
        """Feed one round, arrays of shape (iterations, chains)."""
        ended: list[FloatArray] = []
        for base, target in zip(np.asarray(at_base), np.asarray(at_target), strict=True):
            ended.append(self._current[base & (self._current > 0)])
            self._current = np.where(base, 0.0, self._current) + target
        self._finished.append(np.concatenate(ended))

    def values(self) -> tuple[FloatArray, FloatArray]:
        """Target draws of every tour that had any: of those that have ended, and of those under way.

        >>> visits = TargetVisits(1)
        >>> visits.add(np.array([[1], [0], [0], [1], [0]], bool), np.array([[0], [1], [1], [0], [1]], bool))
        >>> [part.tolist() for part in visits.values()]
        [[2.0], [1.0]]
        """
        return np.concatenate([np.empty(0), *self._finished]), self._current[self._current > 0]
