"""Draws of the law that was asked for, out of draws along the whole path."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray

MOST_CHAINS = 16
"""Chains of the draws handed over; several walks are laid into one, in the order of time."""


def thinned(theta: FloatArray, log_weight: FloatArray, *, seed: int) -> FloatArray:
    """Draws of the original density, by keeping each draw with a probability proportional to its weight.

    Parameters
    ----------
    theta
        Draws of the walks, shape (iterations, chains, dim).
    log_weight
        Log of the original density over the sampled one at each, up to a constant, shape (iterations, chains).

    Returns
    -------
    Shape (chain, draw, dim), as many of each chain; without copies.
    """
    rng = np.random.default_rng(seed)
    kept = np.log(rng.uniform(size=log_weight.shape)) < log_weight - log_weight.max()
    chains = min(MOST_CHAINS, theta.shape[1])
    groups = np.arange(theta.shape[1]) * chains // theta.shape[1]
    rows = [theta[:, groups == g][kept[:, groups == g]] for g in range(chains)]
    count = min(len(row) for row in rows)
    return np.stack([row[len(row) - count :] for row in rows])
