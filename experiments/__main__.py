"""Run one experiment, several or all: ``python -m experiments NAME... [--quick] [--fresh] [--processes N]``."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from experiments.common import FULL, QUICK, carry_out
from experiments.names import NAMES, experiment
from experiments.spread import spread


def main(arguments: list[str] | None = None) -> None:
    """Compute what is not kept yet, and draw."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"], help=f"all, {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help=f"small, and into {QUICK}")
    parser.add_argument("--fresh", action="store_true", help="compute again what is kept")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work of each table")
    parser.add_argument("--out", type=Path, help=f"folder for results; {FULL} unless quick")
    parser.add_argument("--corpus", type=Path, help="a text file for lda, paragraphs apart by empty lines")
    options = parser.parse_args(arguments)
    folder = options.out or (QUICK if options.quick else FULL)
    for name in NAMES if "all" in options.names else options.names:
        begin = time.perf_counter()
        found = experiment(name, corpus=options.corpus)
        many = None
        if options.processes > 1:
            many = partial(spread, name, quick=options.quick, processes=options.processes, corpus=options.corpus)
        called = f"{name}_{options.corpus.stem}" if name == "lda" and options.corpus else name
        for file in carry_out(called, found, quick=options.quick, folder=folder, fresh=options.fresh, run=many):
            print(f"  {file}")
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
