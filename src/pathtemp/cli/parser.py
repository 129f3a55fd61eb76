"""Commands and options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pathtemp.cli.importing import importing

EXIT_STATUS = """\
exit status: 0 converged (or done), 1 something given cannot work, 2 wrong options,
3 the run finished but did not converge, 130 interrupted with nothing to show"""

RUN_EXAMPLES = """\
examples:
  pathtemp run model.stan --data data.json --report report.html
  pathtemp run model.stan --data data.json --checkpoint run.nc            # killed? the next line goes on
  pathtemp run --checkpoint run.nc --resume
  pathtemp run mymodels:make_model --budget 200000 --out fit.nc --json    # a Python model, for machines

"""


class _Later:
    """A function of another module, imported when it is called."""

    def __init__(self, place: str) -> None:
        self._module, self._name = place.split(":")

    def __call__(self, options: argparse.Namespace) -> Any:
        with importing():
            command = getattr(import_module(self._module), self._name)
        return command(options)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        "pathtemp",
        description="Draws of metastable posteriors, and their normalising constants, by adaptive path sampling.",
        epilog=f"`pathtemp COMMAND --help` says more about each.\n\n{EXIT_STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pathtemp {version('pathtemp')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _run(commands)
    _report(commands)
    _compile(commands)
    _augment(commands)
    _demo(commands)
    _cache(commands)
    _doctor(commands)
    return parser


def _command(commands: Any, name: str, place: str, help: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=_Later(place))
    return parser


def _run(commands: Any) -> None:
    run = _command(
        commands, "run", "pathtemp.cli.run:run", "sample a Stan program or a Python model", RUN_EXAMPLES + EXIT_STATUS
    )
    run.add_argument(
        "model",
        nargs="?",
        help="a Stan program (model.stan), or module:object for a Python model, see below; with --resume it may be "
        "left out where it was a Stan program, which the checkpoint holds",
    )
    what = run.add_argument_group(
        "what to sample",
        "A Stan program starts its path from its `alternative model` block, from --base, or else from its prior; where "
        "that is not proper, from a wide base around the modes that are found. A Python object may be a pathtemp "
        "model, a PyMC model, or a function without arguments that returns one; it is imported, and so run.",
    )
    what.add_argument("--data", type=Path, metavar="FILE", help="data of the Stan program, a JSON file")
    what.add_argument("--base", type=Path, metavar="FILE", help="another Stan program whose model is the base, or auto")
    what.add_argument("--include", type=Path, action="append", default=[], metavar="FOLDER", help="for #include")
    how = run.add_argument_group("how")
    how.add_argument("--seed", type=int, help="seed of everything random (0)")
    how.add_argument(
        "--budget",
        type=float,
        help="gradient equivalents to spend: gradients, and densities at their price (as many as needed)",
    )
    how.add_argument("--max-seconds", type=float, help="wall seconds that the run may take (no limit)")
    how.add_argument("--draws", type=int, help="target draws to keep for each chain (about 4000 over all)")
    how.add_argument("--chains", type=int, help="chains side by side (64)")
    how.add_argument("--modes", choices=("auto", "off"), help="look for separated modes (auto)")
    how.add_argument("--paper", action="store_true", help="use the paper's own engine")
    out = run.add_argument_group("what to write")
    out.add_argument("--out", type=Path, metavar="FILE", help="the fit (netCDF, which ArviZ reads)")
    out.add_argument("--report", type=Path, metavar="FILE", help="one HTML page with verdict, figures and advice")
    out.add_argument("--checkpoint", type=Path, metavar="FILE", help="the state of the run, after every round")
    out.add_argument("--resume", action="store_true", help="go on from --checkpoint where it is there already")
    out.add_argument("--json", action="store_true", help="print one JSON object instead of a summary")
    out.add_argument("--quiet", action="store_true", help="no progress, only the outcome")


def _report(commands: Any) -> None:
    report = _command(commands, "report", "pathtemp.cli.run:report", "write the HTML report of a saved fit")
    report.add_argument("fit", type=Path, help="a fit that `pathtemp run --out` or fit.save wrote")
    report.add_argument("--out", type=Path, metavar="FILE", help="page to write (FIT with the ending .html)")


def _compile(commands: Any) -> None:
    help = "compile Stan programs into the cache, so that later runs begin at once; no data are needed"
    compiling = _command(commands, "compile", "pathtemp.cli.stan:compile_", help)
    compiling.add_argument("program", type=Path, nargs="+", help="Stan programs; they are compiled side by side")
    compiling.add_argument("--base", type=Path, metavar="FILE", help="the Stan program that `run` has as its --base")
    compiling.add_argument("--include", type=Path, action="append", default=[], metavar="FOLDER", help="for #include")
    compiling.add_argument("--quiet", action="store_true", help="no progress, only the outcome")


def _augment(commands: Any) -> None:
    help = "write the joint density of (theta, a) as a plain Stan program"
    augment = _command(commands, "augment", "pathtemp.cli.stan:augment", help)
    augment.add_argument("program", type=Path, help="a Stan program with an `alternative model` block")
    augment.add_argument("--include", type=Path, action="append", default=[], metavar="FOLDER", help="for #include")
    augment.add_argument("--out", metavar="FILE", help="program to write, - for standard output (NAME_augmented.stan)")
    augment.add_argument("--data", type=Path, metavar="FILE", help="its data; NAME_augmented.json is written too")


def _demo(commands: Any) -> None:
    demo = _command(commands, "demo", "pathtemp.demo:demo", "sample the paper's Cauchy pair, and draw one figure")
    demo.add_argument("--out", type=Path, default=Path("demo.png"), metavar="FILE", help="figure to write (demo.png)")
    demo.add_argument("--report", type=Path, metavar="FILE", help="HTML page to write as well")
    demo.add_argument("--seed", type=int, default=1, help="seed of the run (1)")


def _cache(commands: Any) -> None:
    cache = _command(commands, "cache", "pathtemp.cli.stan:cache", "show or clear the compiled Stan programs")
    cache.add_argument("--clear", action="store_true", help="remove them all")


def _doctor(commands: Any) -> None:
    doctor = _command(
        commands, "doctor", "pathtemp.cli.doctor:doctor", "check compiler, devices and extras, and say what to install"
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
