"""Paths whose draws and normalising constants are exact, for the tests of the estimators."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.special import betaln, gammaln

from pathtemp._types import FloatArray
from pathtemp.paths.links import CubicLink

PRECISIONS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
OSCILLATOR_LOG_Z = -0.5 * np.log(PRECISIONS)


def scale_path(rng: np.random.Generator, lam: FloatArray, *, dim: int = 2) -> FloatArray:
    """Exact draws of delta given lam on the path from N(0, I) to precision 10."""
    return -4.5 * rng.chisquare(dim, size=lam.shape) / (1.0 + 9.0 * lam)


def scale_log_z(lam: FloatArray, *, dim: int = 2) -> FloatArray:
    return -0.5 * dim * np.log1p(9.0 * lam)


def hard_beta_binomial(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
    """Exact draws of the log likelihood given lam: Beta(9, .75) prior, 115 of 550."""
    theta = np.clip(rng.beta(9.0 + 115.0 * lam, 0.75 + 435.0 * lam), 1e-300, 1.0 - 1e-16)
    log_choose = gammaln(551.0) - gammaln(116.0) - gammaln(436.0)
    return log_choose + 115.0 * np.log(theta) + 435.0 * np.log1p(-theta)


def hard_beta_binomial_log_z(lam: FloatArray) -> FloatArray:
    log_choose = gammaln(551.0) - gammaln(116.0) - gammaln(436.0)
    return lam * log_choose + betaln(9.0 + 115.0 * lam, 0.75 + 435.0 * lam) - betaln(9.0, 0.75)


def oscillators(rng: np.random.Generator, counts: list[int]) -> FloatArray:
    """log_q of exact draws of the harmonic oscillators, those of the first state first, shape (n, 5)."""
    x = np.concatenate([rng.normal(size=n) / np.sqrt(k) for n, k in zip(counts, PRECISIONS, strict=True)])
    return -0.5 * x[:, None] ** 2 * PRECISIONS


def link(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """lam and f'(a) of the paper's link."""
    cubic = CubicLink()
    return np.asarray(cubic(jnp.asarray(a))), np.asarray(cubic.derivative(jnp.asarray(a)))
