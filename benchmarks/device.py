"""From one core to a GPU: what a run of many chains, of much data or of many dimensions takes on this machine.

    python -m benchmarks.device [--only NAME ...] [--seeds 1] [--profile] [--out FILE]

Each row is a run in a process that has compiled nothing, and the same once more in that process ("warm"). Seconds are
those of the wall; nanoseconds are those of annealing, adapting and sampling for each gradient evaluation.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, table
from pathtemp import testing
from pathtemp._types import Array
from pathtemp.model.model import Model, model


@dataclass(frozen=True)
class Case:
    """A model, its exact log z where it is known, and how it is run."""

    make: Callable[[], tuple[Model, float]]
    chains: int = 64
    budget: float | None = None


def ten_modes() -> tuple[Model, float]:
    """The paper's mixture of ten modes in 100 dimensions."""
    problem = testing.paper_mixture(100)
    return problem.model, problem.log_z_end


def wide_gaussian() -> tuple[Model, float]:
    """A path between two normal laws in 2000 dimensions."""
    problem = testing.high_dimensional_gaussian(2000)
    return problem.model, problem.log_z_end


def regression(rows: int = 1_000_000, columns: int = 100) -> tuple[Model, float]:
    """A logistic regression with many rows; its evidence is not known exactly."""
    rng = np.random.default_rng(0)
    design = rng.normal(size=(rows, columns)) / np.sqrt(columns)
    truth = rng.normal(size=columns)
    outcome = rng.uniform(size=rows) < 1.0 / (1.0 + np.exp(-design @ truth))
    x, sign = jnp.asarray(design), jnp.asarray(np.where(outcome, 1.0, -1.0))
    base = pt.normal(0.0, 1.0, shape=(columns,))

    def log_target(beta: Array) -> Array:
        return base.log_prob(beta) + jnp.sum(jax.nn.log_sigmoid(sign * (x @ beta)))

    return model(log_target, base, name="regression"), float("nan")


CASES: dict[str, Case] = {
    "ten_modes_64": Case(ten_modes, 64, 6e5),
    "ten_modes_1024": Case(ten_modes, 1024, 1.4e6),
    "ten_modes_1024_default": Case(ten_modes, 1024),
    "ten_modes_16384": Case(ten_modes, 16_384, 2.3e7),
    "ten_modes_65536": Case(ten_modes, 65_536, 1e8),
    "gaussian_2000": Case(wide_gaussian),
    "regression_small": Case(partial(regression, 10_000)),
    "regression": Case(regression, 64),
}


def measured(name: str, seed: int, *, profile: bool) -> list[Row]:
    """Two runs of a case, the second warm."""
    case = CASES[name]
    made, exact = case.make()
    rows = []
    for turn in ("cold", "warm"):
        profiler = cProfile.Profile()
        begin = time.perf_counter()
        if profile:
            profiler.enable()
        fit = pt.temper(made, chains=case.chains, budget=case.budget, seed=seed, progress=False)
        profiler.disable()
        wall = time.perf_counter() - begin
        work = sum(fit.seconds.get(part, 0.0) for part in ("anneal", "adapt", "sample"))
        rows.append(
            {
                "case": name,
                "seed": seed,
                "turn": turn,
                "gradients": fit.counts.gradients,
                "wall": round(wall, 2),
                **{part: round(seconds, 2) for part, seconds in sorted(fit.seconds.items())},
                "ns": round(1e9 * work / fit.counts.gradients, 1),
                "error": fit.log_z.mean[-1] - exact,
                "se": fit.log_z.stderr[-1],
                "converged": fit.converged,
                "failed": " ".join(check.name for check in fit.diagnostics.checks if not check.passed),
            }
        )
        print(rows[-1], flush=True)
        if profile:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)
    return rows


def main() -> None:
    """Run the cases that are named, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="show where the host spends its time")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(jax.devices())
    with table(options.out) as append:
        for name in options.only:
            for seed in range(options.seeds):
                for row in measured(name, seed, profile=options.profile):
                    append(row)


if __name__ == "__main__":
    main()
