"""Functions of many points, through one program of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.kernels.compilation import begin_compiling, compiled_once

BLOCK = 512
"""Points evaluated at once, where nothing else is said."""

TOGETHER = 32
"""Blocks in one call of a program, at most; it stops after those that there are."""

MOST_NUMBERS = 2**18
"""Numbers in the points of one call, as far as blocks of them allow (2 MB)."""


def blocks_together(numbers: int) -> int:
    """Blocks in one call, where a block has so many numbers.

    >>> blocks_together(64 * 3), blocks_together(64 * 500), blocks_together(64 * 10_000)
    (32, 8, 1)
    """
    return int(np.clip(MOST_NUMBERS // max(numbers, 1), 1, TOGETHER))


def in_blocks(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Any, ...],
    shared: Any,
    points: tuple[FloatArray, ...],
    *,
    block: int = BLOCK,
) -> tuple[FloatArray, ...]:
    """``make(*static)(shared, *point)`` for the rows of ``points``, arrays of n rows each; a tuple of arrays of n rows.

    What it gives of a point does not depend on how many there are; n is 1 at least.

    >>> make = lambda: lambda shared, x: (shared * x,)
    >>> in_blocks(make, (), np.asarray(2.0), (np.arange(3.0),))[0].tolist()
    [0.0, 2.0, 4.0]
    """
    count = len(points[0])
    stacks = _stacks(points, block)
    together = len(stacks[0])
    program, _ = compiled_once(_over_blocks, (make, *static), (shared, np.int32(0), *stacks))
    parts = []
    for first in range(0, count, together * block):
        rows = min(count - first, together * block)
        used = -(-rows // block)
        for stack, x in zip(stacks, points, strict=True):
            flat = stack.reshape(-1, *x.shape[1:])
            flat[:rows], flat[rows : used * block] = x[first : first + rows], x[first + rows - 1]
        parts.append([flattened(x)[:rows] for x in program(shared, np.int32(used), *stacks)])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def begin_blocks(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Any, ...],
    shared: Any,
    points: tuple[FloatArray, ...],
    *,
    block: int = BLOCK,
) -> None:
    """Let the program of :func:`in_blocks` be compiled for points of these shapes, while this thread goes on."""
    begin_compiling(_over_blocks, (make, *static), (shared, np.int32(0), *_stacks(points, block)))


def _stacks(points: tuple[FloatArray, ...], block: int) -> list[FloatArray]:
    """Room for the points of one call, (together, block, ...) for each array."""
    together = blocks_together(block * sum(x[:1].size for x in points))
    return [np.empty((together, block, *x.shape[1:]), x.dtype) for x in points]


def flattened(stack: Any) -> FloatArray:
    """Blocks (b, block, ...) on a device as rows (b block, ...) on the host."""
    host = np.asarray(stack)
    return host.reshape(host.shape[0] * host.shape[1], *host.shape[2:])


def over_blocks(together: int, count: Any, one: Callable[[Any], Any]) -> Any:
    """``one(i)`` for i below ``count``, which is ``together`` at most, in arrays of ``together`` rows; others are zero.

    The loop has one body, so that what is evaluated is compiled once for any number of blocks.
    """
    shapes = jax.eval_shape(one, jax.ShapeDtypeStruct((), np.int32))
    empty = jax.tree.map(lambda leaf: jnp.zeros((together, *leaf.shape), leaf.dtype), shapes)

    def body(i: Any, found: Any) -> Any:
        return jax.tree.map(lambda all_, here: all_.at[i].set(here), found, one(i))

    return jax.lax.fori_loop(np.int32(0), count, body, empty)


def _over_blocks(make: Callable[..., Callable[..., Any]], *static: Any) -> Callable[..., Any]:
    function = make(*static)

    def whole(shared: Any, count: Any, *stacks: Any) -> Any:
        def one(i: Any) -> Any:
            return jax.vmap(lambda *point: function(shared, *point))(*(x[i] for x in stacks))

        return over_blocks(stacks[0].shape[0], count, one)

    return whole
