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
    orbit
        Points of the lattice along the orbit, at most.
    """

    scan: int
    draws: int
    rounds: int
    orbit: int


WORK = {
    # Where one start in ten thousand leads to a mode, about a dozen of the draws that are scanned do.
    "full": Work(scan=131_072, draws=4096, rounds=8, orbit=64),
    "light": Work(scan=1024, draws=1280, rounds=3, orbit=2),
}


def seconds_a_density(path: GeometricPath, theta: FloatArray) -> float:
    """Wall seconds of one evaluation of base and target, many at once: the quickest of three."""
    block = np.resize(theta, (BLOCK, theta.shape[1]))
    values_of(path, block)
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        values_of(path, block)
        took.append(time.perf_counter() - begin)
    return min(took) / BLOCK


def settled_effort(settings: Settings, path: GeometricPath, theta: FloatArray) -> Settings:
    """The settings with an effort that is decided: "auto" becomes "light" where a density at ``theta`` is dear.

    >>> import jax.numpy as jnp
    >>> path = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), lambda x: -jnp.sum(x**2))
    >>> settled_effort(Settings(), path, np.zeros((1, 2))).effort
    'full'
    """
    effort = settings.effort
    if effort == "auto":
        effort = "light" if seconds_a_density(path, theta) > DEAR else "full"
    return settings.replace(effort=effort, orbit=min(settings.orbit, WORK[effort].orbit))
