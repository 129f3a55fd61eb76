"""Functions of many points, through programs of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.kernels.compilation import compiled_once

BLOCK = 512
"""Points evaluated at once, where nothing else is said."""

TOGETHER = 256
"""Blocks in one call of a program where there are so many."""


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
    many = count - count % (block * TOGETHER)
    parts = []
    if many:
        stacks = [x[:many].reshape(-1, TOGETHER, block, *x.shape[1:]) for x in points]
        program, _ = compiled_once(_over_blocks, (make, *static), (shared, *(x[0] for x in stacks)))
        for stack in zip(*stacks, strict=True):
            parts.append([np.concatenate(np.asarray(x)) for x in program(shared, *stack)])
    if many < count:
        padded = [np.concatenate([x[many:], np.repeat(x[-1:], -count % block, axis=0)]) for x in points]
        blocks = [x.reshape(-1, block, *x.shape[1:]) for x in padded]
        program, _ = compiled_once(_vmapped, (make, *static), (shared, *(x[0] for x in blocks)))
        for one in zip(*blocks, strict=True):
            parts.append([np.asarray(x) for x in program(shared, *one)])
    return tuple(np.concatenate(column)[:count] for column in zip(*parts, strict=True))


def _vmapped(make: Callable[..., Callable[..., Any]], *static: Any) -> Callable[..., Any]:
    function = make(*static)

    def whole(shared: Any, *points: Any) -> Any:
        return jax.vmap(lambda *point: function(shared, *point))(*points)

    return whole


def _over_blocks(make: Callable[..., Callable[..., Any]], *static: Any) -> Callable[..., Any]:
    whole = _vmapped(make, *static)
    return lambda shared, *stacks: jax.lax.map(lambda block: whole(shared, *block), stacks)
