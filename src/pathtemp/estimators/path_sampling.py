"""Path sampling: thermodynamic integration over draws that are spread along the path (the paper's Step 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, blocks, increasing, vector

Curve = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def path_sampling(
    a: ArrayLike, u: ArrayLike, at: ArrayLike | None = None, *, groups: ArrayLike | None = None
) -> Estimate:
    """Integrate the pointwise gradients over the ordered a by the trapezoidal rule (eq. path1).

    Gradients at equal ``a`` are averaged (eq. U_gradient). Beyond the outermost draws the gradient is
    continued as it is there. With a link that is flat at its ends the gradient is zero in the flat ends: keep
    those draws with ``u = 0``, and nothing is continued wrongly.

    Parameters
    ----------
    a
        Position of each draw along the path, any shape of n values.
    u
        dlog q(theta, f(a))/da at each draw, which is f'(a) delta for a geometric path; n finite values.
    at
        Increasing positions at which the curve is wanted; the distinct ``a`` when None.
    groups
        Index of the independent group of each draw, such as its chain; the standard error then comes from the
        spread of the curve between groups, merged to at most 16 blocks. Without groups the draws count as
        independent and it comes from how much neighbouring gradients differ.

    Returns
    -------
    log z at ``at``, zero at its first position.

    >>> estimate = path_sampling([0.0, 0.5, 0.5, 1.0], [0.0, 1.0, 3.0, 4.0], [0.0, 0.5, 1.0])
    >>> estimate.mean
    array([0. , 0.5, 2. ])
    """
    a_, u_ = _draws(a, u)
    nodes = np.unique(a_) if at is None else increasing("at", at)
    if groups is None:
        return Estimate(nodes, _trapezoid(a_, u_, nodes), np.sqrt(_variance(a_, u_, nodes)))
    spread = _spread_between_groups(_trapezoid, a_, u_, nodes, groups)
    return Estimate(nodes, _trapezoid(a_, u_, nodes), spread)


def marginal(
    a: ArrayLike, u: ArrayLike, dlogc_da: ArrayLike, at: ArrayLike, *, groups: ArrayLike | None = None
) -> Estimate:
    """Log of the sampled marginal density p(a), by path sampling with u - dlog c/da (eq. gradient_marginal).

    Parameters
    ----------
    a, u, groups
        As for :func:`path_sampling`.
    dlogc_da
        Derivative of the log pseudo-prior log c(f(a)) at each draw, n values.
    at
        Increasing positions, shape (m,), at least two; p(a) is normalised over [at[0], at[-1]].

    Returns
    -------
    log p(a) at ``at``.

    >>> marginal([0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.5, 1.0]).mean
    array([0., 0., 0.])
    """
    a_, u_ = _draws(a, u)
    slope = u_ - vector("dlogc_da", dlogc_da, size=a_.size)
    nodes = increasing("at", at)
    if nodes.size < 2:
        raise InputError("at must have at least two positions, over which p(a) is normalised")
    log_p = _log_marginal(a_, slope, nodes)
    if groups is not None:
        return Estimate(nodes, log_p, _spread_between_groups(_log_marginal, a_, slope, nodes, groups))
    return Estimate(nodes, log_p, _marginal_stderr(log_p, _variance(a_, slope, nodes), nodes))


def _draws(a: ArrayLike, u: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a_ = vector("a", a)
    u_ = vector("u", u, size=a_.size)
    if not np.isfinite(a_).all():
        raise InputError("a must be finite")
    if not np.isfinite(u_).all():
        raise InputError("u must be finite; where the link is flat, f'(a) = 0, give u = 0 whatever delta is")
    return a_, u_


def _ordered(a: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Distinct a in order; mean, variance (NaN where single) and number of the gradients at each."""
    x, index = np.unique(a, return_inverse=True)
    n = np.bincount(index).astype(np.float64)
    mean = np.bincount(index, u) / n
    square = np.bincount(index, (u - mean[index]) ** 2)
    return x, mean, np.where(n > 1, square / np.maximum(n - 1.0, 1.0), np.nan), n


