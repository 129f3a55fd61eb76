"""log z of a geometric path by maximum likelihood over all sampled lam at once: MBAR on a grid of lam.

It uses theta given lam only, never how often a lam was visited, so draws of every adaptation can be pooled,
whatever pseudo-prior they were drawn under and whether or not lam has equilibrated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.api.arguments import positive_number, whole_number
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import IntArray, blocks, increasing, vector
from pathtemp.estimators.isotonic import isotonic_curve
from pathtemp.estimators.multistate import log_density_weights, newton_step, objective, responsibilities, solve
from pathtemp.estimators.support import PathDraws, jump_influence, path_draws

SMALLEST_SHARE = 1e-9
"""Nodes with a smaller share of the draws are no states of the likelihood; reweighting gives their log z."""


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
    >>> bool(abs(log_z[-1] + 0.5 * np.log(10.0)) < 0.12)  # six standard errors and more
    True
    """
    nodes, points, tolerance = _how(grid, points, tolerance)
    draws = path_draws(lam, delta, weights)
    fit = _fit(draws, nodes, points, tolerance)
    return draws.add_jumps(nodes, fit.curve)


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
    """Standard error of :func:`mbar` from independent groups of draws: the jackknife, to first order.

    Leaving out one group moves log z by the group's score times the inverse Hessian, so no group costs a
    solution of its own.

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
    >>> se = mbar_se(lam, -4.5 * theta**2, np.arange(4000) % 64, np.linspace(0.0, 1.0, 33))
    >>> bool(0.005 < se[-1] < 0.04)
    True
    """
    return mbar_with_se(lam, delta, groups, grid, weights=weights, points=points, tolerance=tolerance)[1]


def mbar_with_se(
    lam: ArrayLike,
    delta: ArrayLike,
    groups: ArrayLike,
    grid: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    points: int = 2000,
    tolerance: float = 1e-4,
) -> tuple[FloatArray, FloatArray]:
    """What :func:`mbar` and :func:`mbar_se` give, by one solution of the likelihood.

    >>> lam, delta = np.linspace(0.0, 1.0, 400), np.sin(np.arange(400.0))
    >>> how = {"groups": np.arange(400) % 8, "grid": np.linspace(0.0, 1.0, 5)}
    >>> log_z, se = mbar_with_se(lam, delta, **how)
    >>> bool(np.all(log_z == mbar(lam, delta, how["grid"])) and np.all(se == mbar_se(lam, delta, **how)))
    True
    """
    nodes, points, tolerance = _how(grid, points, tolerance)
    lam_ = vector("lam", lam)
    delta_ = vector("delta", delta, size=lam_.size)
    w = np.ones(lam_.size) if weights is None else vector("weights", weights, size=lam_.size)
    block = blocks(groups, size=lam_.size)
    count = int(block.max()) + 1
    draws = path_draws(lam_, delta_, w)
    fit = _fit(draws, nodes, points, tolerance)
    curve = draws.add_jumps(nodes, fit.curve)
    if count < 2:
        return curve, np.full(nodes.size, np.nan)
    moved = _influence(fit, draws, nodes, block[draws.kept], count)
    at_0, at_1 = jump_influence(lam_, delta_, w, block, count)
    moved = moved + np.where(nodes[:, None] > 0, at_0, 0.0) - np.where(nodes[:, None] >= 1, at_1, 0.0)
    return curve, np.asarray(np.sqrt(count / (count - 1.0) * (moved**2).sum(axis=1)))


@dataclass(frozen=True)
class _Fit:
    """The likelihood of the compressed draws at its maximum.

    Parameters
    ----------
    delta, weights, group
        Compressed draws, shape (M,), and the one that each draw went into, shape (n,).
    counts, visited
        Draws per node, shape (K,), and the nodes that are states of the likelihood.
    log_z
        At the visited nodes.
    curve
        log z at every node, relative to the first.
    """

    delta: FloatArray
    weights: FloatArray
    group: IntArray
    counts: FloatArray
    visited: IntArray
    log_z: FloatArray
    curve: FloatArray


def _fit(draws: PathDraws, nodes: FloatArray, points: int, tolerance: float) -> _Fit:
    counts = _split_between_nodes(draws.lam, draws.weights, nodes)
    visited = np.flatnonzero(counts > SMALLEST_SHARE * counts.sum())
    group = _compress(draws.delta, draws.weights, points)
    weights = np.bincount(group, draws.weights).astype(np.float64)
    delta = np.bincount(group, draws.weights * draws.delta) / weights
    log_q, n = delta[:, None] * nodes[visited], counts[visited]
    with np.errstate(over="ignore", invalid="ignore"):
        guesses = [isotonic_curve(draws, nodes)[visited], *_stepping_stones(draws, nodes[visited])]
    start = min(guesses, key=lambda guess: objective(log_q, n, weights, guess))
    log_z = solve(log_q, n, weights, start, tolerance=tolerance)
    log_w = log_density_weights(log_q, n, weights, log_z)
    curve = np.asarray(logsumexp(delta[:, None] * nodes + log_w[:, None], axis=0))
    return _Fit(delta, weights, group, counts, visited, log_z, curve - curve[0])


