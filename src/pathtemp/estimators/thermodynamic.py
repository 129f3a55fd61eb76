"""Thermodynamic integration on a fixed ladder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pathtemp.api.arguments import shown
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate, increasing, vector


def thermodynamic(ladder: ArrayLike, u: Sequence[ArrayLike]) -> Estimate:
    """Integrate the mean gradient at each rung by the trapezoidal rule (eq. gradient).

    The standard error is that of independent draws. It leaves out the error of the rule itself, which more
    draws do not remove: only more rungs do.

    Parameters
    ----------
    ladder
        Increasing rungs lam_1 < ... < lam_K, shape (K,).
    u
        For each rung, dlog q(theta, lam)/dlam at draws from it.

    >>> thermodynamic([0.0, 1.0], [[-1.0, 1.0], [2.0, 2.0]]).mean
    array([0., 1.])
    """
    rungs = increasing("ladder", ladder)
    if not isinstance(u, Sequence | np.ndarray):
        raise InputError(f"u: expected a list of arrays, one for each rung, and it is {shown(u)}")
    if len(u) != rungs.size:
        raise InputError(f"u must have {rungs.size} arrays, one for each rung, and has {len(u)}")
    gradients = [vector(f"u[{k}]", x) for k, x in enumerate(u)]
    if not all(np.isfinite(x).all() for x in gradients):
        raise InputError("u must be finite; keep rungs apart from ends where the density vanishes")
    mean = np.array([x.mean() for x in gradients])
    variance = np.array([x.var(ddof=1) / x.size if x.size > 1 else np.nan for x in gradients])
    half = np.diff(rungs) / 2.0
    log_z = np.concatenate([[0.0], np.cumsum(half * (mean[1:] + mean[:-1]))])
    # A rung weighs half a cell as the last one, and a whole one once the curve goes on beyond it.
    inner = (np.concatenate([[0.0], half[:-1]]) + half) ** 2 * variance[:-1]
    total = np.concatenate([[0.0], np.cumsum(inner) + half**2 * variance[1:]])
    return Estimate(rungs, log_z, np.sqrt(total))
