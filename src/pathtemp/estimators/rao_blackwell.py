"""Rao-Blackwellised estimate of log z on a ladder (Carlson et al. 2016)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, blocks, ladder_positions, log_densities, vector


def rao_blackwell(
    log_q: ArrayLike, log_c: ArrayLike, *, at: ArrayLike | None = None, groups: ArrayLike | None = None
) -> Estimate:
    """Estimate log z on a ladder from joint draws of (theta, k), each draw weighing in at every state.

    Joint draws have density q_k(theta) / c_k, so z_k is c_k times the share of draws in state k, and that
    share is the mean over draws of Pr(k | theta) = (q_k / c_k) / sum_j q_j / c_j: the visited state is
    integrated out. The draws must have equilibrated over the ladder; this is the multistate bridge with n_k
    / z_k replaced by 1 / c_k (the paper's appendix).

    Parameters
    ----------
    log_q
        log q_k(theta_s) of each of n joint draws at each of the K states, shape (n, K).
    log_c
        Log pseudo-prior that the draws were taken under, shape (K,).
    at
        The states' positions, increasing; 0, 1, ..., K - 1 when None.
    groups
        Index of the independent group of each draw, such as its chain; draws are independent when None.

    Returns
    -------
    log z of each state relative to the first, with a first-order standard error.

    >>> rao_blackwell(np.log([[1.0, 3.0], [1.0, 3.0]]), [0.0, 0.0]).mean.round(4)
    array([0.    , 1.0986])
    """
    table = log_densities(log_q)
    prior = vector("log_c", log_c, size=table.shape[1])
    if not np.isfinite(prior).all():
        raise InputError("log_c must be finite at every state")
    log_p = table - prior
    log_p = log_p - logsumexp(log_p, axis=1, keepdims=True)
    log_share = logsumexp(log_p, axis=0) - np.log(table.shape[0])
    if np.isneginf(log_share).any():
        raise InputError("log_q has a state under which no draw has any density; take it off the ladder")
    log_z = prior + log_share
    influence = np.exp(log_p - log_share)
    stderr = _stderr(influence - influence[:, :1], groups)
    return Estimate(ladder_positions(at, prior.size), log_z - log_z[0], stderr)


def _stderr(influence: FloatArray, groups: ArrayLike | None) -> FloatArray:
    """Standard error of the mean of rows, each row or each block of rows being independent."""
    n = influence.shape[0]
    block = np.arange(n) if groups is None else blocks(groups, size=n)
    count = int(block.max()) + 1
    if count < 2:
        return np.full(influence.shape[1], np.nan)
    sums = np.zeros((count, influence.shape[1]))
    np.add.at(sums, block, influence)
    return np.asarray(np.sqrt(count * sums.var(axis=0, ddof=1)) / n)
