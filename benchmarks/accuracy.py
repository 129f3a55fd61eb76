"""Accuracy of the default settings at a given budget, over seeds, on problems with exact answers.

    python -m benchmarks.accuracy [--seeds 20] [--only NAME] [--processes 1] [--out benchmarks/results/accuracy.csv]

Prints a line a run, and at the end a line a problem beside the figure that it is to reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, column, covered, markdown, measure, table
from benchmarks.parallel import spread
from pathtemp import testing


@dataclass(frozen=True)
class Case:
    """A problem, its budget in gradient evaluations, and what is to be reached.

    ``reached`` judges all runs of the case; ``goal`` says the same in words.
    """

    make: Callable[[], testing.Problem]
    budget: float
    goal: str
    reached: Callable[[list[Row]], bool]
    curve: bool = True


def rmse(rows: list[Row]) -> float:
    """Root mean square error of log z(1)."""
    return float(np.sqrt(np.mean(column(rows, "error") ** 2)))


def honest(rows: list[Row]) -> bool:
    """Errors are as large as the standard errors say, as far as this number of runs can tell."""
    z2 = np.mean(column(rows, "z") ** 2)
    return bool(covered(rows) >= 0.85 and z2 < 1.0 + 3.0 * np.sqrt(2.0 / len(rows)))


def small_se(rows: list[Row], se: float) -> bool:
    """Standard errors are below ``se`` on average, and honest."""
    return bool(column(rows, "se").mean() <= se) and honest(rows)


def cauchy(rows: list[Row]) -> bool:
    """Log z and the shares of both modes."""
    return rmse(rows) <= 0.05 and bool(np.all(np.abs(column(rows, "share") - 0.5) <= 0.05))


def whole_curve(rows: list[Row]) -> bool:
    """Root mean square over runs of the error of the whole curve."""
    return bool(np.sqrt(np.mean(column(rows, "curve_rmse") ** 2)) <= 0.05)


def petals(rows: list[Row]) -> bool:
    """All petals, their shares, and log z."""
    found = np.all(column(rows, "modes") == 40)
    return bool(found and column(rows, "share_error").mean() <= 0.003 and rmse(rows) <= 0.02)


def long_path(rows: list[Row]) -> bool:
    """Round trips, an error within 4 standard errors, and those at most .5."""
    within = np.all(np.abs(column(rows, "z")) <= 4.0)
    return bool(np.all(column(rows, "tours") > 0) and within and np.all(column(rows, "se") <= 0.5))


CASES: dict[str, Case] = {
    "cauchy_pair": Case(testing.cauchy_pair, 1.5e5, "RMSE <= .05, share of theta > 0 within .5 ± .05", cauchy),
    "beta_binomial_hard": Case(
        partial(testing.beta_binomial, "hard"), 3e5, "RMSE of the whole curve <= .05", whole_curve
    ),
    "logistic_regression": Case(
        partial(testing.logistic_regression, 30, 2000),
        6e5,
        "se <= .02, honest",
        partial(small_se, se=0.02),
        curve=False,
    ),
    "eight_schools": Case(testing.eight_schools, 4.5e5, "se <= .02, honest", partial(small_se, se=0.02)),
    "eight_schools_centred": Case(
        partial(testing.eight_schools, centred=True), 4.5e5, "se <= .06, honest", partial(small_se, se=0.06)
    ),
    "flower": Case(testing.flower, 1.2e6, "40 petals, mean share error <= .003, RMSE <= .02", petals),
    "high_dimensional_gaussian": Case(
        testing.high_dimensional_gaussian, 3e6, "tours > 0, |z| <= 4, se <= .5", long_path
    ),
}


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one case; the programs are compiled at the first."""
    case = CASES[name]
    problem, rows = case.make(), []
    for seed in seeds:
        row = measure(problem, seed=seed, budget=case.budget, curve=case.curve)
        rows.append(row)
        print(
            f"{name} seed {seed}: error {row['error']:+.4f}, se {row['se']:.4f}, z {row['z']:+.2f}, "
            f"{row['tours']} round trips, {'converged' if row['converged'] else 'NOT: ' + row['failed']}, "
            f"{row['wall']:.1f} s",
            flush=True,
        )
    return rows


HEADER = [
    "problem",
    "budget",
    "runs",
    "RMSE",
    "mean se",
    "within 2 se",
    "mean z",
    "sd z",
    "curve RMSE",
    "share error",
    "modes",
    "round trips",
    "converged",
    "cpu seconds",
    "to reach",
    "reached",
]


def summary_line(name: str, rows: list[Row]) -> list[str]:
    """One line of the printed table."""
    case, z = CASES[name], column(rows, "z")
    return [
        name,
        f"{case.budget:,.0f}",
        str(len(rows)),
        f"{rmse(rows):.4f}",
        f"{column(rows, 'se').mean():.4f}",
        f"{100 * covered(rows):.0f}%",
        f"{z.mean():+.2f}",
        f"{z.std():.2f}",
        _or_dash(float(np.sqrt(np.mean(column(rows, "curve_rmse") ** 2)))),
        _or_dash(float(column(rows, "share_error").mean())),
        _or_dash(float(column(rows, "modes").min()), 0),
        f"{column(rows, 'tours').mean():.0f}",
        f"{100 * column(rows, 'converged').mean():.0f}%",
        f"{np.median(column(rows, 'cpu')):.1f}",
        case.goal,
        "yes" if case.reached(rows) else "NO",
    ]


def _or_dash(value: float, digits: int = 4) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES), action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/accuracy.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or CASES
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    print(markdown(HEADER, (summary_line(name, rows) for name, rows in results.items())))


if __name__ == "__main__":
    main()
