"""Stan densities and samplers leave XLA's tables once nobody can call them any more, and then their programs go."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_Waiting = tuple[Callable[[int], bool], int, tuple[Any, ...]]

_waiting: list[_Waiting] = []
"""What could not go at once, since something was being evaluated."""


def released_with(thing: object, release: Callable[[int], bool], number: int, *kept: Any) -> None:
    """Call ``release(number)`` once ``thing`` is garbage, and let go of what is ``kept`` once that was granted.

    >>> class Thing: pass
    >>> gone, thing = [], Thing()
    >>> released_with(thing, lambda number: gone.append(number) is None, 7)
    >>> del thing
    >>> gone
    [7]
    """
    # At the end of the process XLA may still evaluate.
    weakref.finalize(thing, _release, release, number, kept).atexit = False


def _release(release: Callable[[int], bool], number: int, kept: tuple[Any, ...]) -> None:
    # A collection may begin inside an evaluation, which must not wait for itself: the next one tries again.
    _waiting.append((release, number, kept))
    _waiting[:] = [(ask, which, kept) for ask, which, kept in _waiting if not ask(which)]
