"""Draws where only one end of a geometric path has density: exact, and apart from the rest.

A draw with delta = -inf lies where the target has no density: it can only come from lam = 0, where it says
that z jumps by the factor P(delta > -inf | lam = 0) between lam = 0 and every lam > 0. The likelihood of
all draws factorises into that binomial and the likelihood of the draws with finite delta; a draw with delta
= +inf (no density under the base) tells in the same way of a jump at lam = 1. So both are estimated here,
and the estimators see finite delta only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import IntArray, vector

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class PathDraws:
    """Draws of a geometric path with finite delta, and the jumps that the others stand for.

    Parameters
    ----------
    lam, delta, weights
        Draws with finite delta and positive weight, shape (n,).
    kept
        Which of all draws these are, as a mask.
    jump_at_0, jump_at_1
        log z(0+) - log z(0), never positive, and log z(1) - log z(1-), never negative.
    """

    lam: FloatArray
    delta: FloatArray
    weights: FloatArray
    kept: BoolArray
    jump_at_0: float
    jump_at_1: float

    def add_jumps(self, grid: FloatArray, log_z: FloatArray) -> FloatArray:
        """Curve of the finite draws with both jumps put back."""
        return log_z + np.where(grid > 0, self.jump_at_0, 0.0) + np.where(grid >= 1, self.jump_at_1, 0.0)


def path_draws(lam: ArrayLike, delta: ArrayLike, weights: ArrayLike | None = None) -> PathDraws:
    """Split draws into those with finite delta and the jumps at the ends.

    >>> draws = path_draws([0.0, 0.0, 0.5], [-np.inf, 1.0, 2.0])
    >>> draws.delta, round(draws.jump_at_0, 4)
    (array([1., 2.]), -0.6931)
    """
    lam_ = vector("lam", lam)
    delta_ = vector("delta", delta, size=lam_.size)
    w = np.ones(lam_.size) if weights is None else vector("weights", weights, size=lam_.size)
    if not np.isfinite(lam_).all() or (lam_ < 0).any() or (lam_ > 1).any():
        raise InputError("lam must lie between 0 and 1; rescale the path to that interval")
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("weights must be finite and not negative")
    finite = np.isfinite(delta_) & (w > 0)
    if not finite.any():
        raise InputError("delta has no finite value with positive weight; base and target share no draw")
    jump_at_0 = _log_share(finite[lam_ == 0], w[lam_ == 0])
    jump_at_1 = -_log_share(finite[lam_ == 1], w[lam_ == 1])
    return PathDraws(lam_[finite], delta_[finite], w[finite], finite, jump_at_0, jump_at_1)


def jump_influence(
    lam: FloatArray, delta: FloatArray, weights: FloatArray, block: IntArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """How far each block of draws moves the log share of finite draws at lam = 0 and 1, to first order.

    >>> lam, delta = np.zeros(4), np.array([-np.inf, 1.0, 1.0, 1.0])
    >>> jump_influence(lam, delta, np.ones(4), np.array([0, 0, 1, 1]), 2)[0].round(4)
    array([-0.1667,  0.1667])
    """
    finite = np.isfinite(delta)
    at_0 = _share_influence(finite, weights * (lam == 0), block, count)
    return at_0, _share_influence(finite, weights * (lam == 1), block, count)


def _share_influence(finite: BoolArray, weights: FloatArray, block: IntArray, count: int) -> FloatArray:
    total = np.bincount(block, weights, count)
    part = np.bincount(block, weights * finite, count)
    if part.sum() == 0:
        return np.zeros(count)
    return np.asarray(part / part.sum() - total / total.sum())


def _log_share(finite: BoolArray, weights: FloatArray) -> float:
    """Log of the weighted share of finite draws; half a draw where none is, to keep the curve finite."""
    total = float(weights.sum())
    if total == 0.0:
        return 0.0
    share = float(weights[finite].sum())
    return float(np.log(share / total if share > 0 else 0.5 / (total + 1.0)))
