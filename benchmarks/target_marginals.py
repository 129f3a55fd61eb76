"""Marginals of lam against each other: uniform, min-variance and constant-KL, on geometric paths with known curves.

The cases ``temper:*`` are of ``pt.temper`` itself, by ``settings.marginal``; the others of ``pt.path_sample``.

    python -m benchmarks.target_marginals [--seeds 20] [--only NAME] [--processes 1] [--out ...]

Each problem of tempering is run by path sampling along (1 - lam) log base + lam log target, lam = t^4: most of the
change from a prior to a posterior lies near lam = 0, and a uniform marginal of lam itself would pass it by.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, column, facts, markdown, table
from benchmarks.parallel import spread
from pathtemp import settings, testing
from pathtemp._types import Array
from pathtemp.settings import Marginal

BUDGET = 300_000.0
POWER = 4
MARGINALS: tuple[Literal["uniform", "min-variance", "constant-kl"], ...] = ("uniform", "min-variance", "constant-kl")
PROBLEMS: dict[str, Callable[[], testing.Problem]] = {
    "beta_binomial_hard": partial(testing.beta_binomial, "hard"),
    "conjugate_regression": testing.conjugate_regression,
    "gaussian_scale": testing.gaussian_scale,
    "eight_schools": testing.eight_schools,
}
CASES = [
    *(f"path:{name}:{marginal}" for name in PROBLEMS for marginal in MARGINALS),
    *(f"temper:{name}:{marginal}" for name in PROBLEMS for marginal in get_args(Marginal)),
]


@cache
def geometric(name: str) -> tuple[testing.Problem, Callable[[Array, Array], Array]]:
    """A problem and its geometric path as a function of lam, one object for each, so that it is compiled once."""
    problem = PROBLEMS[name]()

    def log_q(theta: Array, t: Array) -> Array:
        # Lam a little inside (0, 1), so that a density of zero never meets a weight of zero.
        weight = 1e-9 + (1.0 - 2e-9) * t**POWER
        return (1.0 - weight) * problem.model.log_base(theta) + weight * problem.model.log_target(theta)

    return problem, log_q


def run(case: str, seeds: range) -> list[Row]:
    """All runs of one problem with one marginal."""
    how, name, marginal = case.split(":")
    if how == "temper":
        return run_temper(case, seeds)
    problem, log_q = geometric(name)
    assert problem.log_z is not None
    rows: list[Row] = []
    for seed in seeds:
        fit = pt.path_sample(
            log_q,
            problem.model.dim,
            (0.0, 1.0),
            target_marginal=next(m for m in MARGINALS if m == marginal),
            budget=BUDGET,
            seed=seed,
            progress=False,
        )
        t = np.linspace(0.0, 1.0, 101)[1:]
        error = fit.log_z(t) - np.asarray(problem.log_z(t**POWER))
        value, se = fit.log_marginal_likelihood
        row = {"case": case, "seed": seed, "error": float(error[-1]), "se": se, "z": float(error[-1]) / se}
        row |= {"curve_rmse": float(np.sqrt(np.mean(error**2))), "tours": fit.diagnostics.tours}
        row |= {"converged": fit.converged, "gradients": fit.counts.gradients, "value": value}
        rows.append(row)
        print(f"{case} seed {seed}: error {row['error']:+.4f}, se {se:.4f}, {row['tours']} trips", flush=True)
    return rows


def run_temper(case: str, seeds: range) -> list[Row]:
    """All runs of ``pt.temper`` on one problem with one marginal."""
    _, name, marginal = case.split(":")
    problem, rows = PROBLEMS[name](), []
    chosen = settings.DEFAULT.replace(marginal=marginal)
    for seed in seeds:
        fit = pt.temper(problem.model, budget=BUDGET, seed=seed, settings=chosen, modes="off", progress=False)
        rows.append({"case": case, "seed": seed} | facts(fit, problem))
        print(f"{case} seed {seed}: error {rows[-1]['error']:+.4f}, se {rows[-1]['se']:.4f}", flush=True)
    return rows


def summary_line(case: str, rows: list[Row]) -> list[str]:
    """One line of the printed table."""
    z = column(rows, "z")
    return [
        *case.split(":"),
        str(len(rows)),
        f"{np.sqrt(np.mean(column(rows, 'error') ** 2)):.4f}",
        f"{np.sqrt(np.mean(column(rows, 'curve_rmse') ** 2)):.4f}",
        f"{column(rows, 'se').mean():.4f}",
        f"{100 * np.mean(np.abs(z) <= 2.0):.0f}%",
        f"{column(rows, 'tours').mean():.0f}",
        f"{100 * column(rows, 'converged').mean():.0f}%",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=CASES, action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/target_marginals.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        results = spread(run, options.only or CASES, seeds=options.seeds, processes=options.processes, append=append)
    header = ["by", "problem", "marginal", "runs", "RMSE", "curve RMSE", "mean se", "within 2 se", "trips", "converged"]
    print(markdown(header, (summary_line(case, rows) for case, rows in results.items())))


if __name__ == "__main__":
    main()
