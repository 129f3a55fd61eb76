"""Uniforms on different intervals: log densities that are -inf, and a curve that jumps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import Problem


def uniform_supports(*, reverse: bool = False) -> Problem:
    """``uniform(-2, 2)`` to its own density on (0, 2) alone: log z = -log 2 for every lam > 0.

    ``reverse`` starts from ``uniform(0, 2)`` and ends with its density on all of (-2, 2): log z(1) = log 2,
    but log z(lam) = 0 for every lam < 1. No path sampler can see that from its draws, because the base has no
    mass where half of the target lies: a check of what a fit says about it. Outside its interval a density is
    -inf.

    >>> uniform_supports().log_z([0.0, 0.5, 1.0]).round(4)
    array([ 0.    , -0.6931, -0.6931])
    """
    base_low, target_low = (0.0, -2.0) if reverse else (-2.0, 0.0)
    log_height = -float(np.log(2.0 - base_low))

    def log_base(x: Array) -> Array:
        return jnp.where((x[0] > base_low) & (x[0] < 2.0), log_height, -jnp.inf)

    def log_target(x: Array) -> Array:
        return jnp.where((x[0] > target_low) & (x[0] < 2.0), log_height, -jnp.inf)

    def sample_base(key: Key) -> Array:
        return jax.random.uniform(key, (1,), minval=base_low, maxval=2.0)

    def wide(lam: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return lam >= 1.0 if reverse else lam <= 0.0

    def log_z(lam: ArrayLike) -> FloatArray:
        return np.where(wide(np.asarray(lam, float)), 0.0, -np.log(2.0)) + (np.log(2.0) if reverse else 0.0)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return rng.uniform(np.where(wide(lam), -2.0, 0.0), 2.0)[:, None]

    return Problem(
        name="uniform_supports_reverse" if reverse else "uniform_supports",
        model=Model(log_base, log_target, Layout({"theta": (1,)}), sample_base, name="uniform_supports"),
        log_z=log_z,
        sample_at=sample_at,
        target_mean=np.array([0.5 * (target_low + 2.0)]),
        target_var=np.array([(2.0 - target_low) ** 2 / 12.0]),
    )
