"""A spike inside a wider mode: whether the mass at the top of a mode is among its draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.modes.local import HEAVY_DF, Local, from_covariance
from pathtemp.modes.refine import FEWEST, log_student

DRAWS = 2048
"""Points drawn for the mass around a law."""

EXCESS_DENSITIES = 2 * DRAWS
"""Density evaluations of :func:`log_excess`, at most."""

WIDER = 4.0
"""Mean square of standardised draws, a dimension, from which they are spread wider than the law."""

LEFT_OUT = 0.01
"""Share of those points, the ones of largest weight, that are left out around draws: a few may lie in a spike."""

FEWEST_DRAWS = 32
"""Draws of a mode from which their spread is looked at."""


def is_wider(law: Local, theta: FloatArray) -> bool:
    """Whether draws (n, dim) of a mode are spread much wider than the law at its top: more than twice, by their median.

    >>> law = from_covariance(np.zeros(3), np.eye(3), 0.0)
    >>> z = np.random.default_rng(0).normal(size=(500, 3))
    >>> is_wider(law, z), is_wider(law, 5.0 * z)
    (False, True)
    """
    if len(theta) < FEWEST_DRAWS:
        return False
    return bool(np.median(np.mean(law.standardise(theta) ** 2, axis=1)) > WIDER)


def log_mass_around(
    law: Local, log_target: Callable[[FloatArray], FloatArray], rng: np.random.Generator, *, left_out: float = 0.0
) -> float:
    """Log mass of the target where the law is, by importance sampling; NaN where too few draws are effective.

    ``left_out`` is the share of the draws, those of largest weight, that do not count.
    """
    dim = len(law.centre)
    z = rng.standard_normal((DRAWS, dim)) * np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, (DRAWS, 1)))
    theta = law.spread_out(z)
    log_weight = log_target(theta) - log_student(law, theta)
    log_weight = np.sort(np.where(np.isfinite(log_weight), log_weight, -np.inf))[: DRAWS - int(left_out * DRAWS)]
    if not np.isfinite(log_weight).any():
        return float("nan")
    effective = np.exp(2.0 * logsumexp(log_weight) - logsumexp(2.0 * log_weight))
    return float(logsumexp(log_weight) - np.log(DRAWS)) if effective >= FEWEST else float("nan")


def log_excess(
    law: Local, theta: FloatArray, log_target: Callable[[FloatArray], FloatArray], rng: np.random.Generator
) -> float:
    """Log of the mass at the top of a mode relative to the mass around its draws (n, dim); -inf where it is not known.

    Draws as narrow as the law at the top are those of the top.
    """
    if not is_wider(law, theta):
        return -np.inf
    around = from_covariance(theta.mean(axis=0), np.cov(theta.T).reshape(len(law.centre), -1), law.height)
    ratio = log_mass_around(law, log_target, rng) - log_mass_around(around, log_target, rng, left_out=LEFT_OUT)
    return float(ratio) if np.isfinite(ratio) else -np.inf
