"""Local laws made better by importance sampling: their spread, their tails and their mass, without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

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

CORE_STEPS = 20
"""Steps towards the scale of a heavy-tailed law."""


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
    first, dim, best = law, len(law.centre), None
    for done in range(1, PASSES + 1):
        z = rng.standard_normal((DRAWS, dim)) * np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, (DRAWS, 1)))
        theta = law.spread_out(z)
        log_q, log_t = log_target(theta), log_student(law, theta)
        log_weight = np.where(np.isfinite(log_q) & own(theta), log_q, -np.inf) - log_t
        if not np.isfinite(log_weight).any():
            break
        tried = _Tried(law, theta, log_weight, log_t)
        # The last draws are those of the best law anew: a mass that was chosen for its weights would be biased.
        if done == PASSES or best is None or tried.effective > best.effective:
            best = tried
        law = best.law if done == PASSES - 1 else best.learned if best.law is law else best.scaled
    if best is None or best.effective < FEWEST:
        return first, first.log_evidence, done * DRAWS
    return best.settled, best.log_mass, done * DRAWS


@dataclass(frozen=True)
class _Tried:
    """Draws ``theta`` (n, dim) of a law as Student-t, with their log weights and log densities (n,)."""

    law: Local
    theta: FloatArray
    log_weight: FloatArray
    log_t: FloatArray

    @cached_property
    def weight(self) -> FloatArray:
        return _normalised(self.log_weight)

    @cached_property
    def effective(self) -> float:
        return effective(self.weight)

    @property
    def log_mass(self) -> float:
        return float(logsumexp(self.log_weight) - np.log(len(self.log_weight)))

    @property
    def learned(self) -> Local:
        """The law with the covariance of the draws where they are enough for one; else with their scale."""
        if self.effective < PER_DIMENSION * len(self.law.centre):
            return self.scaled
        centre = self.weight @ self.theta
        covariance = (self.weight[:, None] * (self.theta - centre)).T @ (self.theta - centre)
        return replace(from_covariance(centre, covariance, self.law.height), flat=self.law.flat)

    @property
    def scaled(self) -> Local:
        """The law with the scale of the draws alone: tails as heavy as its own spoil a covariance."""
        factor = np.sqrt(_flattened(self.log_weight) @ np.mean(self.law.standardise(self.theta) ** 2, axis=1))
        return replace(self.law, scale=self.law.scale * float(np.clip(factor, 0.5, 2.0)))

    @property
    def settled(self) -> Local:
        """The law, normal or heavy-tailed, whichever has more effective draws; a heavy one has the scale of its core.

        Effective draws of a normal proposal, from the same points: sum of weight * q / normal against weight^2.
        """
        seen = self.weight > 0
        log_ratio = (self.log_t - log_normal(self.law, self.theta))[seen]
        as_normal = logsumexp(2.0 * np.log(self.weight[seen]) + log_ratio)
        if not as_normal > np.log(1.5 * np.sum(self.weight**2)):
            return replace(self.law, heavy=False)
        dim, square = len(self.law.centre), np.sum(self.law.standardise(self.theta) ** 2, axis=1)
        # The likeliest scale of a Student-t law, by its fixed point.
        factor = 1.0
        for _ in range(CORE_STEPS):
            pull = (HEAVY_DF + dim) / (HEAVY_DF + square / factor)
            factor = float(self.weight @ (pull * square)) / dim
        return replace(self.law, scale=self.law.scale * float(np.sqrt(factor)), heavy=True)


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
