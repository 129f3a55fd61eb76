"""The verdict on targets drawn at random, at default settings: errors, misses and the stated power.

    python -m benchmarks.families --seed 1 --runs 1000 [--part K N] [--out FILE]
    python -m benchmarks.families --table FILE ...
    python -m benchmarks.families --calibration FILE ... [--figure PNG]

Problem number n of a seed is that of :func:`pathtemp.testing.family`. Runs already in the file are left out, so that a
sweep can be stopped and taken up again; ``--part K N`` takes every N-th problem, for several processes or machines.
A part of a mixture is missing where its draws add up to less than a fifth of its share. The power that a run states is
asked for each part with its own width and share, so that it can be held against the rate at which parts are found.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta

import pathtemp as pt
from benchmarks.measure import Row, markdown
from pathtemp.testing.families import LEAST_VOLUME, Family, Parts, family, responsibilities

RESULTS = Path(__file__).parent / "results"

MISSING = 0.2
"""Share of a part among the draws, relative to its due, below which it is missing."""

POWERS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)
"""Limits of the groups of stated powers."""


def one_run(seed: int, number: int) -> Row:
    """One default run, held against what is known."""
    problem, about = family(seed, number)
    began = time.perf_counter()
    fit = pt.temper(problem.model, seed=number, progress=False)
    wall = time.perf_counter() - began
    value, se = fit.log_marginal_likelihood
    error = value - problem.log_z_end
    found = parts(fit, problem, about)
    missed = [part for part in found if not part.found]
    return {
        "seed": seed,
        "number": number,
        **about.__dict__,
        "error": error,
        "se": se,
        "z": error / se if se > 0 else np.nan,
        "missing": sum(part.share for part in missed),
        "known": 0 if fit.modes is None else len(fit.modes),
        "power": power_of(fit),
        "missed_power": max((part.power for part in missed if np.isfinite(part.power)), default=np.nan),
        "converged": int(fit.converged),
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
        "wall": wall,
        "search": fit.seconds.get("search", 0.0),
        "compile": fit.seconds.get("compile", 0.0),
        "parts": " ".join(str(part) for part in found),
    }


@dataclass(frozen=True)
class Part:
    """A part of a mixture: its width relative to the widest, its share, the power stated for such a mode, its fate."""

    width: float
    share: float
    power: float
    found: bool

    def __str__(self) -> str:
        """As :meth:`read` takes it."""
        return f"{self.width:.4f}/{self.share:.5f}/{self.power:.4f}/{int(self.found)}"

    @classmethod
    def read(cls, text: str) -> Part:
        """A part from its text."""
        width, share, power, found = (float(number) for number in text.split("/"))
        return cls(width, share, power, found == 1.0)


def parts(fit: pt.Fit, problem: pt.testing.Problem, about: Family) -> list[Part]:
    """What became of each part, and with what power the run says it would find such a one."""
    target = problem.model.log_target
    assert isinstance(target, Parts)
    assert problem.shares is not None
    theta = np.asarray(fit.posterior["x"]).reshape(-1, about.dim)
    held = responsibilities(target, theta)[:, : about.count].mean(axis=0)
    size = np.exp(np.mean(np.log(np.asarray(target.scale)[: about.count]), axis=1))
    # Widths are relative to the widest mode that the run knows of.
    width = np.minimum(size / np.max(np.where(held > 0.0, size, 0.0)), 1.0)
    return [
        Part(
            float(width[k]),
            float(share),
            np.nan if fit.modes is None or share == 1.0 else fit.modes.power(width=float(width[k]), share=float(share)),
            bool(held[k] >= MISSING * share),
        )
        for k, share in enumerate(problem.shares)
    ]


def power_of(fit: pt.Fit) -> float:
    """The stated power for a mode of a twentieth of the mass, seven tenths as wide as the widest; NaN for none."""
    return float("nan") if fit.modes is None else fit.modes.power(width=0.7, share=0.05)


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a file; none where there is no file."""
    return list(csv.DictReader(file.open())) if file.exists() else []


