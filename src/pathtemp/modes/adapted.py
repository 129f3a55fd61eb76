"""A bent law brought to the target by importance sampling, from a few draws of an annealing pass, without gradients.

Population Monte Carlo (Cappé, Douc, Guillin, Marin and Robert 2008): draw from the law, weigh by the target, and fit
the law anew to the weighted draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.modes.bending import fit_bent, principal_frame
from pathtemp.modes.bent import BentLaw
from pathtemp.modes.bent_base import draws_of, log_density_of
from pathtemp.modes.refine import effective

DRAWS = 2048
"""Points of each pass."""

PASSES, FEWEST_PASSES, MOST_PASSES = 8, 6, 16
"""Passes of a fit; those after which a poor one is given up; and those of one that is not good yet."""

MOST_DENSITIES = 2 * MOST_PASSES * DRAWS
"""Density evaluations of a fit, at most: in two frames."""

POOLED = 3
"""Passes whose draws a fit is made of, the latest, beside the draws to begin with."""

GIVEN_UP = 0.01
"""Effective share of the draws below which, twice in a row, a law is given up after a few passes."""

FAIR = 0.3
"""Effective share of the draws of a law with which no further pass is made."""

GOOD = 0.4
"""Effective share of the draws of a law with which no better one is looked for."""

MISSED = 4.0
"""Log weight beyond the mean one, of a draw of the target, from which the law misses what is there."""

FEWEST_STARTS = 16
"""Different draws to begin with, at least."""


class Adapted(NamedTuple):
    """A law, the effective share of its draws as a sample of the target, and the log mass of the target by them."""

    law: BentLaw
    share: float
    log_mass: float = -np.inf

    def log_weight(self, theta: FloatArray, log_target: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Log density of the target at points (n, dim) relative to that of the law times the mass."""
        return np.asarray(log_target(theta) - log_density_of(self.law, theta) - self.log_mass)

    def missed(self, theta: FloatArray, log_target: Callable[[FloatArray], FloatArray]) -> float:
        """Share of draws (n, dim) of the target where the law has next to no density: a part of it was lost.

        The mean weight of target draws is one over the effective share, so few of them have more than a multiple of it.
        """
        return float(np.mean(self.log_weight(theta, log_target) > MISSED - np.log(self.share)))


def adapted_law(
    theta: FloatArray, log_target: Callable[[FloatArray], FloatArray], rng: np.random.Generator
) -> Adapted | None:
    """The law that is nearest to the target, from draws (n, dim) near it; None where these are too few.

    Coordinates are those of theta or, where these do not lead to a good law, directions in which draws are widest.

    >>> rng, bent = np.random.default_rng(0), lambda x: -0.5 * x[:, 0] ** 2 - 50.0 * (x[:, 1] - x[:, 0] ** 2) ** 2
    >>> x = rng.normal(size=64)
    >>> starts = np.stack([x, x**2 + 0.1 * rng.normal(size=64)], axis=1)
    >>> adapted_law(starts, bent, rng).share > 0.2
    True
    """
    theta = np.unique(theta[np.isfinite(theta).all(axis=1)], axis=0)
    if len(theta) < FEWEST_STARTS:
        return None
    first = _in_frame(theta, np.eye(theta.shape[1]), log_target, rng)
    if first.share >= GOOD or theta.shape[1] == 1:
        return first
    second = _in_frame(theta, principal_frame(theta, np.ones(len(theta))), log_target, rng)
    return max(first, second, key=lambda found: found.share)


def _in_frame(
    start: FloatArray, frame: FloatArray, log_target: Callable[[FloatArray], FloatArray], rng: np.random.Generator
) -> Adapted:
    """The law of the last pass in one frame."""
    law = fit_bent(start, np.ones(len(start)), frame)
    found, passes = Adapted(law, 0.0), [(start, np.full(len(start), 1.0))]
    for done in range(1, MOST_PASSES + 1):
        theta = draws_of(law, DRAWS, rng)
        with np.errstate(all="ignore"):
            log_weight = log_target(theta) - log_density_of(law, theta)
        log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
        if not np.isfinite(log_weight).any():
            break
        share = effective(_normalised(log_weight)) / DRAWS
        gives_up = done > FEWEST_PASSES and max(share, found.share) < GIVEN_UP
        # The latest, and not the best so far: a law that leaves tails out seems better than one that has them.
        found = Adapted(law, share, float(logsumexp(log_weight) - np.log(DRAWS)))
        # A law that has just met a part of the target that it misses is not good yet.
        if gives_up or (done >= PASSES and share >= FAIR):
            break
        weight, many = _tempered(log_weight, theta.shape[1])
        theta, weight = theta[weight > 0], weight[weight > 0]
        passes = [passes[0], *[*passes[1:], (theta, weight * many)][-POOLED:]]
        law = fit_bent(*(np.concatenate(part) for part in zip(*passes, strict=True)), frame)  # type: ignore[call-arg]
    return found


def _normalised(log_weight: FloatArray) -> FloatArray:
    return np.asarray(np.exp(log_weight - logsumexp(log_weight)))


def _tempered(log_weight: FloatArray, dim: int) -> tuple[FloatArray, float]:
    """Weights to the largest power at which enough draws are effective, and how many draws they count for.

    Those to a small power are draws of the law itself more than of the target, and count for little.
    """
    power, enough = 1.0, min(20.0 + 2.0 * dim, 200.0)
    while power > 0.02 and effective(_normalised(power * log_weight)) < enough:
        power *= 0.7
    weight = _normalised(power * log_weight)
    return weight, effective(weight) * power**2
