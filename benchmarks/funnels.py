"""Margins by divide and conquer: quantiles, moments, tail probabilities and evidence against exact laws, over seeds.

    python -m benchmarks.funnels [--seeds 20] [--only NAME] [--processes 1] [--out benchmarks/results/funnels.csv]

Prints a line a run, and at the end a line a problem beside the figure that it is to reach.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, column, markdown, table
from benchmarks.parallel import spread
from pathtemp import testing

LEVELS = (0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999)
"""Quantiles compared."""

MOMENTS = (1, 2, 3, 4)
TAILS = (-6.0, -9.0)
"""Tail probabilities P(y < ...) of Neal's funnel."""

QUANTITIES = (
    *(f"q{p:g}" for p in LEVELS),
    *(f"m{k}" for k in MOMENTS),
    "sd",
    *(f"p{x:g}" for x in TAILS),
)


@dataclass(frozen=True)
class Case:
    """A problem, its budget in gradient evaluations, and what is to be reached.

    ``reached`` judges all runs; ``goal`` says the same in words; ``judged`` are the quantities it is about.
    """

    make: Callable[[], testing.MarginProblem]
    budget: float
    goal: str
    reached: Callable[[list[Row]], bool]
    judged: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


def rmse(rows: list[Row], name: str) -> float:
    """Root mean square relative error of one quantity."""
    return float(np.sqrt(np.mean(column(rows, name) ** 2)))


def below(rows: list[Row], names: tuple[str, ...], most: float) -> bool:
    """Relative RMSE of all of the quantities is at most ``most``."""
    return all(rmse(rows, name) <= most for name in names)


QUANTILES = QUANTITIES[: len(LEVELS)]
MOMENT_NAMES = tuple(f"m{k}" for k in MOMENTS)
TAIL_NAMES = tuple(f"p{x:g}" for x in TAILS)


def flat_schools(rows: list[Row]) -> bool:
    """Quantiles within 2%, moments within 1%."""
    return below(rows, QUANTILES, 0.02) and below(rows, MOMENT_NAMES, 0.01)


def schools(rows: list[Row]) -> bool:
    """The quantiles of known answers within 2%, the evidence within 3 standard errors."""
    within = np.all(np.abs(column(rows, "z_evidence")) <= 3.0)
    return below(rows, ("q0.001", "q0.01", "q0.05", "q0.5", "q0.95", "m1"), 0.02) and bool(within)


def neal(rows: list[Row]) -> bool:
    """The standard deviation within 1%, tail probabilities within 5%."""
    return below(rows, ("sd",), 0.01) and below(rows, TAIL_NAMES, 0.05)


def two_modes(rows: list[Row]) -> bool:
    """Either both modes are there, or the run does not call itself converged."""
    found = np.all(np.abs([column(rows, name) for name in ("q0.05", "q0.5", "q0.95")]) < 0.1, axis=0)
    return bool(np.all(found | (column(rows, "converged") == 0)))


CASES: dict[str, Case] = {
    "eight_schools_flat": Case(
        testing.eight_schools_flat,
        2e5,
        "quantiles <= 2%, moments <= 1%",
        flat_schools,
        (*QUANTILES, *MOMENT_NAMES),
    ),
    "eight_schools": Case(
        testing.eight_schools_prior,
        2e5,
        "quantiles <= 2%, evidence within 3 se",
        schools,
        (*QUANTILES[:5], "m1"),
    ),
    "funnel_9": Case(testing.neal_funnel, 6e5, "sd <= 1%, P(y < -6), P(y < -9) <= 5%", neal, ("sd", *TAIL_NAMES)),
    "funnel_50": Case(
        partial(testing.neal_funnel, 50), 6e5, "sd <= 1%, P(y < -6), P(y < -9) <= 5%", neal, ("sd", *TAIL_NAMES)
    ),
    "hierarchical_50": Case(
        testing.hierarchical,
        6e5,
        "quantiles <= 3%",
        partial(below, names=QUANTILES, most=0.03),
        QUANTILES,
    ),
    "two_mode_scale": Case(testing.two_mode_scale, 4e5, "found, or not converged", two_modes, QUANTILES),
    "eight_schools_flat_uniform": Case(
        testing.eight_schools_flat,
        2e5,
        "quantiles <= 2%, moments <= 1%",
        flat_schools,
        (*QUANTILES, *MOMENT_NAMES),
        {"target_marginal": "uniform"},
    ),
}


