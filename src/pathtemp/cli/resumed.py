"""``pathtemp run --resume``: what the checkpoint says, and which options it overrules."""

from __future__ import annotations

import argparse
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.paper.plan import PaperPlan
from pathtemp.io.printable import printable
from pathtemp.io.rebuild import COMMAND_LINE

log = logging.getLogger("pathtemp.cli")


def say_what_is_ignored(options: argparse.Namespace, plan: Any, *, max_seconds: float = float("inf")) -> None:
    """Tell of options that are not those of the run: it goes on as it was begun."""
    begun = asked_for(plan) | {"max_seconds": None if max_seconds == float("inf") else max_seconds}
    given = {name: getattr(options, name) for name in begun if getattr(options, name) not in (None, False)}
    other = {name: value for name, value in given.items() if value != begun[name]}
    if other:
        dashed = {name.replace("_", "-"): value for name, value in other.items()}
        ignored = ", ".join(
            f"--{name}" if value is True else f"--{name} {_shown(value)}" for name, value in dashed.items()
        )
        kept = ", ".join(f"{name} {_shown(begun[name])}" for name in other)
        log.warning("--resume: %s: ignored, as the run goes on the way it was begun (%s)", ignored, kept)


def asked_for(plan: Any) -> dict[str, Any]:
    """The options of a run as its checkpoint has them, of those that its kind of run has."""
    settings = plan.settings
    begun: dict[str, Any] = {"seed": plan.seed, "chains": settings.chains, "paper": isinstance(plan, PaperPlan)}
    begun |= {"budget": plan.budget}
    if isinstance(plan, TemperPlan | PaperPlan):
        begun |= {"draws": plan.draws}
    if isinstance(plan, TemperPlan):
        begun |= {"modes": "auto" if plan.search else "off"}
    return begun


def say_what_is_resumed(place: Path, kept: Mapping[str, Any]) -> None:
    """Tell of the Stan programs in a checkpoint, by hash: they are compiled and run, and hold nothing but text."""
    recipe = kept.get("recipe")
    if recipe is None or recipe["of"] == COMMAND_LINE:
        return
    programs = ", ".join(
        f"{printable(str(program['name']))} (sha256 {hashlib.sha256(program['text'].encode()).hexdigest()[:16]})"
        for program in recipe["programs"]
    )
    log.warning("--resume: the Stan program and data in %s: %s", printable(str(place)), programs)


def _shown(value: Any) -> str:
    if value is None:
        return "as needed"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.15g}" if isinstance(value, float) else f"{value}"
