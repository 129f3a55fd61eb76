"""Curves of log z along a path from the draws of chains, with the curves that each group of chains would take away.

Errors of everything that follows from a curve, however nonlinear, come from the jackknife: the spread of what the
curves without one group of chains each give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray, HostArray, IntArray

MOST_GROUPS = 32
"""Groups of chains for the jackknife."""


@dataclass(frozen=True)
class Curves:
    """log z at positions along the path, up to a constant unless said otherwise.

    Parameters
    ----------
    x
        Increasing positions, shape (n,).
    mean
        From all draws, shape (n,).
    without
        From all draws but those of one group of chains, shape (groups, n).

    >>> curves = Curves(np.arange(2.0), np.zeros(2), np.array([[0.0, 1.0], [0.0, -1.0]]))
    >>> curves.se(lambda log_z: log_z[1] - log_z[0]).tolist()
    1.0
    """

    x: FloatArray
    mean: FloatArray
    without: FloatArray

    def se(self, functional: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Jackknife standard error of a functional of a curve."""
        return jackknife(np.array([functional(curve) for curve in self.without]))

    def map(self, x: FloatArray, function: Callable[[FloatArray], FloatArray]) -> Curves:
        """The curves after ``function``, at new positions ``x``."""
        return Curves(x, function(self.mean), np.array([function(curve) for curve in self.without]))


def jackknife(values: FloatArray) -> FloatArray:
    """Standard error from leave-one-group-out values, shape (groups, ...).

    >>> jackknife(np.array([1.0, 3.0])).tolist()
    1.0
    """
    groups = len(values)
    return np.asarray(np.sqrt((groups - 1) / groups * np.sum((values - values.mean(axis=0)) ** 2, axis=0)))


def groups_of(chains: int) -> IntArray:
    """The group of each chain."""
    return np.arange(chains) * min(chains, MOST_GROUPS) // chains


def path_sampled(s: HostArray, u: HostArray, weight: HostArray, cells: int) -> Curves:
    """Path sampling (eq. path1) from positions s and gradients u of shape (iterations, chains).

    Gradients in a cell count as tied and are averaged (eq. U_gradient), then summed over the cells. ``weight`` is that
    of a draw within its cell, one over the density of s, so that a marginal that rises within a cell does no harm; zero
    in the flat ends. A cell without a draw takes the line between its neighbours, or the nearest one.
    """
    return curves_of(*cell_sums(s, u, weight, cells))


def cell_sums(s: HostArray, u: HostArray, weight: HostArray, cells: int) -> tuple[FloatArray, FloatArray]:
    """Sums of the weights, and of the weighted gradients, by group of chains and cell: shape (groups, cells) each.

    Those of several rounds may be added.
    """
    groups = groups_of(np.shape(s)[1])
    count = int(groups.max()) + 1
    index = np.minimum((np.asarray(s) * cells).astype(int), cells - 1) + cells * groups[None, :]
    w = np.where(np.isfinite(u), weight, 0.0)
    values = np.where(w > 0, u, 0.0)
    n, total = (np.bincount(index.ravel(), x.ravel(), cells * count) for x in (w, w * values))
    return n.reshape(count, cells).astype(float), total.reshape(count, cells).astype(float)


def curves_of(n: FloatArray, total: FloatArray) -> Curves:
    """The curves of :func:`path_sampled` from its sums."""
    cells = n.shape[1]

    def curve(n: FloatArray, total: FloatArray) -> FloatArray:
        seen = np.flatnonzero(n > 0)
        slope = np.interp(np.arange(cells), seen, total[seen] / n[seen])
        return np.concatenate([[0.0], np.cumsum(slope) / cells])

    without = [curve(n.sum(axis=0) - n[g], total.sum(axis=0) - total[g]) for g in range(len(n))]
    return Curves(np.linspace(0.0, 1.0, cells + 1), curve(n.sum(axis=0), total.sum(axis=0)), np.array(without))


def rao_blackwell(masses: FloatArray, log_c: FloatArray) -> Curves:
    """Rao-Blackwell estimate at the middles of the cells from conditional masses (chains, K + 2), without flat ends."""
    groups = groups_of(len(masses))
    cells = masses.shape[1] - 2
    by_group = np.array([masses[groups == g].sum(axis=0) for g in range(int(groups.max()) + 1)])[:, 1:-1]
    middle = 0.5 * (log_c[1:] + log_c[:-1])

    def curve(mass: FloatArray) -> FloatArray:
        return np.log(np.maximum(mass, 1e-300)) + middle

    total = by_group.sum(axis=0)
    without = np.array([curve(total - mass) for mass in by_group])
    return Curves((np.arange(cells) + 0.5) / cells, curve(total), without)
