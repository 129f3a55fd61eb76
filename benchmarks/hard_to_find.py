"""Modes that are easily missed: how many of many default runs are converged, and leave out some of the mass.

    python -m benchmarks.hard_to_find [--only NAME] [--runs 50] [--part K N] [--out FILE]
    python -m benchmarks.hard_to_find --table FILE ...

Three modes of unlike widths in 20 dimensions, where one start in four thousand leads to the narrowest. 64 equal modes
at the corners of a cube. A spike with 99% of the mass inside a slab ten times as wide (Skilling's). Runs already in the
file are left out.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pathtemp as pt
from benchmarks.families import read
from benchmarks.measure import Row, markdown
from pathtemp.testing import Problem, gaussian_mixture

RESULTS = Path(__file__).parent / "results" / "hard_to_find.csv"

MISSING = 0.2
"""Share of a part among the draws, relative to its due, below which it is missing."""


def three_modes() -> Problem:
    """Three modes in 20-d, their scales .7, 1 and 1.4."""
    centre = 4.0 * np.random.default_rng(0).normal(size=(3, 20))
    return gaussian_mixture([0.2, 0.3, 0.5], centre, scales=[0.7, 1.0, 1.4], base_scale=5.0)


def corners() -> Problem:
    """64 equal modes at the corners of a cube in 6-d."""
    centre = 4.0 * np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
    return gaussian_mixture(np.full(64, 1 / 64), centre, scales=0.5, base_scale=6.0)


def spike() -> Problem:
    """A spike of width .01 inside a slab of width .1, in 20-d."""
    return gaussian_mixture([0.99, 0.01], np.zeros((2, 20)), scales=[0.01, 0.1], base_scale=1.0)


CASES: dict[str, Callable[[], Problem]] = {"three_modes": three_modes, "corners": corners, "spike": spike}


def one_run(name: str, seed: int) -> Row:
    """One default run, held against the truth: log z is zero."""
    problem = CASES[name]()
    assert problem.shares is not None
    assert problem.labels is not None
    began = time.perf_counter()
    fit = pt.temper(problem.model, seed=seed, progress=False)
    theta = np.asarray(fit.posterior["theta"]).reshape(-1, problem.model.dim)
    value, se = fit.log_marginal_likelihood
    held = np.bincount(problem.labels(theta), minlength=len(problem.shares)) / len(theta)
    return {
        "problem": name,
        "seed": seed,
        "error": value,
        "se": se,
        "missing": float(np.sum(problem.shares[held < MISSING * problem.shares])),
        "power": np.nan if fit.modes is None else fit.modes.power(width=0.7, share=0.05),
        "known": 0 if fit.modes is None else len(fit.modes),
        "converged": int(fit.converged),
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
        "wall": time.perf_counter() - began,
    }


def table(rows: list[dict[str, str]]) -> str:
    """Converged runs, misses among them, and errors, by problem."""
    lines = []
    for name in CASES:
        chosen = [row for row in rows if row["problem"] == name]
        good = [row for row in chosen if row["converged"] == "1"]
        if not good:
            continue
        missed = [row for row in good if float(row["missing"]) > 0.011]
        z = np.array([float(row["error"]) / float(row["se"]) for row in good if row not in missed])
        evaluations = [float(row["gradients"]) + float(row["densities"]) for row in chosen]
        lines.append(
            [
                *(name, str(len(chosen)), str(len(good)), str(len(missed)), f"{np.sqrt(np.mean(z**2)):.2f}"),
                *(f"{np.median(evaluations):,.0f}", f"{np.median([float(row['wall']) for row in chosen]):.1f}"),
            ]
        )
    header = ["problem", "runs", "converged", "of these without a mode", "RMS z of the others", "evaluations", "wall s"]
    return markdown(header, lines)


def main() -> None:
    """Run problems, or print the table of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(CASES), action="append", help="may be given more than once")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="K N: every N-th run, from the K-th")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        print(table([row for file in options.table for row in read(file)]))
        return
    done = {(row["problem"], int(row["seed"])) for row in read(options.out)}
    for name in options.only or CASES:
        for seed in range(options.part[0], options.runs, options.part[1]):
            if (name, seed) in done:
                continue
            row = one_run(name, seed)
            with options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, row)
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
            print(*(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    print(table(read(options.out)))


if __name__ == "__main__":
    main()
