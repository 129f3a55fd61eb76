"""Functions of many points, through programs of one fixed shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.kernels.compilation import compiled_once

BLOCK = 512
"""Points evaluated at once."""


def in_blocks(
    make: Callable[..., Callable[..., Any]], static: tuple[Any, ...], shared: Any, points: tuple[FloatArray, ...]
) -> tuple[FloatArray, ...]:
    """``make(*static)(shared, *point)`` for the rows of ``points``, arrays of n rows each; a tuple of arrays of n rows.

    >>> make = lambda: lambda shared, x: (shared * x,)
    >>> in_blocks(make, (), np.asarray(2.0), (np.arange(3.0),))[0].tolist()
    [0.0, 2.0, 4.0]
    """
    count = len(points[0])
    padded = [np.concatenate([x, np.repeat(x[-1:], -count % BLOCK, axis=0)]) for x in points]
    blocks = [x.reshape(-1, BLOCK, *x.shape[1:]) for x in padded]
    program, _ = compiled_once(_vmapped, (make, *static), (shared, *(x[0] for x in blocks)))
    parts = [program(shared, *block) for block in zip(*blocks, strict=True)]
    return tuple(np.concatenate([np.asarray(x) for x in column])[:count] for column in zip(*parts, strict=True))


def _vmapped(make: Callable[..., Callable[..., Any]], *static: Any) -> Callable[..., Any]:
    function = make(*static)

    def whole(shared: Any, *points: Any) -> Any:
        return jax.vmap(lambda *point: function(shared, *point))(*points)

    return whole
