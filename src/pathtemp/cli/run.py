"""``pathtemp run`` and ``pathtemp report``."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from pathtemp.api.resume import resume
from pathtemp.api.temper import temper
from pathtemp.cli import NOT_CONVERGED
from pathtemp.cli.models import open_model, refuse_named
from pathtemp.cli.resumed import say_what_is_ignored, say_what_is_resumed
from pathtemp.cli.words import as_options
from pathtemp.errors import InputError
from pathtemp.io.atomic import new_file
from pathtemp.io.checkpoint import before, place_of, read_last
from pathtemp.io.storage import load
from pathtemp.model.model import Model
from pathtemp.result.fit import Fit
from pathtemp.settings import DEFAULT, PAPER


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
        print(as_options(str(fit.summary())))
        for name, path in files.items():
            print(f"\n{'saved as' if name == 'out' else 'the report is'} {path}")
    return 0 if fit.converged else NOT_CONVERGED


def _fit(options: argparse.Namespace) -> Fit:
    again = options.resume and (options.model is None or _is_there(options.checkpoint))
    if again:
        return _resumed(options)
    seed = 0 if options.seed is None else options.seed
    return temper(
        _model(options, seed),
        draws=options.draws,
        chains=options.chains,
        budget=options.budget,
        max_seconds=options.max_seconds,
        seed=seed,
        modes=options.modes or "auto",
        settings=PAPER if options.paper else DEFAULT,
        progress=not options.quiet,
        checkpoint=options.checkpoint,
    )


def _resumed(options: argparse.Namespace) -> Fit:
    if options.model is None and (options.data is not None or options.base is not None or options.include):
        raise InputError("--data, --base and --include go with a model; without one all is in the checkpoint")
    record = read_last(options.checkpoint)
    say_what_is_ignored(options, record["plan"], max_seconds=record["state"].get("max_seconds", float("inf")))
    if options.model is None:
        refuse_named(options.checkpoint, record["model"])
        if not options.quiet:
            say_what_is_resumed(options.checkpoint, record["model"])
    model = None if options.model is None else _model(options, record["plan"].seed)
    return resume(options.checkpoint, model, progress=not options.quiet)


def _model(options: argparse.Namespace, seed: int) -> Model:
    return open_model(
        options.model,
        data=options.data,
        base=options.base,
        include=options.include,
        seed=seed,
        progress=not options.quiet,
    )


def _is_there(checkpoint: Path) -> bool:
    place = place_of(checkpoint)
    return place.exists() or before(place).exists()


def report(options: argparse.Namespace) -> int:
    """Write the report of a saved fit."""
    out: Path = options.out or options.fit.with_suffix(".html")
    _check_place("out", out)
    load(options.fit).report(out)
    print(f"the report is {out}")
    return 0


def _check_place(name: str, path: Path | None) -> None:
    """See before sampling that a file can be written."""
    if path is not None and not (name == "checkpoint" and path.is_dir()):
        new_file(f"--{name}", path)


def as_json(fit: Fit) -> dict[str, Any]:
    """The outcome for machines; numbers that are none become null."""
    value, se = fit.log_constant
    diagnostics = fit.diagnostics
    checks = [
        {"name": c.name, "passed": c.passed, "value": _number(c.value), "threshold": _number(c.threshold)}
        for c in diagnostics.checks
    ]
    return {
        "model": fit.name,
        "converged": fit.converged,
        "warnings": [as_options(message) for message in fit.warnings],
        "log_z": _number(value),
        "log_z_se": _number(se),
        "is_evidence": fit.is_evidence,
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
