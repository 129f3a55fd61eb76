"""A first look at a density: HMC chains from dispersed starts, each with its own step size, until they have settled.

What comes out need not be in equilibrium; it says where the mass of a margin is, and starts the chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp import seeds
from pathtemp._types import Array, FloatArray
from pathtemp.engines.default.transport import median_spread
from pathtemp.errors import InputError
from pathtemp.kernels import hmc
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.rejected import Rejected, point_of, rejected_end
from pathtemp.kernels.transport import AffineMap
from pathtemp.paths.geometric import as_energies
from pathtemp.result.run import Counts
from pathtemp.seeds import KeyStream, Stream, stream_key

ITERATIONS, LEAPFROGS = 8, 8
"""Iterations of one compiled burst, and the largest number of leapfrogs of an iteration."""

FEWEST_BURSTS = 4
FEWEST_SEARCH = FEWEST_BURSTS * ITERATIONS * (LEAPFROGS // 2 + 2)
"""Gradient evaluations of the shortest search, for each chain, those at its draws included."""

FEWEST_DENSITIES = FEWEST_BURSTS * (ITERATIONS + 1)
"""Its density evaluations."""

LOST = 10.0
"""Log density below the median, beside twice the dimension, at which a chain is given up."""

ACCEPTANCE, GAIN = 0.7, 0.5
"""Target acceptance of the search, and how far one iteration moves a chain's log step size towards it."""


@dataclass(frozen=True)
class Found:
    """Draws of the second half of the search (n, chains, dim), where the chains stand, and what it cost."""

    draws: FloatArray
    last: FloatArray
    counts: Counts