def measure(problem: testing.MarginProblem, *, seed: int, budget: float, **options: Any) -> Row:
    """One run: relative errors, their z-scores (``z_``) and the verdict."""
    began, busy = time.perf_counter(), time.process_time()
    fit = pt.divide_and_conquer(
        problem.model,
        margin=problem.margin,
        interval=problem.interval,
        budget=budget,
        seed=seed,
        progress=False,
        **options,
    )
    cost = {"wall": time.perf_counter() - began, "cpu": time.process_time() - busy}
    row: Row = {"problem": problem.name, "seed": seed, "budget": budget} | errors(fit, problem)
    evidence, error = fit.log_marginal_likelihood
    return row | {
        "evidence": evidence - problem.log_evidence,
        "z_evidence": (evidence - problem.log_evidence) / error,
        "trips": fit.diagnostics.tours,
        "draws": fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"],
        "converged": fit.converged,
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
        **cost,
        "compile": fit.seconds["compile"],
    }


def errors(fit: pt.MarginFit, problem: testing.MarginProblem) -> Row:
    """Relative error and z-score of every quantity; NaN where it does not apply."""
    assert fit.marginal is not None
    law, marginal = problem.law, fit.marginal
    centred = problem.margin == "y"
    estimates = {f"q{p:g}": (marginal.quantile(p), float(law.quantile(p))) for p in LEVELS}
    estimates |= {f"m{k}": (marginal.moment(k), law.expectation(lambda x, k=k: x**k)) for k in MOMENTS}
    mean = law.expectation(lambda x: x)
    estimates["sd"] = (marginal.sd(), float(np.sqrt(law.expectation(lambda x: (x - mean) ** 2))))
    if centred:
        estimates |= {f"p{x:g}": (marginal.cdf(x), float(law.cdf(x))) for x in TAILS}
    row: Row = {}
    for name in QUANTITIES:
        estimate, exact = estimates.get(name, (None, float("nan")))
        # A quantity whose true value is about zero has no relative error.
        usable = estimate is not None and abs(exact) > 1e-6
        row[name] = float(estimate.value / exact - 1.0) if usable and estimate is not None else float("nan")
        row[f"z_{name}"] = (
            float((estimate.value - exact) / estimate.se) if usable and estimate is not None else float("nan")
        )
    return row


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one case; the programs are compiled at the first."""
    case = CASES[name]
    problem, rows = case.make(), []
    for seed in seeds:
        row = measure(problem, seed=seed, budget=case.budget, **case.options)
        rows.append(row)
        worst = max(case.judged, key=lambda quantity: abs(row[quantity]))
        print(
            f"{name} seed {seed}: worst relative error {row[worst]:+.4f} ({worst}, z {row[f'z_{worst}']:+.2f}), "
            f"evidence {row['evidence']:+.4f} (z {row['z_evidence']:+.2f}), {row['trips']} trips, "
            f"{'converged' if row['converged'] else 'NOT: ' + row['failed']}, {row['wall']:.1f} s",
            flush=True,
        )
    return rows


HEADER = [
    "problem",
    "budget",
    "runs",
    "worst RMSE",
    "of",
    "within 2 se",
    "sd z",
    "evidence within 2 se",
    "trips",
    "converged",
    "cpu seconds",
    "to reach",
    "reached",
]


def summary_line(name: str, rows: list[Row]) -> list[str]:
    """One line of the printed table; coverage is over all judged quantities and runs."""
    case = CASES[name]
    worst = max(case.judged, key=lambda quantity: rmse(rows, quantity))
    z = np.concatenate([column(rows, f"z_{quantity}") for quantity in case.judged])
    evidence = column(rows, "z_evidence")
    return [
        name,
        f"{case.budget:,.0f}",
        str(len(rows)),
        f"{rmse(rows, worst):.4f}",
        worst,
        f"{100 * np.mean(np.abs(z) <= 2.0):.0f}%",
        f"{z.std():.2f}",
        "-" if np.isnan(evidence).any() else f"{100 * np.mean(np.abs(evidence) <= 2.0):.0f}%",
        f"{column(rows, 'trips').mean():.0f}",
        f"{100 * column(rows, 'converged').mean():.0f}%",
        f"{np.median(column(rows, 'cpu')):.1f}",
        case.goal,
        "yes" if case.reached(rows) else "NO",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES), action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/funnels.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or CASES
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    print(markdown(HEADER, (summary_line(name, rows) for name, rows in results.items())))


if __name__ == "__main__":
    main()
