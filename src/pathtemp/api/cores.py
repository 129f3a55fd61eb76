"""``cores=``: a run keeps to so many cores of this machine, and gives them all back when it is over."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax

from pathtemp.api.arguments import whole_number
from pathtemp.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

TASKS = Path("/proc/self/task")
"""Where Linux lists the threads of this process."""

WATCHED = 0.1
"""Seconds over which the work of other processes is measured."""


@contextmanager
def limited_to(cores: Any) -> Iterator[None]:
    """Keep all threads of this process, and the processes that they start, to so many cores; None to all it may use.

    The draws do not depend on it. Where there are fewer cores, all are used.

    >>> with limited_to(1):
    ...     len(os.sched_getaffinity(0))
    1
    """
    if cores is None:
        yield
        return
    wanted = whole_number("cores", cores, least=1)
    if not (hasattr(os, "sched_setaffinity") and TASKS.exists()):
        raise InputError("cores: this system does not let a process choose its cores; leave it out")
    # XLA makes as many threads as there are cores when it starts, once for all: it shall see them all.
    jax.local_devices()
    before = {thread: os.sched_getaffinity(thread) for thread in _threads()}
    whole = os.sched_getaffinity(0)
    try:
        _keep({}, otherwise=_idlest(whole, wanted))
        yield
    finally:
        _keep(before, otherwise=whole)


def kept_to_cores(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose argument ``cores`` holds for all that it does, and no guard on transfers that JAX may have."""

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> T:
        # A guard is there to find transfers in the user's own programs; a run is made of them.
        with limited_to(kwargs.get("cores")), jax.transfer_guard("allow"):
            return function(*args, **kwargs)

    return kept


def least_busy(before: Mapping[int, int], after: Mapping[int, int], allowed: Set[int], count: int) -> set[int]:
    """So many of the allowed cores, by their ticks of work between two counts; alike ones at random.

    Runs side by side so take cores of their own.

    >>> sorted(least_busy({0: 5, 1: 5, 2: 5}, {0: 9, 1: 5, 2: 6}, {0, 1, 2}, 2))
    [1, 2]
    """
    shuffled = random.SystemRandom().sample(sorted(allowed), len(allowed))
    return set(sorted(shuffled, key=lambda core: after.get(core, 0) - before.get(core, 0))[:count])


def _idlest(allowed: Set[int], count: int) -> set[int]:
    if count >= len(allowed):
        return set(allowed)
    before = _ticks()
    time.sleep(WATCHED)
    return least_busy(before, _ticks(), allowed, count)


def _ticks() -> dict[int, int]:
    """Ticks that each core has worked, by all processes of the machine."""
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    # user, nice, system, idle, iowait, irq, softirq
    return {
        int(name[3:]): sum(int(ticks[place]) for place in (0, 1, 2, 5, 6))
        for name, *ticks in rows
        if name.startswith("cpu") and name != "cpu"
    }


def _threads() -> list[int]:
    return [int(thread.name) for thread in TASKS.iterdir()]


def _keep(cores: Mapping[int, Set[int]], *, otherwise: Set[int]) -> None:
    """Let each thread run on its cores."""
    for thread in _threads():
        # A thread may end between being listed and being asked.
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cores.get(thread, otherwise))
