"""Problems and fits that several tests share: one model object each, since compiled programs are kept by it."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import pathtemp as pt
from pathtemp.model import Model
from pathtemp.model import model as join
from pathtemp.testing import Problem, cauchy_pair, mixture_1d, uniform_supports

BUDGET = 40_000


@cache
def problem(name: str) -> Problem:
    return {"cauchy_pair": cauchy_pair, "mixture_1d": mixture_1d, "uniform_supports": uniform_supports}[name]()


@cache
def fit(name: str, seed: int) -> pt.Fit:
    return pt.temper(problem(name).model, seed=seed, budget=BUDGET, progress=False)


DATA = np.array([1.2, 2.9, 2.2])


@cache
def named_model() -> tuple[Model, float]:
    """A dict of distributions with data on mu alone, and its exact log marginal likelihood.

    mu ~ normal(0, 5), y ~ normal(mu, 1); tau and b keep their priors.
    """

    base = {"mu": dist.Normal(0.0, 5.0), "tau": dist.HalfNormal(2.0), "b": pt.normal(1.0, 0.5, shape=(2,))}

    def target(v: dict[str, jax.Array]) -> jax.Array:
        prior = sum(jnp.sum(base[name].log_prob(v[name])) for name in base)
        return prior + jnp.sum(dist.Normal(v["mu"], 1.0).log_prob(DATA))

    covariance = np.eye(3) + 25.0 * np.ones((3, 3))
    log_z = -0.5 * (DATA @ np.linalg.solve(covariance, DATA) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    return join(target, base, name="named"), float(log_z)


@cache
def unsampled_model(modes: int) -> tuple[Model, float]:
    """A base known only as a density, exp(-|x - 1|^2 / 32) unnormalised; one normal, or two of unequal height.

    Returns it with log z(1) - log z(0).
    """
    base = pt.function_base(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2) / 16.0, dim=2)
    centres, scales, weights = (
        (np.array([[3.0, -2.0]]), np.array([0.5]), np.array([2.0]))
        if modes == 1
        else (np.array([[-4.0, -3.0], [5.0, 3.0]]), np.array([0.7, 1.0]), np.array([0.5, 1.5]))
    )

    def target(x: jax.Array) -> jax.Array:
        square = jnp.sum((x - centres) ** 2, axis=1) / scales**2
        return jax.nn.logsumexp(jnp.log(weights) - jnp.log(2 * jnp.pi * scales**2) - 0.5 * square)

    return join(target, base, name=f"unsampled {modes}"), float(np.log(weights.sum()) - np.log(2 * np.pi * 16.0))
