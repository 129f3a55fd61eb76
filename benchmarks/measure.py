"""One run of one problem as one row of numbers, and tables of such rows."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from pathtemp._types import FloatArray
from pathtemp.paths.links import A_MAX, A_MIN, CubicLink

Row = dict[str, Any]

POSITIONS = 101
"""Positions, equispaced in a between the flat ends of the paper's link, at which a curve is compared."""


def measure(
    problem: pt.testing.Problem,
    *,
    seed: int,
    budget: float | None = None,
    settings: pt.settings.Settings | pt.settings.PaperSettings = pt.settings.DEFAULT,
    curve: bool = True,
) -> Row:
    """Run ``problem`` once; errors against its exact answers, NaN where it has none.

    ``curve=False`` compares the end of the curve only, where the truth is costly elsewhere. The seconds ``wall`` and
    ``cpu`` (of all threads) include ``compile``.
    """
    began, busy = time.perf_counter(), time.process_time()
    fit = pt.temper(problem.model, budget=budget, seed=seed, settings=settings, progress=False)
    cost = {"wall": time.perf_counter() - began, "cpu": time.process_time() - busy}
    compiling = fit.seconds.get("compile", 0.0)
    about = {"problem": problem.name, "seed": seed, "budget": budget}
    return about | facts(fit, problem, curve=curve) | {**cost, "compile": compiling}


def facts(fit: pt.Fit, problem: pt.testing.Problem, *, curve: bool = True) -> Row:
    """Errors, verdict and evaluations of a fit."""
    value, se = fit.log_marginal_likelihood
    error = value - problem.log_z_end
    return {
        "error": error,
        "se": se,
        "z": error / se if se > 0 else float("nan"),
        "curve_rmse": curve_rmse(fit, problem) if curve else float("nan"),
        **share_facts(fit, problem),
        "tours": fit.diagnostics.tours,
        "converged": fit.converged,
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
    }


def curve_rmse(fit: pt.Fit, problem: pt.testing.Problem) -> float:
    """Root mean square error of log z over the path, NaN where the truth is known at its end only."""
    if problem.log_z is None:
        return float("nan")
    lam = np.asarray(jax.vmap(CubicLink())(jnp.linspace(A_MIN, A_MAX, POSITIONS)))
    return float(np.sqrt(np.mean((fit.log_z(lam) - problem.log_z(lam)) ** 2)))


def share_facts(fit: pt.Fit, problem: pt.testing.Problem) -> Row:
    """Modes with a draw, mean and largest absolute error of their shares, and the share of the last mode."""
    if problem.labels is None or problem.shares is None:
        return {
            "modes": float("nan"),
            "share_error": float("nan"),
            "worst_share": float("nan"),
            "share": float("nan"),
        }
    share = shares(problem, flat_draws(fit))
    error = np.abs(share - problem.shares)
    return {
        "modes": int(np.sum(share > 0)),
        "share_error": float(error.mean()),
        "worst_share": float(error.max()),
        "share": float(share[-1]),
    }


def shares(problem: pt.testing.Problem, flat: FloatArray) -> FloatArray:
    """Share of each mode among draws ``(n, dim)``."""
    assert problem.labels is not None
    assert problem.shares is not None
    if len(flat) == 0:
        return np.zeros(len(problem.shares))
    return np.bincount(problem.labels(flat), minlength=len(problem.shares)) / len(flat)


def flat_draws(fit: pt.Fit) -> FloatArray:
    """Unconstrained target draws ``(n, dim)``, as the labels of a problem take them."""
    assert fit.model is not None
    layout = fit.model.layout
    merged = {
        name: jnp.asarray(fit.posterior[name].values.reshape(-1, *fit.posterior[name].shape[2:]))
        for name in layout.shapes
    }
    return np.asarray(jax.vmap(layout.unconstrain)(merged))


@contextmanager
def table(path: Path | None) -> Iterator[Callable[[Row], None]]:
    """A function that appends a row to the CSV file ``path``; each row is on disk as soon as it is made."""
    if path is None:
        yield lambda row: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None

        def append(row: Row) -> None:
            nonlocal writer
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow({key: _short(value) for key, value in row.items()})
            file.flush()

        yield append


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def column(rows: Iterable[Row], name: str) -> FloatArray:
    """One column of rows as numbers."""
    return np.array([row[name] for row in rows], float)


def covered(rows: list[Row]) -> float:
    """Share of runs whose log z lies within two standard errors of the truth."""
    return float(np.mean(np.abs(column(rows, "z")) <= 2.0))


def markdown(header: list[str], lines: Iterable[list[str]]) -> str:
    """A Markdown table with its columns aligned.

    >>> print(markdown(["a", "b"], [["1", "23"]]))
    | a | b  |
    |---|----|
    | 1 | 23 |
    """
    cells = [header, *lines]
    width = [max(len(line[i]) for line in cells) for i in range(len(header))]

    def text(line: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)) + " |"

    rule = "|" + "|".join("-" * (w + 2) for w in width) + "|"
    return "\n".join([text(cells[0]), rule, *map(text, cells[1:])])
