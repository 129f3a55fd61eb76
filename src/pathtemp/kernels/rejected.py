"""Evaluations that gave no density, by kind.

The kinds are packed into one number, which adds up: a handful of sums and comparisons is all that a compiled program
has to hold for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, IntArray
from pathtemp.paths.geometric import HUGE

FIELD = 2**15
"""Number of evaluations that a code has room for."""

ZERO, NAN, GRADIENT, INFINITE = (FIELD**power for power in range(4))
"""Codes of one point each."""


class Rejected(NamedTuple):
    """Points at which a log density was no number: each counts as zero density in the moves.

    Parameters
    ----------
    code
        Number of points with -inf, plus ``NAN`` times those with NaN, plus ``GRADIENT`` times the trajectories on which
        a gradient was no number, plus ``INFINITE`` times the points with +inf.
    point
        A point with the largest code; any where there is none.
    """

    code: Array
    point: Array


class Kinds(NamedTuple):
    """Numbers of points of each kind."""

    zero: IntArray
    nan: IntArray
    gradient: IntArray
    infinite: IntArray


def code_of(values: Array) -> Array:
    """The codes of log densities (..., k) of one point each: k = 2 for base and target, 1 for one density.

    >>> values = jnp.array([[0.0, 1.0], [0.0, -jnp.inf], [jnp.nan, -jnp.inf], [0.0, 1e31]])
    >>> kinds(code_of(values)).nan.tolist(), kinds(code_of(values)).infinite.tolist()
    ([0, 0, 1, 0], [0, 0, 0, 1])
    """
    infinite, nan, zero = (jnp.any(x, axis=-1) for x in (values > HUGE, jnp.isnan(values), values == -jnp.inf))
    return jnp.where(infinite, INFINITE, jnp.where(nan, NAN, jnp.where(zero, ZERO, 0)))


def rejected_end(values: Array, theta: Array, no_gradient: Array) -> Rejected:
    """Of the end theta (dim,) of a trajectory, with log densities (k,).

    A NaN gradient makes theta NaN. The point is then ``no_gradient`` (dim,), where that gradient was.

    >>> met = rejected_end(jnp.array([jnp.nan]), jnp.array([0.0, jnp.nan]), jnp.array([0.0, 2.0]))
    >>> int(met.code) == GRADIENT, met.point.tolist()
    (True, [0.0, 2.0])
    """
    code = jnp.where(jnp.isnan(jnp.sum(theta)), GRADIENT, code_of(values))
    return Rejected(code, jnp.where(code == GRADIENT, no_gradient, theta))


def rejected_at(values: Array, points: Array) -> Rejected:
    """Of the log densities (n, k) of points (n, dim)."""
    return summed(Rejected(code_of(values), points))


def summed(rejected: Rejected) -> Rejected:
    """Codes (n,) and points (n, dim) as one."""
    return Rejected(jnp.sum(rejected.code), point_of(rejected))


def worse(one: Rejected, other: Rejected) -> Rejected:
    """The two together, each with one code."""
    return Rejected(one.code + other.code, jnp.where(other.code > one.code, other.point, one.point))


def point_of(rejected: Rejected) -> Array:
    """The worst point of codes (n,) and points (n, dim)."""
    return rejected.point[jnp.argmax(rejected.code)]


def kinds(code: Any) -> Kinds:
    """Numbers of points of each kind, on the host."""
    whole = np.asarray(code, np.int64)
    return Kinds(whole % NAN, whole // NAN % FIELD, whole // GRADIENT % FIELD, whole // INFINITE)
