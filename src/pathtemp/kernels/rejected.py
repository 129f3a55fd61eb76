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

FIELD = 2**20
"""Number of evaluations that a code has room for."""


class Rejected(NamedTuple):
    """Points at which a log density was no number: each counts as zero density in the moves.

    Parameters
    ----------
    code
        Number of points with -inf, plus ``FIELD`` times those with NaN, plus ``FIELD``**2 times those with +inf.
    point
        A theta (dim,) with +inf; any where there is none.
    """

    code: Array
    point: Array


def code_of(values: Array) -> Array:
    """The codes of log densities (..., 2), each of one point.

    >>> values = jnp.array([[0.0, 1.0], [0.0, -jnp.inf], [jnp.nan, -jnp.inf], [0.0, 1e31]])
    >>> [x.tolist() for x in kinds(code_of(values))]
    [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    base, target = values[..., 0], values[..., 1]
    infinite, nan = (base > HUGE) | (target > HUGE), jnp.isnan(base) | jnp.isnan(target)
    zero = (base == -jnp.inf) | (target == -jnp.inf)
    return jnp.where(infinite, FIELD**2, jnp.where(nan, FIELD, jnp.where(zero, 1, 0)))


def rejected_at(values: Array, theta: Array) -> Rejected:
    """Of the log densities (n, 2) of points (n, dim)."""
    code = code_of(values)
    return Rejected(jnp.sum(code), theta[jnp.argmax(code)])


def point_of(rejected: Rejected) -> Array:
    """A point with +inf of codes (n,) and points (n, dim), where there is one."""
    return rejected.point[jnp.argmax(rejected.code)]


def kinds(code: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Numbers of points with -inf, NaN and +inf, on the host."""
    whole = np.asarray(code, np.int64)
    return whole % FIELD, whole // FIELD % FIELD, whole // FIELD**2
