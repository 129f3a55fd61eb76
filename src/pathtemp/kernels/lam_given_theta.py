"""The law of a given theta on a geometric path, in closed form: p(a | theta) is exp(lam delta) / c(lam).

With lam and log c linear in a between nodes it is piecewise exponential, with two atoms at lam = 0 and lam = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.io.persistent import storable
from pathtemp.paths.links import BASE_END, TARGET_START, MetricLink, fold, interpolate, unit


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PseudoPrior:
    """log c, piecewise linear in a.

    Parameters
    ----------
    log_c
        Values at the nodes of the link, shape (K + 1,); the first is the limit lam -> 0+, which differs from the
        atom's where the target's support is smaller than the base's.
    at_base
        Value at the atom lam = 0, a scalar.
    """

    log_c: Array
    at_base: Array

    def __call__(self, a: Array) -> Array:
        """Value at ``a``."""
        return jnp.where(fold(a) <= BASE_END, self.at_base, interpolate(self.log_c, unit(a)))


def bins(cells: int) -> FloatArray:
    """Prior mass of the K + 2 bins of folded a: the atom at lam = 0, the K cells, the atom at lam = 1."""
    return np.array([BASE_END, *[(TARGET_START - BASE_END) / cells] * cells, 1.0 - TARGET_START])


def choose(u: Array, probability: Array) -> Array:
    """Index drawn with the given probabilities, from one uniform."""
    cumulative = jnp.cumsum(probability)
    return jnp.minimum(jnp.sum(cumulative < u * cumulative[-1]), len(probability) - 1)


def log_masses(delta: Array, link: MetricLink, prior: PseudoPrior) -> tuple[Array, Array]:
    """Unnormalised log mass of each bin given theta, shape (K + 2,), and the rise of the exponent over each cell."""
    exponent = link.nodes * delta - prior.log_c
    rise = exponent[1:] - exponent[:-1]
    size = jnp.maximum(jnp.abs(rise), 1e-9)
    cells = jnp.maximum(exponent[1:], exponent[:-1]) + jnp.log(-jnp.expm1(-size) / size)
    inner = jnp.concatenate([-prior.at_base[None], cells, exponent[-1:]])
    return inner + jnp.log(bins(link.cells)), rise


def draw(u: Array, delta: Array, link: MetricLink, prior: PseudoPrior) -> tuple[Array, Array]:
    """One exact draw of a given theta from three uniforms ``u`` (3,), and the probability of each bin (K + 2,)."""
    log_mass, rise = log_masses(delta, link, prior)
    probability = jax.nn.softmax(log_mass)
    index = choose(u[0], probability)
    cell = jnp.clip(index - 1, 0, link.cells - 1)
    size = jnp.maximum(jnp.abs(rise[cell]), 1e-9)
    inside = -jnp.log1p(u[1] * jnp.expm1(-size)) / size
    inside = jnp.where(rise[cell] > 0, 1.0 - inside, inside)
    r = BASE_END + (TARGET_START - BASE_END) * (cell + inside) / link.cells
    # The open interval keeps a rounding of a cell's draw from landing in an atom.
    r = jnp.clip(r, jnp.nextafter(BASE_END, 1.0), jnp.nextafter(TARGET_START, 0.0))
    at_target = 1.0 - u[1] * (1.0 - TARGET_START)
    r = jnp.where(index == 0, u[1] * BASE_END, jnp.where(index == link.cells + 1, at_target, r))
    return jnp.where(u[2] < 0.5, r, 2.0 - r), probability
