"""What every experiment is made of: tables that are computed cell by cell and kept, and figures drawn from them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.io.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
Tables = Mapping[str, list[Row]]

FULL, QUICK = Path("experiments/results"), Path("build/experiments")
"""Where results go, relative to the working folder; those of a quick run are not to be kept."""

CELL = "cell"


@dataclass(frozen=True)
class Table:
    """A table made of cells: independent runs, each of which gives some rows.

    Parameters
    ----------
    cells
        Names of the cells, such as ``hard/empirical/3``, given whether the run is quick.
    work
        Rows of a cell, given its name and whether the run is quick.
    """

    cells: Callable[[bool], list[str]]
    work: Callable[[str, bool], list[Row]]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper.

    Parameters
    ----------
    about
        What it shows, in one line.
    tables
        By name; each becomes ``EXPERIMENT_NAME.csv``.
    draw
        Figures by name from the tables; each becomes ``EXPERIMENT_NAME.png``.
    """

    about: str
    tables: Mapping[str, Table]
    draw: Callable[[Tables], Mapping[str, Figure]]


Run = Callable[[str, list[str]], Iterable[tuple[str, list[Row]]]]
"""Rows of the given cells of a table, by its name, as they are done, in any order."""


def carry_out(
    name: str, experiment: Experiment, *, quick: bool, folder: Path, fresh: bool = False, run: Run | None = None
) -> list[Path]:
    """Compute what is not there yet, draw the figures, and return the files.

    ``fresh`` computes everything again. A run that was stopped goes on at the cell it was in. ``run`` computes cells
    elsewhere, in other processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables, files = {}, []
    for table_name, table in experiment.tables.items():
        file = folder / f"{name}_{table_name}.csv"
        if fresh:
            file.unlink(missing_ok=True)
        tables[table_name] = kept(file, table, quick=quick, run=partial(run, table_name) if run else None)
        files.append(file)
    return files + save(name, experiment.draw(tables), folder)


def save(name: str, figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write the figures, small enough to be kept in a repository."""
    from pathtemp.plots.style import pyplot

    files = []
    for figure_name, figure in figures.items():
        files.append(folder / f"{name}_{figure_name}.png")
        figure.savefig(files[-1], dpi=100)
        pyplot().close(figure)
    return files


def kept(
    file: Path,
    table: Table,
    *,
    quick: bool,
    run: Callable[[list[str]], Iterable[tuple[str, list[Row]]]] | None = None,
) -> list[Row]:
    """Rows of all cells of a table: those in the file, and those of cells that are not, which are added to it.

    The file is in the order of the cells in the end, whatever order they were done in.
    """
    rows = read(file) if file.exists() else []
    done = {row[CELL] for row in rows}
    wanted = table.cells(quick)
    missing = [cell for cell in wanted if cell not in done]
    for cell, made in run(missing) if run else ((cell, table.work(cell, quick)) for cell in missing):
        append(file, [{CELL: cell, **row} for row in made])
        print(f"{file.stem}: {cell}", flush=True)
    if missing:
        arrange(file, wanted)
        rows = read(file)
    return [row for row in rows if row[CELL] in set(wanted)]


def append(file: Path, rows: list[Row]) -> None:
    """Add rows to a CSV file, with a header where it is new."""
    if not rows:
        return
    new = not file.exists()
    with file.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)


def arrange(file: Path, cells: list[str]) -> None:
    """Put the rows of a CSV file in the order of the cells; those of other cells come last."""
    rank = {cell: index for index, cell in enumerate(cells)}
    with file.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    at = header.index(CELL)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *sorted(rows, key=lambda row: rank.get(row[at], len(rank)))])
    write_whole(file, text.getvalue().encode())


def read(file: Path) -> list[Row]:
    """Rows of a CSV file, numbers as numbers."""
    with file.open(newline="") as stream:
        return [{key: number(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def number(text: str) -> Any:
    """A number where the text is one.

    >>> number("2.5"), number("easy/0")
    (2.5, 'easy/0')
    """
    try:
        return float(text)
    except ValueError:
        return text


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else value


def column(rows: list[Row], name: str) -> FloatArray:
    """One column as numbers."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def where(rows: list[Row], **values: Any) -> list[Row]:
    """Rows with the given values.

    >>> where([{"seed": 0, "x": 1}, {"seed": 1, "x": 2}], seed=1)
    [{'seed': 1, 'x': 2}]
    """
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def distinct(rows: list[Row], name: str) -> list[Any]:
    """Values of a column, in the order of their first row."""
    return list(dict.fromkeys(row[name] for row in rows))


def panels(rows: int, columns: int, *, width: float = 2.6, height: float = 2.2, **options: Any) -> Any:
    """A figure and its axes (rows, columns), in the style of the library's plots."""
    import matplotlib as mpl

    mpl.use("Agg")
    from pathtemp.plots.style import RC, pyplot

    plt = pyplot()
    with plt.rc_context(RC):
        size = (width * columns, height * rows)
        return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
