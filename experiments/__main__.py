"""Run one experiment, several or all: ``python -m experiments NAME... [--quick] [--fresh]``."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from pathlib import Path

from experiments.common import FULL, QUICK, Experiment, carry_out

NAMES = ("link", "beta_binomial", "mixture_1d", "mixture", "flower", "eight_schools", "cauchy", "logz_and_tempering")
"""Modules of this package, in the order of the paper."""


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    found: Experiment = import_module(f"experiments.{name}").EXPERIMENT
    return found


def main(arguments: list[str] | None = None) -> None:
    """Compute what is not kept yet, and draw."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"], help=f"all, {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help=f"small, and into {QUICK}")
    parser.add_argument("--fresh", action="store_true", help="compute again what is kept")
    parser.add_argument("--out", type=Path, help=f"folder for results; {FULL} unless quick")
    options = parser.parse_args(arguments)
    folder = options.out or (QUICK if options.quick else FULL)
    for name in NAMES if "all" in options.names else options.names:
        begin = time.perf_counter()
        for file in carry_out(name, experiment(name), quick=options.quick, folder=folder, fresh=options.fresh):
            print(f"  {file}")
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
