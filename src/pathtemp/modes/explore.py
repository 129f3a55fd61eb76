"""A short exploration by a population of HMC chains: where a target lies that has no isolated mode to build on.

Funnels rise without end where they hold no mass, and ridges have no top; a population that moves at random finds the
mass all the same, roughly. Its moves adapt as they go, so it is no sample: it gives a base its place and its scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity
from pathtemp.kernels.compilation import compiled_once
from pathtemp.seeds import KeyStream, stream_key

ROUNDS = (12, 36)
"""Rounds of one trajectory each, at least and at most; the last third is kept."""

LEAPS = 8
"""Leapfrog steps of a trajectory."""

ACCEPTED = 0.8
"""Acceptance that the step size aims at."""

FAR = (1e2, 1e4)
"""How far out along each axis, in units of the population's spread, a density that can be normalised falls further."""

NEGLIGIBLE = 50.0
"""Fall of the log density, in nats, beyond which a tail is not looked at: it may be flat by underflow."""

ENDLESS = 1e3
"""Rise of the log density a dimension, in nats, between the last two thirds of the rounds that is no settling."""

BEYOND = 1e15
"""Log density at which rounding hides a nat."""


@dataclass(frozen=True)
class Population:
    """Points (n, dim) of the last rounds, whether log density still rose fast, and the gradients it took."""

    theta: FloatArray
    rises: bool
    gradients: int


def explore(
    log_density: LogDensity, theta: FloatArray, *, scale: FloatArray, seed: int, most_gradients: float = np.inf
) -> Population:
    """Move a population (n, dim) about; ``scale`` (dim,) is a unit to begin with, then it is the population's own.

    >>> start = np.random.default_rng(0).uniform(-2.0, 2.0, size=(32, 1))
    >>> found = explore(lambda x: -0.5 * jnp.sum((x / 5.0) ** 2), start, scale=np.ones(1), seed=0)
    >>> bool(2.0 < found.theta.std() < 10.0), found.rises
    (True, False)
    """
    count, dim = theta.shape
    key = stream_key(jnp.uint32(seed % 2**32), KeyStream.EXPLORE)
    unit, step = np.array(scale, float), 0.3 / dim**0.25
    program, _ = compiled_once(_make_round, (log_density,), (theta, unit, np.asarray(step), key))
    kept, heights = [], []
    rounds = int(np.clip(most_gradients / ((LEAPS + 1) * count), *ROUNDS))
    for number in range(rounds):
        theta, height, accepted = (
            np.asarray(part) for part in program(theta, unit, np.asarray(step), jax.random.fold_in(key, number))
        )
        step = float(np.clip(step * np.exp(float(accepted) - ACCEPTED), 1e-4, 1.0))
        # Each unit doubles or halves at most: a few chains that have not arrived yet do not set it.
        unit = np.clip(_width(theta), 0.5 * unit, 2.0 * unit)
        kept.append(theta)
        heights.append(np.median(height))
    third = rounds // 3
    with np.errstate(invalid="ignore"):
        rise = np.median(heights[-third:]) - np.median(heights[-2 * third : -third])
    rises = not (rise < ENDLESS * dim and np.max(height) < BEYOND)
    return Population(np.concatenate(kept[-third:]), rises, rounds * (LEAPS + 1) * count)


def falls_off(log_target: Callable[[FloatArray], FloatArray], centre: FloatArray, width: FloatArray) -> bool:
    """Whether the target falls faster than r^-1/2 both ways along every axis, where it is far out and not negligible.

    ``log_target`` takes points (n, dim); ``centre`` and ``width`` (dim,) are those of what is known of it.

    >>> laws = (lambda x: -np.log1p(x[:, 0] ** 2), lambda x: x[:, 0], lambda x: 0.0 * x[:, 0])
    >>> [falls_off(law, np.zeros(1), np.ones(1)) for law in laws]
    [True, False, False]
    """
    rays = np.concatenate([np.diag(width), -np.diag(width)])
    near, far = (log_target(centre + r * rays) for r in FAR)
    matters = np.isfinite(far) & (near > log_target(centre[None])[0] - NEGLIGIBLE)
    return not bool(np.any(near[matters] - far[matters] < 0.5 * np.log(FAR[1] / FAR[0])))


def _width(theta: FloatArray) -> FloatArray:
    """Robust spread of each coordinate of a population."""
    low, high = np.quantile(theta, [0.16, 0.84], axis=0)
    return np.maximum(0.5 * (high - low), 1e-10)


def _make_round(log_density: LogDensity) -> Callable[[Array, Array, Array, Key], tuple[Array, Array, Array]]:
    """One trajectory of every chain, to be jitted: their ends, log densities and mean acceptance."""
    value_and_gradient = jax.value_and_grad(lambda x: jnp.asarray(log_density(x)))

    def one(theta: Array, unit: Array, step: Array, key: Key) -> tuple[Array, Array, Array]:
        key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
        momentum = jax.random.normal(key_momentum, theta.shape)
        leap = step * jax.random.uniform(key_jitter, (), minval=0.5, maxval=1.5)
        height, gradient = value_and_gradient(theta)

        def body(state: tuple[Array, Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array, Array], None]:
            x, p, _value, slope = state
            p = p + 0.5 * leap * unit * slope
            x = x + leap * unit * p
            value, slope = value_and_gradient(x)
            return (x, p + 0.5 * leap * unit * slope, value, slope), None

        (end, last, value, _), _ = jax.lax.scan(body, (theta, momentum, height, gradient), None, length=LEAPS)
        gain = value - height - 0.5 * jnp.sum(last**2) + 0.5 * jnp.sum(momentum**2)
        chance = jnp.where(jnp.isfinite(gain), jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
        moves = jax.random.uniform(key_accept) < chance
        return jnp.where(moves, end, theta), jnp.where(moves, value, height), chance

    def whole(theta: Array, unit: Array, step: Array, key: Key) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, theta.shape[0])
        ends, heights, chances = jax.vmap(one, (0, None, None, 0))(theta, unit, step, keys)
        return ends, heights, jnp.mean(chances)

    return whole
