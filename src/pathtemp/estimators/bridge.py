"""Bridge sampling (eq. bridge) with the optimal bridge, between two states and between many."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, ladder_positions, log_densities, two_states, vector
from pathtemp.estimators.multistate import responsibilities, solve

FIXED_POINT_STEPS = 20
"""Self-consistent steps of the multistate bridge before Newton's method."""


def bridge(log_ratio_0: ArrayLike, log_ratio_1: ArrayLike) -> Estimate:
    """Estimate log z(1)/z(0) from draws of both states, by the bridge of least variance (Meng and Wong 1996).

    With the optimal alpha = 1 / (n_0 q_0 / z_0 + n_1 q_1 / z_1) the estimate solves
    sum_s expit(log n_1/n_0 + log_ratio_s - F) = n_1 over all draws, which has one root F = log z(1)/z(0). The
    standard error is that of independent draws, to first order.

    Parameters
    ----------
    log_ratio_0, log_ratio_1
        log q(theta, 1) - log q(theta, 0) at draws from state 0 and at draws from state 1. ``-inf`` where
        state 1 and ``+inf`` where state 0 has no density.

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=2000), rng.normal(size=2000) / 2.0  # precision 1 and 4
    >>> value, stderr = bridge(-1.5 * x**2, -1.5 * y**2).log_ratio
    >>> bool(abs(value + np.log(2.0)) < 6 * stderr), bool(stderr < 0.03)
    (True, True)
    """
    from_0, from_1 = vector("log_ratio_0", log_ratio_0), vector("log_ratio_1", log_ratio_1)
    offset = np.log(from_1.size / from_0.size)
    if np.isneginf(from_0).all() or np.isposinf(from_1).all():
        raise InputError("log_ratio_0 and log_ratio_1 have no density in common; put states in between")
    log_ratio = _optimal_bridge(from_0 + offset, from_1 + offset)
    forward, backward = expit(from_0 + offset - log_ratio), expit(-(from_1 + offset - log_ratio))
    return two_states(log_ratio, float(np.sqrt(_relative_variance(forward) + _relative_variance(backward))))


def multistate_bridge(log_q: ArrayLike, counts: ArrayLike, *, at: ArrayLike | None = None) -> Estimate:
    """Estimate log z of every state from draws of all, by the multistate bridge with optimal alpha: MBAR.

    Parameters
    ----------
    log_q
        Unnormalised log density of each of the n draws under each of the K states, shape (n, K).
    counts
        Number of draws taken from each state, shape (K,); their sum is n.
    at
        The states' positions, increasing; 0, 1, ..., K - 1 when None.

    Returns
    -------
    log z of each state relative to the first; the standard error is the asymptotic one for independent draws
    (Shirts and Chodera 2008, eq. 8).

    >>> log_q = np.log([[1.0, 2.0], [1.0, 2.0]])
    >>> multistate_bridge(log_q, [1, 1]).mean.round(4)
    array([0.    , 0.6931])
    """
    table = log_densities(log_q)
    n = vector("counts", counts, size=table.shape[1])
    if n.sum() != table.shape[0] or (n <= 0).any():
        raise InputError(f"counts must be positive and sum to the {table.shape[0]} draws of log_q")
    log_z = solve(table, n, np.ones(table.shape[0]), _self_consistent_start(table, n), tolerance=1e-10)
    stderr = _asymptotic_stderr(responsibilities(table, np.log(n) - log_z) / n, n)
    return Estimate(ladder_positions(at, n.size), log_z, stderr)


def _optimal_bridge(from_0: FloatArray, from_1: FloatArray) -> float:
    """Root of the bridge equation in F, with log n_1/n_0 already added to the log ratios."""
    pooled = np.concatenate([from_0, from_1])

    def excess(log_ratio: float) -> float:
        return float(expit(pooled - log_ratio).sum() - from_1.size)

    finite = pooled[np.isfinite(pooled)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    # Within log n of the extremes every term but one fades; the margin brackets the root whatever the counts.
    margin = 50.0 + np.log(pooled.size)
    return float(brentq(excess, low - margin, high + margin, xtol=1e-12))


def _self_consistent_start(log_q: FloatArray, n: FloatArray) -> FloatArray:
    """A first guess of log z by fixed-point steps, which approach from anywhere, as Newton's need not."""
    log_z = np.mean(np.maximum(log_q, log_q.max(axis=1, keepdims=True) - 1e3), axis=0)
    for _ in range(FIXED_POINT_STEPS):
        log_z = logsumexp(log_q - logsumexp(log_q + np.log(n) - log_z, axis=1, keepdims=True), axis=0)
        log_z = log_z - log_z[0]
    return np.asarray(log_z)


def _relative_variance(terms: FloatArray) -> float:
    """Squared relative standard error of the mean of independent ``terms``; NaN for a single one."""
    if terms.size < 2:
        return float("nan")
    return float(terms.var(ddof=1) / terms.mean() ** 2 / terms.size)


def _asymptotic_stderr(w: FloatArray, n: FloatArray) -> FloatArray:
    """Standard errors of log z relative to the first state, from the weights w (draws, states).

    The covariance of log z is W' (I - W N W')^+ W, computed from the eigenvectors of W' W.
    """
    values, vectors = np.linalg.eigh(w.T @ w)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    inner = np.eye(n.size) - half.T @ (n[:, None] * half)
    covariance = half @ np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ half.T
    variance = np.diag(covariance) + covariance[0, 0] - 2.0 * covariance[0]
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
