"""Targets with one mode that no normal resembles: ridges, bananas, shells and skewed laws."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import edges_around, gauss_legendre

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_SIDE = 5.0


def rosenbrock(pairs: int = 1) -> Problem:
    """exp(-(1 - x)^2 - 100 (y - x^2)^2) for each pair (x, y), over a uniform base on the square from -5 to 5.

    The vector holds logits of the position in the square, all x before all y.

    >>> round(rosenbrock().log_z_end, 4)
    -5.8041
    """
    x, log_w = gauss_legendre(np.linspace(-_SIDE, _SIDE, 201))
    sd = np.sqrt(0.005)
    inside = norm.cdf((_SIDE - x**2) / sd) - norm.cdf((-_SIDE - x**2) / sd)
    with np.errstate(divide="ignore"):
        inner = np.log(inside) + 0.5 * np.log(np.pi / 100.0)
    one = float(logsumexp(-((1.0 - x) ** 2) + inner + log_w) - 2.0 * np.log(2.0 * _SIDE))

    def log_likelihood(u: Array) -> Array:
        x, y = jnp.split(2.0 * _SIDE * jax.nn.sigmoid(u) - _SIDE, 2)
        return -jnp.sum((1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2)

    return Problem("rosenbrock", _over_logits(log_likelihood, 2 * pairs, "rosenbrock"), end=pairs * one)


def ridge(trials: int = 100_000, successes: int = 30_000) -> Problem:
    """Uniform p and q on (0, 1), and ``successes`` of ``trials`` with probability p q: they lie along a hyperbola.

    The vector holds the logits of p and q. The product t has density -log t.

    >>> round(ridge().log_z_end, 4)
    -11.3273
    """
    rate = successes / trials
    width = np.sqrt(rate * (1.0 - rate) / trials)
    t, log_w = gauss_legendre(np.linspace(max(rate - 40 * width, 1e-12), min(rate + 40 * width, 1 - 1e-12), 401))
    log_choose = float(gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1))
    log_binomial = successes * np.log(t) + (trials - successes) * np.log1p(-t) + log_choose
    end = float(logsumexp(log_binomial + np.log(-np.log(t)) + log_w))

    def log_likelihood(u: Array) -> Array:
        log_t = jnp.sum(jax.nn.log_sigmoid(u))
        return successes * log_t + (trials - successes) * jnp.log1p(-jnp.exp(log_t)) + log_choose

    return Problem("ridge", _over_logits(log_likelihood, 2, "ridge"), end=end)


def twisted_normal(dim: int = 8, *, sd: float = 10.0, bend: float = 0.1, base_scale: float = 20.0) -> Problem:
    """x_1 ~ normal(0, sd), x_2 ~ normal(-bend (x_1^2 - sd^2), 1), the others standard normal; normalised.

    >>> twisted_normal().log_z_end
    0.0
    """

    def log_target(x: Array) -> Array:
        straight = x.at[0].divide(sd).at[1].add(bend * (x[0] ** 2 - sd**2))
        return -0.5 * jnp.sum(straight**2) - dim * _HALF_LOG_2PI - float(np.log(sd))

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        x = rng.normal(size=(n, dim))
        x[:, 0] *= sd
        x[:, 1] -= bend * (x[:, 0] ** 2 - sd**2)
        return x

    model = _over_normal(log_target, dim, base_scale, "twisted_normal")
    return Problem("twisted_normal", model, end=0.0, target_sampler=draw)


def shell(dim: int = 5, *, radius: float = 3.0, width: float = 0.1, base_scale: float = 3.0) -> Problem:
    """exp(-(|x| - radius)^2 / (2 width^2)) times the base, ``normal(0, base_scale)``.

    >>> round(shell(2).log_z_end, 4), round(shell(10).log_z_end, 4)
    (-2.9834, -8.9032)
    """
    r, log_w = gauss_legendre(edges_around(radius, narrowest=0.05 * width, widest=0.999 * radius, ratio=1.1))
    log_area = np.log(2.0) + 0.5 * dim * np.log(np.pi) - float(gammaln(0.5 * dim))
    log_base = -0.5 * (r / base_scale) ** 2 - dim * (np.log(base_scale) + _HALF_LOG_2PI)
    end = float(logsumexp(log_area + (dim - 1) * np.log(r) + log_base - 0.5 * ((r - radius) / width) ** 2 + log_w))

    def log_likelihood(x: Array) -> Array:
        # The gradient of the norm is not defined at the origin.
        return -0.5 * ((jnp.sqrt(jnp.sum(x**2) + 1e-300) - radius) / width) ** 2

    base = _over_normal(log_likelihood, dim, base_scale, "shell")
    model = Model(base.log_base, lambda x: base.log_base(x) + log_likelihood(x), base.layout, base.sample_base)
    return Problem("shell", model, end=end)


def sinh_arcsinh(dim: int = 20, *, skew: float = 1.0, tail: float = 0.8, base_scale: float = 5.0) -> Problem:
    """Independent coordinates sinh((arcsinh(z) + skew) / tail), z standard normal: skewed, heavy on one side.

    >>> sinh_arcsinh().log_z_end
    0.0
    """

    def log_target(x: Array) -> Array:
        inner = tail * jnp.arcsinh(x) - skew
        log_slope = jnp.log(tail) + jnp.log(jnp.cosh(inner)) - 0.5 * jnp.log1p(x**2)
        return jnp.sum(-0.5 * jnp.sinh(inner) ** 2 + log_slope) - dim * _HALF_LOG_2PI

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(np.sinh((np.arcsinh(rng.normal(size=(n, dim))) + skew) / tail))

    model = _over_normal(log_target, dim, base_scale, "sinh_arcsinh")
    return Problem("sinh_arcsinh", model, end=0.0, target_sampler=draw)


def _over_normal(log_target: Callable[[Array], Array], dim: int, scale: float, name: str) -> Model:
    """A model whose base is ``normal(0, scale)``."""

    def log_base(x: Array) -> Array:
        return -0.5 * jnp.sum((x / scale) ** 2) - dim * (float(np.log(scale)) + _HALF_LOG_2PI)

    def sample_base(key: Key) -> Array:
        return scale * jax.random.normal(key, (dim,))

    return Model(log_base, log_target, Layout({"x": (dim,)}), sample_base, name=name)


def _over_logits(log_likelihood: Callable[[Array], Array], dim: int, name: str) -> Model:
    """A model whose base is uniform on the unit cube, written in logits; the target is base times likelihood."""

    def log_base(u: Array) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u))

    def sample_base(key: Key) -> Array:
        return jax.random.logistic(key, (dim,))

    layout = Layout({"logit": (dim,)})
    return Model(log_base, lambda u: log_base(u) + log_likelihood(u), layout, sample_base, name=name)
