"""Separated modes: are they found, are their shares right, and what does looking for them cost?

    python -m benchmarks.modes [--seeds 20] [--only CASE] [--processes 1] [--out benchmarks/results/modes.csv]
                               [--plot growth.png]

Prints a line a run, and at the end a line a case beside the figure that it is to reach; for the cases ``growth_*``
also the power of the dimension with which the gradient evaluations grow.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, column, facts, flat_draws, markdown, shares, table
from benchmarks.parallel import spread
from pathtemp import testing
from pathtemp._types import FloatArray
from pathtemp.plots.style import BETWEEN, DASHES, RC, TARGET

GROWTH_DIMS = (10, 30, 100, 300)

ACCURACY = 0.02
"""Standard error of log z at which the gradients of the cases ``growth_*`` are compared."""


@dataclass(frozen=True)
class Case:
    """A problem, its budget in gradient evaluations, and what is to be reached.

    ``reached`` judges all runs of the case; ``goal`` says the same in words. Without a budget a run stops by
    itself. ``hints`` are given to the search; ``both`` runs the case a second time
    without looking for modes.
    """

    make: Callable[[], testing.Problem]
    budget: float | None
    goal: str
    reached: Callable[[list[Row]], bool]
    hints: Callable[[int], FloatArray] | None = None
    both: bool = False


def rmse(rows: list[Row]) -> float:
    """Root mean square error of log z(1)."""
    return float(np.sqrt(np.mean(column(rows, "error") ** 2)))


def accurate(rows: list[Row], *, share: float, log_z: float) -> bool:
    """Mean absolute error of the shares, and root mean square error of log z."""
    return bool(column(rows, "share_error").mean() <= share) and rmse(rows) <= log_z


def relative(rows: list[Row], *, share: float, log_z: float) -> bool:
    """Root mean square relative error of every share, and root mean square error of log z."""
    worst = np.sqrt(np.mean(np.square([row["relative"] for row in rows]), axis=0)).max()
    return bool(worst <= share) and rmse(rows) <= log_z


def all_found(rows: list[Row], *, share: float, log_z: float) -> bool:
    """All modes in 19 of 20 runs, and in those every share and log z."""
    complete = [row for row in rows if row["known"] >= row["true_modes"]]
    return len(complete) >= 0.95 * len(rows) and relative(complete, share=share, log_z=log_z)


def never_missing(rows: list[Row]) -> bool:
    """No run calls itself converged while the narrow mode is missing."""
    return not any(row["converged"] and row["share"] < 0.1 for row in rows)


def cheap(rows: list[Row]) -> bool:
    """Gradient evaluations with the search against those without, over all runs."""
    return bool(column(rows, "gradients").sum() <= 1.15 * column(rows, "without").sum())


def near_modes(seed: int) -> FloatArray:
    """A point near each of the three unequal modes, about one of its standard deviations away in every coordinate."""
    dim = 20
    sign = (-1.0) ** np.arange(dim)
    centres = np.stack([np.full(dim, 6.0), -5.0 * sign, np.linspace(-3.0, 1.0, dim)])
    noise = np.random.default_rng(seed).normal(size=(3, dim))
    return centres + np.array([1.0, 0.3, 3.0])[:, None] * noise


def _mixture(dim: int, scale: float, budget: float, share: float, log_z: float) -> Case:
    goal = f"mean share error <= {share:g}, RMSE of log z <= {log_z:g}"
    make = partial(testing.paper_mixture, dim, centre_scale=scale)
    return Case(make, budget, goal, partial(accurate, share=share, log_z=log_z))


_UNEQUAL = ("every share within 10% of itself, RMSE of log z <= .1", partial(relative, share=0.1, log_z=0.1))
_UNIMODAL = ("at most 15% more gradients than without the search", cheap)

CASES: dict[str, Case] = {
    "mixture_100": _mixture(100, 1.0, 6e5, 0.015, 0.1),
    "mixture_100_far": _mixture(100, 5.0, 6e5, 0.015, 0.1),
    "mixture_10": _mixture(10, 1.0, 3e5, 0.012, 0.05),
    "mixture_10_far": _mixture(10, 5.0, 3e5, 0.012, 0.05),
    "unequal": Case(testing.unequal_modes, 6e5, *_UNEQUAL),
    "unequal_given": Case(testing.unequal_modes, 6e5, *_UNEQUAL, hints=near_modes),
    "student": Case(
        testing.student_modes,
        6e5,
        "5 modes in 19 of 20 runs, every share within 15% of itself, RMSE of log z <= .05",
        partial(all_found, share=0.15, log_z=0.05),
    ),
    "narrow": Case(testing.narrow_mode, 3e5, "never converged without the narrow mode (50 runs)", never_missing),
    **{
        f"growth_{dim}": Case(
            partial(testing.paper_mixture, dim, centre_scale=5.0),
            6e5,
            "no worse than dim^.75, shares as accurate",
            partial(accurate, share=0.015, log_z=0.1),
        )
        for dim in GROWTH_DIMS
    },
    "unimodal_beta_binomial": Case(partial(testing.beta_binomial, "hard"), None, *_UNIMODAL, both=True),
    "unimodal_eight_schools": Case(testing.eight_schools, None, *_UNIMODAL, both=True),
    "unimodal_logistic": Case(partial(testing.logistic_regression, 10, 300), None, *_UNIMODAL, both=True),
}


def one(name: str, seed: int, problem: testing.Problem) -> Row:
    """One run as one row."""
    case = CASES[name]
    hints = "auto" if case.hints is None else case.hints(seed)
    fit = pt.temper(problem.model, budget=case.budget, seed=seed, progress=False, modes=hints)
    row: Row = {"case": name, "seed": seed, "budget": case.budget, "dim": problem.model.dim}
    row |= facts(fit, problem, curve=False)
    modes = fit.modes
    assert modes is not None
    true = np.ones(1) if problem.shares is None else problem.shares
    share = np.ones(1) if problem.shares is None else shares(problem, flat_draws(fit))
    centres = list(modes.centre.values())
    labels = problem.labels(centres[0]) if problem.labels is not None and len(modes) else np.zeros(len(modes), int)
    without = float("nan")
    if case.both:
        without = pt.temper(problem.model, budget=case.budget, seed=seed, progress=False, modes="off").counts.gradients
    return row | {
        "true_modes": len(true),
        "known": len(set(labels.tolist())),
        "relative": (share / true - 1.0).tolist(),
        "unseen": modes.unseen,
        "mixture": modes.mixture,
        "length": fit.diagnostics.length,
        "without": without,
        "to_accuracy": gradients_to(fit, ACCURACY),
        "seconds": sum(fit.seconds.values()),
    }


def gradients_to(fit: pt.Fit, se: float) -> float:
    """Gradient evaluations after which log z had this standard error; carried on as 1 / se^2 where it came later."""
    frozen = [record for record in fit.history if record.phase == "sample"]
    for record in frozen:
        if record.log_z_se <= se:
            return float(record.gradients)
    before = fit.history[-len(frozen) - 1].gradients
    last = frozen[-1]
    return before + (last.gradients - before) * (last.log_z_se / se) ** 2


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one case; the programs are compiled at the first."""
    problem, rows = CASES[name].make(), []
    for seed in seeds:
        row = one(name, seed, problem)
        rows.append(row)
        worst = max(map(abs, row["relative"]))
        print(
            f"{name} seed {seed}: error {row['error']:+.4f}, se {row['se']:.4f}, share error {row['share_error']:.4f}, "
            f"worst relative {worst:.3f}, modes {row['known']}/{row['true_modes']}, {row['tours']} round trips, "
            f"{row['gradients']:,} gradients, {'converged' if row['converged'] else 'NOT: ' + row['failed']}",
            flush=True,
        )
    return rows


