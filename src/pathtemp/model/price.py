"""What one evaluation of a log density takes, and a sentence where that is much: whoever waits is told why."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import BLOCK

log = logging.getLogger("pathtemp")

SLOW = 0.02
"""Seconds of one evaluation from which a run takes hours."""

LEAST = 1.0
"""Seconds of all evaluations together from which it is the density, and nothing around it, that takes them."""

SILENCE = 10.0
"""Seconds after which somebody who waits for the first evaluations is told so."""

FEW = 10_000
"""Evaluations of a short run."""


@contextmanager
def told_of_waiting(name: str) -> Iterator[None]:
    """Say that evaluations are under way, where the first of them take long."""
    message = "%s: the first evaluations of the log density are under way for %.0f seconds; Ctrl-C ends the run"
    timer = Timer(SILENCE, log.warning, (message, name, SILENCE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def timed_again(name: str, evaluate: Callable[[], FloatArray], *, count: int = BLOCK) -> FloatArray:
    """Evaluate ``count`` points for which a program is there already, and say what one takes where that is much.

    >>> import numpy as np
    >>> timed_again("target", lambda: np.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    begin = time.perf_counter()
    values = evaluate()
    seconds = time.perf_counter() - begin
    if seconds > max(SLOW * count, LEAST):
        log.warning(slow_words(name, seconds / count))
    return values


def slow_words(name: str, price: float) -> str:
    """What to say of a log density that takes ``price`` seconds.

    >>> print(slow_words("target", 1.0))
    target: one evaluation of the log density takes about 1 seconds, so that 10,000 of them, a short run, take about \
2.8 hours; budget= and max_seconds= bound a run, and Ctrl-C ends it, with the fit so far once there is a round
    """
    return (
        f"{name}: one evaluation of the log density takes about {price:.2g} seconds, so that {FEW:,} of them, a short "
        f"run, take about {FEW * price / 3600:.1f} hours; budget= and max_seconds= bound a run, and Ctrl-C ends it, "
        "with the fit so far once there is a round"
    )
