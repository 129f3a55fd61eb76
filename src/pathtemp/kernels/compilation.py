"""Compiling once: within a session by function and shapes, and between sessions on disk."""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from pathtemp.api.environment import check_environment
from pathtemp.errors import InputError
from pathtemp.io.private import private_folder
from pathtemp.kernels.waiting import aside, calls_outside, patiently

log = logging.getLogger("pathtemp.kernels.compilation")

MOST_PROGRAMS = 32
"""Compiled programs kept in memory; the least recently used goes first."""

QUICK: dict[str, str | bool] = {
    "xla_backend_optimization_level": "1",
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}
"""What XLA leaves out on a CPU: it compiles in half the time, and a program takes up to twice as long."""

MOST_BEGUN = 2
"""Programs that are compiled in the background, or wait there for the run that wants them."""

_programs: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
_begun: OrderedDict[tuple[Hashable, ...], Future[Any]] = OrderedDict()
_background = ThreadPoolExecutor(1, thread_name_prefix="pathtemp-compile")


def known_options(options: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Those of some compiler options that this XLA knows: they come and go with its versions.

    >>> known_options({"xla_backend_optimization_level": "1", "xla_option_of_another_year": True})
    {'xla_backend_optimization_level': '1'}
    """
    return {name: value for name, value in options.items() if _is_known(name, value)}


@cache
def _is_known(name: str, value: str | bool) -> bool:
    try:
        jax.jit(lambda x: x).lower(1.0).compile({name: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


LEAST_DATA = 4096
"""Numbers in an array from which it counts as data, and is handed to a program rather than written into it."""


@dataclass(frozen=True)
class _Order:
    """A program that is wanted: what it is known by, the arrays that it is handed at each call, and how to lower it."""

    key: tuple[Hashable, ...]
    arrays: list[Any]
    lower: Callable[[], _Lowered]


class _Lowered(NamedTuple):
    """A program that is not compiled yet, how it is run, and what it takes first of all: its data, if it has any."""

    run: Callable[..., Any]
    data: tuple[()] | tuple[list[jax.Array]]
    program: jax.stages.Lowered

    def compile(self, options: dict[str, str | bool]) -> Callable[..., Any]:
        """The program, which has its data."""
        return partial(self.run, self.program.compile(options), *self.data)


def compiled_once(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Hashable, ...],
    arguments: tuple[Any, ...],
    *,
    donate: tuple[int, ...] = (),
    quick: bool = True,
) -> tuple[Any, float]:
    """Compile ``make(*static)`` ahead of time for the shapes of ``arguments``; returns it and the seconds it took.

    What comes back cannot compile again: another shape raises. The same function, statics and shapes give the same
    program, so that a second run on one model does not compile at all. Arrays inside ``static`` (a base with
    parameters) are handed to the program at each call: other values of the same shapes compile nothing. ``quick`` is
    for programs that run for less time than XLA would take to make them faster.

    >>> import jax.numpy as jnp
    >>> program, _ = compiled_once(lambda n: lambda x: n * x, (2,), (jnp.ones(3),))
    >>> program(jnp.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    """
    order, begin = _order(make, static, arguments, donate), time.perf_counter()
    if order.key in _begun:
        # Whatever went wrong there is raised here.
        _keep(order.key, _begun.pop(order.key).result())
    elif order.key not in _programs:
        _keep(order.key, order.lower().compile(_options(quick)))
    _programs.move_to_end(order.key)
    return partial(_programs[order.key], order.arrays), time.perf_counter() - begin


def is_compiled(make: Callable[..., Callable[..., Any]], static: tuple[Hashable, ...]) -> bool:
    """Whether a program of these is there for some shapes of its arguments, or has been begun.

    >>> import jax.numpy as jnp
    >>> how = (lambda n: lambda x: n * x, (5,))
    >>> before, _ = is_compiled(*how), compiled_once(*how, (jnp.ones(3),))
    >>> before, is_compiled(*how)
    (False, True)
    """
    made_of = _order(make, static, (), ()).key[:-1]
    return any(key[:-1] == made_of for key in (*_programs, *_begun))


def begin_compiling(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Hashable, ...],
    arguments: tuple[Any, ...],
    *,
    donate: tuple[int, ...] = (),
    quick: bool = True,
) -> None:
    """Let XLA begin with what :func:`compiled_once` will be asked for, while this thread goes on.

    >>> import jax.numpy as jnp
    >>> how = (lambda n: lambda x: n * x, (3,), (jnp.ones(3),))
    >>> begin_compiling(*how)
    >>> compiled_once(*how)[0](jnp.ones(3)).tolist()
    [3.0, 3.0, 3.0]
    """
    order = _order(make, static, arguments, donate)
    if order.key in _programs or order.key in _begun:
        return
    # Traced and lowered here, under the settings of this thread.
    lowered, options = order.lower(), _options(quick)
    while len(_begun) >= MOST_BEGUN:
        _begun.popitem(last=False)[1].cancel()
    _begun[order.key] = _background.submit(lowered.compile, options)


def _order(
    make: Callable[..., Callable[..., Any]],
    static: tuple[Hashable, ...],
    arguments: tuple[Any, ...],
    donate: tuple[int, ...],
) -> _Order:
    parts, structure = jax.tree.flatten(static)
    traced = [isinstance(part, jax.Array | np.ndarray) for part in parts]
    arrays = [part for part, is_array in zip(parts, traced, strict=True) if is_array]
    fixed = tuple(None if is_array else part for part, is_array in zip(parts, traced, strict=True))

    def whole(arrays: list[Any], *arguments: Any) -> Any:
        rest = iter(arrays)
        filled = [next(rest) if is_array else part for part, is_array in zip(fixed, traced, strict=True)]
        return make(*jax.tree.unflatten(structure, filled))(*arguments)

    key = (make, structure, fixed, tuple(traced), _shapes(arrays), _shapes(arguments))
    return _Order(key, arrays, lambda: _lowered(whole, (arrays, *arguments), tuple(index + 1 for index in donate)))


def _lowered(function: Callable[..., Any], arguments: tuple[Any, ...], donate: tuple[int, ...]) -> _Lowered:
    """A function lowered for its arguments, with the data that a user's density closes over taken out of it.

    Written into a program, data of some size make compiling slow, are in memory once for each program, and keep other
    data of the same shape from using what the cache on disk has.
    """
    traced = jax.jit(function, donate_argnums=donate).trace(*arguments)
    run, constants = aside if calls_outside(traced.jaxpr.jaxpr) else patiently, traced.jaxpr.consts
    is_data = [np.size(constant) >= LEAST_DATA for constant in constants]
    if not any(is_data):
        return _Lowered(run, (), traced.lower())
    data = [jax.device_put(constant) for constant, taken in zip(constants, is_data, strict=True) if taken]
    structure = jax.tree.structure(traced.out_info)

    def with_data(data: list[jax.Array], *arguments: Any) -> Any:
        rest = iter(data)
        filled = [next(rest) if taken else constant for constant, taken in zip(constants, is_data, strict=True)]
        flat = jax.tree.leaves(arguments)
        return jax.tree.unflatten(structure, jax.core.eval_jaxpr(traced.jaxpr.jaxpr, filled, *flat))

    shifted = tuple(index + 1 for index in donate)
    return _Lowered(run, (data,), jax.jit(with_data, donate_argnums=shifted).lower(data, *arguments))


def _options(quick: bool) -> dict[str, str | bool]:
    return known_options(QUICK) if quick and jax.default_backend() == "cpu" else {}


def _keep(key: tuple[Hashable, ...], program: Any) -> None:
    _programs[key] = program
    if len(_programs) > MOST_PROGRAMS:
        _programs.popitem(last=False)


def _shapes(tree: Any) -> Hashable:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def use_compilation_cache() -> None:
    """Keep compiled programs between sessions, unless the user has set JAX's cache, or PATHTEMP_CACHE to nothing.

    Every run begins here, so that a process in which nothing can be compiled is told of here as well.
    """
    check_environment()
    folder = os.environ.get("PATHTEMP_CACHE")
    if jax.config.jax_compilation_cache_dir is not None or folder == "":  # type: ignore[attr-defined]
        return
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(folder) if folder else Path(home) / "pathtemp"
    try:
        private_folder(root / "xla")
    except InputError as error:
        # What lies there is run, so that a folder of someone else is worth no time saved.
        log.warning("%s; programs are compiled anew in every session", error)
        return
    jax.config.update("jax_compilation_cache_dir", str(root / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