HEADER = [
    *("case", "budget", "runs", "RMSE", "mean se", "share error", "worst relative", "all modes", "round trips"),
    *("length", "gradients", "without", "converged", "to reach", "reached"),
]


def summary_line(name: str, rows: list[Row]) -> list[str]:
    """One line of the printed table."""
    case = CASES[name]
    worst = np.sqrt(np.mean(np.square([row["relative"] for row in rows]), axis=0)).max()
    return [
        name,
        "-" if case.budget is None else f"{case.budget:,.0f}",
        str(len(rows)),
        f"{rmse(rows):.4f}",
        f"{column(rows, 'se').mean():.4f}",
        f"{column(rows, 'share_error').mean():.4f}",
        f"{worst:.3f}",
        f"{np.sum(column(rows, 'known') >= column(rows, 'true_modes'))}",
        f"{column(rows, 'tours').mean():.0f}",
        f"{column(rows, 'length').mean():.2f}",
        f"{column(rows, 'gradients').mean():,.0f}",
        f"{column(rows, 'without').mean():,.0f}" if case.both else "-",
        f"{100 * column(rows, 'converged').mean():.0f}%",
        case.goal,
        "yes" if case.reached(rows) else "NO",
    ]


def growth(results: dict[str, list[Row]]) -> tuple[float, FloatArray, FloatArray]:
    """Power of the dimension with which gradients to one accuracy grow, the dimensions, and those gradients."""
    present = [dim for dim in GROWTH_DIMS if f"growth_{dim}" in results]
    gradients = np.array([column(results[f"growth_{dim}"], "to_accuracy").mean() for dim in present])
    power = float(np.polyfit(np.log(present), np.log(gradients), 1)[0]) if len(present) > 1 else float("nan")
    return power, np.array(present, float), gradients


def _growth_lines(dims: FloatArray, gradients: FloatArray) -> list[list[str]]:
    return [[f"{dim:.0f}", f"{count:,.0f}"] for dim, count in zip(dims, gradients, strict=True)]


def plot(path: Path, power: float, dims: FloatArray, gradients: FloatArray) -> None:
    """Gradients against dimension, with the fitted power: for light pages, and beside it, "-dark", for dark ones."""
    from matplotlib import rc_context, style

    for name, place in (("default", path), ("dark_background", path.with_stem(f"{path.stem}-dark"))):
        with style.context(name), rc_context(RC):
            _plot(place, power, dims, gradients)


def _plot(path: Path, power: float, dims: FloatArray, gradients: FloatArray) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    axes = figure.add_subplot(xlabel="dimension", ylabel="gradient evaluations", xscale="log", yscale="log")
    axes.plot(dims, gradients, "o-", color=TARGET, label=f"measured, as dim^{power:.2f}")
    bound = gradients[0] * (dims / dims[0]) ** 0.75
    axes.plot(dims, bound, color=BETWEEN, linestyle=DASHES, label="for comparison, as dim^0.75")
    axes.legend(loc="upper left")
    ticks = np.array([5e4, 1e5, 2e5, 4e5])
    axes.set_xticks(dims, [f"{dim:.0f}" for dim in dims])
    axes.set_yticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES), action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/modes.csv"))
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or CASES
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    print(markdown(HEADER, (summary_line(name, rows) for name, rows in results.items())))
    power, dims, gradients = growth(results)
    if len(dims) > 1:
        print(markdown(["dim", "gradients to a standard error of .02"], _growth_lines(dims, gradients)))
        print(f"\ngradients grow as dim^{power:.2f}: {'yes' if power <= 0.75 else 'NO'}")
        if options.plot is not None:
            plot(options.plot, power, dims, gradients)


if __name__ == "__main__":
    main()