def table(rows: list[dict[str, str]]) -> str:
    """Converged runs and their errors, by dimension and by width of the narrowest mode, and over all."""

    def numbers(chosen: list[dict[str, str]], name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in chosen])

    def line(title: str, chosen: list[dict[str, str]]) -> list[str]:
        good = [row for row in chosen if row["converged"] == "1"]
        z, missing, power = (numbers(good, name) for name in ("z", "missing", "missed_power"))
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
    header += ["missing > 1%", "of these with power > 99% for it", "gradients", "wall s"]
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
    lines += [
        line("widths that can be found", [row for row in rows if volume(row) <= LEAST_VOLUME + 1e-9]),
        line("volumes beyond", [row for row in rows if volume(row) > LEAST_VOLUME + 1e-9]),
    ]
    return markdown(header, [*lines, line("all", rows)])


def volume(row: dict[str, str]) -> float:
    """Nats between the volumes of the widest and the narrowest mode."""
    return -float(row["dim"]) * float(np.log(float(row["narrowest"])))


def calibration(rows: list[dict[str, str]]) -> list[tuple[float, float, int, int]]:
    """For each group of stated powers that has parts: their mean, the rate of finding, parts found and parts.

    Only parts of problems with several are counted, since a run that found no part at all states no power.
    """
    every = [Part.read(text) for row in rows if float(row["count"]) > 1 for text in row["parts"].split()]
    every = [part for part in every if np.isfinite(part.power)]
    groups = []
    for low, high in itertools.pairwise(POWERS):
        chosen = [part for part in every if low <= part.power < high or (high == 1.0 and part.power == 1.0)]
        if chosen:
            found = sum(part.found for part in chosen)
            groups.append((float(np.mean([p.power for p in chosen])), found / len(chosen), found, len(chosen)))
    return groups


def draw_calibration(groups: list[tuple[float, float, int, int]], file: Path) -> None:
    """Stated power against the rate of finding, with 95% intervals; a second file is for dark pages."""
    import matplotlib.pyplot as plt

    from pathtemp.plots.style import RC

    stated = np.array([group[0] for group in groups])
    found, count = (np.array([group[k] for group in groups], float) for k in (2, 3))
    # Jeffreys intervals.
    low, high = (beta.ppf(q, found + 0.5, count - found + 0.5) for q in (0.025, 0.975))
    rate = found / count
    for place, look in ((file, "default"), (file.with_name(f"{file.stem}-dark.png"), "dark_background")):
        with plt.style.context(look), plt.rc_context(RC):
            figure, axes = plt.subplots(figsize=(4.5, 4.0), layout="constrained")
            axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
            axes.errorbar(stated, rate, yerr=[np.maximum(rate - low, 0), np.maximum(high - rate, 0)], fmt="o")
            for x, y, n in zip(stated, rate, count, strict=True):
                axes.annotate(f"{int(n)}", (x, y), xytext=(6, -10), textcoords="offset points", fontsize=8)
            axes.set(xlabel="power that the run stated", ylabel="rate at which such modes were found")
            figure.savefig(place, dpi=160, transparent=look != "default")
            plt.close(figure)


def main() -> None:
    """Run problems, or print the table of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="K N: every N-th problem, from the K-th")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+")
    parser.add_argument("--calibration", type=Path, nargs="+")
    parser.add_argument("--figure", type=Path, help="file for the plot of the calibration")
    options = parser.parse_args()
    if options.table:
        print(table([row for file in options.table for row in read(file)]))
        return
    if options.calibration:
        groups = calibration([row for file in options.calibration for row in read(file)])
        lines = [[f"{stated:.3f}", f"{rate:.3f}", f"{found} of {count}"] for stated, rate, found, count in groups]
        print(markdown(["stated power", "rate of finding", "modes"], lines))
        if options.figure:
            draw_calibration(groups, options.figure)
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
