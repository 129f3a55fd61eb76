"""Draws of the law that was asked for, out of weighted draws along the whole path."""

from __future__ import annotations

import numpy as np

from pathtemp import seeds
from pathtemp._types import FloatArray
from pathtemp.result.grouping import MOST_GROUPS


def thinned(theta: FloatArray, log_weight: FloatArray, *, seed: int) -> FloatArray:
    """Draws of the original density, in proportion to their weights (systematic resampling).

    There are as many as the weighted draws are worth, (sum w)^2 / sum w^2, so that only the few of largest weight
    occur twice. Chains are joined to groups, see :mod:`pathtemp.result.grouping`; within a group draws are in order of
    time.

    Parameters
    ----------
    theta
        Draws of the chains, shape (iterations, chains, dim).
    log_weight
        Log of the original density over the sampled one at each, up to a constant, shape (iterations, chains).

    Returns
    -------
    Shape (group, draw, dim), as many of each group.
    """
    rng = seeds.rng(seeds.Stream.THINNING, seed)
    weight = np.exp(log_weight - log_weight.max())
    groups = min(MOST_GROUPS, theta.shape[1])
    group = np.arange(theta.shape[1]) * groups // theta.shape[1]
    parts = [(theta[:, group == g].reshape(-1, theta.shape[2]), weight[:, group == g].ravel()) for g in range(groups)]
    count = int(weight.sum() ** 2 / np.sum(weight**2)) // groups
    if min(w.sum() for _, w in parts) == 0:
        return np.empty((groups, 0, theta.shape[2]))
    return np.stack([x[_systematic(rng, w, count)] for x, w in parts])


def _systematic(rng: np.random.Generator, weight: FloatArray, count: int) -> FloatArray:
    """Indices of ``count`` draws, each expected in proportion to its weight, in order."""
    at = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(at, (np.arange(count) + rng.uniform()) / max(count, 1)), len(weight) - 1)
