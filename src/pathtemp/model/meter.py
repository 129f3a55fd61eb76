"""Counts what is evaluated inside a block of code, where no engine counts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Meter:
    """Evaluations so far."""

    gradients: int = 0
    densities: int = 0


_running: ContextVar[Meter | None] = ContextVar("running", default=None)


@contextmanager
def metered() -> Iterator[Meter]:
    """Count what is evaluated inside.

    >>> with metered() as meter:
    ...     note(densities=64)
    >>> meter.densities
    64
    """
    meter = Meter()
    token = _running.set(meter)
    try:
        yield meter
    finally:
        _running.reset(token)


def note(*, gradients: int = 0, densities: int = 0) -> None:
    """Say that so much was evaluated."""
    meter = _running.get()
    if meter is not None:
        meter.gradients += gradients
        meter.densities += densities
