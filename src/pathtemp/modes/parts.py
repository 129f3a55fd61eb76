"""A bent mode in parts: a few Student-t laws that cover it together, fitted by importance sampling, without gradients.

Population Monte Carlo (Cappé, Douc, Guillin, Marin and Robert 2008): draw from the mixture, weigh by the target, and
move the mixture by the steps of the EM algorithm towards the weighted draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.modes.ascent import BoolArray
from pathtemp.modes.local import HEAVY_DF, Local, from_covariance
from pathtemp.modes.refine import effective, log_normal, log_student

Parts = tuple[tuple[float, Local], ...]
"""Weights, which add up to one, and laws."""

DRAWS = 1024
"""Points of each pass."""

PASSES = 6

PARTS_DENSITIES = (1 + PASSES) * DRAWS
"""Density evaluations of :func:`in_parts`, at most."""

COVERED = 0.5
"""Effective share of the draws of a law from which it needs no parts."""

PER_DIMENSION = 8.0
"""Effective draws a dimension for each part."""

MOST_PARTS = 6

BETTER = 1.5
"""Factor of effective draws from which the parts are taken."""

KEPT = 0.15
"""Weight of the one law among the parts while they are fitted, so that no arm is lost once it was seen."""


def in_parts(
    law: Local,
    log_target: Callable[[FloatArray], FloatArray],
    own: Callable[[FloatArray], BoolArray],
    rng: np.random.Generator,
) -> Parts:
    """The mode of ``law`` as a mixture of laws, or the one law where it covers the mode or the parts do no better.

    ``log_target`` takes points (n, dim); ``own`` says which of them belong to this mode rather than another.

    >>> rng, everywhere = np.random.default_rng(0), lambda x: np.ones(len(x), bool)
    >>> round_law = from_covariance(np.zeros(2), np.eye(2), 0.0)
    >>> len(in_parts(round_law, lambda x: -0.5 * np.sum(x**2, axis=1), everywhere, rng))
    1
    >>> bent = lambda x: -0.5 * x[:, 0] ** 2 - 8.0 * (x[:, 1] - x[:, 0] ** 2) ** 2
    >>> wide = from_covariance(np.array([0.0, 1.0]), np.diag([1.0, 2.0]), 0.0)
    >>> any(len(in_parts(wide, bent, everywhere, rng)) > 1 for _ in range(8))  # nineteen times in twenty
    True
    """
    one: Parts = ((1.0, law),)
    theta, weight = _weighed(one, log_target, own, rng)
    first = effective(weight) if len(weight) else 0.0
    count = min(MOST_PARTS, int(first / (PER_DIMENSION * len(law.centre))))
    if first > COVERED * DRAWS or count < 2:
        return one
    parts = _start(law, theta, weight, count, rng)
    best, most = one, BETTER * first
    for _ in range(PASSES):
        parts = _towards(parts, theta, weight)
        kept = (*((p * (1.0 - KEPT), part) for p, part in parts), (KEPT, replace(law, heavy=True)))
        theta, weight = _weighed(kept, log_target, own, rng)
        if len(weight) == 0:
            break
        if effective(weight) > most:
            best, most = kept, effective(weight)
    return best


def log_mixture(parts: Parts, theta: FloatArray) -> FloatArray:
    """Log density of each weighted part at points (n, dim), shape (parts, n)."""
    return np.stack([np.log(p) + (log_student if law.heavy else log_normal)(law, theta) for p, law in parts])


def _weighed(
    parts: Parts,
    log_target: Callable[[FloatArray], FloatArray],
    own: Callable[[FloatArray], BoolArray],
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draws (n, dim) of the mixture that the target gives weight, and the weights; none where there is no density."""
    weights = np.array([p for p, _ in parts])
    counts = rng.multinomial(DRAWS, weights / weights.sum())
    theta = np.concatenate([_draws(law, n, rng) for (_, law), n in zip(parts, counts, strict=True)])
    log_q = log_target(theta)
    log_weight = np.where(np.isfinite(log_q) & own(theta), log_q, -np.inf) - logsumexp(
        log_mixture(parts, theta), axis=0
    )
    if not np.isfinite(log_weight).any():
        return theta[:0], np.zeros(0)
    return theta, np.exp(log_weight - logsumexp(log_weight))


def _draws(law: Local, count: int, rng: np.random.Generator) -> FloatArray:
    z = rng.standard_normal((count, len(law.centre)))
    return law.spread_out(z * np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, (count, 1))) if law.heavy else z)


def _start(law: Local, theta: FloatArray, weight: FloatArray, count: int, rng: np.random.Generator) -> Parts:
    """Parts of half the law's size at weighted draws that lie far from each other (as k-means++ picks them)."""
    z = law.standardise(theta)
    chosen = [int(rng.choice(len(z), p=weight))]
    while len(chosen) < count:
        nearest = np.min([np.sum((z - z[i]) ** 2, axis=1) for i in chosen], axis=0)
        score = weight * nearest
        chosen.append(int(rng.choice(len(z), p=score / score.sum())))
    return tuple((1.0 / count, replace(law, centre=theta[i], scale=0.5 * law.scale, heavy=True)) for i in chosen)


def _towards(parts: Parts, theta: FloatArray, weight: FloatArray, steps: int = 3) -> Parts:
    """A few steps of EM for a mixture of Student-t laws on weighted points; parts with too few points are dropped."""
    dim = theta.shape[1]
    for _ in range(steps):
        log_parts = log_mixture(parts, theta)
        belongs = weight * np.exp(log_parts - logsumexp(log_parts, axis=0))
        moved = []
        for (_, law), mass in zip(parts, belongs, strict=True):
            share = float(mass.sum())
            if share <= 0.0 or share**2 / float(np.sum(mass**2)) < dim + 2.0:
                continue
            square = np.sum(law.standardise(theta) ** 2, axis=1)
            pull = mass * (HEAVY_DF + dim) / (HEAVY_DF + square)
            centre = pull @ theta / pull.sum()
            residual = theta - centre
            covariance = (pull[:, None] * residual).T @ residual / share
            # Few points leave some direction too narrow: lean on the diagonal.
            lean = min(1.0, dim * float(np.sum(mass**2)) / share**2)
            covariance = (1.0 - lean) * covariance + lean * np.diag(np.diagonal(covariance))
            moved.append((share, replace(from_covariance(centre, covariance, law.height), heavy=True)))
        if not moved:
            return parts
        total = sum(share for share, _ in moved)
        parts = tuple((share / total, law) for share, law in moved)
    return parts
