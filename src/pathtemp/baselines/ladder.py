"""Gibbs on a ladder of temperatures: the rung given theta in closed form, then HMC on theta given the rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array, Key
from pathtemp.kernels.hmc import acceptance, propose
from pathtemp.kernels.rejected import Rejected, point_of, rejected_end, summed
from pathtemp.paths.geometric import GeometricPath, as_energies, log_density
from pathtemp.seeds import round_key

FIRST_STEP = 0.5
"""Step size of HMC before any was learned."""


class LadderState(NamedTuple):
    """One chain: theta (dim,), and for each of K rungs the log step size and the updates it was learned from (K,)."""

    theta: Array
    log_step: Array
    updates: Array


class LadderDraws(NamedTuple):
    """Draws of one chain: theta (n, dim), rung (n,), energies (n, 2), mean acceptance (n,).

    With them, for each draw, the gradients spent (n,) and what its proposals met that is no density.
    """

    theta: Array
    rung: Array
    energies: Array
    acceptance: Array
    gradients: Array
    rejected: Rejected


class Moves(NamedTuple):
    """HMC updates after each draw of the rung, largest number of leapfrogs of one, and target acceptance."""

    number: int
    leapfrogs: int
    target: float


Moving = tuple[Array, Array, Array, Array]
"""Theta, its energies, and the rung's log step size and updates."""


class _AsItIs:
    """The chart in which z is theta."""

    def forward(self, z: Array) -> Array:
        return z

    def adjoint(self, v: Array) -> Array:
        return v


def first_state(theta: Array, rungs: int) -> LadderState:
    """A chain at ``theta`` that has learned nothing."""
    return LadderState(theta, jnp.full(rungs, jnp.log(FIRST_STEP)), jnp.zeros(rungs))


def sweep(
    key: Key,
    state: LadderState,
    *,
    path: GeometricPath,
    ladder: Array,
    log_c: Array,
    moves: Moves,
    learn: Array,
) -> tuple[LadderState, LadderDraws]:
    """One draw of the rung given theta, then HMC updates of theta given the rung.

    With ``learn`` = 0 it leaves q_k(theta) / c_k invariant; with 1 it moves the step size of the rung towards the
    target acceptance.
    """
    rung_key, move_key = jax.random.split(key)
    energies = path.energies(state.theta)
    rung = jax.random.categorical(rung_key, log_density(energies, ladder) - log_c)
    lam = ladder[rung]

    def move(carry: Moving, key: Key) -> tuple[Moving, tuple[Array, Array, Rejected]]:
        theta, energies, log_step, updates = carry
        momentum_key, steps_key, accept_key = jax.random.split(key, 3)
        momentum = jax.random.normal(momentum_key, theta.shape)
        steps = jax.random.randint(steps_key, (), 1, moves.leapfrogs + 1)
        end = propose(momentum, theta, _AsItIs(), lambda x: path.gradient(x, lam), jnp.exp(log_step), steps)
        values = path.values(end.theta)
        there, met = as_energies(values), rejected_end(values, end.theta, end.no_gradient)
        proposed = log_density(there, lam)
        probability = acceptance(proposed - log_density(energies, lam) + end.kinetic_fall)
        accepted = jax.random.uniform(accept_key) < probability
        theta, energies = jnp.where(accepted, end.theta, theta), jnp.where(accepted, there, energies)
        log_step = log_step + learn * (probability - moves.target) * (1.0 + updates) ** -0.6
        return (theta, energies, log_step, updates + learn), (probability, steps, met)

    start = (state.theta, energies, state.log_step[rung], state.updates[rung])
    (theta, energies, log_step, updates), (probability, steps, rejected) = jax.lax.scan(
        move, start, jax.random.split(move_key, moves.number)
    )
    moved = LadderState(theta, state.log_step.at[rung].set(log_step), state.updates.at[rung].set(updates))
    return moved, LadderDraws(theta, rung, energies, probability.mean(), steps.sum(), summed(rejected))


Program = Callable[[Array, Array, LadderState, Array, Array], tuple[LadderState, LadderDraws]]


def adaptation(path: GeometricPath, draws: int, moves: Moves) -> Program:
    """All chains for ``draws`` sweeps, the first half of which learn: a function of seed, index, states, ladder, log c.

    The draws come back with shape (chain, draw, ...).
    """

    def chain(key: Key, state: LadderState, ladder: Array, log_c: Array) -> tuple[LadderState, LadderDraws]:
        def one(state: LadderState, x: tuple[Key, Array]) -> tuple[LadderState, LadderDraws]:
            return sweep(x[0], state, path=path, ladder=ladder, log_c=log_c, moves=moves, learn=x[1])

        learn = (jnp.arange(draws) < draws // 2).astype(float)
        state, drawn = jax.lax.scan(one, state, (jax.random.split(key, draws), learn))
        return state, drawn._replace(rejected=drawn.rejected._replace(point=point_of(drawn.rejected)))

    def program(
        seed: Array, index: Array, states: LadderState, ladder: Array, log_c: Array
    ) -> tuple[LadderState, LadderDraws]:
        key = round_key(seed, index)
        keys = jax.random.split(key, states.theta.shape[0])
        return jax.vmap(chain, in_axes=(0, 0, None, None))(keys, states, ladder, log_c)

    return program
