"""The paper's Cauchy pair: one parameter, two observations that contradict each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import IntArray, Problem
from pathtemp.testing.quadrature import draw_tabulated, edges_around, gauss_legendre, geometric_curve


def cauchy_pair(*, gap: float = 10.0, scale: float = 0.2, base_scale: float = 5.0) -> Problem:
    """``theta ~ cauchy(-gap, scale)`` times ``cauchy(gap, scale)``; the base is ``normal(0, base_scale)``.

    Two modes of one half each; log z(1) = log(scale / (2 pi (gap^2 + scale^2))), -8.052885 with the defaults.
    Label 1 is theta > 0.

    >>> round(cauchy_pair().log_z_end, 6)
    -8.052885
    """

    def log_base(theta: Array) -> Array:
        return jnp.asarray(-0.5 * (theta[0] / base_scale) ** 2 - np.log(base_scale * np.sqrt(2 * np.pi)))

    def log_target(theta: Array) -> Array:
        z = (theta[0] + jnp.array([-gap, gap])) / scale
        return jnp.asarray(-jnp.sum(jnp.log1p(z**2)) - 2 * np.log(np.pi * scale))

    def sample_base(key: Key) -> Array:
        return base_scale * jax.random.normal(key, (1,))

    # The tails of the target fall as theta^-4: beyond 1e5 gaps lies less than 1e-15 of the mass.
    edges = edges_around([-gap, gap], narrowest=0.02 * scale, widest=1e5 * (gap + scale))
    nodes, log_w = gauss_legendre(edges)
    ends = jax.jit(jax.vmap(lambda theta: (log_base(theta), log_target(theta))))
    base_at_nodes, target_at_nodes = (np.asarray(v) for v in ends(nodes[:, None]))
    table = np.sort(np.concatenate([nodes, edges]))
    base_table, target_table = (np.asarray(v) for v in ends(table[:, None]))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return draw_tabulated(rng, table, lambda l: base_table + l * (target_table - base_table), lam)[:, None]

    def labels(draws: FloatArray) -> IntArray:
        return (draws[:, 0] > 0).astype(np.int64)

    return Problem(
        name="cauchy_pair",
        model=Model(log_base, log_target, Layout({"theta": (1,)}), sample_base, name="cauchy_pair"),
        log_z=geometric_curve(base_at_nodes, target_at_nodes, log_w),
        labels=labels,
        shares=np.array([0.5, 0.5]),
        sample_at=sample_at,
        target_mean=np.zeros(1),
        # Partial fractions of the product of the two kernels give E theta^2 = gap^2 + scale^2.
        target_var=np.array([gap**2 + scale**2]),
    )
