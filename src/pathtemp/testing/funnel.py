"""Neal's funnel: the scale of nine variables is itself a variable."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import draw_tabulated, gauss_legendre

_SD = 3.0
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


def funnel(xs: int = 9, *, base_scale: float = 3.0) -> Problem:
    """``y ~ normal(0, 3)``, ``x_i ~ normal(0, exp(y / 2))``; the base is ``normal(0, base_scale)``.

    The target is normalised and the marginal of y is ``normal(0, 3)``. Given y the x's are normal at every
    lam, so the curve is an integral over y alone.

    >>> problem = funnel()
    >>> abs(problem.log_z_end) < 1e-10, round(float(problem.log_z(0.5)), 4)
    (True, -1.3993)
    """

    def log_base(v: Array) -> Array:
        return jnp.sum(-0.5 * (v / base_scale) ** 2) - (xs + 1) * (float(np.log(base_scale)) + _HALF_LOG_2PI)

    def log_target(v: Array) -> Array:
        y, x = v[0], v[1:]
        log_y = -0.5 * (y / _SD) ** 2 - float(np.log(_SD)) - _HALF_LOG_2PI
        return log_y - 0.5 * jnp.sum(x**2) * jnp.exp(-y) - xs * (0.5 * y + _HALF_LOG_2PI)

    def sample_base(key: Key) -> Array:
        return base_scale * jax.random.normal(key, (xs + 1,))

    def log_marginal(y: FloatArray, lam: ArrayLike) -> FloatArray:
        """Log density of y at lam, x integrated out, up to z(lam)."""
        l = np.asarray(lam, float)
        ends = [-0.5 * (y / s) ** 2 - np.log(s) - _HALF_LOG_2PI for s in (base_scale, _SD)]
        precision = l * np.exp(-y) + (1.0 - l) / base_scale**2
        one_x = -0.5 * l * y - (1.0 - l) * np.log(base_scale) - 0.5 * np.log(precision)
        return np.asarray((1.0 - l) * ends[0] + l * ends[1] + xs * one_x)

    farthest = 14.0 * max(base_scale, _SD)
    nodes, log_w = gauss_legendre(np.linspace(-farthest, farthest, 169))
    table = np.linspace(-farthest, farthest, 4001)

    def log_z(lam: ArrayLike) -> FloatArray:
        at = np.asarray(lam, float)
        values = [logsumexp(log_marginal(nodes, l) + log_w) for l in at.ravel()]
        return np.asarray(values, float).reshape(at.shape)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        y = draw_tabulated(rng, table, lambda l: log_marginal(table, l), lam)
        precision = lam * np.exp(-y) + (1.0 - lam) / base_scale**2
        x = rng.standard_normal((len(lam), xs)) / np.sqrt(precision)[:, None]
        return np.concatenate([y[:, None], x], axis=1)

    return Problem(
        name="funnel",
        model=Model(log_base, log_target, Layout({"y": (), "x": (xs,)}), sample_base, name="funnel"),
        log_z=log_z,
        sample_at=sample_at,
        target_mean=np.zeros(xs + 1),
        target_var=np.concatenate([[_SD**2], np.full(xs, np.exp(0.5 * _SD**2))]),
    )
