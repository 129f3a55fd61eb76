"""How much a run spends beside its gradients, less where a density is dear; and what a density costs in a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import BLOCK, values_of
from pathtemp.model.price import DEAR, density_price, lowest_price
from pathtemp.modes.choose import VAGUE
from pathtemp.modes.local import gradients_at
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import USUAL_PRICE, Settings

CHEAP = 8e-6
"""Seconds of one evaluation of base and target up to which the effort is thorough; from ``DEAR`` on it is light."""


@dataclass(frozen=True)
class Work:
    """What an effort stands for.

    Parameters
    ----------
    scan
        Draws of the base whose density is looked at for modes, at most.
    draws
        Target draws over all chains, where the user does not say.
    rounds
        Rounds before which the kernel is not frozen where no budget is given.
    starts
        Starts of the search for modes that are made for the sake of its power, at most, where no budget is given.
    held
        Points that each planted mode is held against to state the power: those next to it, and draws of the base.
    vague
        Length of the user's path from which one mode alone is worth a leg of a mixture.
    """

    scan: int
    draws: int
    rounds: int
    starts: int
    held: tuple[int, int]
    vague: float = VAGUE


# Where one start in ten thousand leads to a mode, about a dozen of the draws that are scanned do.
THOROUGH = Work(scan=131_072, draws=4096, rounds=8, starts=16_384, held=(64, 1024))
FULL = Work(scan=16_384, draws=4096, rounds=8, starts=2048, held=(16, 128))
# Where a density is dear, a leg of one mode soon saves more evaluations than its annealing pass and programs cost.
LIGHT = Work(scan=1024, draws=1280, rounds=3, starts=0, held=(2, 8), vague=7.0)

LIGHT_ORBIT, LIGHT_ITERATIONS = 2, 16
"""Points of the lattice along the orbit, and iterations of a round at most, of a light effort.

In short rounds the kernel is frozen sooner, and the run ends sooner once it is done.
"""

TIMINGS = 5
"""Blocks of evaluations that are timed at most."""

CERTAIN = 20.0
"""How many times dearer than dear a density must seem for one timing to be enough: no machine is so busy."""


def work_of(settings: Settings) -> Work:
    """What a run with these settings does: the full work, where nothing else is said."""
    return {"light": LIGHT, "thorough": THOROUGH}.get(settings.effort, FULL)


def is_cheap(settings: Settings) -> bool:
    """Whether a density is evaluated sooner than XLA makes a better program of it.

    >>> is_cheap(Settings(effort="thorough")), is_cheap(Settings(effort="full"))
    (True, False)
    """
    return settings.effort == "thorough"


def settled_effort(settings: Settings, path: GeometricPath, theta: FloatArray) -> Settings:
    """The settings with effort and price of a density decided: "auto" becomes what suits a density at ``theta``.

    Where an effort is given nothing is timed, and the price is the usual one unless it is given too.

    >>> import jax.numpy as jnp
    >>> path = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), lambda x: -jnp.sum(x**2))
    >>> settled = settled_effort(Settings(effort="full"), path, np.zeros((1, 2)))
    >>> settled.effort, settled.density_price
    ('full', 0.25)
    """
    effort: str = settings.effort
    price = settings.density_price
    block = np.resize(theta, (BLOCK, theta.shape[1]))
    if effort == "auto":
        effort = effort_for(path, block)
        price = _price(path, block) if price is None and effort == "light" else price
    price = USUAL_PRICE if price is None else price
    light = {"orbit": LIGHT_ORBIT, "iterations": min(settings.iterations, LIGHT_ITERATIONS)}
    return settings.replace(effort=effort, density_price=price, **(light if effort == "light" else {}))


def cheapest(settings: Settings) -> Settings:
    """The settings as they are where a timing shows the densities of a round as cheap as can be.

    >>> cheapest(Settings()).round_cost_in(1), cheapest(Settings(effort="full")).round_cost_in(1)
    (2304.0, 4096.0)
    """
    orbit = LIGHT_ORBIT if settings.effort in ("auto", "light") else settings.orbit
    return settings.replace(orbit=orbit, density_price=lowest_price(settings))


def effort_for(path: GeometricPath, block: FloatArray) -> str:
    """The effort for the price of one evaluation of base and target, of many at once.

    The quickest of a few timings counts: a busy machine makes a cheap density seem dear, and never the other way round.
    """
    values_of(path, block)
    price = np.inf
    for _ in range(TIMINGS):
        price = min(price, _seconds(path, block) / len(block))
        if price <= CHEAP or price > CERTAIN * DEAR:
            break
    return "light" if price > DEAR else "thorough" if price <= CHEAP else "full"


def _seconds(path: GeometricPath, block: FloatArray) -> float:
    """Wall seconds of one evaluation of a block."""
    begin = time.perf_counter()
    values_of(path, block)
    return time.perf_counter() - begin


def _price(path: GeometricPath, block: FloatArray) -> float:
    """Gradients that a density of the target costs; where both ends are one function it is evaluated once."""
    target = GeometricPath(path.log_target, path.log_target)
    return density_price(lambda: values_of(target, block), lambda: gradients_at(path.log_target, block))
