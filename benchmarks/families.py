"""The verdict on targets drawn at random, at default settings: errors, misses and the stated power.

    python -m benchmarks.families --seed 1 --runs 1000 [--part K N] [--out FILE]
    python -m benchmarks.families --table FILE ...

Problem number n of a seed is that of :func:`pathtemp.testing.family`. Runs already in the file are left out, so that a
sweep can be stopped and taken up again; ``--part K N`` takes every N-th problem, for several processes or machines.
A part of a mixture is missing where its draws add up to less than a fifth of its share.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, markdown
from pathtemp.testing.families import Family, Parts, family, responsibilities

RESULTS = Path(__file__).parent / "results"

MISSING = 0.2
"""Share of a part among the draws, relative to its due, below which it is missing."""


def one_run(seed: int, number: int) -> Row:
    """One default run, held against what is known."""
    problem, about = family(seed, number)
    began = time.perf_counter()
    fit = pt.temper(problem.model, seed=number, progress=False)
    wall = time.perf_counter() - began
    value, se = fit.log_marginal_likelihood
    error = value - problem.log_z_end
    return {
        "seed": seed,
        "number": number,
        **about.__dict__,
        "error": error,
        "se": se,
        "z": error / se if se > 0 else np.nan,
        "missing": missing_mass(fit, problem, about),
        "known": 0 if fit.modes is None else len(fit.modes),
        "power": power_of(fit),
        "converged": int(fit.converged),
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
        "wall": wall,
        "search": fit.seconds.get("search", 0.0),
        "compile": fit.seconds.get("compile", 0.0),
    }


def power_of(fit: pt.Fit) -> float:
    """The stated power for a mode of a twentieth of the mass, seven tenths as wide as the widest; NaN for none."""
    return float("nan") if fit.modes is None else fit.modes.power(width=0.7, share=0.05)


def missing_mass(fit: pt.Fit, problem: pt.testing.Problem, about: Family) -> float:
    """Mass of the parts that the draws leave out."""
    target = problem.model.log_target
    assert isinstance(target, Parts)
    assert problem.shares is not None
    theta = np.asarray(fit.posterior["x"]).reshape(-1, about.dim)
    held = responsibilities(target, theta)[:, : about.count].mean(axis=0)
    return float(np.sum(problem.shares[held < MISSING * problem.shares]))


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a file; none where there is no file."""
    return list(csv.DictReader(file.open())) if file.exists() else []


def table(rows: list[dict[str, str]]) -> str:
    """Converged runs and their errors, by dimension and by width of the narrowest mode, and over all."""

    def numbers(chosen: list[dict[str, str]], name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in chosen])

    def line(title: str, chosen: list[dict[str, str]]) -> list[str]:
        good = [row for row in chosen if row["converged"] == "1"]
        z, missing, power = (numbers(good, name) for name in ("z", "missing", "power"))
        whole = z[missing <= 0.01]
        silent = missing > 0.01
        return [
            title,
            str(len(chosen)),
            str(len(good)),
            f"{100 * np.mean(np.abs(z) < 2):.1f}%" if len(z) else "",
            f"{100 * np.mean(np.abs(z) < 4):.1f}%" if len(z) else "",
            f"{100 * np.mean(np.abs(whole) < 2):.1f}%" if len(whole) else "",
            f"{np.sqrt(np.mean(whole**2)):.2f}" if len(whole) else "",
            str(int(silent.sum())),
            str(int((silent & (power > 0.99)).sum())),
            f"{np.median(numbers(chosen, 'gradients')):,.0f}" if chosen else "",
            f"{np.median(numbers(chosen, 'wall')):.1f}" if chosen else "",
        ]

    header = ["problems", "runs", "converged", "within 2 se", "within 4 se", "2 se, nothing missing", "RMS z of these"]
    header += ["missing > 1%", "of these with power > 99%", "gradients", "wall s"]
    groups = {f"dim {low}-{high}": ("dim", low, high) for low, high in ((1, 3), (4, 10), (11, 20), (21, 50))}
    groups |= {
        f"narrowest {low}-{high}": ("narrowest", low, high) for low, high in ((0.3, 0.6), (0.6, 0.8), (0.8, 1.0))
    }
    lines = [
        line(title, [row for row in rows if low <= float(row[name]) <= high])
        for title, (name, low, high) in groups.items()
    ]
    lines += [
        line(kind, [row for row in rows if row["kind"] == kind]) for kind in ("normal", "heavy", "skewed", "bent")
    ]
    return markdown(header, [*lines, line("all", rows)])


def main() -> None:
    """Run problems, or print the table of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="K N: every N-th problem, from the K-th")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        print(table([row for file in options.table for row in read(file)]))
        return
    out = options.out or RESULTS / f"families_{options.seed}_{options.part[0]}.csv"
    done = {int(row["number"]) for row in read(out)}
    for number in range(options.part[0], options.runs, options.part[1]):
        if number in done:
            continue
        row = one_run(options.seed, number)
        with out.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
        print(
            *(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()),
            flush=True,
        )
    print(table(read(out)))


if __name__ == "__main__":
    main()
