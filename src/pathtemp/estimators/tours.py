"""Estimates and standard errors from tours: the independent stretches of a chain between regenerations at lam = 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray, HostArray
from pathtemp.io.persistent import persistent
from pathtemp.kernels.lam_given_theta import bins
from pathtemp.kernels.strata import compared_with, relative_width, strata
from pathtemp.result.curve import LogZ

FEWEST_TOURS = 5
"""Finished tours per chain from which tours rather than chains give the standard error."""

TINY = 1e-150
"""Stands for zero where logarithms and ratios are taken."""

UNKNOWN = 1e100
"""Stands for an infinite variance where an average is taken."""


class Masses(NamedTuple):
    """Sums of the conditional probabilities of a, on the host, by two estimators: 0 along the orbit, 1 given theta.

    For the B bins, and the mass y_k at the base that each x_k is compared with, see :mod:`pathtemp.kernels.strata`.

    Parameters
    ----------
    total
        By chain, shape (C, 2, B).
    finished
        Over finished tours, shape (2, B).
    second
        Over finished tours: sums of the products of x_k and y_k of both estimators, in the order x, x', y, y', shape
        (4, 4, B).
    tours
        Number of finished tours.
    """

    total: FloatArray
    finished: FloatArray
    second: FloatArray
    tours: int


class Estimates(NamedTuple):
    """Log z(lam) - log z(0) by both estimators.

    Parameters
    ----------
    lam
        lam = 0, the middle of each cell, and lam = 1, shape (K + 2,).
    mean
        Shape (2, K + 2); NaN where an estimator has seen nothing of the base.
    covariance
        Of the two, shape (2, 2, K + 2); infinite where an estimator has seen nothing.
    """

    lam: FloatArray
    mean: FloatArray
    covariance: FloatArray

    def curve(self, index: int) -> LogZ:
        """That of one estimator."""
        return LogZ(self.lam, self.mean[index], np.sqrt(np.maximum(self.covariance[index, index], 0.0)))

    def combined(self) -> LogZ:
        """The average of both with the smallest variance, at each lam for itself.

        >>> two = np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 3.0]]])
        >>> curve = Estimates(np.array([0.0, 1.0]), *two).combined()
        >>> float(curve.mean[1]), round(float(curve.stderr[1]) ** 2, 6)
        (1.25, 0.75)
        """
        known = np.isfinite(self.mean)
        orbit, given = (np.minimum(self.covariance[i, i], UNKNOWN) for i in (0, 1))
        both = np.where(np.isfinite(self.covariance[0, 1]), self.covariance[0, 1], 0.0)
        weight = np.clip((given - both) / np.maximum(orbit + given - 2.0 * both, TINY), 0.0, 1.0)
        variance = weight**2 * orbit + 2.0 * weight * (1.0 - weight) * both + (1.0 - weight) ** 2 * given
        first, second = np.where(known, self.mean, 0.0)
        mean = np.where(known.any(axis=0), weight * first + (1.0 - weight) * second, np.nan)
        return LogZ(self.lam, mean, np.where(variance < 0.1 * UNKNOWN, np.sqrt(np.maximum(variance, 0.0)), np.inf))


def rao_blackwell(masses: Masses, lam_nodes: FloatArray, log_c: FloatArray, at_base: float) -> Estimates:
    """Log z(lam) - log z(0) = log c + log p(a), with p(a) averaged over the conditional laws of a (section 3).

    ``lam_nodes`` and ``log_c`` are those of the link and the pseudo-prior under which the sums were collected.
    """
    cells = len(lam_nodes) - 1
    pooled = masses.total.sum(axis=0)
    above, base = (x[:, strata(cells) :] for x in (pooled, compared_with(pooled, cells)))
    lam = curve_nodes(lam_nodes)
    log_ratio = np.log(np.maximum(above, TINY)) - np.log(np.maximum(base, TINY)) - np.log(relative_width(cells))
    rise = _prior_rise(log_c, at_base) + log_ratio
    seen = (above > 0) & (base > 0)
    mean = np.array([_filled(lam, *estimator) for estimator in zip(rise, seen, strict=True)])
    known = seen[:, None] & seen[None]
    covariance = np.where(known, _covariance(masses, cells), np.inf)
    return Estimates(lam, mean, np.concatenate([np.zeros((2, 2, 1)), covariance], axis=2))


def against_whole_base(total: FloatArray, lam_nodes: FloatArray, log_c: FloatArray, at_base: float) -> LogZ | None:
    """The curve of masses (C, B) with every bin compared with the whole base: for sums of few visits to the base.

    Without standard errors; None where a bin was not seen.
    """
    cells = len(lam_nodes) - 1
    pooled = total.sum(axis=0)
    above, base = pooled[strata(cells) :], pooled[: strata(cells)].sum()
    if not (base > 0 and np.all(above > 0)):
        return None
    width = bins(cells)
    rise = _prior_rise(log_c, at_base) + np.log(above / base) - np.log(width[1:] / width[0])
    return LogZ(curve_nodes(lam_nodes), np.append(0.0, rise), np.full(cells + 2, np.nan))


def curve_nodes(lam_nodes: FloatArray) -> FloatArray:
    """Where the curve is given: lam = 0, the middle of each cell, and lam = 1, shape (K + 2,)."""
    return np.concatenate([[0.0], 0.5 * (lam_nodes[1:] + lam_nodes[:-1]), [1.0]])


def _prior_rise(log_c: FloatArray, at_base: float) -> FloatArray:
    """Log c at the middle of each cell and at lam = 1, less that at lam = 0, shape (K + 1,)."""
    return np.append(0.5 * (log_c[1:] + log_c[:-1]), log_c[-1]) - at_base


def _filled(lam: FloatArray, rise: FloatArray, seen: HostArray) -> FloatArray:
    """The curve from lam = 0, interpolated where it was not seen; NaN where nothing was."""
    nodes = np.append(True, seen)
    return np.interp(lam, lam[nodes], np.append(0.0, rise)[nodes]) if seen.any() else np.full(len(lam), np.nan)


def _covariance(masses: Masses, cells: int) -> FloatArray:
    """Covariance of log(x_k / y_k) of both estimators at the cells and at lam = 1, shape (2, 2, K + 1).

    By the delta method, over tours, or over chains where tours are few.
    """
    chains, above = len(masses.total), slice(strata(cells), None)
    if masses.tours >= FEWEST_TOURS * chains:
        sums = np.concatenate([masses.finished, compared_with(masses.finished, cells)])[:, above]
        scaled = masses.second[..., above] / np.maximum(sums[:, None] * sums[None], TINY)
        # What only tours under way have seen has no error yet.
        known = (sums[:2] > 0) & (sums[2:] > 0)
        covariance = scaled[:2, :2] - scaled[:2, 2:] - scaled[2:, :2] + scaled[2:, 2:]
        return np.where(known[:, None] & known[None], covariance, np.inf)
    if chains < 2:
        return np.full((2, 2, cells + 1), np.inf)
    x, y = (part[..., above] for part in (masses.total, compared_with(masses.total, cells)))
    relative = x / np.maximum(x.mean(axis=0), TINY) - y / np.maximum(y.mean(axis=0), TINY)
    centred = relative - relative.mean(axis=0)
    return np.einsum("cek,cfk->efk", centred, centred) / (chains - 1) / chains


@persistent("_stage", "trips")
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


@persistent("_current", "_ended")
class TargetVisits:
    """Counts the target draws of every tour, by chain, across rounds.

    Of tours that have ended it keeps how many had so many draws, which does not grow with their number.
    """

    def __init__(self, chains: int) -> None:
        self._current = np.zeros(chains, int)
        self._ended = np.zeros(1, int)

    def add(self, at_base: HostArray, at_target: HostArray) -> None:
        """Feed one round, arrays of shape (iterations, chains)."""
        ended = [np.zeros(0, int)]
        for base, target in zip(np.asarray(at_base), np.asarray(at_target), strict=True):
            ended.append(self._current[base & (self._current > 0)])
            self._current = np.where(base, 0, self._current) + target
        new = np.bincount(np.concatenate(ended), minlength=len(self._ended))
        new[: len(self._ended)] += self._ended
        self._ended = new

    @classmethod
    def joined(cls, parts: Sequence[TargetVisits]) -> TargetVisits:
        """The tours of the chains of several runs, as those of one."""
        whole = cls(0)
        whole._current = np.concatenate([part._current for part in parts])
        whole._ended = np.zeros(max(len(part._ended) for part in parts), int)
        for part in parts:
            whole._ended[: len(part._ended)] += part._ended
        return whole

    def values(self) -> tuple[FloatArray, FloatArray]:
        """Target draws of every tour that had any: of those that have ended, and of those under way.

        >>> visits = TargetVisits(1)
        >>> visits.add(np.array([[1], [0], [0], [1], [0]], bool), np.array([[0], [1], [1], [0], [1]], bool))
        >>> [part.tolist() for part in visits.values()]
        [[2.0], [1.0]]
        """
        ended = np.repeat(np.arange(len(self._ended)), self._ended)
        return ended.astype(float), self._current[self._current > 0].astype(float)
