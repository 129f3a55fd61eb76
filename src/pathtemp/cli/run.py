"""``pathtemp run`` and ``pathtemp report``."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from pathtemp.checkpoint.file import before, place_of
from pathtemp.checkpoint.resume import resume
from pathtemp.cli import NOT_CONVERGED
from pathtemp.cli.models import kept_model, open_model
from pathtemp.errors import InputError
from pathtemp.fit import Fit
from pathtemp.settings import DEFAULT, PAPER
from pathtemp.storage import load
from pathtemp.tempering import temper


def run(options: argparse.Namespace) -> int:
    """Sample, print the outcome, write what was asked for."""
    for name in ("out", "report", "checkpoint"):
        _check_place(name, getattr(options, name))
    if options.resume and options.checkpoint is None:
        raise InputError("--resume: give the --checkpoint to go on from")
    if options.model is None and not options.resume:
        raise InputError("model: give a Stan program or module:object, or --resume with a --checkpoint that has one")
    fit = _fit(options)
    written = {"out": options.out, "report": options.report}
    if options.out is not None:
        fit.save(options.out)
    if options.report is not None:
        fit.report(options.report)
    files = {name: str(path) for name, path in written.items() if path is not None}
    if options.json:
        print(json.dumps(as_json(fit) | {"files": files}, allow_nan=False))
    else:
        print(fit.summary())
        for name, path in files.items():
            print(f"\n{'saved as' if name == 'out' else 'the report is'} {path}")
    return 0 if fit.converged else NOT_CONVERGED


def _fit(options: argparse.Namespace) -> Fit:
    if options.model is None:
        if options.data is not None or options.base is not None or options.include:
            raise InputError("--data, --base and --include go with a model; without one all is in the checkpoint")
        return resume(options.checkpoint, kept_model(options.checkpoint), progress=not options.quiet)
    model = open_model(
        options.model,
        data=options.data,
        base=options.base,
        include=options.include,
        seed=options.seed,
        progress=not options.quiet,
    )
    if options.resume:
        place = place_of(options.checkpoint)
        if place.exists() or before(place).exists():
            return resume(options.checkpoint, model, progress=not options.quiet)
    return temper(
        model,
        draws=options.draws,
        chains=options.chains,
        budget=options.budget,
        seed=options.seed,
        modes=options.modes,
        settings=PAPER if options.paper else DEFAULT,
        progress=not options.quiet,
        checkpoint=options.checkpoint,
    )


def report(options: argparse.Namespace) -> int:
    """Write the report of a saved fit."""
    out: Path = options.out or options.fit.with_suffix(".html")
    _check_place("out", out)
    load(options.fit).report(out)
    print(f"the report is {out}")
    return 0


def _check_place(name: str, path: Path | None) -> None:
    """See before sampling that a file can be written."""
    if path is not None and not path.resolve().parent.is_dir():
        raise InputError(f"--{name}: there is no folder {str(path.resolve().parent)!r}")
    if path is not None and path.is_dir() and name != "checkpoint":
        raise InputError(f"--{name}: {str(path)!r} is a folder; give the name of a file in it")


def as_json(fit: Fit) -> dict[str, Any]:
    """The outcome for machines; numbers that are none become null."""
    value, se = fit.log_marginal_likelihood
    diagnostics = fit.diagnostics
    checks = [
        {"name": c.name, "passed": c.passed, "value": _number(c.value), "threshold": _number(c.threshold)}
        for c in diagnostics.checks
    ]
    return {
        "model": fit.name,
        "converged": fit.converged,
        "warnings": fit.warnings,
        "log_z": _number(value),
        "log_z_se": _number(se),
        "normalised_base": fit.exact_base,
        "round_trips": diagnostics.tours,
        "khat": _number(diagnostics.khat),
        "rhat": _number(diagnostics.rhat),
        "ess_bulk": _number(diagnostics.ess_bulk),
        "ess_tail": _number(diagnostics.ess_tail),
        "path_length": _number(diagnostics.length),
        "checks": checks,
        "modes": None if fit.modes is None else [_number(share) for share in fit.modes.share],
        "gradients": fit.counts.gradients,
        "densities": fit.counts.densities,
        "seconds": {part: round(spent, 3) for part, spent in fit.seconds.items()},
        "seed": fit.seed,
        "versions": fit.versions,
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
