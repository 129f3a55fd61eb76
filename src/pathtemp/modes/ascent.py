"""Quasi-Newton ascents to the modes of a log density, many side by side (L-BFGS; Nocedal and Wright, chapter 7).

Every step evaluates one gradient on every lane: a trial point that does not climb enough shortens the step, one that
does updates the memory. So no lane waits for another's line search, and lanes that have arrived make room for the
next starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, LogDensity
from pathtemp.compilation import compiled_once

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

LANES = 32
"""Ascents side by side."""

CHUNK = 8
"""Steps between two looks at which lanes have arrived."""

MEMORY = 8
"""Pairs of steps and gradient differences that L-BFGS remembers."""

MOST_STEPS = 80
"""Steps after which an ascent that has not arrived is given up."""

CLOSE = 1e-6
"""Newton decrement, in nats, at which an ascent has arrived: it is so far below the mode."""


class Lane(NamedTuple):
    """One ascent, in units of ``scale``; before its first evaluation ``height`` is -inf.

    ``direction * length`` leads to the next trial point. ``moves`` and ``bends`` are the pairs s and y of the memory,
    newest last, and ``inverse`` is 1 / s'y, 0 where there is no pair.
    """

    x: Array
    height: Array
    gradient: Array
    direction: Array
    length: Array
    moves: Array
    bends: Array
    inverse: Array
    steps: Array
    arrived: Array


@dataclass(frozen=True)
class Ascents:
    """Where ascents ended.

    Parameters
    ----------
    theta, height
        The end of each, (n, dim), and its log density (n,); -inf where the start has none, or was not taken up.
    spread
        Typical standard deviation there in units of ``scale``, from the last curvature met, (n,).
    arrived
        Whether it is a mode, (n,); else it was given up on its way, or has no density at its start.
    gradients
        Gradient evaluations spent, over all lanes.
    """

    theta: FloatArray
    height: FloatArray
    spread: FloatArray
    arrived: BoolArray
    gradients: int


def ascend(
    log_density: LogDensity,
    starts: FloatArray,
    *,
    scale: FloatArray,
    most_gradients: float,
    most_steps: int = MOST_STEPS,
    room: float = np.inf,
) -> Ascents:
    """Climb from each of the ``starts`` (n, dim); ``scale`` (dim,) is the unit of each coordinate.

    Once ``most_gradients`` are spent no further start is taken up. An ascent is given up after ``most_steps``; those
    under way are dropped, as if they had not been taken up, where ``room`` does not pay for their next steps.

    >>> ends = ascend(lambda x: -jnp.sum((x - 3.0) ** 2), np.zeros((2, 1)), scale=np.ones(1), most_gradients=1e4)
    >>> ends.arrived.tolist(), ends.theta.round(2).tolist()
    ([True, True], [[3.0], [3.0]])
    """
    count, dim = starts.shape
    lanes = _blank(dim)
    unit = jnp.asarray(scale, float)
    climb, _ = compiled_once(_make_climb, (log_density,), (lanes, unit))
    ends = np.array(starts, float)
    height, spread, arrived = np.full(count, -np.inf), np.ones(count), np.zeros(count, bool)
    holds = np.full(LANES, -1)
    waiting, spent = list(range(count))[::-1], 0
    while True:
        for lane in np.flatnonzero(holds < 0):
            if not waiting or spent + LANES * CHUNK > min(most_gradients, room):
                break
            holds[lane] = waiting.pop()
            _place(lanes, int(lane), starts[holds[lane]] / scale)
        if np.all(holds < 0) or spent + LANES * CHUNK > room:
            break
        lanes = jax.tree.map(np.array, climb(lanes, unit))
        spent += LANES * CHUNK
        ended = (holds >= 0) & (lanes.arrived | (lanes.steps >= most_steps))
        rows = holds[ended]
        ends[rows], height[rows] = lanes.x[ended] * scale, lanes.height[ended]
        spread[rows], arrived[rows] = _spread(lanes)[ended], lanes.arrived[ended]
        holds[ended] = -1
    return Ascents(ends, height, spread, arrived, spent)


def _blank(dim: int) -> Lane:
    """Lanes without a start, on the host."""
    vector, pairs, number = np.zeros((LANES, dim)), np.zeros((LANES, MEMORY, dim)), np.zeros(LANES)
    low, full = np.full(LANES, -np.inf), np.full(LANES, MOST_STEPS)
    inverse, done = np.zeros((LANES, MEMORY)), np.zeros(LANES, bool)
    return Lane(vector, low, vector.copy(), vector.copy(), number, pairs, pairs.copy(), inverse, full, done)  # type: ignore[arg-type]


def _place(lanes: Lane, lane: int, x: FloatArray) -> None:
    """Put a start on a free lane."""
    fresh = Lane(x, -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, False)  # type: ignore[arg-type]
    for part, value in zip(lanes, fresh, strict=True):
        part[lane] = value  # type: ignore[index]


def _spread(lanes: Lane) -> FloatArray:
    """Square root of s's / s'y of the newest pair of each lane, 1 where there is none."""
    inverse = np.asarray(lanes.inverse)[:, -1]
    square = np.sum(np.asarray(lanes.moves)[:, -1] ** 2, axis=1)
    return np.where(inverse > 0, np.sqrt(square * inverse), 1.0)


def _make_climb(log_density: LogDensity) -> Callable[[Lane, Array], Lane]:
    """The function that takes all lanes ``CHUNK`` steps on, to be jitted: ``(lanes, scale) -> lanes``."""

    def climb(lanes: Lane, scale: Array) -> Lane:
        value_and_gradient = jax.value_and_grad(lambda x: log_density(scale * x))

        def step(lane: Lane) -> Lane:
            moved = _step(lane, *value_and_gradient(lane.x + lane.length * lane.direction))
            still = lane.arrived | (lane.steps >= MOST_STEPS)
            return jax.tree.map(lambda old, new: jnp.where(still, old, new), lane, moved)

        def body(lanes: Lane, _: None) -> tuple[Lane, None]:
            return jax.vmap(step)(lanes), None

        return jax.lax.scan(body, lanes, None, length=CHUNK)[0]

    return climb


def _step(lane: Lane, height: Array, gradient: Array) -> Lane:
    """Take or refuse the trial point, whose log density and gradient are given."""
    first = lane.height == -jnp.inf
    finite = jnp.isfinite(height) & jnp.all(jnp.isfinite(gradient))
    rise = lane.length * jnp.dot(lane.gradient, lane.direction)
    slack = 1e-12 * jnp.where(first, 0.0, jnp.abs(lane.height))
    climbs = finite & (first | (height >= lane.height + 1e-4 * rise - slack))
    move, bend = lane.length * lane.direction, lane.gradient - gradient
    curvature = jnp.dot(move, bend)
    concave = climbs & ~first & (curvature > 1e-10 * jnp.linalg.norm(move) * jnp.linalg.norm(bend))
    forget = climbs & ~concave

    def pushed(old: Array, new: Array) -> Array:
        shifted = jnp.concatenate([old[1:], new[None]])
        return jnp.where(concave, shifted, jnp.where(forget, 0.0, old))

    moves, bends = pushed(lane.moves, move), pushed(lane.bends, bend)
    inverse = pushed(lane.inverse, 1.0 / jnp.where(concave, curvature, 1.0))
    steepness = jnp.maximum(jnp.linalg.norm(gradient), 1e-300)
    # Where the log density bends upwards, as in heavy tails, steps grow fourfold; the first one is half a unit at most.
    reach = jnp.where(first, jnp.minimum(0.5 / steepness, 1.0), 4.0 * jnp.linalg.norm(move) / steepness)
    uphill = jnp.where(concave, _newton(gradient, moves, bends, inverse), reach * gradient)
    longest = 10.0 * float(np.sqrt(uphill.shape[0])) + jnp.linalg.norm(lane.x)
    uphill = uphill * jnp.minimum(1.0, longest / jnp.maximum(jnp.linalg.norm(uphill), 1e-300))
    # The memory may not know a flat direction yet: the widest it has met must show no rise either.
    widest = jnp.max(jnp.sum(moves**2, axis=1) * inverse)
    close = (jnp.dot(gradient, uphill) < 2.0 * CLOSE) & (widest * steepness**2 < 1000.0 * CLOSE)
    close = close & (height - lane.height < 1000.0 * CLOSE)
    arrived = climbs & ((concave & close) | (steepness < 1e-9))
    # A refused step is cut to the top of the parabola through what is known of it.
    fitted = 0.5 * rise / jnp.maximum(rise + lane.height - height, 1e-300)
    shorter = lane.length * jnp.where(finite, jnp.clip(fitted, 0.1, 0.5), 0.25)
    given_up = ~climbs & (first | (shorter < 1e-12))
    return Lane(
        jnp.where(climbs, lane.x + move, lane.x),
        jnp.where(climbs, height, lane.height),
        jnp.where(climbs, gradient, lane.gradient),
        jnp.where(climbs, uphill, lane.direction),
        jnp.where(climbs, 1.0, shorter),
        moves,
        bends,
        inverse,
        jnp.where(given_up, MOST_STEPS, lane.steps + 1),
        arrived,
    )


def _newton(gradient: Array, moves: Array, bends: Array, inverse: Array) -> Array:
    """The direction of the two-loop recursion."""

    def backwards(q: Array, pair: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        move, bend, weight = pair
        along = weight * jnp.dot(move, q)
        return q - along * bend, along

    q, along = jax.lax.scan(backwards, gradient, (moves, bends, inverse), reverse=True)
    newest = jnp.dot(bends[-1], bends[-1])
    q = q / jnp.where(newest > 0, inverse[-1] * newest, 1.0)

    def forwards(q: Array, pair: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        move, bend, weight, along = pair
        return q + move * (along - weight * jnp.dot(bend, q)), None

    return jax.lax.scan(forwards, q, (moves, bends, inverse, along))[0]
