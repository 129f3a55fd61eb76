"""Quasi-Newton ascents to the modes of a log density, many side by side (L-BFGS; Nocedal and Wright, chapter 7).

Every step evaluates one gradient on every lane: a trial point that does not climb enough shortens the step, one that
does updates the memory. So no lane waits for another's line search, and lanes that have arrived make room for the
next starts.

A lane that still climbs after ``FIRST_STEPS`` is one of bad units: collinear regressors, or parameters of very
unlike scales. It goes on in units of the curvature where it stands, in which all directions are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, IntArray, LogDensity
from pathtemp.kernels.compilation import begin_compiling, compiled_once
from pathtemp.modes.dedupe import nearest_mode
from pathtemp.modes.local import Local, gradients_at

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

LANES = 32
"""Ascents side by side."""

CHUNK = 8
"""Steps between two looks at which lanes have arrived."""

MEMORY = 8
"""Pairs of steps and gradient differences that L-BFGS remembers."""

FIRST_STEPS = 80
"""Steps after which an ascent that has not arrived takes new units, or is given up."""

LONG = 4 * FIRST_STEPS
"""Steps for starts that should tell what modes there are: correlated posteriors in many dimensions take hundreds."""

WHITENED = 64
"""Largest dimension in which a lane has units of its own curvature, at one gradient a dimension."""

ENOUGH = 0.5
"""Share of arrivals among the starts after ``FIRST_STEPS`` at which no other goes on beyond it."""

CLOSE = 1e-6
"""Newton decrement, in nats, at which an ascent has arrived: it is so far below the mode."""


class Lane(NamedTuple):
    """One ascent at theta = origin + unit x; before its first evaluation ``height`` is -inf.

    ``direction * length`` leads to the next trial point. ``moves`` and ``bends`` are the pairs s and y of the memory,
    newest last, and ``inverse`` is 1 / s'y, 0 where there is no pair. ``stuck`` lanes have no density at their start,
    or find no way up.
    """

    x: Array
    height: Array
    gradient: Array
    direction: Array
    length: Array
    moves: Array
    bends: Array
    inverse: Array
    arrived: Array
    stuck: Array


class Frame(NamedTuple):
    """Units of the lanes: ``unit`` holds matrices (lanes, dim, dim), or diagonals (lanes, dim) in high dimension."""

    origin: FloatArray
    unit: FloatArray

    def theta(self, x: FloatArray) -> FloatArray:
        """Where the lanes at ``x`` (lanes, dim) are."""
        if self.unit.ndim == 2:
            return self.origin + self.unit * x
        return self.origin + np.einsum("nij,nj->ni", self.unit, x)


@dataclass(frozen=True)
class Ascents:
    """Where ascents ended.

    Parameters
    ----------
    theta, height
        The end of each, (n, dim), and its log density (n,); -inf where the start has none, or was not taken up.
    spread
        Typical standard deviation there in units of ``scale``, from the last curvature met, (n,).
    unit
        Of those that took new units: steps of about one standard deviation as columns, {number: (dim, dim)}.
    arrived
        Whether it is a mode, (n,); else it was given up on its way, or has no density at its start.
    first
        Log density of each start, (n,); -inf where it has none, or was not taken up.
    gradients
        Gradient evaluations spent, over all lanes.
    """

    theta: FloatArray
    height: FloatArray
    spread: FloatArray
    unit: dict[int, FloatArray]
    arrived: BoolArray
    first: FloatArray
    gradients: int


def ascend(
    log_density: LogDensity,
    starts: FloatArray,
    *,
    scale: FloatArray,
    most_gradients: float,
    most_steps: int = FIRST_STEPS,
    close: float = CLOSE,
    room: float = np.inf,
    laws: Sequence[Local] = (),
) -> Ascents:
    """Climb from each of the ``starts`` (n, dim); ``scale`` is the unit of each coordinate, shape (dim,).

    In up to ``WHITENED`` dimensions ``scale`` may hold steps of about one standard deviation instead, as columns, for
    each start: shape (n, dim, dim).

    Once ``most_gradients`` are spent no further start is taken up. An ascent that has not arrived after ``FIRST_STEPS``
    goes on while it climbs, gradients are left and fewer than half of the starts have arrived; it is given up after
    ``most_steps``. It has arrived where Newton's step promises ``close`` nats or less. Ascents under way are dropped,
    as if they had not been taken up, where ``room`` does not pay for their next steps. One that comes to the centre of
    a known mode, one of the ``laws``, has arrived there.

    >>> ends = ascend(lambda x: -jnp.sum((x - 3.0) ** 2), np.zeros((2, 1)), scale=np.ones(1), most_gradients=1e4)
    >>> ends.arrived.tolist(), ends.theta.round(2).tolist()
    ([True, True], [[3.0], [3.0]])
    """
    count, dim = starts.shape
    lanes, own_units = _blank(dim), scale.ndim == 3
    frame = _frame(np.ones(dim) if own_units else np.asarray(scale, float))
    plain = frame.unit[0].copy()
    near = jnp.asarray(close, float)
    climb, _ = compiled_once(_make_climb, (log_density,), (lanes, frame, near))
    ends = np.array(starts, float)
    height, first = np.full(count, -np.inf), np.full(count, -np.inf)
    spread, arrived = np.ones(count), np.zeros(count, bool)
    holds, steps, before = np.full(LANES, -1), np.zeros(LANES, int), np.full(LANES, -np.inf)
    waiting, spent, done, own = list(range(count))[::-1], 0, 0, dict[int, FloatArray]()
    while True:
        for lane in np.flatnonzero(holds < 0):
            if not waiting or spent + LANES * CHUNK > min(most_gradients, room):
                break
            row = waiting.pop()
            holds[lane], steps[lane], before[lane] = row, 0, -np.inf
            frame.origin[lane] = starts[row] if own_units else 0.0
            frame.unit[lane] = scale[row] if own_units else plain
            _place(lanes, int(lane), np.zeros(dim) if own_units else starts[row] / scale)
        if np.all(holds < 0) or spent + LANES * CHUNK > room:
            break
        begun = (holds >= 0) & (steps == 0)
        after, heights = climb(lanes, frame, near)
        lanes = jax.tree.map(np.array, after)
        lanes.arrived[_known(laws, frame, lanes) & ~lanes.stuck] = True  # type: ignore[index]
        first[holds[begun]] = np.asarray(heights)[begun]
        spent += LANES * CHUNK
        steps += CHUNK
        at_end = (holds >= 0) & ~lanes.arrived & ~lanes.stuck & (steps % FIRST_STEPS == 0)
        paid = spent + LANES * dim + LANES * CHUNK <= room and spent < most_gradients
        here = np.sum(arrived) + np.sum(lanes.arrived & (holds >= 0))
        worth = paid and here < ENOUGH * (
            done + np.count_nonzero((holds >= 0) & (at_end | lanes.arrived | lanes.stuck))
        )
        goes_on = at_end & (lanes.height > before + CLOSE) & (steps < most_steps) & worth
        ended = (holds >= 0) & ~goes_on & (lanes.arrived | lanes.stuck | at_end | (steps >= most_steps))
        rows = holds[ended]
        done += len(rows)
        ends[rows], height[rows] = frame.theta(np.asarray(lanes.x))[ended], lanes.height[ended]
        spread[rows], arrived[rows] = _spread(lanes)[ended], lanes.arrived[ended]
        special = ended & ((steps > FIRST_STEPS) | own_units)
        own |= {int(holds[lane]): frame.unit[lane].copy() for lane in np.flatnonzero(special)}
        holds[ended] = -1
        lanes.stuck[holds < 0] = True  # type: ignore[index]
        before = np.where(goes_on, lanes.height, before)
        spent += _take_new_units(log_density, lanes, frame, np.flatnonzero(goes_on))
    first[holds[holds >= 0]] = -np.inf
    return Ascents(ends, height, spread, own if dim <= WHITENED else {}, arrived, first, spent)


def begin_ascents(log_density: LogDensity, dim: int) -> None:
    """Let the program of :func:`ascend` be compiled, while this thread goes on."""
    begin_compiling(_make_climb, (log_density,), (_blank(dim), _frame(np.ones(dim)), jnp.asarray(CLOSE)))


def _frame(scale: FloatArray) -> Frame:
    """Lanes at the origin in units of ``scale`` (dim,)."""
    plain = np.diag(scale) if len(scale) <= WHITENED else scale
    return Frame(np.zeros((LANES, len(scale))), np.repeat(plain[None], LANES, axis=0))


def _known(laws: Sequence[Local], frame: Frame, lanes: Lane) -> BoolArray:
    """Which lanes have come to the centre of a known mode."""
    return np.asarray(nearest_mode(laws, frame.theta(np.asarray(lanes.x))) >= 0)


def _blank(dim: int) -> Lane:
    """Lanes without a start, on the host."""
    vector, pairs, number = np.zeros((LANES, dim)), np.zeros((LANES, MEMORY, dim)), np.zeros(LANES)
    low, inverse = np.full(LANES, -np.inf), np.zeros((LANES, MEMORY))
    done, stuck = np.zeros(LANES, bool), np.ones(LANES, bool)
    return Lane(vector, low, vector.copy(), vector.copy(), number, pairs, pairs.copy(), inverse, done, stuck)  # type: ignore[arg-type]


def _place(lanes: Lane, lane: int, x: FloatArray) -> None:
    """Put a start on a lane."""
    fresh = Lane(x, -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, False)  # type: ignore[arg-type]
    for part, value in zip(lanes, fresh, strict=True):
        part[lane] = value  # type: ignore[index]


def _take_new_units(log_density: LogDensity, lanes: Lane, frame: Frame, which: IntArray) -> int:
    """Let some lanes go on from where they stand, in units of the curvature there; returns the gradients it took.

    In many dimensions they keep their units, and their memory.
    """
    dim = frame.origin.shape[1]
    if len(which) == 0 or dim > WHITENED:
        return 0
    origin = frame.theta(np.asarray(lanes.x))[which]
    step = 1e-4 * _spread(lanes)[which]
    at = origin[:, None] + step[:, None, None] * np.swapaxes(frame.unit[which], 1, 2)
    slopes = gradients_at(log_density, at.reshape(-1, dim)).reshape(at.shape)
    for i, lane in enumerate(which):
        unit = frame.unit[lane]
        bend = (np.asarray(lanes.gradient)[lane] - slopes[i] @ unit) / step[i]
        if np.isfinite(bend).all():
            values, vectors = np.linalg.eigh(0.5 * (bend + bend.T))
            size = np.abs(values)
            own = unit @ (vectors / np.sqrt(np.maximum(size, max(1e-14 * float(size.max()), 1e-300))))
            # Where a density rises without end its curvature may leave the range of numbers.
            frame.unit[lane] = own if 1e-100 < np.abs(own).max() < 1e100 else unit
        frame.origin[lane] = origin[i]
        _place(lanes, int(lane), np.zeros(dim))
    return len(which) * dim


def _spread(lanes: Lane) -> FloatArray:
    """Square root of s's / s'y of the newest pair of each lane, 1 where there is none."""
    inverse = np.asarray(lanes.inverse)[:, -1]
    square = np.sum(np.asarray(lanes.moves)[:, -1] ** 2, axis=1)
    return np.where(inverse > 0, np.sqrt(square * np.maximum(inverse, 0.0)), 1.0)


def _make_climb(log_density: LogDensity) -> Callable[[Lane, Frame, Array], tuple[Lane, Array]]:
    """The function that takes all lanes ``CHUNK`` steps on, to be jitted; it also gives their first log densities."""

    def climb(lanes: Lane, frame: Frame, close: Array) -> tuple[Lane, Array]:
        def step(lane: Lane, origin: Array, unit: Array) -> tuple[Lane, Array]:
            def in_units(x: Array) -> Array:
                return log_density(origin + (unit * x if unit.ndim == 1 else unit @ x))

            height, gradient = jax.value_and_grad(in_units)(lane.x + lane.length * lane.direction)
            moved = _step(lane, height, gradient, close)
            still = lane.arrived | lane.stuck
            return jax.tree.map(lambda old, new: jnp.where(still, old, new), lane, moved), height

        def body(lanes: Lane, _: None) -> tuple[Lane, Array]:
            return jax.vmap(step)(lanes, jnp.asarray(frame.origin), jnp.asarray(frame.unit))

        lanes, heights = jax.lax.scan(body, lanes, None, length=CHUNK)
        return lanes, jnp.where(jnp.isfinite(heights[0]), heights[0], -jnp.inf)

    return climb


def _step(lane: Lane, height: Array, gradient: Array, near: Array) -> Lane:
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
    close = (jnp.dot(gradient, uphill) < 2.0 * near) & (widest * steepness**2 < 1000.0 * near)
    close = close & (height - lane.height < 1000.0 * near)
    arrived = climbs & ((concave & close) | (steepness < 1e-9))
    # A refused step is cut to the top of the parabola through what is known of it.
    fitted = 0.5 * rise / jnp.maximum(rise + lane.height - height, 1e-300)
    shorter = lane.length * jnp.where(finite, jnp.clip(fitted, 0.1, 0.5), 0.25)
    stuck = ~climbs & (first | (shorter < 1e-12))
    return Lane(
        jnp.where(climbs, lane.x + move, lane.x),
        jnp.where(climbs, height, lane.height),
        jnp.where(climbs, gradient, lane.gradient),
        jnp.where(climbs, uphill, lane.direction),
        jnp.where(climbs, 1.0, shorter),
        moves,
        bends,
        inverse,
        arrived,
        stuck,
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
