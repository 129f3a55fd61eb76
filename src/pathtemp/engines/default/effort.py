"""How much a run spends beside its gradients: less where a density is dear."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import BLOCK, values_of
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import Settings

DEAR = 2e-4
"""Seconds of one evaluation of base and target from which the effort is light."""


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
    """

    scan: int
    draws: int
    rounds: int


# Where one start in ten thousand leads to a mode, about a dozen of the draws that are scanned do.
FULL = Work(scan=131_072, draws=4096, rounds=8)
LIGHT = Work(scan=1024, draws=1280, rounds=3)

LIGHT_ORBIT = 2
"""Points of the lattice along the orbit of a light effort."""

TIMINGS = 5
"""Blocks of evaluations that are timed at most."""


def work_of(settings: Settings) -> Work:
    """What a run with these settings does: the full work, unless its effort is light."""
    return LIGHT if settings.effort == "light" else FULL


def is_dear(path: GeometricPath, theta: FloatArray) -> bool:
    """Whether one evaluation of base and target, of many at once, takes longer than ``DEAR``.

    The quickest of a few timings counts: a busy machine makes a cheap density seem dear, and never the other way round.
    """
    block = np.resize(theta, (BLOCK, theta.shape[1]))
    values_of(path, block)
    return not any(_seconds(path, block) / BLOCK <= DEAR for _ in range(TIMINGS))


def _seconds(path: GeometricPath, block: FloatArray) -> float:
    """Wall seconds of one evaluation of a block."""
    begin = time.perf_counter()
    values_of(path, block)
    return time.perf_counter() - begin


def settled_effort(settings: Settings, path: GeometricPath, theta: FloatArray) -> Settings:
    """The settings with an effort that is decided: "auto" becomes "light" where a density at ``theta`` is dear.

    >>> import jax.numpy as jnp
    >>> path = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), lambda x: -jnp.sum(x**2))
    >>> settled_effort(Settings(), path, np.zeros((1, 2))).effort
    'full'
    """
    light = settings.effort == "light" or (settings.effort == "auto" and is_dear(path, theta))
    return settings.replace(effort="light", orbit=LIGHT_ORBIT) if light else settings.replace(effort="full")
