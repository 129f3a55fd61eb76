"""Importance sampling from one state to the next, and the first-order expansion it shares a limit with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, shown
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, ladder_positions, log_mean_exp, two_states, vector


def importance(log_ratio: ArrayLike) -> Estimate:
    """Estimate log z(1)/z(0) by the mean density ratio over draws from state 0 (eq. importance_sampling).

    The standard error is that of independent draws, to first order.

    Parameters
    ----------
    log_ratio
        log q(theta, 1) - log q(theta, 0) at draws from state 0, S values; ``-inf`` where state 1 has no
        density.

    >>> importance(np.log([1.0, 3.0])).mean.round(4)
    array([0.    , 0.6931])
    """
    return two_states(*log_mean_exp(vector("log_ratio", log_ratio)))


def taylor(u: ArrayLike, step: float) -> Estimate:
    """Estimate log z(lam + step)/z(lam) by the first-order expansion at lam (eq. score).

    Parameters
    ----------
    u
        dlog q(theta, lam)/dlam at S draws from the state lam.
    step
        Distance in lam.

    >>> taylor([1.0, 3.0], 0.5).log_ratio
    (1.0, 0.5)
    """
    gradient = vector("u", u)
    if not np.isfinite(gradient).all():
        raise InputError("u must be finite")
    if finite_array("step", step).ndim:
        raise InputError(f"step: expected one number, and it is {shown(step)}")
    stderr = gradient.std(ddof=1) / np.sqrt(gradient.size) if gradient.size > 1 else np.nan
    return two_states(float(step * gradient.mean()), float(abs(step) * stderr))


def ladder_importance(log_ratios: Sequence[ArrayLike], *, at: ArrayLike | None = None) -> Estimate:
    """Multiply the importance-sampling ratios of neighbouring states (eq. two_point_ip).

    Parameters
    ----------
    log_ratios
        For each state j but the last, log q(theta, lam_(j+1)) - log q(theta, lam_j) at draws from state j.
    at
        The K + 1 states' positions, increasing; 0, 1, ..., K when None.

    >>> ladder_importance([np.log([1.0, 3.0]), [0.0, 0.0]]).mean.round(4)
    array([0.    , 0.6931, 0.6931])
    """
    if not isinstance(log_ratios, Sequence | np.ndarray):
        raise InputError(f"log_ratios: expected a list of arrays, one for each step, and it is {shown(log_ratios)}")
    if len(log_ratios) == 0:
        raise InputError("log_ratios is empty; give one array for each step of the ladder")
    steps = np.array([log_mean_exp(vector(f"log_ratios[{j}]", r)) for j, r in enumerate(log_ratios)])
    mean = _cumulative(steps[:, 0])
    return Estimate(ladder_positions(at, mean.size), mean, np.sqrt(_cumulative(steps[:, 1] ** 2)))


def _cumulative(x: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(x)])
