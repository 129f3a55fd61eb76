"""Densities and exact base draws for host arrays of any length, through programs of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from pathtemp._types import Array, FloatArray, Sampler
from pathtemp.errors import InfiniteDensity
from pathtemp.kernels.compilation import compiled_once
from pathtemp.model.blocks import TOGETHER, in_blocks
from pathtemp.model.meter import note
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
    note(densities=len(theta))
    return in_blocks(_values, (path,), (), (theta,), block=BLOCK)[0] if len(theta) else np.empty((0, 2))


def exact_draws(sample: Sampler, *, seed: int, stream: int, count: int) -> FloatArray:
    """``count`` exact draws (count, dim) from a stream of random numbers that no round uses."""
    words, blocks = (np.uint32(seed), np.uint32(stream)), -(-count // BLOCK)
    many = blocks - blocks % TOGETHER
    found = [np.empty((0, _dim(sample)))]
    if many:
        program, _ = compiled_once(_blocks_of_draws, (sample,), (np.uint32(0), np.uint32(0), np.uint32(0)))
        found += [np.concatenate(np.asarray(program(*words, np.uint32(i)))) for i in range(0, many, TOGETHER)]
    if many < blocks:
        program, _ = compiled_once(_block_of_draws, (sample,), (np.uint32(0), np.uint32(0), np.uint32(0)))
        found += [np.asarray(program(*words, np.uint32(i))) for i in range(many, blocks)]
    return np.concatenate(found)[:count].astype(np.float64)


def _dim(sample: Sampler) -> int:
    return int(jax.eval_shape(sample, jax.random.key(0)).shape[0])


def _values(path: GeometricPath) -> Callable[[tuple[()], Array], tuple[Array]]:
    return lambda _, theta: (path.values(theta),)


def _blocks_of_draws(sample: Sampler) -> Callable[[Array, Array, Array], Array]:
    """The blocks from a number on, each as :func:`_block_of_draws` gives it."""
    draw = _block_of_draws(sample)
    return lambda seed, stream, first: jax.lax.map(
        lambda i: draw(seed, stream, first + i), jax.numpy.arange(TOGETHER, dtype=np.uint32)
    )


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