def _trapezoid(a: FloatArray, u: FloatArray, at: FloatArray) -> FloatArray:
    """Integral from at[0] to each of ``at`` of the gradient, linear between ordered draws."""
    x, mean, _, _ = _ordered(a, u)
    cumulative = np.concatenate([[0.0], np.cumsum(np.diff(x) * (mean[1:] + mean[:-1]) / 2.0)])
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, x.size - 1)
    log_z = cumulative[left] + (at - x[left]) * (mean[left] + np.interp(at, x, mean)) / 2.0
    return np.asarray(log_z - log_z[0])


def _log_marginal(a: FloatArray, u: FloatArray, at: FloatArray) -> FloatArray:
    log_p = _trapezoid(a, u, at)
    log_p = log_p - log_p.max()
    return np.asarray(log_p - np.log(np.trapezoid(np.exp(log_p), at)))


def _variance(a: FloatArray, u: FloatArray, at: FloatArray) -> FloatArray:
    """Variance of the trapezoidal rule at ``at``, given the positions of independent draws.

    The rule is a weighted sum of gradients. The variance of one gradient is that within ties, or, for a
    single draw, comes from its distance to the line through its neighbours (Gasser et al. 1986).
    """
    x, mean, within, n = _ordered(a, u)
    if x.size < 3 and np.isnan(within).any():
        return np.full(at.size, np.nan)
    variance = np.where(np.isnan(within), _variance_from_neighbours(x, mean, n), within) / n
    low, high = min(at[0], x[0]), max(at[-1], x[-1])
    middles = np.concatenate([[low], (x[1:] + x[:-1]) / 2.0, [high]])
    cumulative = np.concatenate([[0.0], np.cumsum(np.diff(middles) ** 2 * variance)])
    at_ends = np.interp(at, middles, cumulative)
    return np.asarray(at_ends - at_ends[0])


def _variance_from_neighbours(x: FloatArray, mean: FloatArray, n: FloatArray) -> FloatArray:
    """Variance of one gradient at each x from its residual to the line through its two neighbours."""
    if x.size < 3:
        return np.full(x.size, np.nan)
    right = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    residual = mean[1:-1] - (1.0 - right) * mean[:-2] - right * mean[2:]
    scale = 1.0 / n[1:-1] + (1.0 - right) ** 2 / n[:-2] + right**2 / n[2:]
    inner = residual**2 / scale
    return np.concatenate([inner[:1], inner, inner[-1:]])


def _marginal_stderr(log_p: FloatArray, variance: FloatArray, at: FloatArray) -> FloatArray:
    """Standard error of a log density whose unnormalised log has independent increments of that variance.

    log p_k = L_k - log sum_j exp(L_j) dx_j, so to first order its error is L_k - sum_j p_j dx_j L_j, and
    Cov(L_j, L_k) is the smaller of the two variances.
    """
    width = np.concatenate([[0.0], np.diff(at), [0.0]])
    mass = np.exp(log_p) * (width[1:] + width[:-1]) / 2.0
    covariance = np.minimum.outer(variance, variance)
    to_mean = covariance @ mass
    return np.asarray(np.sqrt(np.maximum(variance - 2.0 * to_mean + mass @ to_mean, 0.0)))


def _spread_between_groups(curve: Curve, a: FloatArray, u: FloatArray, at: FloatArray, groups: ArrayLike) -> FloatArray:
    """Standard error of the mean of the groups' own curves; NaN when there is one group."""
    block = blocks(groups, size=a.size)
    count = int(block.max()) + 1
    if count < 2:
        return np.full(at.size, np.nan)
    curves = np.array([curve(a[block == b], u[block == b], at) for b in range(count)])
    return np.asarray(curves.std(axis=0, ddof=1) / np.sqrt(count))
