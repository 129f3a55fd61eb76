"""Models whose evidence has a closed form, in both languages: data and exact log marginal likelihoods."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

HEADS, FLIPS = 7, 20
COUNTS = np.array([2, 4, 3, 7, 1])
SAMPLE = np.array([0.8, -0.3, 1.9, 1.1])
X = np.random.default_rng(1).normal(size=(15, 3))
Y = X @ np.array([1.0, -1.0, 0.5]) + 0.5 * np.random.default_rng(2).normal(size=15)


def beta_binomial() -> float:
    """p ~ Beta(2, 3), heads ~ Binomial(flips, p)."""
    binomial = gammaln(FLIPS + 1) - gammaln(HEADS + 1) - gammaln(FLIPS - HEADS + 1)
    return float(binomial + betaln(2 + HEADS, 3 + FLIPS - HEADS) - betaln(2, 3))


def normal_mean() -> float:
    """mu ~ N(0, 2), y ~ N(mu, 1)."""
    n = len(SAMPLE)
    return float(stats.multivariate_normal(np.zeros(n), np.eye(n) + 4.0).logpdf(SAMPLE))


def poisson_gamma() -> float:
    """rate ~ Gamma(3, 1), counts ~ Poisson(rate)."""
    total, n = COUNTS.sum(), len(COUNTS)
    return float(gammaln(3 + total) - gammaln(3) - (3 + total) * np.log1p(n) - gammaln(COUNTS + 1).sum())


def conjugate_regression() -> float:
    """s2 ~ InverseGamma(3, 2), beta ~ N(0, s2 I), y ~ N(X beta, s2)."""
    shape = np.eye(len(Y)) + X @ X.T
    return float(stats.multivariate_t(np.zeros(len(Y)), 2.0 / 3.0 * shape, df=6).logpdf(Y))


EXACT = {f.__name__: f() for f in (beta_binomial, normal_mean, poisson_gamma, conjugate_regression)}