def _stepping_stones(draws: PathDraws, nodes: FloatArray) -> list[FloatArray]:
    """Two guesses of log z at the nodes: exponential averages from each node to the next, and the mean of both ways.

    A draw with hugely negative delta has no weight in an average towards larger lam, however it is scaled. In the mean
    of delta, which isotonic regression integrates, it is all that counts.
    """
    order = np.argsort(draws.lam, kind="stable")
    delta, log_w = draws.delta[order], np.log(draws.weights[order])
    edges = np.searchsorted(draws.lam[order], 0.5 * (nodes[1:] + nodes[:-1]), side="right")
    edges = np.concatenate([[0], edges, [len(delta)]])

    def averages(edges: IntArray, steps: FloatArray) -> FloatArray:
        """Log mean of exp(step * delta) over the draws between each two edges, over all draws where there are none."""
        size = np.diff(edges)
        some, whole = np.flatnonzero(size), np.zeros(1, np.intp)
        inside = slice(edges[0], edges[-1])
        found = np.empty(len(steps))
        tilted = log_w[inside] + np.repeat(steps, size) * delta[inside]
        starts = edges[:-1][some] - edges[0]
        found[some] = _log_sums(tilted, starts) - _log_sums(log_w[inside], starts)
        for k in np.flatnonzero(size == 0):
            found[k] = (_log_sums(log_w + steps[k] * delta, whole) - _log_sums(log_w, whole))[0]
        return found

    steps = np.diff(nodes)
    up, down = averages(edges[:-1], steps), averages(edges[1:], -steps)
    return [np.concatenate([[0.0], np.cumsum(rise)]) for rise in (up, 0.5 * (up - down))]


def _log_sums(x: FloatArray, starts: IntArray) -> FloatArray:
    """Log of the sums of exp(x), shape (n,), over stretches that begin at ``starts``, none of them empty."""
    if not len(x):
        return np.empty(0)
    highest = np.maximum.reduceat(x, starts)
    size = np.diff(np.append(starts, len(x)))
    return np.asarray(highest + np.log(np.add.reduceat(np.exp(x - np.repeat(highest, size)), starts)))


def _influence(fit: _Fit, draws: PathDraws, nodes: FloatArray, block: IntArray, count: int) -> FloatArray:
    """How far each block of draws moves the curve, to first order, shape (K, count).

    The likelihood of the draws depends on n and z through g = log z - log n at the visited nodes, which a
    block moves by the inverse Hessian times its score. Every node follows from
    log z_k = log sum_s w_s q_sk / sum_j exp(-g_j) q_sj, differentiated in w and g.
    """
    total = fit.weights.sum()
    w = np.bincount(fit.group * count + block, draws.weights, fit.weights.size * count)
    w = w.reshape(-1, count)
    n = np.stack([_split_between_nodes(draws.lam, draws.weights * (block == b), nodes) for b in range(count)], axis=1)[
        fit.visited
    ]
    log_q, shares = fit.delta[:, None] * nodes[fit.visited], fit.counts[fit.visited]
    p = responsibilities(log_q, np.log(shares) - fit.log_z)
    moved_g = newton_step(p, fit.weights / total, (n - p.T @ w) / total)
    log_w = log_density_weights(log_q, shares, fit.weights, fit.log_z)
    at_nodes = responsibilities((fit.delta[:, None] * nodes + log_w[:, None]).T, np.zeros(1))
    curve = at_nodes @ (w / fit.weights[:, None] + p @ moved_g)
    return np.asarray(curve - curve[0])


def _how(grid: ArrayLike, points: int, tolerance: float) -> tuple[FloatArray, int, float]:
    """Nodes, points and tolerance, where they can be used."""
    return _nodes(grid), whole_number("points", points, least=2), positive_number("tolerance", tolerance)


def _nodes(grid: ArrayLike) -> FloatArray:
    nodes = increasing("grid", grid)
    if nodes.size < 2 or nodes[0] != 0:
        raise InputError("grid must start at 0 and have at least two nodes")
    return nodes


def _split_between_nodes(lam: FloatArray, weights: FloatArray, nodes: FloatArray) -> FloatArray:
    """Weight of draws per node, each draw split linearly between the two nodes next to its lam."""
    k = nodes.size
    left = np.clip(np.searchsorted(nodes, lam, side="right") - 1, 0, k - 2)
    right_share = np.clip((lam - nodes[left]) / (nodes[left + 1] - nodes[left]), 0.0, 1.0)
    to_left = np.bincount(left, weights * (1.0 - right_share), k)
    to_right = np.bincount(left + 1, weights * right_share, k)
    return np.asarray(to_left + to_right, dtype=np.float64)


def _compress(delta: FloatArray, weights: FloatArray, points: int) -> IntArray:
    """Index of the group of neighbouring deltas that each draw goes into, at most ``points``, none empty.

    Half of the resolution follows the weight of the draws and half a signed-logarithmic scale of delta
    itself, so that no group is wide: the far tail of a heavy-tailed delta decides log z near lam = 0.
    """
    if delta.size <= points:
        return np.arange(delta.size)
    order = np.argsort(delta)
    x, w = delta[order], weights[order]
    by_weight = (np.cumsum(w) - 0.5 * w) / w.sum()
    low, centre, high = np.quantile(x, [0.25, 0.5, 0.75])
    signed_log = np.arcsinh((x - centre) / max(high - low, 1e-12 * (1.0 + abs(centre))))
    width = signed_log[-1] - signed_log[0]
    by_value = (signed_log - signed_log[0]) / width if width > 0 else by_weight
    cell = np.floor(0.5 * (by_weight + by_value) * (points - 1))
    group = np.empty(delta.size, dtype=np.intp)
    group[order] = np.concatenate([[0], np.cumsum(np.diff(cell) > 0)])
    return group
