"""The paper's conjugate model: a binomial likelihood raised to the power lam over a beta prior."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma, gammaln, polygamma

from pathtemp._types import Array, FloatArray, Key
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Interval
from pathtemp.testing.problem import Problem

CASES = {"easy": (2.0, 1.0, 60.0, 80.0), "hard": (9.0, 0.75, 115.0, 550.0)}
"""Prior alpha and beta, successes y, trials n of the paper's two cases."""


def beta_binomial(case: Literal["easy", "hard"] = "hard") -> Problem:
    """``y ~ binomial(n, p)``, ``p ~ beta(alpha, beta)``; the prior is the base, the flat vector is logit p.

    alpha, beta, y, n are 2, 1, 60, 80 (easy: log z(1) = -3.997147) or 9, .75, 115, 550 (hard: -17.10858).

    >>> round(beta_binomial("hard").log_z_end, 5)
    -17.10858
    """
    if case not in CASES:
        raise InputError(f"beta_binomial: case must be one of {sorted(CASES)}, and is {case!r}")
    alpha, beta, y, n = CASES[case]
    log_choose = float(gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1))
    log_beta = float(betaln(alpha, beta))

    def log_base(x: Array) -> Array:
        return alpha * jax.nn.log_sigmoid(x[0]) + beta * jax.nn.log_sigmoid(-x[0]) - log_beta

    def log_target(x: Array) -> Array:
        return log_base(x) + log_choose + y * jax.nn.log_sigmoid(x[0]) + (n - y) * jax.nn.log_sigmoid(-x[0])

    def sample_base(key: Key) -> Array:
        first, second = jax.random.split(key)
        return jax.random.loggamma(first, alpha, (1,)) - jax.random.loggamma(second, beta, (1,))

    def log_z(lam: ArrayLike) -> FloatArray:
        l = np.asarray(lam, float)
        return np.asarray(l * log_choose + betaln(alpha + l * y, beta + l * (n - y)) - log_beta)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return (log_gamma_draws(rng, alpha + lam * y) - log_gamma_draws(rng, beta + lam * (n - y)))[:, None]

    a1, b1 = alpha + y, beta + n - y
    return Problem(
        name=f"beta_binomial_{case}",
        model=Model(
            log_base,
            log_target,
            Layout({"p": ()}, {"p": Interval()}),
            sample_base,
            name=f"beta_binomial_{case}",
        ),
        log_z=log_z,
        accuracy=1e-9,
        sample_at=sample_at,
        target_mean=np.array([digamma(a1) - digamma(b1)]),
        target_var=np.array([polygamma(1, a1) + polygamma(1, b1)]),
    )


def log_gamma_draws(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Logs of gamma(shape, 1) draws that do not underflow for small shapes: Gamma(a) = Gamma(a + 1) U^(1/a).

    >>> bool(np.all(np.isfinite(log_gamma_draws(np.random.default_rng(0), np.full(100, 1e-4)))))
    True
    """
    return np.log(rng.gamma(shape + 1.0)) - rng.exponential(size=shape.shape) / shape
