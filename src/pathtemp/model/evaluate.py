"""Densities and exact base draws for host arrays of any length, through programs of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from pathtemp._types import Array, FloatArray, Sampler
from pathtemp.errors import InfiniteDensity
from pathtemp.kernels.compilation import compiled_once
from pathtemp.model import blocks
from pathtemp.model.blocks import blocks_together, flattened, in_blocks, over_blocks
from pathtemp.model.meter import note
from pathtemp.paths.geometric import HUGE, GeometricPath
from pathtemp.seeds import KeyStream, probe_key, stream_key

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
    if count == 0:
        return np.empty((0, _dim(sample)))
    found: list[FloatArray] = []
    made = 0
    while made < count:
        first = made // BLOCK
        how = np.uint32(seed), np.uint32(stream), np.uint32(first), np.int32(-(-count // BLOCK) - first)
        program, _ = compiled_once(_blocks_of_draws, (sample, blocks.TOGETHER), how)
        found.append(flattened(program(*how)))
        made += len(found[-1])
    return np.concatenate(found)[:count].astype(np.float64, copy=False)


def _dim(sample: Sampler) -> int:
    return int(jax.eval_shape(sample, probe_key()).shape[0])


def _values(path: GeometricPath) -> Callable[[tuple[()], Array], tuple[Array]]:
    return lambda _, theta: (path.values(theta),)


def _blocks_of_draws(sample: Sampler, most: int) -> Callable[[Array, Array, Array, Array], Array]:
    """So many blocks from a number on, as many as go together and ``most`` at most."""
    together = min(blocks_together(BLOCK * _dim(sample)), most)

    def draw(seed: Array, stream: Array, first: Array, count: Array) -> Array:
        key = jax.random.fold_in(stream_key(seed, KeyStream.EXACT), stream)

        def block(i: Array) -> Array:
            return jax.vmap(sample)(jax.random.split(jax.random.fold_in(key, first + i.astype(np.uint32)), BLOCK))

        return over_blocks(together, jax.numpy.minimum(count, together), block)  # type: ignore[no-any-return]

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
