"""Compiling once: within a session by function and shapes, and between sessions on disk."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import jax

MOST_PROGRAMS = 16
"""Compiled programs kept in memory; the least recently used goes first."""

_programs: OrderedDict[Hashable, Any] = OrderedDict()


def compiled_once(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Hashable, ...],
    arguments: tuple[Any, ...],
    *,
    donate: tuple[int, ...] = (),
) -> tuple[Any, float]:
    """Compile ``make(*static)`` ahead of time for the shapes of ``arguments``; returns it and the seconds it took.

    What comes back cannot compile again: another shape raises. The same function, statics and shapes give the same
    program, so that a second run on one model does not compile at all.

    >>> import jax.numpy as jnp
    >>> program, _ = compiled_once(lambda n: lambda x: n * x, (2,), (jnp.ones(3),))
    >>> program(jnp.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    leaves, tree = jax.tree.flatten(arguments)
    key = (make, static, tree, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves))
    begin = time.perf_counter()
    if key not in _programs:
        _programs[key] = jax.jit(make(*static), donate_argnums=donate).lower(*arguments).compile()
        if len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    return _programs[key], time.perf_counter() - begin


def use_compilation_cache() -> None:
    """Keep compiled programs between sessions, unless the user has set JAX's cache, or PATHTEMP_CACHE to nothing."""
    folder = os.environ.get("PATHTEMP_CACHE")
    if jax.config.jax_compilation_cache_dir is not None or folder == "":  # type: ignore[attr-defined]
        return
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(folder) if folder else Path(home) / "pathtemp"
    jax.config.update("jax_compilation_cache_dir", str(root / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
