"""The default settings beside the paper's own engine: what each evaluation, and each second, buys.

    python -m benchmarks.table [--seeds 3] [--out benchmarks/results/table.csv]

Evaluations are over all chains, everything included; wall seconds are without compiling, which is beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, column, markdown, measure, table
from pathtemp import settings, testing

PAPER = settings.PAPER.replace(draws=1000, adaptations=6)
"""The paper's engine with a third of its draws an adaptation, so that the table takes minutes."""

PROBLEMS: dict[str, tuple[Callable[[], testing.Problem], float]] = {
    "beta-binomial, easy": (partial(testing.beta_binomial, "easy"), 5e4),
    "beta-binomial, hard": (partial(testing.beta_binomial, "hard"), 1e5),
    "Cauchy pair": (testing.cauchy_pair, 5e4),
    "pair of normals": (testing.mixture_1d, 5e4),
    "ten modes, 10-d": (testing.paper_mixture, 1e5),
    "eight schools, non-centred": (testing.eight_schools, 1e5),
    "eight schools, centred": (partial(testing.eight_schools, centred=True), 1e5),
    "flower, 40 petals": (testing.flower, 2e5),
}
"""Each problem with the budget of the default settings."""

HEADER = [
    "problem",
    "settings",
    "gradients",
    "densities",
    "seconds",
    "compile",
    "log z error",
    "se",
    "share error",
    "round trips",
    "converged",
]


def line(name: str, label: str, rows: list[Row]) -> list[str]:
    """Means over seeds; the error of log z is a root mean square."""
    share = float(column(rows, "share_error").mean())
    return [
        name,
        label,
        f"{column(rows, 'gradients').mean():,.0f}",
        f"{column(rows, 'densities').mean():,.0f}",
        f"{np.mean(column(rows, 'wall') - column(rows, 'compile')):.1f}",
        f"{column(rows, 'compile').max():.1f}",
        f"{np.sqrt(np.mean(column(rows, 'error') ** 2)):.3f}",
        f"{column(rows, 'se').mean():.3f}",
        "-" if np.isnan(share) else f"{share:.3f}",
        f"{column(rows, 'tours').mean():.0f}",
        f"{int(column(rows, 'converged').sum())} of {len(rows)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/table.csv"))
    options = parser.parse_args()
    lines = []
    with table(options.out) as append:
        for name, (make, budget) in PROBLEMS.items():
            problem = make()
            for label, chosen in (("default", settings.DEFAULT), ("PAPER", PAPER)):
                rows = []
                for seed in range(options.seeds):
                    row = measure(
                        problem,
                        seed=seed,
                        budget=budget if label == "default" else None,
                        settings=chosen,
                        curve=False,
                    )
                    rows.append({"settings": label} | row)
                    append(rows[-1])
                lines.append(line(name, label, rows))
                print(" | ".join(lines[-1]), flush=True)
    print()
    print(markdown(HEADER, lines))


if __name__ == "__main__":
    main()
