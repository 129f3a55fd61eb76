"""Runs spread over processes: seeds of a case in small chunks, each chunk in one single-threaded process."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed

from benchmarks.measure import Row

Work = Callable[[str, range], list[Row]]
"""All runs of a case, by name and seeds; a function of a module, so that a process can import it."""

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


def chunks(seeds: int, size: int) -> list[range]:
    """Seeds 0, 1, ... in chunks.

    >>> chunks(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(first, min(first + size, seeds)) for first in range(0, seeds, size)]


def spread(
    work: Work,
    names: Iterable[str],
    *,
    seeds: int,
    processes: int,
    append: Callable[[Row], None],
    chunk: int = 3,
) -> dict[str, list[Row]]:
    """Rows by case; each is given to ``append`` as soon as its chunk is done. One process runs all in this one."""
    chosen = list(names)
    rows: dict[str, list[Row]] = {name: [] for name in chosen}

    def collect(name: str, made: list[Row]) -> None:
        rows[name] += made
        for row in made:
            append(row)

    if processes <= 1:
        for name in chosen:
            for part in chunks(seeds, 1):
                collect(name, work(name, part))
        return rows
    os.environ.update(ONE_THREAD)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(work, name, part): name for name in chosen for part in chunks(seeds, chunk)}
        for future in as_completed(futures):
            collect(futures[future], future.result())
    return rows
