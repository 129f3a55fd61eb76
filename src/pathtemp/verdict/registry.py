"""All gates by name: the question of each, its condition, what to do when it fails, and its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from pathtemp.result.run import Check

MORE = "run longer (a larger budget)"
"""First advice of most gates."""

HOMES = tuple(f"pathtemp.verdict.{name}" for name in ("travel", "draws", "densities", "modes"))
"""Modules that hold gates."""

Function = TypeVar("Function", bound=Callable[..., Check])


@dataclass(frozen=True)
class Gate:
    """One gate.

    Parameters
    ----------
    name
        As in ``fit.diagnostics.checks``.
    question
        The question that it answers, in plain words, for reports.
    limit
        Default limit of the value.
    holds
        The condition that passes, with a placeholder for the limit, for the documentation.
    advice
        What to do when it fails.
    check
        The function.
    lasts
        True if more rounds cannot change its outcome.
    """

    name: str
    question: str
    limit: float
    holds: str
    advice: str
    check: Callable[..., Check]
    lasts: bool = False

    @property
    def row(self) -> str:
        """Its row of the table in docs/verdict.md."""
        return f"| {self.name} | {self.holds.format(limit=self.limit)} | {self.advice} |"


_GATES: dict[str, Gate] = {}


def gate(name: str, *, question: str, holds: str, advice: str, lasts: bool = False) -> Callable[[Function], Function]:
    """Register a function as the gate ``name``; its limit is the default of its argument ``limit``."""

    def register(check: Function) -> Function:
        limit: Any = inspect.signature(check).parameters["limit"].default
        _GATES[name] = Gate(name, question, float(limit), holds, advice, check, lasts)
        return check

    return register


def gates() -> dict[str, Gate]:
    """All gates by name.

    >>> gates()["tours"].limit
    20.0
    """
    for home in HOMES:
        import_module(home)
    return _GATES


def more_rounds_would_help(checks: Iterable[Check]) -> bool:
    """Whether a gate failed that more rounds might pass.

    >>> more_rounds_would_help([Check("tours", 3.0, 20.0, False)]), more_rounds_would_help([Check("NaN", 1, 0, False)])
    (True, False)
    """
    known = gates()
    return any(not check.passed and not known[check.name].lasts for check in checks)


def judged(name: str, value: float, limit: float, passed: bool, message: str) -> Check:
    """The check of one gate; a check that passed has no message."""
    return Check(name, float(value), float(limit), bool(passed), "" if passed else message)


def table(names: Iterable[str]) -> str:
    """Rows of the table in docs/verdict.md for these gates.

    >>> table(["rounds"])
    '| rounds | at least 2 rounds after the end of adaptation | larger budget |'
    """
    return "\n".join(gates()[name].row for name in names)
