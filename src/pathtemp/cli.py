"""The command line: ``pathtemp run``, ``pathtemp augment`` and ``pathtemp cache``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

FAILED = 1
"""Exit status where something the user gave cannot work."""

NOT_CONVERGED = 3
"""Exit status of a run that finished but did not converge."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 for wrong input, 2 for wrong options, 3 for a run not converged."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    from pathtemp.errors import InputError, MissingExtraError

    try:
        status: int = options.command(options)
    except (InputError, MissingExtraError) as error:
        print(f"pathtemp: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("pathtemp: interrupted", file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("pathtemp", description="Draws and normalising constants by path sampling.")
    parser.add_argument("--version", action="version", version=f"pathtemp {version('pathtemp')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="temper a Stan program with an `alternative model` block")
    run.add_argument("program", type=Path, help="the Stan program")
    run.add_argument("--data", type=Path, help="its data, a JSON file")
    run.add_argument("--base", type=Path, help="another Stan program whose model is the base")
    run.add_argument("--include", type=Path, action="append", default=[], help="folder for #include; may repeat")
    run.add_argument("--out", type=Path, help="where to save the fit (netCDF)")
    run.add_argument("--seed", type=int, default=0, help="seed of everything random (0)")
    run.add_argument("--chains", type=int, help="chains side by side")
    run.add_argument("--draws", type=int, help="target draws to keep for each chain")
    run.add_argument("--budget", type=float, help="gradient evaluations to spend")
    run.add_argument("--paper", action="store_true", help="use the paper's own engine")
    run.add_argument("--quiet", action="store_true", help="no progress, only the summary")
    run.set_defaults(command=_run)

    augment = commands.add_parser("augment", help="write the joint density of (theta, a) as a plain Stan program")
    augment.add_argument("program", type=Path, help="a Stan program with an `alternative model` block")
    augment.add_argument("--include", type=Path, action="append", default=[], help="folder for #include; may repeat")
    augment.add_argument("--out", help="file to write, - for standard output (NAME_augmented.stan beside it)")
    augment.add_argument("--data", type=Path, help="its data: NAME_augmented.json is written too, for a flat start")
    augment.set_defaults(command=_augment)

    cache = commands.add_parser("cache", help="show or clear the compiled Stan programs")
    cache.add_argument("--clear", action="store_true", help="remove them all")
    cache.set_defaults(command=_cache)
    return parser


def _run(options: argparse.Namespace) -> int:
    from pathtemp.errors import InputError
    from pathtemp.frontends.stan import from_stan
    from pathtemp.settings import DEFAULT, PAPER
    from pathtemp.tempering import temper

    if options.out is not None and not options.out.resolve().parent.is_dir():
        raise InputError(f"--out: there is no folder {str(options.out.resolve().parent)!r}")
    model = from_stan(
        options.program,
        options.base,
        data=options.data,
        include_paths=options.include,
        seed=options.seed,
        progress=not options.quiet,
    )
    fit = temper(
        model,
        draws=options.draws,
        chains=options.chains,
        budget=options.budget,
        seed=options.seed,
        settings=PAPER if options.paper else DEFAULT,
        progress=not options.quiet,
    )
    print(fit.summary())
    if options.out is not None:
        fit.save(options.out)
        print(f"\nsaved as {options.out}")
    return 0 if fit.converged else NOT_CONVERGED


def _augment(options: argparse.Namespace) -> int:
    from pathtemp.frontends.stan import augment, augmented_data
    from pathtemp.frontends.stan.data import read_data

    text = augment(options.program, include_paths=options.include)
    if options.out == "-":
        print(text, end="")
        return 0
    out = Path(options.out) if options.out else options.program.with_name(f"{options.program.stem}_augmented.stan")
    out.write_text(text, encoding="utf-8")
    print(f"the joint density is {out}")
    if options.data is not None:
        data = out.with_suffix(".json")
        data.write_text(json.dumps(read_data(options.data) | augmented_data(), indent=1), encoding="utf-8")
        print(f"its data, with a flat pseudo-prior, is {data}")
    return 0


def _cache(options: argparse.Namespace) -> int:
    from pathtemp.frontends.stan.cache import cache_folder, cache_info, clear_cache

    if options.clear:
        print(f"{clear_cache() / 1e6:.1f} MB removed from {cache_folder()}")
        return 0
    entries = cache_info()
    for entry in entries:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
        print(f"{made}  {entry.bytes / 1e6:7.1f} MB  {entry.kind:8}{entry.name}")
    print(f"{len(entries)} entries, {sum(e.bytes for e in entries) / 1e6:.1f} MB, in {cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
