"""The multistate bridge with optimal alpha (eq. bridge), solved by Newton's method: MBAR.

The optimal alpha_j = n_j / z_j / sum_m n_m q_m / z_m makes the multistate bridge the maximum-likelihood
estimate of all z_k jointly (Shirts and Chodera 2008; UWHAM, Tan et al. 2012). It minimises a convex
function of F = log z,

    sum_s w_s log sum_k n_k exp(log q_k(theta_s) - F_k) + sum_k n_k F_k .
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from pathtemp._types import FloatArray

NEWTON_STEPS = 60
"""Bound on Newton steps; a connected problem takes five to ten."""

RIDGE = 1e-9
"""Relative ridge of the Hessian: where neighbouring states do not overlap, the starting value is kept."""


def solve(
    log_q: FloatArray,
    counts: FloatArray,
    weights: FloatArray,
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
) -> FloatArray:
    """Newton's method for log z of K states, each with a positive count; log z of the first is zero.

    Parameters
    ----------
    log_q
        Unnormalised log density of every (grouped) draw under every state, shape (n, K); a row may be
        shifted.
    counts
        Draws n_k taken from each state, shape (K,).
    weights
        Weight of each row, shape (n,), with the sum of ``counts``.
    start
        First guess of log z, shape (K,).
    tolerance
        Stop when log z of every state moves by less.

    >>> log_q = np.log(np.array([[1.0, 2.0], [1.0, 2.0]]))
    >>> solve(log_q, np.ones(2), np.ones(2), np.zeros(2)).round(6)
    array([0.      , 0.693147])
    """
    share, w = counts / counts.sum(), weights / weights.sum()
    log_z: FloatArray = start - start[0]
    if share.size == 1:
        return log_z
    for _ in range(NEWTON_STEPS):
        p = responsibilities(log_q, np.log(share) - log_z)
        step = newton_step(p, w, share - w @ p)
        size = _step_size(p, share, w, step)
        log_z = log_z + size * step
        if np.max(np.abs(size * step)) < tolerance:
            break
    return log_z


def objective(log_q: FloatArray, counts: FloatArray, weights: FloatArray, log_z: FloatArray) -> float:
    """The convex function that :func:`solve` minimises, for guesses of log z; infinite where one is not finite.

    >>> log_q, ones = np.log(np.array([[1.0, 2.0], [1.0, 2.0]])), np.ones(2)
    >>> objective(log_q, ones, ones, np.array([0.0, np.log(2.0)])) < objective(log_q, ones, ones, np.zeros(2))
    True
    """
    if not np.isfinite(log_z).all():
        return float("inf")
    shift = log_z - log_z[0]
    return float(weights @ logsumexp(log_q + (np.log(counts) - shift), axis=1) + counts @ shift)


def log_density_weights(log_q: FloatArray, counts: FloatArray, weights: FloatArray, log_z: FloatArray) -> FloatArray:
    """Log weight of each draw: z of any density q is estimated by sum_s exp(weight_s) q(theta_s).

    >>> log_density_weights(np.zeros((2, 1)), np.array([2.0]), np.ones(2), np.zeros(1)).round(4)
    array([-0.6931, -0.6931])
    """
    return np.asarray(np.log(weights) - logsumexp(log_q + (np.log(counts) - log_z), axis=1))


def responsibilities(log_q: FloatArray, shift: FloatArray) -> FloatArray:
    """Probability of each state given each draw, rows summing to one, for ``shift`` = log n - log z.

    >>> responsibilities(np.log([[1.0, 3.0]]), np.zeros(2))
    array([[0.25, 0.75]])
    """
    p = log_q + shift
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def newton_step(p: FloatArray, w: FloatArray, gradient: FloatArray) -> FloatArray:
    """Minus the inverse Hessian times a gradient in F, with F of the first state held.

    Parameters
    ----------
    p
        Responsibilities, shape (n, K).
    w
        Weights of the draws, shape (n,), summing to one.
    gradient
        One gradient or several side by side, shape (K,) or (K, B).

    >>> newton_step(np.array([[0.5, 0.5]]), np.ones(1), np.array([-0.1, 0.1])).round(6)
    array([ 0. , -0.4])
    """
    expected = w @ p
    hessian = np.diag(expected) - p.T @ (w[:, None] * p)
    hessian[np.diag_indices_from(hessian)] += RIDGE + RIDGE * expected
    step = np.zeros(gradient.shape)
    step[1:] = -cho_solve(cho_factor(hessian[1:, 1:], lower=True), gradient[1:])
    return step


def _step_size(p: FloatArray, share: FloatArray, w: FloatArray, step: FloatArray) -> float:
    """Halve the step until the objective falls enough.

    The change of the objective is w . log(p exp(-s step)) + s share . step, exact and free of cancellation.
    """
    slope = float(share @ step - w @ (p @ step))
    widest = float(np.max(np.abs(step)))
    size = min(1.0, 100.0 / widest) if widest > 0 else 1.0
    while size > 1e-6:
        change = float(w @ np.log(p @ np.exp(-size * step)) + size * (share @ step))
        if change <= 1e-4 * size * slope + 1e-15:
            break
        size *= 0.5
    return size
