"""Shares of the modes among the target draws, with standard errors from tours."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray, IntArray

FEWEST_TOURS = 5
"""Tours per chain from which tours rather than chains give the standard error."""


def mode_shares(labels: IntArray, tours: IntArray, modes: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Share of each mode among target draws, its standard error, and the tours that visited it, each (modes,).

    ``labels`` and ``tours`` (chain, draw) say of which mode and of which tour of its chain a draw is. Tours are
    independent, so the error is that of a ratio of sums over tours; over chains where tours are few.

    >>> labels, tours = np.array([[0, 0, 1, 1, 0, 1]]), np.arange(6)[None]
    >>> share, se, visits = mode_shares(labels, tours, 2)
    >>> share.tolist(), se.round(3).tolist(), visits.tolist()
    ([0.5, 0.5], [0.224, 0.224], [3, 3])
    """
    chains, count = labels.shape
    if count == 0:
        return np.full(modes, np.nan), np.full(modes, np.inf), np.zeros(modes, np.int64)
    chain = np.broadcast_to(np.arange(chains)[:, None], labels.shape)
    own = tours - tours.min()
    group = np.unique((chain * (int(own.max()) + 1) + own).ravel(), return_inverse=True)[1].ravel()
    by_tour = _counts(group, labels.ravel(), modes)
    visits = np.count_nonzero(by_tour, axis=0)
    parts = by_tour if len(by_tour) >= FEWEST_TOURS * chains else _counts(chain.ravel(), labels.ravel(), modes)
    total = parts.sum()
    share = parts.sum(axis=0) / total
    residual = parts - share * parts.sum(axis=1, keepdims=True)
    groups = len(parts)
    se = (
        np.sqrt(np.sum(residual**2, axis=0) * groups / max(groups - 1, 1)) / total
        if groups > 1
        else np.full(modes, np.inf)
    )
    return share, se, np.asarray(visits, np.int64)


def _counts(group: IntArray, label: IntArray, modes: int) -> FloatArray:
    """Number of draws of each group and label, (groups, modes)."""
    groups = int(group.max()) + 1
    return np.bincount(group * modes + label, minlength=groups * modes).reshape(groups, modes).astype(float)
