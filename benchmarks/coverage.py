"""Is the standard error of log z honest? Coverage of log z ± 2 se over problems, budgets and seeds.

    python -m benchmarks.coverage [--seeds 6] [--only NAME] [--processes 1] [--out benchmarks/results/coverage.csv]

The third budget is none: the run stops by itself, as it does for a user who does not say.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, column, covered, markdown, measure, table
from benchmarks.parallel import spread
from pathtemp import testing

BUDGETS = (1.2e5, 4.5e5, None)

PROBLEMS: dict[str, Callable[[], testing.Problem]] = {
    name: testing.ALL[name]
    for name in (
        "beta_binomial_easy",
        "beta_binomial_hard",
        "cauchy_pair",
        "conjugate_regression",
        "eight_schools",
        "eight_schools_centred",
        "flower",
        "funnel",
        "gaussian_scale",
        "harmonic_oscillators",
        "mixture_1d",
        "paper_mixture",
        "unidentifiable_coin",
        "uniform_supports",
        "unknown_scale_regression",
    )
} | {"logistic_10": partial(testing.logistic_regression, 10, 300)}


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one problem, with seeds of its own: equal seeds would make runs of like problems alike."""
    problem, rows = PROBLEMS[name](), []
    first = 1000 * list(PROBLEMS).index(name)
    for part, budget in enumerate(BUDGETS):
        for seed in (first + 100 * part + i for i in seeds):
            row = {"name": name} | measure(problem, seed=seed, budget=budget, curve=False)
            rows.append(row)
            print(
                f"{name} budget {budget}, seed {seed}: error {row['error']:+.4f}, se {row['se']:.4f}, "
                f"z {row['z']:+.2f}, {row['failed'] or 'converged'}",
                flush=True,
            )
    return rows


def line(name: str, rows: list[Row]) -> list[str]:
    """Coverage and z-scores of some runs; those without a finite standard error have no say."""
    said = [row for row in rows if np.isfinite(row["se"]) and np.isfinite(row["z"])]
    z = column(said, "z")
    return [
        name,
        str(len(rows)),
        str(len(said)),
        f"{100 * covered(said):.1f}%" if said else "-",
        f"{z.mean():+.2f} ± {z.std() / np.sqrt(max(len(z), 1)):.2f}" if said else "-",
        f"{z.std():.2f}" if said else "-",
        f"{np.abs(z).max():.1f}" if said else "-",
        f"{100 * column(rows, 'converged').mean():.0f}%",
    ]


HEADER = ["runs of", "runs", "with se", "within 2 se", "mean z", "sd z", "largest |z|", "converged"]


def summary(rows: list[Row]) -> str:
    """A line a problem, a line a budget, and all together."""
    names = dict.fromkeys(row["name"] for row in rows)
    lines = [line(name, [row for row in rows if row["name"] == name]) for name in names]
    for budget in BUDGETS:
        chosen = [r for r in rows if r["budget"] == budget]
        lines.append(line("no budget given" if budget is None else f"budget {budget:,.0f}", chosen))
    lines.append(line("all that converged", [r for r in rows if r["converged"]]))
    lines.append(line("all", rows))
    return markdown(HEADER, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", choices=list(PROBLEMS), action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/coverage.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or PROBLEMS
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    print(summary([row for rows in results.values() for row in rows]))


if __name__ == "__main__":
    main()
