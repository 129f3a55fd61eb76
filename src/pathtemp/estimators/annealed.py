"""Annealed importance sampling, from trajectories that need not be in equilibrium."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathtemp.api.arguments import float_array
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, ladder_positions, log_mean_exp


def annealed_importance(increments: ArrayLike, *, at: ArrayLike | None = None) -> Estimate:
    """Average exp(work) over independent trajectories (eq. jarzynski; Jarzynski 1997, Neal 2001).

    Parameters
    ----------
    increments
        log q(theta_j, lam_(j+1)) - log q(theta_j, lam_j) of each of S trajectories at each of K steps, shape
        (S, K), where theta_0 is an exact draw of the first state and theta_j comes from theta_(j-1) by a
        transition that leaves state j invariant. Their cumulative sum is the work.
    at
        The K + 1 states' positions, increasing; 0, 1, ..., K when None.

    >>> annealed_importance(np.log([[1.0, 2.0], [3.0, 2.0]])).mean.round(4)
    array([0.    , 0.6931, 1.3863])
    """
    steps = float_array("increments", increments)
    if steps.ndim != 2 or steps.size == 0:
        raise InputError(f"increments must have shape (trajectories, steps), and has {steps.shape}")
    if np.isnan(steps).any() or np.isposinf(steps).any():
        raise InputError("increments must be neither NaN nor +inf; -inf is a trajectory of weight zero")
    work = np.cumsum(steps, axis=1)
    curve = np.array([(0.0, 0.0)] + [log_mean_exp(work[:, k]) for k in range(steps.shape[1])])
    return Estimate(ladder_positions(at, curve.shape[0]), curve[:, 0], curve[:, 1])
