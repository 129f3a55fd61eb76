"""log z by maximum likelihood over all sampled lam at once: MBAR, the multistate bridge with optimal alpha.

The multistate bridge (eq. bridge) with the optimal alpha_j = n_j / z_j / sum_m n_m q_m / z_m is the
maximum-likelihood estimate of all z_k jointly (Shirts and Chodera 2008; UWHAM, Tan et al. 2012). It
minimises a convex function of F = log z,

    sum_s w_s log sum_k n_k exp(log q_k(theta_s) - F_k) + sum_k n_k F_k .

It uses theta given lam only, never how often a lam was visited, so draws of every adaptation can be pooled,
whatever pseudo-prior they were drawn under and whether or not lam has equilibrated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import blocks, increasing, vector
from pathtemp.estimators.isotonic import isotonic_curve
from pathtemp.estimators.support import PathDraws, path_draws

NEWTON_STEPS = 60
"""Bound on Newton steps; a connected problem takes five to ten."""

SMALLEST_SHARE = 1e-9
"""Nodes with a smaller share of the draws are no states of the likelihood; reweighting gives their log z."""

RIDGE = 1e-9
"""Relative ridge of the Hessian: where neighbouring nodes do not overlap, the starting value is kept."""


def mbar(
    lam: ArrayLike,
    delta: ArrayLike,
    grid: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    points: int = 2000,
    tolerance: float = 1e-4,
) -> FloatArray:
    """Maximum-likelihood log z of a geometric path, from draws (lam, delta).

    The path is log q(theta, lam) = log psi(theta) + lam delta(theta). Sampled lams are design points, split
    linearly between the two nodes next to them; that is exact to second order in the spacing, and wants
    nodes less than about 0.4 units of thermodynamic length apart.

    Parameters
    ----------
    lam, delta
        Draws: lam in [0, 1] and delta = log q - log psi at theta, any shape of n values. ``-inf`` may occur
        at lam = 0.
    grid
        Increasing nodes, shape (K,), the first zero.
    weights
        Weight of each draw, n values; all equal when None.
    points
        Draws are compressed to at most this many values of delta.
    tolerance
        Newton stops when log z at every node moves by less.

    Returns
    -------
    log z(grid) - log z(0), shape (K,).

    >>> rng = np.random.default_rng(0)
    >>> lam = rng.uniform(size=4000)
    >>> theta = rng.normal(size=4000) / np.sqrt(1.0 + 9.0 * lam)  # precision 1 to 10
    >>> log_z = mbar(lam, -4.5 * theta**2, np.linspace(0.0, 1.0, 33))
    >>> bool(abs(log_z[-1] + 0.5 * np.log(10.0)) < 0.05)
    True
    """
    nodes = _nodes(grid)
    return _mbar(path_draws(lam, delta, weights), nodes, None, points, tolerance)


def mbar_se(
    lam: ArrayLike,
    delta: ArrayLike,
    groups: ArrayLike,
    grid: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    points: int = 2000,
    tolerance: float = 1e-4,
) -> FloatArray:
    """Jackknife standard error of :func:`mbar`, one block of independent groups left out at a time.

    Parameters
    ----------
    lam, delta, grid, weights, points, tolerance
        As for :func:`mbar`.
    groups
        Index of the independent group of each draw, such as its chain, n values; merged to at most 16 blocks.

    Returns
    -------
    Standard errors, shape (K,); the first is zero. NaN when all draws are of one group.

    >>> rng = np.random.default_rng(0)
    >>> lam = rng.uniform(size=4000)
    >>> theta = rng.normal(size=4000) / np.sqrt(1.0 + 9.0 * lam)
    >>> se = mbar_se(lam, -4.5 * theta**2, np.arange(4000) % 8, np.linspace(0.0, 1.0, 33))
    >>> bool(0.005 < se[-1] < 0.04)
    True
    """
    nodes = _nodes(grid)
    lam_ = vector("lam", lam)
    delta_ = vector("delta", delta, size=lam_.size)
    w = np.ones(lam_.size) if weights is None else vector("weights", weights, size=lam_.size)
    block = blocks(groups, size=lam_.size)
    count = int(block.max()) + 1
    if count < 2:
        return np.full(nodes.size, np.nan)
    start = _mbar(path_draws(lam_, delta_, w), nodes, None, points, tolerance)
    left_out = np.array(
        [
            _mbar(path_draws(lam_[keep], delta_[keep], w[keep]), nodes, start, points, tolerance)
            for keep in (block != b for b in range(count))
        ]
    )
    return np.asarray(np.sqrt((count - 1.0) * left_out.var(axis=0)))


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
        step = _newton_step(p, share, w)
        size = _step_size(p, share, w, step)
        log_z = log_z + size * step
        if np.max(np.abs(size * step)) < tolerance:
            break
    return log_z


def log_density_weights(
    log_q: FloatArray, counts: FloatArray, weights: FloatArray, log_z: FloatArray
) -> FloatArray:
    """Log weight of each draw: z of any density q is estimated by sum_s exp(weight_s) q(theta_s).

    >>> log_density_weights(np.zeros((2, 1)), np.array([2.0]), np.ones(2), np.zeros(1)).round(4)
    array([-0.6931, -0.6931])
    """
    return np.asarray(np.log(weights) - logsumexp(log_q + (np.log(counts) - log_z), axis=1))


def _mbar(
    draws: PathDraws, nodes: FloatArray, start: FloatArray | None, points: int, tolerance: float
) -> FloatArray:
    counts = _split_between_nodes(draws, nodes)
    visited = np.flatnonzero(counts > SMALLEST_SHARE * counts.sum())
    delta, weights = _compress(draws.delta, draws.weights, points)
    smooth = isotonic_curve(draws, nodes) if start is None else start
    finite_part = smooth - draws.add_jumps(nodes, np.zeros(nodes.size))
    log_q = delta[:, None] * nodes[visited]
    n = counts[visited]
    log_z = solve(log_q, n, weights, finite_part[visited], tolerance=tolerance)
    log_w = log_density_weights(log_q, n, weights, log_z)
    curve = np.asarray(logsumexp(delta[:, None] * nodes + log_w[:, None], axis=0))
    return draws.add_jumps(nodes, curve - curve[0])


def _nodes(grid: ArrayLike) -> FloatArray:
    nodes = increasing("grid", grid)
    if nodes.size < 2 or nodes[0] != 0:
        raise InputError("grid must start at 0 and have at least two nodes")
    return nodes


def _split_between_nodes(draws: PathDraws, nodes: FloatArray) -> FloatArray:
    """Weight of draws per node, each draw split linearly between the two nodes next to its lam."""
    k = nodes.size
    left = np.clip(np.searchsorted(nodes, draws.lam, side="right") - 1, 0, k - 2)
    right_share = np.clip((draws.lam - nodes[left]) / (nodes[left + 1] - nodes[left]), 0.0, 1.0)
    to_left = np.bincount(left, draws.weights * (1.0 - right_share), k)
    to_right = np.bincount(left + 1, draws.weights * right_share, k)
    return np.asarray(to_left + to_right, dtype=np.float64)


def _compress(delta: FloatArray, weights: FloatArray, points: int) -> tuple[FloatArray, FloatArray]:
    """Weighted means of neighbouring deltas, at most ``points`` of them.

    Half of the resolution follows the weight of the draws and half a signed-logarithmic scale of delta
    itself, so that no group is wide: the far tail of a heavy-tailed delta decides log z near lam = 0.
    """
    if delta.size <= points:
        return delta, weights
    order = np.argsort(delta)
    x, w = delta[order], weights[order]
    by_weight = (np.cumsum(w) - 0.5 * w) / w.sum()
    low, centre, high = np.quantile(x, [0.25, 0.5, 0.75])
    signed_log = np.arcsinh((x - centre) / max(high - low, 1e-12 * (1.0 + abs(centre))))
    width = signed_log[-1] - signed_log[0]
    by_value = (signed_log - signed_log[0]) / width if width > 0 else by_weight
    group = np.floor(0.5 * (by_weight + by_value) * (points - 1)).astype(np.intp)
    total = np.bincount(group, w, points).astype(np.float64)
    used = total > 0
    return np.bincount(group, w * x, points)[used] / total[used], total[used]


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


def _newton_step(p: FloatArray, share: FloatArray, w: FloatArray) -> FloatArray:
    """Newton step in F, with F of the first state held."""
    expected = w @ p
    hessian = np.diag(expected) - p.T @ (w[:, None] * p)
    hessian[np.diag_indices_from(hessian)] += RIDGE + RIDGE * expected
    step = np.zeros(share.size)
    step[1:] = cho_solve(cho_factor(hessian[1:, 1:], lower=True), (expected - share)[1:])
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
