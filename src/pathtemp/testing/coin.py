"""The unidentifiable coin: only the product of two probabilities is seen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma, gammaln

from pathtemp._types import Array, FloatArray, Key
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Interval
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import draw_tabulated


def unidentifiable_coin(n: int = 100, y: int = 50) -> Problem:
    """``y ~ binomial(n, p1 p2)`` with ``p1, p2 ~ uniform(0, 1)``; the flat vector is the logits of both.

    The prior is the base; the posterior is a thin curved ridge. With h = lam y + 1 and t = lam (n - y) + 1,
    log z(lam) = lam log C(n, y) + log B(h, t) + log(digamma(h + t) - digamma(h)), at the end -4.97455 with
    the defaults.

    >>> round(unidentifiable_coin().log_z_end, 5)
    -4.97455
    """
    if not 0 <= y <= n:
        raise InputError(f"unidentifiable_coin: y must be between 0 and n = {n}, and is {y}")
    log_choose = float(gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1))

    def log_base(x: Array) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x))

    def log_target(x: Array) -> Array:
        log_p, log_1m = jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)
        # 1 - p1 p2 = (1 - p1) + p1 (1 - p2), which does not cancel when both are close to 1.
        log_tails = jnp.logaddexp(log_1m[0], log_p[0] + log_1m[1])
        return log_base(x) + log_choose + y * jnp.sum(log_p) + (n - y) * log_tails

    def sample_base(key: Key) -> Array:
        return jax.random.logistic(key, (2,))

    def log_z(lam: ArrayLike) -> FloatArray:
        l = np.asarray(lam, float)
        heads, tails = l * y + 1.0, l * (n - y) + 1.0
        return np.asarray(l * log_choose + betaln(heads, tails) + np.log(digamma(heads + tails) - digamma(heads)))

    # With w = p1 p2 and u = -log w, u has density u exp(-u) under the prior, and log p1 / log w is uniform.
    log_u = np.linspace(-25.0, 8.0, 6001)
    u = np.exp(log_u)
    log_prior, log_tail = 2.0 * log_u - u, np.log(-np.expm1(-u))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        def log_density(l: FloatArray) -> FloatArray:
            return np.asarray(log_prior - l * y * u + l * (n - y) * log_tail)

        drawn = np.exp(draw_tabulated(rng, log_u, log_density, lam))
        share = rng.uniform(size=len(lam))
        minus_log_p = np.stack([drawn * share, drawn * (1.0 - share)], axis=1)
        return np.asarray(-minus_log_p - np.log(-np.expm1(-minus_log_p)))

    return Problem(
        name="unidentifiable_coin",
        model=Model(
            log_base,
            log_target,
            Layout({"p": (2,)}, {"p": Interval()}),
            sample_base,
            name="unidentifiable_coin",
        ),
        log_z=log_z,
        accuracy=1e-9,
        sample_at=sample_at,
    )
