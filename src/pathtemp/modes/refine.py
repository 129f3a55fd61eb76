"""Local laws made better by importance sampling: their spread, their tails and their mass, without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import gammaln, logsumexp

from pathtemp._types import FloatArray
from pathtemp.modes.ascent import BoolArray
from pathtemp.modes.local import HEAVY_DF, Local, from_covariance

DRAWS = 512
"""Points drawn around each mode in each pass."""

PASSES = 4

REFINE_DENSITIES = PASSES * DRAWS
"""Density evaluations of :func:`refine`, at most."""

FEWEST = 20.0
"""Effective draws from which the mass is believed; with fewer, weights are flattened to learn a scale from them."""

PER_DIMENSION = 10.0
"""Effective draws a dimension from which a whole covariance is learned."""


def log_normal(law: Local, theta: FloatArray) -> FloatArray:
    """Log density of the law at points (n, dim), were it normal."""
    return log_normal_at(law, law.square(theta))


def log_normal_at(law: Local, square: FloatArray) -> FloatArray:
    """The same for points of these squared lengths (n,) of z."""
    return np.asarray(-0.5 * square - 0.5 * len(law.centre) * np.log(2 * np.pi) - law.log_det)


def log_student(law: Local, theta: FloatArray) -> FloatArray:
    """Log density of the law at points (n, dim), were it Student-t."""
    dim, nu = theta.shape[1], HEAVY_DF
    square = law.square(theta)
    constant = gammaln(0.5 * (nu + dim)) - gammaln(0.5 * nu) - 0.5 * dim * np.log(nu * np.pi)
    return np.asarray(constant - 0.5 * (nu + dim) * np.log1p(square / nu) - law.log_det)


def refine(
    law: Local,
    log_target: Callable[[FloatArray], FloatArray],
    own: Callable[[FloatArray], BoolArray],
    rng: np.random.Generator,
) -> tuple[Local, float, int]:
    """A law nearer to the target around its mode, the log mass there, and the density evaluations it took.

    ``log_target`` takes points (n, dim); ``own`` says which of them belong to this mode rather than another. Where
    weights stay too uneven to tell, as in many dimensions, law and mass are Laplace's.
    """
    first, dim = law, len(law.centre)
    for done in range(1, PASSES + 1):
        z = rng.standard_normal((DRAWS, dim)) * np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, (DRAWS, 1)))
        theta = law.spread_out(z)
        log_q, log_t = log_target(theta), log_student(law, theta)
        log_weight = np.where(np.isfinite(log_q) & own(theta), log_q, -np.inf) - log_t
        if not np.isfinite(log_weight).any():
            return first, first.log_evidence, done * DRAWS
        weight = _normalised(log_weight)
        if done == PASSES:
            break
        if effective(weight) >= PER_DIMENSION * dim:
            centre = weight @ theta
            covariance = (weight[:, None] * (theta - centre)).T @ (theta - centre)
            law = replace(from_covariance(centre, covariance, law.height), flat=law.flat)
        else:
            flattened = _flattened(log_weight)
            factor = np.sqrt(flattened @ np.mean(law.standardise(theta) ** 2, axis=1))
            law = replace(law, scale=law.scale * float(np.clip(factor, 0.5, 2.0)))
    if effective(weight) < FEWEST:
        return first, first.log_evidence, PASSES * DRAWS
    log_mass = float(logsumexp(log_weight) - np.log(DRAWS))
    # Effective draws of a normal proposal, from the same points: sum of weight * q / normal against weight^2.
    seen = weight > 0
    as_normal = np.exp(logsumexp(2.0 * np.log(weight[seen]) + (log_t - log_normal(law, theta))[seen]))
    return replace(law, heavy=bool(as_normal > 1.5 * np.sum(weight**2))), log_mass, PASSES * DRAWS


def effective(weight: FloatArray) -> float:
    """Effective number of draws of weights that add up to one."""
    return 1.0 / float(np.sum(weight**2))


def _normalised(log_weight: FloatArray) -> FloatArray:
    return np.asarray(np.exp(log_weight - logsumexp(log_weight)))


def _flattened(log_weight: FloatArray) -> FloatArray:
    """Weights to the largest power at which ``FEWEST`` draws are effective, halving from one."""
    power = 1.0
    while power > 0.01 and effective(_normalised(power * log_weight)) < FEWEST:
        power *= 0.5
    return _normalised(power * log_weight)
