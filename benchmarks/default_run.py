"""What the default run costs and gives: no budget, no settings, on targets of many shapes with exact answers.

    python -m benchmarks.default_run [--seeds 20] [--only NAME] [--processes 1] [--out FILE]

Evaluations are gradients and densities together. R-hat and ESS are those that ArviZ's summary shows: the worst over
the parameters. The first run of a case in its process compiles, the others show the seconds of a warm one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, column, covered, facts, markdown, table
from benchmarks.parallel import spread
from pathtemp import testing
from pathtemp._types import Array
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import Problem


@dataclass(frozen=True)
class Case:
    """A problem, and the evaluations and R-hat that its runs may reach at most; None where nothing is said."""

    make: Callable[[], Problem]
    evaluations: float | None = None
    rhat: float = 1.01


def one_mode(dim: int, *, milliseconds: float = 0.0) -> Problem:
    """A correlated normal off the centre of a wider base; each evaluation takes as long as is said."""
    rng = np.random.default_rng(dim)
    factor = np.linalg.qr(rng.normal(size=(dim, dim)))[0] * rng.uniform(0.3, 1.0, size=dim)
    centre, precision = rng.normal(size=dim), np.linalg.inv(factor @ factor.T)

    def log_target(x: Array) -> Array:
        value = -0.5 * (x - centre) @ precision @ (x - centre)
        return slowed(value, milliseconds) if milliseconds else value

    base = pt.normal(0.0, 4.0, shape=(dim,))
    model = Model(base.log_prob, log_target, Layout({"x": (dim,)}), base.sample, name=f"one_mode_{dim}")
    end = 0.5 * dim * np.log(2.0 * np.pi) - 0.5 * float(np.linalg.slogdet(precision)[1])
    return Problem(f"one_mode_{dim}", model, end=end)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def slowed(value: Array, milliseconds: float) -> Array:
    """The value, so many milliseconds later."""

    def wait(x: np.ndarray) -> np.ndarray:
        time.sleep(1e-3 * milliseconds * x.size)
        return x

    out: Array = jax.pure_callback(wait, jax.ShapeDtypeStruct((), value.dtype), value, vmap_method="expand_dims")
    return out


@slowed.defjvp
def _slowed_jvp(milliseconds: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return slowed(primals[0], milliseconds), tangents[0]


CASES: dict[str, Case] = {
    "one_mode_1": Case(partial(one_mode, 1), 60_000),
    "one_mode_3": Case(partial(one_mode, 3), 60_000),
    "one_mode_10": Case(partial(one_mode, 10), 60_000),
    "one_mode_1_slow": Case(partial(one_mode, 1, milliseconds=1.0), 60_000),
    "one_mode_3_slow": Case(partial(one_mode, 3, milliseconds=1.0), 60_000),
    "one_mode_10_slow": Case(partial(one_mode, 10, milliseconds=1.0), 60_000),
    "rosenbrock": Case(testing.rosenbrock, 5e5),
    "rosenbrock_pairs": Case(partial(testing.rosenbrock, 3), 5e5),
    "twisted_normal": Case(testing.twisted_normal, 5e5),
    "shell_5": Case(partial(testing.shell, 5), 5e5),
    "shell_10": Case(partial(testing.shell, 10), 5e5),
    "ridge": Case(testing.ridge, 1e6),
    "sinh_arcsinh": Case(testing.sinh_arcsinh, 5e5),
    "cauchy_pair": Case(testing.cauchy_pair, None, 1.02),
    "flower": Case(testing.flower, 4e5, 1.02),
    "ten_modes_10": Case(partial(testing.paper_mixture, 10), None, 1.02),
    "ten_modes_100": Case(partial(testing.paper_mixture, 100), None, 1.02),
}


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one case."""
    problem, rows = CASES[name].make(), []
    for seed in seeds:
        began, busy = time.perf_counter(), time.process_time()
        fit = pt.temper(problem.model, seed=seed, progress=False)
        cost = {"wall": time.perf_counter() - began, "cpu": time.process_time() - busy}
        row = {"problem": name, "seed": seed} | facts(fit, problem, curve=False) | cost
        row |= {"compile": fit.seconds.get("compile", 0.0), "accounted": sum(fit.seconds.values())}
        row |= {"rhat": fit.diagnostics.rhat, "ess_bulk": fit.diagnostics.ess_bulk}
        rows.append(row)
        print(
            f"{name} seed {seed}: error {row['error']:+.4f}, se {row['se']:.4f}, z {row['z']:+.2f}, "
            f"{row['gradients']:,} + {row['densities']:,} evaluations, R-hat {row['rhat']:.3f}, "
            f"ESS {row['ess_bulk']:.0f}, {row['wall']:.1f} s ({row['compile']:.1f} compiling), "
            f"{'converged' if row['converged'] else 'NOT: ' + row['failed']}",
            flush=True,
        )
    return rows


HEADER = ["target", "runs", "converged", "mean se", "within 2 se", "sd z", "gradients", "densities", "R-hat", "ESS"]
HEADER += ["wall s", "evaluations to reach", "reached"]


def line(name: str, rows: list[Row]) -> list[str]:
    """One line of the printed table; medians over the runs, R-hat and ESS the worst of the converged ones."""
    case, good = CASES[name], [row for row in rows if row["converged"]]
    spent = column(rows, "gradients") + column(rows, "densities")
    rhat = column(good, "rhat").max(initial=0.0)
    ess = column(good, "ess_bulk").min(initial=np.inf)
    enough = len(good) >= 0.95 * len(rows) and rhat < case.rhat and ess >= 1000
    cheap = case.evaluations is None or bool(np.median(spent) <= case.evaluations)
    return [
        name,
        str(len(rows)),
        str(len(good)),
        f"{np.nanmean(column(rows, 'se')):.4f}",
        f"{100 * covered(rows):.0f}%",
        f"{np.nanstd(column(rows, 'z')):.2f}",
        f"{np.median(column(rows, 'gradients')):,.0f}",
        f"{np.median(column(rows, 'densities')):,.0f}",
        f"{rhat:.3f}",
        f"{ess:.0f}",
        f"{np.median(column(rows, 'wall')):.1f}",
        "-" if case.evaluations is None else f"{case.evaluations:,.0f}",
        "yes" if enough and cheap else "NO",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES), action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/default_run.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or CASES
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    print(markdown(HEADER, (line(name, rows) for name, rows in results.items())))


if __name__ == "__main__":
    main()
