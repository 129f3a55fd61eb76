"""Densities and exact base draws for host arrays of any length, through programs of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from pathtemp._types import Array, FloatArray, Sampler
from pathtemp.errors import InfiniteDensity
from pathtemp.kernels.compilation import compiled_once
from pathtemp.paths.geometric import HUGE, GeometricPath
from pathtemp.seeds import KeyStream, stream_key

BLOCK = 64
"""Points evaluated at once."""


def energies_of(path: GeometricPath, theta: FloatArray) -> FloatArray:
    """(log psi, log q) of many points: (n, dim) -> (n, 2); NaN counts as zero density, and +inf is an error."""
    values = values_of(path, theta)
    infinite = np.flatnonzero(np.any(values > HUGE, axis=1))
    if len(infinite):
        raise InfiniteDensity(theta[infinite[0]], values[infinite[0]])
    return np.where(np.isnan(values), -np.inf, values)


def values_of(path: GeometricPath, theta: FloatArray) -> FloatArray:
    """(log psi, log q) of many points as the two functions give them: (n, dim) -> (n, 2)."""
    count, dim = theta.shape
    program, _ = compiled_once(_vmapped_values, (path,), (np.zeros((BLOCK, dim)),))
    padded = np.concatenate([theta, np.repeat(theta[-1:], -count % BLOCK, axis=0)])
    blocks = [np.asarray(program(block)) for block in padded.reshape(-1, BLOCK, dim)]
    return np.concatenate(blocks)[:count] if blocks else np.empty((0, 2))


def exact_draws(sample: Sampler, *, seed: int, stream: int, count: int) -> FloatArray:
    """``count`` exact draws (count, dim) from a stream of random numbers that no round uses."""
    program, _ = compiled_once(_block_of_draws, (sample,), (np.uint32(0), np.uint32(0), np.uint32(0)))
    words = (np.uint32(seed), np.uint32(stream))
    blocks = [np.asarray(program(*words, np.uint32(i))) for i in range(-(-count // BLOCK))]
    return np.concatenate([np.empty((0, _dim(sample))), *blocks])[:count].astype(np.float64)


def _dim(sample: Sampler) -> int:
    return int(jax.eval_shape(sample, jax.random.key(0)).shape[0])


def _vmapped_values(path: GeometricPath) -> Callable[[Array], Array]:
    return jax.vmap(path.values)


def _block_of_draws(sample: Sampler) -> Callable[[Array, Array, Array], Array]:
    def draw(seed: Array, stream: Array, block: Array) -> Array:
        key = stream_key(seed, KeyStream.EXACT)
        key = jax.random.fold_in(jax.random.fold_in(key, stream), block)
        return jax.vmap(sample)(jax.random.split(key, BLOCK))

    return draw


SAME = 1e-6
"""Relative difference of log densities within which a model counts as the one that a checkpoint was made with."""


def agree(now: FloatArray, then: FloatArray) -> bool:
    """Whether log densities at the same points are the same but for rounding, and finite at the same ones.

    >>> agree(np.array([1.0, -np.inf]), np.array([1.0 + 1e-9, -np.inf])), agree(np.zeros(1), np.ones(1))
    (True, False)
    """
    finite = np.isfinite(then)
    if np.any(np.isfinite(now) != finite):
        return False
    return bool(np.all(np.abs(now[finite] - then[finite]) <= SAME * (1.0 + np.abs(then[finite]))))
