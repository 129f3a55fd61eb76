"""Evaluations that gave no density, by kind, summed on the device as they are met."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.paths.geometric import HUGE


class Rejected(NamedTuple):
    """Points at which a log density was no number: each counts as zero density in the moves.

    Parameters
    ----------
    zero, nan, infinite
        Number of points with -inf, NaN and +inf.
    lam
        Lowest and highest lam at which NaN was met, shape (2,); inf and -inf where it was not.
    point
        A theta (dim,) with +inf, any where there is none.
    """

    zero: Array
    nan: Array
    infinite: Array
    lam: Array
    point: Array


def rejected_at(values: Array, theta: Array, lam: Array) -> Rejected:
    """Of the log densities ``values`` (n, 2) of points ``theta`` (n, dim), met at ``lam`` (n,)."""
    nan, infinite = jnp.isnan(values).any(axis=1), (values > HUGE).any(axis=1)
    zero = (values == -jnp.inf).any(axis=1) & ~nan & ~infinite
    ends = jnp.stack([jnp.min(jnp.where(nan, lam, jnp.inf)), jnp.max(jnp.where(nan, lam, -jnp.inf))])
    return Rejected(jnp.sum(zero), jnp.sum(nan), jnp.sum(infinite), ends, theta[jnp.argmax(infinite)])


def none_rejected(dim: int) -> Rejected:
    """Of no evaluation at all."""
    none = jnp.zeros((), int)
    return Rejected(none, none, none, jnp.array([jnp.inf, -jnp.inf]), jnp.zeros(dim))


def together(parts: Rejected) -> Rejected:
    """Of many parts, stacked along the first axis, one."""
    return Rejected(
        jnp.sum(parts.zero, axis=0),
        jnp.sum(parts.nan, axis=0),
        jnp.sum(parts.infinite, axis=0),
        jnp.stack([jnp.min(parts.lam[:, 0]), jnp.max(parts.lam[:, 1])]),
        parts.point[jnp.argmax(parts.infinite > 0)],
    )
