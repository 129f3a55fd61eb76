"""A law that bends: a triangular map from independent standard normals to theta, with an exact density.

Coordinates y are those of theta in an orthogonal frame, in an order in which each depends on those before it:
y_j = m_j(y) + s_j(y) * (location_j + size_j * sinh((arcsinh(e_j) + skew_j) / tail_j)), with e standard normal. The mean
m_j is linear with a curve in two coordinates at most, log s_j a curve in one, and curves are cubic splines. The last
part is the sinh-arcsinh law (Jones and Pewsey 2009), for skewed coordinates and for tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.io.persistent import storable

SPLINES = 12
"""B-splines of a curve."""

PARENTS = 2
"""Coordinates in which a mean may bend."""

MOST_LOG_SIZE = 6.0
"""Bound on a curve of log scales."""

FAR_OUT = 30.0
"""Bound on arcsinh of a latent coordinate: its density is nothing long before, and must stay a number."""


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BentLaw:
    """The law; arrays of NumPy or of JAX.

    Parameters
    ----------
    centre, frame, scale
        y = (theta - centre) frame / scale, with frame (dim, dim) orthogonal.
    linear
        Strictly lower triangular, (dim, dim).
    parent, curve
        Coordinates in which each mean bends, (dim, PARENTS), and coefficients of its curves, (dim, PARENTS, SPLINES).
    spread_parent, spread
        The coordinate on which each log scale depends, (dim,), and the coefficients, (dim, SPLINES).
    low, high
        Range of each y over which curves are curves, (dim,).
    location, size, skew, tail
        Of the sinh-arcsinh laws, (dim,).
    """

    centre: Any
    frame: Any
    scale: Any
    linear: Any
    parent: Any
    curve: Any
    spread_parent: Any
    spread: Any
    low: Any
    high: Any
    location: Any
    size: Any
    skew: Any
    tail: Any


def splines(x: Any, low: Any, high: Any, *, onwards: bool, xp: Any = np) -> Any:
    """The cubic B-splines at x (...), shape (..., SPLINES); beyond the range they go ``onwards`` as parabolas or level.

    >>> float(splines(np.array(0.3), 0.0, 1.0, onwards=True).sum().round(12))
    1.0
    """
    width = (high - low) / (SPLINES - 3)
    inside = xp.clip(x, low, high)
    t = ((inside - low) / width)[..., None] - (xp.arange(SPLINES) - 1.0)
    size = xp.abs(t)
    near, far = 2.0 / 3.0 - size**2 + 0.5 * size**3, xp.maximum(2.0 - size, 0.0) ** 3 / 6.0
    values = xp.where(size < 1.0, near, far)
    if not onwards:
        return values
    slopes = xp.where(size < 1.0, -2.0 * size + 1.5 * size**2, -0.5 * xp.maximum(2.0 - size, 0.0) ** 2) * xp.sign(t)
    bends = xp.where(size < 1.0, 3.0 * size - 2.0, xp.maximum(2.0 - size, 0.0))
    beyond = ((x - inside) / width)[..., None]
    return values + slopes * beyond + 0.5 * bends * beyond**2


def bend(law: BentLaw, j: Any, y: Any, xp: Any = np) -> tuple[Any, Any]:
    """Mean and log scale of coordinate j given the others, at y (..., dim)."""
    parent, own = law.parent[j], law.spread_parent[j]
    curves = splines(y[..., parent], law.low[parent], law.high[parent], onwards=True, xp=xp) * law.curve[j]
    log_size = xp.sum(splines(y[..., own], law.low[own], law.high[own], onwards=False, xp=xp) * law.spread[j], -1)
    return y @ law.linear[j] + xp.sum(curves, (-2, -1)), xp.clip(log_size, -MOST_LOG_SIZE, MOST_LOG_SIZE)


def straightened(v: Any, skew: Any, tail: Any, xp: Any = np) -> tuple[Any, Any]:
    """The standard normal e of a sinh-arcsinh coordinate v, and log de/dv."""
    inner = xp.clip(tail * xp.arcsinh(v) - skew, -FAR_OUT, FAR_OUT)
    log_cosh = xp.logaddexp(inner, -inner) - float(np.log(2.0))
    return xp.sinh(inner), xp.log(tail) + log_cosh - 0.5 * xp.log1p(v**2)


def skewed(e: Any, skew: Any, tail: Any, xp: Any = np) -> Any:
    """The sinh-arcsinh coordinate of a standard normal e."""
    return xp.sinh((xp.arcsinh(e) + skew) / tail)


def latent(law: BentLaw, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The e (n, dim) of points theta (n, dim), and log |de/dtheta| (n,)."""
    y = (theta - law.centre) @ law.frame / law.scale
    e, log_det = np.empty_like(y), np.full(len(y), -np.sum(np.log(law.scale * law.size)))
    for j in range(y.shape[1]):
        mean, log_size = bend(law, j, y)
        v = ((y[:, j] - mean) * np.exp(-log_size) - law.location[j]) / law.size[j]
        e[:, j], log_slope = straightened(v, law.skew[j], law.tail[j])
        log_det += log_slope - log_size
    return e, log_det


def placed(law: BentLaw, e: FloatArray) -> FloatArray:
    """The theta (n, dim) of latent points e (n, dim)."""
    y = np.zeros_like(e)
    for j in range(y.shape[1]):
        mean, log_size = bend(law, j, y)
        v = skewed(e[:, j], law.skew[j], law.tail[j])
        y[:, j] = mean + np.exp(log_size) * (law.location[j] + law.size[j] * v)
    return np.asarray(law.centre + (y * law.scale) @ law.frame.T)


def latent_of_one(law: BentLaw, theta: Array) -> tuple[Array, Array]:
    """The same as :func:`latent` for one point (dim,), for JAX."""
    y = (theta - law.centre) @ law.frame / law.scale

    def row(j: Array) -> tuple[Array, Array]:
        mean, log_size = bend(law, j, y, jnp)
        v = ((y[j] - mean) * jnp.exp(-log_size) - law.location[j]) / law.size[j]
        e, log_slope = straightened(v, law.skew[j], law.tail[j], jnp)
        return e, log_slope - log_size

    e, log_slopes = jax.vmap(row)(jnp.arange(len(law.scale)))
    return e, jnp.sum(log_slopes) - jnp.sum(jnp.log(law.scale * law.size))


def place_one(law: BentLaw, e: Array) -> Array:
    """The same as :func:`placed` for one latent point (dim,), for JAX."""

    def row(j: int, y: Array) -> Array:
        mean, log_size = bend(law, j, y, jnp)
        v = skewed(e[j], law.skew[j], law.tail[j], jnp)
        return y.at[j].set(mean + jnp.exp(log_size) * (law.location[j] + law.size[j] * v))

    y = jax.lax.fori_loop(0, len(law.scale), row, jnp.zeros_like(e))
    return law.centre + law.frame @ (y * law.scale)
