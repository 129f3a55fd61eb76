"""Run one experiment, several or all: ``python -m experiments NAME... [--quick] [--fresh]``."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from pathlib import Path

from experiments.common import FULL, QUICK, Experiment, carry_out

NAMES = (
    *("link", "beta_binomial", "mixture_1d", "mixture", "flower", "horseshoe", "eight_schools"),
    *("cauchy", "logit_probit", "logz_and_tempering", "lda"),
)
"""Modules of this package, in the order of the paper."""


def experiment(name: str, *, corpus: Path | None = None) -> Experiment:
    """The experiment of that name; that of topics on the text in the file ``corpus``, where there is one."""
    if name == "lda" and corpus is not None:
        return import_module("experiments.lda").of(str(corpus))
    found: Experiment = import_module(f"experiments.{name}").EXPERIMENT
    return found


def main(arguments: list[str] | None = None) -> None:
    """Compute what is not kept yet, and draw."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"], help=f"all, {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help=f"small, and into {QUICK}")
    parser.add_argument("--fresh", action="store_true", help="compute again what is kept")
    parser.add_argument("--out", type=Path, help=f"folder for results; {FULL} unless quick")
    parser.add_argument("--corpus", type=Path, help="a text file for lda, paragraphs apart by empty lines")
    options = parser.parse_args(arguments)
    folder = options.out or (QUICK if options.quick else FULL)
    for name in NAMES if "all" in options.names else options.names:
        begin = time.perf_counter()
        found = experiment(name, corpus=options.corpus)
        called = f"{name}_{options.corpus.stem}" if name == "lda" and options.corpus else name
        for file in carry_out(called, found, quick=options.quick, folder=folder, fresh=options.fresh):
            print(f"  {file}")
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
