"""log z of a ladder by how often its rungs were visited: the importance update of simulated tempering."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, blocks, ladder_positions, vector

UNSEEN = 0.5
"""Visits that a rung without any counts as, so that its log z stays finite and the next adaptation favours it."""


def occupancy(
    rung: ArrayLike, log_c: ArrayLike, *, at: ArrayLike | None = None, groups: ArrayLike | None = None
) -> Estimate:
    """Estimate log z by c_k Pr(k), with Pr(k) the share of draws in state k (method iii of section 4.1).

    Parameters
    ----------
    rung
        State 0..K-1 of each of n joint draws of density q_k(theta) / c_k.
    log_c
        Log pseudo-prior of the draws, shape (K,).
    at
        The states' positions, increasing; 0, 1, ..., K - 1 when None.
    groups
        Index of the independent group of each draw, such as its chain; draws are independent when None.

    Returns
    -------
    log z of each state relative to the first, with a first-order standard error; NaN where one of the two was never
    visited, or all draws are of one group.

    >>> occupancy([0, 0, 1, 1, 1, 1], [0.0, 0.5]).mean.round(4)
    array([0.    , 1.1931])
    """
    prior = vector("log_c", log_c)
    index = vector("rung", rung).astype(np.intp)
    if index.min() < 0 or index.max() >= prior.size:
        raise InputError(f"rung must lie in 0..{prior.size - 1}, one of the {prior.size} states of log_c")
    count = np.bincount(index, minlength=prior.size).astype(np.float64)
    log_z = prior + np.log(np.maximum(count, UNSEEN))
    group = np.arange(index.size) if groups is None else blocks(groups, size=index.size)
    size = int(group.max()) + 1
    table = np.bincount(group * prior.size + index, minlength=size * prior.size).reshape(size, -1)
    share = table / np.where(count > 0, count, np.nan)
    difference = share - share[:, :1]
    stderr = np.sqrt(size * difference.var(axis=0, ddof=1)) if size > 1 else np.full(prior.size, np.nan)
    return Estimate(ladder_positions(at, prior.size), log_z - log_z[0], stderr)
