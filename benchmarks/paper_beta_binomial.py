"""Error of the log z curve per adaptation of the paper's engine on its two beta-binomials, as CSV.

    python benchmarks/paper_beta_binomial.py --seeds 8 --adaptations 20 > paper_beta_binomial.csv

``rmse`` is the root mean square error of log z over 101 positions equispaced in a between base and target,
and ``gradients`` counts all evaluations up to then, warm-up included. A summary goes to standard error.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import pathtemp as pt
from pathtemp.settings import PAPER
from pathtemp.testing import Problem, beta_binomial

CASES = ("easy", "hard")


def rows(problem: Problem, seed: int, adaptations: int) -> Iterator[dict[str, Any]]:
    settings = PAPER.replace(adaptations=adaptations, stop=False)
    fit = pt.temper(problem.model, seed=seed, settings=settings, progress=False)
    for index, record in enumerate(fit.history, start=1):
        error = record.curve.mean - problem.log_z(record.curve.lam)
        yield {
            "case": problem.name.removeprefix("beta_binomial_"),
            "seed": seed,
            "adaptation": index,
            "gradients": record.gradients,
            "rmse": float(np.sqrt(np.mean(error**2))),
            "error_at_1": float(error[-1]),
            "se_at_1": record.log_z_se,
            "khat": record.khat,
            "tours": record.tours,
            "acceptance": record.acceptance,
        }


def summary(table: list[dict[str, Any]]) -> str:
    lines = ["case  adaptation  gradients  rmse: 10%  median  90%  khat < .7"]
    for case in CASES:
        for index in sorted({row["adaptation"] for row in table}):
            cell = [row for row in table if row["case"] == case and row["adaptation"] == index]
            low, middle, high = np.quantile([row["rmse"] for row in cell], [0.1, 0.5, 0.9])
            gradients = np.mean([row["gradients"] for row in cell])
            passed = np.mean([row["khat"] < PAPER.khat for row in cell])
            lines.append(f"{case}  {index:10d}  {gradients:9.0f}  {low:9.3f}  {middle:6.3f}  {high:6.3f}  {passed:.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--adaptations", type=int, default=20)
    arguments = parser.parse_args()
    table = [
        row
        for problem in map(beta_binomial, CASES)
        for seed in range(arguments.seeds)
        for row in rows(problem, seed, arguments.adaptations)
    ]
    writer = csv.DictWriter(sys.stdout, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    print(summary(table), file=sys.stderr)


if __name__ == "__main__":
    main()
