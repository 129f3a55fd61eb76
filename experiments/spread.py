"""Cells of a table spread over processes, each with one thread; a cell gives the same rows wherever it runs."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.parallel import ONE_THREAD
from experiments.common import Row
from experiments.names import experiment


def spread(
    name: str, table: str, cells: list[str], *, quick: bool, processes: int, corpus: Path | None = None
) -> Iterator[tuple[str, list[Row]]]:
    """Rows of the ``cells`` of one table of the experiment ``name``, as they are done, by ``processes`` processes."""
    os.environ.update(ONE_THREAD)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(rows_of, name, table, cell, quick=quick, corpus=corpus): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()


def rows_of(name: str, table: str, cell: str, *, quick: bool, corpus: Path | None = None) -> list[Row]:
    """Rows of one cell: a function of a module, so that a process can import it.

    >>> len(rows_of("link", "curve", "cubic", quick=True))
    201
    """
    return experiment(name, corpus=corpus).tables[table].work(cell, quick)
