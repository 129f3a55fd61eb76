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

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

import pathtemp as pt
from benchmarks.families import read
from benchmarks.measure import Row, markdown
from pathtemp._types import Array, FloatArray

RESULTS = Path(__file__).parent / "results" / "hard_to_find.csv"

MISSING = 0.2
"""Share of a part among the draws, relative to its due, below which it is missing."""


class Mixture:
    """A mixture of round normals, normalised; callable on one point (dim,).

    Parameters
    ----------
    weight, scale
        Of each part, (K,).
    centre
        Of each part, (K, dim).
    """

    def __init__(self, weight: FloatArray, scale: FloatArray, centre: FloatArray) -> None:
        self.weight, self.scale, self.centre = weight, scale, centre

    def log_parts(self, x: Array) -> Array:
        """Log weighted density of each part, (K,)."""
        square = jnp.sum(((x - self.centre) / self.scale[:, None]) ** 2, axis=1)
        size = x.shape[0] * (np.log(self.scale) + 0.5 * np.log(2 * np.pi))
        return np.log(self.weight) - 0.5 * square - size

    def __call__(self, x: Array) -> Array:
        """Log density."""
        return logsumexp(self.log_parts(x))


def three_modes() -> tuple[Mixture, float]:
    """Three modes in 20-d, their scales .7, 1 and 1.4."""
    centre = 4.0 * np.random.default_rng(0).normal(size=(3, 20))
    return Mixture(np.array([0.2, 0.3, 0.5]), np.array([0.7, 1.0, 1.4]), centre), 5.0


def corners() -> tuple[Mixture, float]:
    """64 equal modes at the corners of a cube in 6-d."""
    centre = 4.0 * np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
    return Mixture(np.full(64, 1 / 64), np.full(64, 0.5), centre), 6.0


def spike() -> tuple[Mixture, float]:
    """A spike of width .01 inside a slab of width .1, in 20-d."""
    return Mixture(np.array([0.99, 0.01]), np.array([0.01, 0.1]), np.zeros((2, 20))), 1.0


CASES: dict[str, Callable[[], tuple[Mixture, float]]] = {"three_modes": three_modes, "corners": corners, "spike": spike}


def one_run(name: str, seed: int) -> Row:
    """One default run, held against the truth: log z is zero."""
    target, spread = CASES[name]()
    dim = target.centre.shape[1]
    began = time.perf_counter()
    fit = pt.temper(target=target, base=pt.normal(0.0, spread, shape=(dim,)), seed=seed, progress=False)
    theta = jnp.asarray(np.asarray(fit.posterior["theta"]).reshape(-1, dim))
    value, se = fit.log_marginal_likelihood
    held = np.asarray(jax.jit(jax.vmap(lambda x: jax.nn.softmax(target.log_parts(x))))(theta)).mean(axis=0)
    return {
        "problem": name,
        "seed": seed,
        "error": value,
        "se": se,
        "missing": float(np.sum(target.weight[held < MISSING * target.weight])),
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
