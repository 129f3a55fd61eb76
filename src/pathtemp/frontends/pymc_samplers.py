"""JAX samplers of the random variables of PyTensor and PyMC, each with the parameters of that operation.

They stand in for PyTensor's own JAX samplers, which cover fewer distributions and draw categories with other
probabilities than those asked for (PyTensor 2.38 to 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from pathtemp._types import Array, Key

Shape = tuple[int, ...] | None
JaxSampler = Callable[..., Array]


def _broadcast(shape: Shape, *parameters: Array) -> tuple[int, ...]:
    return jnp.broadcast_shapes(*(p.shape for p in parameters)) if shape is None else shape


def _location_scale(standard: Callable[..., Array]) -> JaxSampler:
    def draw(_: Any, key: Key, shape: Shape, loc: Array, scale: Array) -> Array:
        return loc + scale * standard(key, _broadcast(shape, loc, scale), jnp.float64)

    return draw


def _gamma(_: Any, key: Key, shape: Shape, alpha: Array, scale: Array) -> Array:
    return jnp.exp(jax.random.loggamma(key, alpha, _broadcast(shape, alpha, scale), jnp.float64)) * scale


def _beta(_: Any, key: Key, shape: Shape, alpha: Array, beta: Array) -> Array:
    draw = jax.random.beta(key, alpha, beta, _broadcast(shape, alpha, beta), jnp.float64)
    # PyMC moves draws that round to 0 or 1 to the nearest numbers inside.
    return jnp.clip(draw, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))


def _student_t(_: Any, key: Key, shape: Shape, nu: Array, loc: Array, scale: Array) -> Array:
    return loc + scale * jax.random.t(key, nu, _broadcast(shape, nu, loc, scale), jnp.float64)


def _weibull(_: Any, key: Key, shape: Shape, alpha: Array) -> Array:
    return jax.random.exponential(key, _broadcast(shape, alpha), jnp.float64) ** (1 / alpha)


def _triangular(_: Any, key: Key, shape: Shape, left: Array, mode: Array, right: Array) -> Array:
    u = jax.random.uniform(key, _broadcast(shape, left, mode, right), jnp.float64)
    rising = left + jnp.sqrt(u * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1 - u) * (right - left) * (right - mode))
    return jnp.where(u * (right - left) < mode - left, rising, falling)


def _truncated_normal(_: Any, key: Key, shape: Shape, mu: Array, sigma: Array, lower: Array, upper: Array) -> Array:
    low, high = (lower - mu) / sigma, (upper - mu) / sigma
    # The normal cdf keeps its relative precision on the left: an interval on the right is drawn mirrored.
    mirrored = low > 0
    low, high = jnp.where(mirrored, -high, low), jnp.where(mirrored, -low, high)
    u = jax.random.uniform(key, _broadcast(shape, mu, sigma, lower, upper), jnp.float64)
    z = ndtri(ndtr(low) + u * (ndtr(high) - ndtr(low)))
    return mu + sigma * jnp.where(mirrored, -z, z)


def _skew_normal(_: Any, key: Key, shape: Shape, mu: Array, sigma: Array, alpha: Array) -> Array:
    z = jax.random.normal(key, (2, *_broadcast(shape, mu, sigma, alpha)), jnp.float64)
    return mu + sigma * (alpha * jnp.abs(z[0]) + z[1]) / jnp.sqrt(1 + alpha**2)


def _mv_normal(op: Any, key: Key, shape: Shape, mean: Array, cov: Array) -> Array:
    method = getattr(op, "method", "cholesky")
    return jax.random.multivariate_normal(key, mean, cov, shape, jnp.float64, method=method)


def _dirichlet(_: Any, key: Key, shape: Shape, alpha: Array) -> Array:
    return jax.random.dirichlet(key, alpha, alpha.shape[:-1] if shape is None else shape, jnp.float64)


def _categorical(_: Any, key: Key, shape: Shape, p: Array) -> Array:
    return jax.random.categorical(key, jnp.log(p), shape=p.shape[:-1] if shape is None else shape)


SAMPLERS: Mapping[str, JaxSampler] = {
    "NormalRV": _location_scale(jax.random.normal),
    "HalfNormalRV": _location_scale(lambda *a: jnp.abs(jax.random.normal(*a))),
    "CauchyRV": _location_scale(jax.random.cauchy),
    "LaplaceRV": _location_scale(jax.random.laplace),
    "LogisticRV": _location_scale(jax.random.logistic),
    "GumbelRV": _location_scale(jax.random.gumbel),
    "UniformRV": lambda _, key, shape, low, high: (
        low + (high - low) * jax.random.uniform(key, _broadcast(shape, low, high), jnp.float64)
    ),
    "LogNormalRV": lambda *a: jnp.exp(_location_scale(jax.random.normal)(*a)),
    "ExponentialRV": lambda _, key, shape, scale: (
        scale * jax.random.exponential(key, _broadcast(shape, scale), jnp.float64)
    ),
    "GammaRV": _gamma,
    "InvGammaRV": lambda op, key, shape, alpha, scale: 1 / _gamma(op, key, shape, alpha, 1 / scale),
    "ParetoRV": lambda _, key, shape, alpha, scale: (
        scale * jnp.exp(jax.random.exponential(key, _broadcast(shape, alpha, scale), jnp.float64) / alpha)
    ),
    "BetaRV": _beta,
    "BetaClippedRV": _beta,
    "StudentTRV": _student_t,
    "WeibullRV": _weibull,
    "TriangularRV": _triangular,
    "TruncatedNormalRV": _truncated_normal,
    "SkewNormalRV": _skew_normal,
    "MvNormalRV": _mv_normal,
    "DirichletRV": _dirichlet,
    "CategoricalRV": _categorical,
    "BernoulliRV": lambda _, key, shape, p: jax.random.bernoulli(key, p, shape=_broadcast(shape, p)),
}
"""By the name of the operation: ``(operation, key, batch shape or None, *parameters) -> draw``."""