def search(
    log_density: Callable[..., Array],
    starts: FloatArray,
    *,
    bursts: int,
    seed: int,
    each: tuple[FloatArray, ...] = (),
    shared: tuple[Any, ...] = (),
    give_up: bool = True,
    note: Callable[[Rejected, int], None] | None = None,
) -> Found:
    """Run chains from ``starts`` (chains, dim) for so many ``bursts``, see :func:`bursts_for`.

    ``log_density`` takes a point, one row of each array of ``each`` (rows by chain), and ``shared``. Chains that are
    lost are given up where all chains have the same density (``give_up``). ``note`` is told of what was met that is no
    density, codes (n, chains) with a point of each row and its row of ``each``, and of the number of evaluations.

    >>> found = search(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), np.zeros((8, 2)), bursts=13, seed=0)
    >>> bool(np.all(np.abs(found.draws.mean(axis=(0, 1)) - 3.0) < 0.5))
    True
    """
    chains, dim = starts.shape
    step = np.full(chains, np.log(0.5 * dim**-0.25))
    location, spread = median_spread(starts)
    program, _ = compiled_once(
        _burst, (log_density,), (*_arguments(seed, 0, starts, step, location, spread), each, shared)
    )
    x, history, spent, rng = starts, [], 0, seeds.rng(Stream.PATH_SEARCH, seed)
    for number in range(bursts):
        out = jax.device_get(program(*_arguments(seed, number, x, step, location, spread), each, shared))
        x, new_step, log_p, draws, leapfrogs = (np.array(part) for part in out[:-1])
        if note is not None:
            note(out[-1], ITERATIONS * chains)
        history.append(draws)
        spent += int(leapfrogs.sum()) * chains
        if give_up and number < bursts // 2:
            _replace_lost(x, new_step, log_p, rng)
        recent = np.concatenate(history[len(history) // 2 :]).reshape(-1, dim)
        old = spread
        location, spread = median_spread(recent)
        # Step sizes are in units of the spread, which has just changed.
        step = new_step + float(np.mean(np.log(old) - np.log(spread)))
    kept = np.concatenate(history[len(history) // 2 :])
    if not np.isfinite(kept).all():
        raise InputError("model: the density is NaN or infinite where the chains went; check its support")
    return Found(kept, x, Counts(spent, bursts * (ITERATIONS + 1) * chains))


def bursts_for(gradients: float, chains: int, price: float) -> int:
    """Bursts that so many gradient equivalents over all chains pay for on average, and the fewest at least.

    A burst has a density at its start, and one after each move; a density costs ``price`` gradients.

    >>> bursts_for(4000, 8, 0.0), bursts_for(4500, 10, 1.0)
    (13, 10)
    """
    each = ITERATIONS * 0.5 * (LEAPFROGS + 1) + price * (ITERATIONS + 1)
    return max(FEWEST_BURSTS, int(gradients / (chains * each)))


def _replace_lost(x: FloatArray, step: FloatArray, log_p: FloatArray, rng: np.random.Generator) -> None:
    """Put chains whose log density is absurdly low where a random one of the better half stands, step size included.

    In equilibrium log densities of ``dim`` coordinates spread by about the root of ``dim``; a chain that started in
    a place without mass, and takes tiny steps there, is far below that and would not come out.
    """
    good = np.flatnonzero(log_p >= np.median(log_p))
    lost = np.flatnonzero(~(log_p > np.median(log_p) - LOST - 2.0 * x.shape[1]))
    donors = rng.choice(good, len(lost))
    x[lost], step[lost], log_p[lost] = x[donors], step[donors], log_p[donors]


def _arguments(
    seed: int, number: int, x: FloatArray, step: FloatArray, location: FloatArray, spread: FloatArray
) -> tuple[np.uint32, np.uint32, FloatArray, FloatArray, FloatArray, FloatArray]:
    return np.uint32(seed % 2**32), np.uint32(number), x, step, location, np.log(spread)


def _burst(log_density: Callable[..., Array]) -> Callable[..., tuple[Any, ...]]:
    def density(x: Array, *constants: Any) -> Array:
        return as_energies(log_density(x, *constants))

    def burst(
        seed: Array,
        number: Array,
        x: Array,
        step: Array,
        location: Array,
        log_spread: Array,
        each: tuple[Array, ...],
        shared: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        # A stream of random numbers that no round uses.
        key = jax.random.fold_in(stream_key(seed, KeyStream.SEARCH), number)
        chart = AffineMap(location, jnp.exp(log_spread))

        def move(
            key: Array, x: Array, log_p: Array, step: Array, steps: Array, constants: tuple[Any, ...]
        ) -> tuple[Array, Array, Array, Rejected]:
            def gradient(x: Array) -> Array:
                return jax.grad(log_density)(x, *constants, *shared)

            for_momentum, for_choice = jax.random.split(key)
            momentum = jax.random.normal(for_momentum, x.shape)
            proposal = hmc.propose(momentum, chart.inverse(x), chart, gradient, jnp.exp(step), steps)
            value = log_density(proposal.theta, *constants, *shared)
            new, met = as_energies(value), rejected_end(value[None], proposal.theta, proposal.no_gradient)
            # From where there is no density, anything with density will do.
            rise = jnp.where(log_p == -jnp.inf, jnp.inf, new - log_p + proposal.kinetic_fall)
            probability = jnp.where(new == -jnp.inf, 0.0, hmc.acceptance(rise))
            accepted = jax.random.uniform(for_choice) < probability
            return (
                jnp.where(accepted, proposal.theta, x),
                jnp.where(accepted, new, log_p),
                step + jnp.where(probability < 0.05, -1.0, GAIN * (probability - ACCEPTANCE)),
                met._replace(point=jnp.concatenate([met.point, *(jnp.ravel(row) for row in constants)])),
            )

        def body(carry: tuple[Array, Array, Array], i: Array) -> tuple[tuple[Array, Array, Array], Any]:
            for_all, for_chains = jax.random.split(jax.random.fold_in(key, i))
            steps = jax.random.randint(for_all, (), 1, LEAPFROGS + 1)
            keys = jax.random.split(for_chains, x.shape[0])
            *moved, met = jax.vmap(move, (0, 0, 0, 0, None, 0))(keys, *carry, steps, each)
            return (moved[0], moved[1], moved[2]), (moved[0], steps, met._replace(point=point_of(met)))

        start = (x, jax.vmap(lambda x, *row: density(x, *row, *shared))(x, *each), step)
        (x, log_p, step), (draws, steps, met) = jax.lax.scan(body, start, jnp.arange(ITERATIONS))
        return x, step, log_p, draws, steps, met

    return burst
