"""What one evaluation of a log density takes, beside one of its gradient; and a sentence where that is much."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import BLOCK
from pathtemp.settings import USUAL_PRICE, Settings

log = logging.getLogger("pathtemp")

SLOW = 0.02
"""Seconds of one evaluation from which a run takes hours."""

LEAST = 1.0
"""Seconds of all evaluations together from which it is the density, and nothing around it, that takes them."""

SILENCE = 10.0
"""Seconds after which somebody who waits for the first evaluations is told so."""

FEW = 10_000
"""Evaluations of a short run."""

DEAR = 2e-4
"""Seconds of one evaluation from which its price is measured: below, what is around it takes as long where others use
the machine too."""

CLASSES = ((1 / 16, 1 / 8), (1 / 4, 0.6), (1.0, float("inf")))
"""What a density may cost, in gradients, and the measured ratio up to which it does.

Few, and with limits away from the usual ratios of automatic differentiation, 1/5 to 1/2: the next run finds the same.
"""

TIMINGS, ENOUGH = 5, 0.3
"""Evaluations of a block that are timed at most, and seconds after which one is enough."""


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


def told_if_slow(name: str, evaluate: Callable[[], FloatArray], *, count: int = BLOCK) -> FloatArray:
    """Evaluate ``count`` points for which a program is there already, and say what one takes where that is much.

    >>> import numpy as np
    >>> told_if_slow("target", lambda: np.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    begin = time.perf_counter()
    values = evaluate()
    seconds = time.perf_counter() - begin
    if seconds > max(SLOW * count, LEAST):
        log.warning(slow_words(name, seconds / count))
    return values


def price_class(ratio: float) -> float:
    """The class of a measured ratio of density to gradient.

    >>> [price_class(ratio) for ratio in (0.02, 0.2, 0.5, 0.9, 1.4)]
    [0.0625, 0.25, 0.25, 1.0, 1.0]
    """
    return next(price for price, limit in CLASSES if ratio <= limit)


def lowest_price(settings: Settings) -> float:
    """The least that a density may turn out to cost.

    >>> lowest_price(Settings()), lowest_price(Settings(effort="full")), lowest_price(Settings(density_price=0.5))
    (0.0625, 0.25, 0.5)
    """
    measured = settings.density_price is None and settings.effort == "auto"
    return CLASSES[0][0] if measured else settings.price


def density_price(values: Callable[[], object], gradients: Callable[[], object], *, count: int = BLOCK) -> float:
    """Gradients that a density costs: both are evaluated at the same ``count`` points, and the ratio of times rounded.

    Where a density is not dear its gradient is not looked at, and the usual price is given. The quickest of a few
    timings counts, once each program is there.

    >>> density_price(lambda: None, lambda: 1 / 0)
    0.25
    """
    one = quickest(values)
    if one <= DEAR * count:
        return USUAL_PRICE
    return price_class(one / quickest(gradients))


def quickest(evaluate: Callable[[], object]) -> float:
    """Wall seconds of an evaluation, the least of a few, once its program is there."""
    evaluate()
    least, begun = float("inf"), time.perf_counter()
    for _ in range(TIMINGS):
        begin = time.perf_counter()
        evaluate()
        now = time.perf_counter()
        least = min(least, now - begin)
        if now - begun > ENOUGH:
            break
    return least


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
