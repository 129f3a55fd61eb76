"""From logit to probit regression with one coefficient, adaptation by adaptation (the paper's software appendix)."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from experiments.panels_1d import panels_of
from pathtemp._types import Array, FloatArray
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing import Problem
from pathtemp.testing.quadrature import draw_tabulated, gauss_legendre, geometric_curve

OBSERVATIONS, COEFFICIENT, PRIOR_SCALE = 30, 2.0, 5.0


@cache
def problem() -> Problem:
    """Outcomes of a logit model, x uniform on (0, 1); both ends are posteriors, so neither is normalised."""
    rng = np.random.default_rng(30)
    x = rng.uniform(size=OBSERVATIONS)
    sign = jnp.asarray(np.where(rng.uniform(size=OBSERVATIONS) < 1.0 / (1.0 + np.exp(-COEFFICIENT * x)), 1.0, -1.0) * x)

    def log_base(beta: Array) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(sign * beta[0])) - 0.5 * (beta[0] / PRIOR_SCALE) ** 2

    def log_target(beta: Array) -> Array:
        return jnp.sum(jax.scipy.stats.norm.logcdf(sign * beta[0])) - 0.5 * (beta[0] / PRIOR_SCALE) ** 2

    nodes, log_w = gauss_legendre(np.linspace(-40.0, 40.0, 321))
    table = np.linspace(-40.0, 40.0, 8001)
    ends = jax.jit(jax.vmap(lambda beta: (log_base(beta), log_target(beta))))
    base_at, target_at = (np.asarray(v) for v in ends(jnp.asarray(nodes[:, None])))
    base_table, target_table = (np.asarray(v) for v in ends(jnp.asarray(table[:, None])))
    curve = geometric_curve(base_at, target_at, log_w)
    start = curve(0.0)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return draw_tabulated(rng, table, lambda l: base_table + l * (target_table - base_table), lam)[:, None]

    return Problem(
        name="logit_probit",
        model=Model(log_base, log_target, Layout({"beta": (1,)}), None, name="logit_probit"),
        log_z=lambda lam: curve(lam) - start,
        sample_at=sample_at,
    )


EXPERIMENT = panels_of("logit to probit, adaptation by adaptation", problem, (1, 2, 4, 6), 8.0)
