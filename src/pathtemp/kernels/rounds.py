"""A round: many iterations of many chains, compiled once, with running sums so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, Key, Sampler
from pathtemp.io.persistent import storable
from pathtemp.kernels import kept, strata
from pathtemp.kernels.kept import Kept
from pathtemp.kernels.rejected import Rejected, point_of
from pathtemp.kernels.spread import by_part, copied, held_copied, held_spread, on_device, parts_of, spread
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters, Step, iterate
from pathtemp.paths.geometric import GeometricPath, delta
from pathtemp.seeds import round_key


@storable
class TourSums(NamedTuple):
    """Sums of the conditional probabilities x_k of the B bins of a, by chain and by tour.

    A tour is the time between regenerations. The second axis of each array is the estimator: 0 along the orbit, 1 given
    theta. For the bins, and the mass y_k at the base that each is compared with, see :mod:`pathtemp.kernels.strata`.

    Parameters
    ----------
    current
        Of the tour under way, shape (C, 2, B).
    total
        Of the whole time, shape (C, 2, B).
    finished
        Over finished tours: the sum of x_k, in parts over the chains (see :mod:`pathtemp.kernels.spread`), shape
        (P, 2, B).
    second
        Over finished tours: the sums of the products of x_k and y_k of both estimators, in the order x, x', y, y', in
        parts, shape (P, 4, 4, B).
    tours
        Number of finished tours.
    started
        Whether each chain has regenerated yet, shape (C,): the time before that is no tour.
    """

    current: Array
    total: Array
    finished: Array
    second: Array
    tours: Array
    started: Array


@storable
class State(NamedTuple):
    """Everything that passes from round to round.

    Parameters
    ----------
    chains
        theta (C, dim), a (C,), energies (C, 2).
    target, base
        Draws at lam = 1 and lam = 0, spread over all rounds since they were last reset.
    tour
        The number of the tour that each chain is on, shape (C,).
    sums
        Tour sums since they were last reset.
    """

    chains: ChainState
    target: Kept
    base: Kept
    tour: Array
    sums: TourSums


class Record(NamedTuple):
    """What comes back to the host after a round; n iterations, C chains.

    Parameters
    ----------
    a, lam, delta, first
        The joint path and the first coordinate of theta, shape (n, C).
    regenerated
        Whether theta was a fresh base draw, and a tour begins, shape (n, C); where there are none, whether lam is 0.
    theta, theta_lam
        Theta of every fourth iteration for learning the transport, shape (n // 4, C', dim), and its lam.
    acceptance, position
        Of HMC moves, shape (n, C).
    orbit_jump, plain_jump
        Mean distances in s moved by the two moves of a.
    leapfrogs
        Leapfrogs of each iteration, shape (n,).
    rejected
        What the evaluations met that is no density: codes (n, C), and a point of each iteration (n, dim).
    leg
        Labels of HMC moves, shape (n, C).
    """

    a: Array
    lam: Array
    delta: Array
    first: Array
    regenerated: Array
    theta: Array
    theta_lam: Array
    acceptance: Array
    position: Array
    orbit_jump: Array
    plain_jump: Array
    leapfrogs: Array
    rejected: Rejected
    leg: Array


@dataclass(frozen=True)
class RoundShape:
    """The static sizes of a round; one compilation serves all rounds of one shape."""

    iterations: int
    leapfrogs: int
    lattice_points: int
    batch: int | None
    learners: int
    devices: int = 1


def window(u: Array) -> Array:
    """Width of the lattice window of an iteration, as a share of the circle, from a uniform ``u``.

    Three quarters span the whole circle; the others 1/2, 1/4 or 1/8 of it, for where the transport is poor.
    """
    return jnp.where(u < 0.75, 1.0, 0.5 ** jnp.ceil((u - 0.75) * 12.0))


def empty_sums(chains: int, cells: int) -> TourSums:
    """Tour sums before any iteration."""
    # Each its own buffer: a round donates them all.
    count, parts = strata.count_bins(cells), parts_of(chains)
    return TourSums(
        current=zeros(chains, 2, count),
        total=zeros(chains, 2, count),
        finished=zeros(parts, 2, count),
        second=zeros(parts, 4, 4, count),
        tours=zeros(dtype=int),
        started=zeros(chains, dtype=bool),
    )


def zeros(*shape: int, dtype: type = float) -> Array:
    """Zeros on the device, made without compiling anything."""
    return on_device(np.zeros(shape, dtype))


def initial_state(chains: ChainState, draws: int, cells: int, *, iterations: int, exact_base: bool) -> State:
    """State of a fresh run that keeps ``draws`` target draws a chain, and base draws where there are no exact ones."""
    count, dim = chains.theta.shape
    return State(
        chains,
        target=kept.empty(draws, count, dim, coming=count * iterations),
        base=kept.empty(0 if exact_base else draws, count, dim, coming=count * iterations),
        tour=zeros(count, dtype=int),
        sums=empty_sums(count, cells),
    )


def restart(state: State, cells: int, *, iterations: int) -> State:
    """The same chains, with estimates and draws started afresh."""
    count = state.chains.a.shape[0]
    target, base = (kept.restart(x, coming=count * iterations) for x in (state.target, state.base))
    return State(state.chains, target, base, zeros(count, dtype=int), empty_sums(count, cells))


def placed(state: State, devices: int) -> State:
    """The state with its chains over so many devices; what belongs to all chains is on each."""
    return _laid(state, devices, spread, copied)


def _held(state: State, devices: int) -> State:
    """The same inside of a round."""
    return _laid(state, devices, held_spread, held_copied)


def _laid(state: State, devices: int, over: Callable[..., Any], on_each: Callable[..., Any]) -> State:
    sums = state.sums
    return State(
        over(state.chains, devices),
        on_each(state.target, devices),
        on_each(state.base, devices),
        over(state.tour, devices),
        sums._replace(
            current=over(sums.current, devices),
            total=over(sums.total, devices),
            finished=over(sums.finished, devices),
            second=over(sums.second, devices),
            tours=on_each(sums.tours, devices),
            started=over(sums.started, devices),
        ),
    )


def enlarge(state: State, draws: int) -> State:
    """The same state with room for ``draws`` target draws a chain, and as many base draws where those are kept."""
    count = state.chains.a.shape[0]
    base = state.base if state.base.theta.shape[0] == 0 else kept.enlarge(state.base, draws, count)
    return state._replace(target=kept.enlarge(state.target, draws, count), base=base)


def make_round(
    path: GeometricPath, sample_base: Sampler | None, shape: RoundShape
) -> Callable[[Array, Array, State, KernelParameters], tuple[State, Record]]:
    """The function of one round, to be jitted: ``(seed, number of the round, state, parameters)``."""
    kernel = partial(iterate, path=path, sample_base=sample_base, lattice_points=shape.lattice_points)

    def one_round(seed: Array, number: Array, state: State, parameters: KernelParameters) -> tuple[State, Record]:
        key = round_key(seed, number)
        count = state.chains.a.shape[0]
        indices = jnp.arange(count)

        def body(state: State, i: Array) -> tuple[State, dict[str, Any]]:
            # Shared by all chains of an iteration, so that none waits for another; chain keys depend on the chain's
            # number alone, so that batches and devices do not change a chain's draws.
            key_i = jax.random.fold_in(key, i)
            key_shared, key_chains = jax.random.split(key_i)
            u = jax.random.uniform(key_shared, (2,))
            steps = 1 + jnp.floor(u[0] * shape.leapfrogs).astype(int)
            spacing = 2.0 / shape.lattice_points * window(u[1])
            keys = jax.vmap(lambda c: jax.random.fold_in(key_chains, c))(indices)

            def step(inputs: tuple[Key, ChainState]) -> tuple[ChainState, Step]:
                return kernel(inputs[0], inputs[1], steps, spacing, parameters)

            if shape.batch is None or shape.batch >= count:
                chains, made = jax.vmap(step)((keys, state.chains))
            else:
                chains, made = jax.lax.map(step, (keys, state.chains), batch_size=shape.batch)
            lam = jax.vmap(parameters.link)(chains.a)
            jumps = held_copied((made.orbit_jump, made.plain_jump), shape.devices)
            # Without exact draws of the base there are no regenerations: returns to it stand for them.
            cut = made.regenerated if sample_base is not None else lam <= 0.0
            tour = state.tour + cut
            target = kept.keep(state.target, chains.theta, tour, lam >= 1.0)
            base = kept.keep(state.base, chains.theta, tour, lam <= 0.0) if sample_base is None else state.base
            sums = _accumulate(state.sums, made, parameters.link.cells)
            record = _noted(chains, made) | {"lam": lam, "regenerated": cut, "leapfrogs": steps}
            record |= {"orbit_jump": jnp.mean(jumps[0]), "plain_jump": jnp.mean(jumps[1])}
            return _held(State(chains, target, base, tour, sums), shape.devices), record

        def block(state: State, i: Array) -> tuple[State, tuple[dict[str, Any], Array, Array]]:
            state, record = jax.lax.scan(body, state, i)
            chosen = slice(0, shape.learners)
            return state, (record, state.chains.theta[chosen], record["lam"][-1, chosen])

        coming = count * shape.iterations
        state = state._replace(target=kept.make_room(state.target, coming), base=kept.make_room(state.base, coming))
        blocks = jnp.arange(shape.iterations).reshape(-1, 4)
        state, (record, theta, theta_lam) = jax.lax.scan(block, state, blocks)
        flat = jax.tree.map(lambda v: v.reshape(shape.iterations, *v.shape[2:]), record)
        summed = {k: flat.pop(k) for k in ("orbit_jump", "plain_jump")}
        return state, Record(
            theta=theta,
            theta_lam=theta_lam,
            orbit_jump=jnp.mean(summed["orbit_jump"]),
            plain_jump=jnp.mean(summed["plain_jump"]),
            **flat,
        )

    return one_round


def _noted(chains: ChainState, made: Step) -> dict[str, Any]:
    """What a record holds of one iteration of all chains."""
    return {
        "a": chains.a,
        "delta": delta(chains.energies),
        "first": chains.theta[:, 0],
        "acceptance": made.acceptance,
        "position": made.position,
        "leg": made.leg,
        "rejected": made.rejected._replace(point=point_of(made.rejected)),
    }


def _accumulate(sums: TourSums, made: Step, cells: int) -> TourSums:
    """Close the tours of the chains that regenerated, then add this iteration to the tours under way.

    The orbit move comes before the regeneration and the draw of a given theta after it, so the former belongs to the
    tour that ends and the latter to the tour that begins.
    """
    orbit, plain = made.orbit_masses, made.plain_masses
    current = sums.current.at[:, 0].add(orbit)
    closed = (made.regenerated & sums.started)[:, None, None]
    ended = jnp.where(closed, current, 0.0)
    both = jnp.concatenate([ended, strata.compared_with(ended, cells)], axis=1)
    current = jnp.where(made.regenerated[:, None, None], 0.0, current).at[:, 1].add(plain)
    total = sums.total.at[:, 0].add(orbit).at[:, 1].add(plain)
    return TourSums(
        current,
        total,
        sums.finished + by_part(ended),
        sums.second + by_part(both[:, :, None] * both[:, None]),
        sums.tours + jnp.sum(closed),
        sums.started | made.regenerated,
    )
