"""One iteration along any path: lam moves along the orbit of z, then HMC moves z given lam; and a round of many.

As in :mod:`pathtemp.kernels.transported_hmc`, every parameter is frozen within a round, so that each round's kernel
leaves the joint law q(theta, f(a)) / c(f(a)) exactly invariant. Here q is any function of (theta, lam), so that lam
given theta has no closed form; the orbit alone moves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array, Key
from pathtemp.io.persistent import storable
from pathtemp.kernels import hmc
from pathtemp.kernels.lam_given_theta import choose
from pathtemp.kernels.rejected import Rejected, point_of, rejected_at, rejected_end, worse
from pathtemp.kernels.transport import Transport
from pathtemp.paths.function import FunctionPath
from pathtemp.paths.geometric import as_energies
from pathtemp.paths.links import fold, interpolate
from pathtemp.seeds import round_key

HALF_LOG_2PI = 0.9189385332046727

THIN = 2
"""Iterations of which one draw of theta is kept."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PathParameters:
    """What adaptation learns, and what the run is about.

    Parameters
    ----------
    interval
        lam at s = 0 and at s = 1, shape (2,).
    ends
        Shares of the folded circle at which lam stands at either end of the interval, shape (2,): exact draws there.
    log_c
        Log pseudo-prior at K + 1 equispaced positions s.
    transport
        m, A, d along the path.
    log_step
        Log HMC step size at equispaced positions.
    pinned
        Whether lam is held where it is.
    args
        Further arguments of log q.
    """

    interval: Array
    ends: Array
    log_c: Array
    transport: Transport
    log_step: Array
    pinned: Array
    args: tuple[Any, ...]

    def position(self, a: Array) -> Array:
        """Position s in [0, 1] of a on the circle [0, 2)."""
        return jnp.clip((fold(a) - self.ends[0]) / (1.0 - self.ends[0] - self.ends[1]), 0.0, 1.0)

    def lam(self, s: Array) -> Array:
        """Lam at position s."""
        return self.interval[0] * (1.0 - s) + self.interval[1] * s


@storable
class PathState(NamedTuple):
    """One chain: theta (dim,), a (), log q ()."""

    theta: Array
    a: Array
    log_q: Array


class PathStep(NamedTuple):
    """What one iteration of one chain did.

    Parameters
    ----------
    s
        Position after the move along the orbit, at which the rest was measured.
    a
        The same on the circle.
    u
        Derivative by s of the log density along the orbit: dlog q(m(s) + F(s) z, lam(s)) |F(s)| / ds. Its mean given s
        is dlog z/ds (eq. gradient), and it varies far less than the derivative at fixed theta.
    plain
        Derivative by s at fixed theta, dlog q(theta, lam(s)) / ds, whose variance is Fisher's information.
    log_ratio
        Log of q |F| / normal(z): what bridge sampling needs for the absolute scale of z.
    theta, gradient
        The point itself, and the gradient by theta there, shape (dim,).
    acceptance
        Of the HMC move.
    jump
        Distance in s moved along the orbit.
    masses
        Conditional probabilities of the K cells of s and the two ends, shape (K + 2,).
    rejected
        What the evaluations met that is no density; its point is theta and then lam, shape (dim + 1,).
    """

    s: Array
    a: Array
    u: Array
    plain: Array
    log_ratio: Array
    theta: Array
    gradient: Array
    acceptance: Array
    jump: Array
    masses: Array
    rejected: Rejected


def iterate(
    key: Key,
    state: PathState,
    steps: Array,
    spacing: Array,
    parameters: PathParameters,
    *,
    path: FunctionPath,
    points: int,
) -> tuple[PathState, PathStep]:
    """One iteration of one chain: ``steps`` leapfrogs, ``points`` points of the orbit ``spacing`` apart on the circle.

    The choice among the points of a randomly placed window is that of :mod:`pathtemp.kernels.lam_along_orbit`.
    """
    key_uniform, key_momentum = jax.random.split(key)
    draw = jax.random.uniform(key_uniform, (4,))
    transport, args = parameters.transport, parameters.args
    cells = parameters.log_c.shape[0] - 1
    theta, a, log_q = state
    s = parameters.position(a)
    z = transport.at(s).inverse(theta)

    place = jnp.floor(draw[0] * points).astype(int)
    other = (place + jnp.arange(1, points)) % points
    lattice = jnp.concatenate([a[None], jnp.mod(a + (other - place) * spacing, 2.0)])
    positions = jax.vmap(parameters.position)(lattice)

    def on_orbit(s: Array) -> tuple[Array, Array]:
        chart = transport.at(s)
        return chart.forward(z), chart.log_det()

    thetas, log_dets = jax.vmap(on_orbit)(positions)
    lams = jax.vmap(parameters.lam)(positions)
    values = jax.vmap(lambda x, lam: path.value(x, lam, args))(thetas[1:], lams[1:])
    on_lattice = rejected_at(values[:, None], jnp.column_stack([thetas, lams])[1:])
    log_qs = jnp.concatenate([log_q[None], as_energies(values)])
    log_p = log_qs + log_dets - jax.vmap(interpolate, (None, 0))(parameters.log_c, positions)
    log_p = jnp.where(jnp.isnan(log_p) | (parameters.pinned & (jnp.arange(points) > 0)), -jnp.inf, log_p)
    probability = jax.nn.softmax(log_p)
    choice = choose(draw[1], probability)
    masses = jnp.zeros(cells + 2).at[_bin(parameters, lattice, cells)].add(probability)
    theta = jnp.where(choice == 0, theta, thetas[choice])
    a, log_q, new_s = lattice[choice], log_qs[choice], positions[choice]

    lam = parameters.lam(new_s)
    by_theta, by_lam = path.gradients(theta, lam, args)
    (_, log_det), (d_theta, d_log_det) = jax.jvp(on_orbit, (new_s,), (jnp.ones(()),))
    plain = by_lam * (parameters.interval[1] - parameters.interval[0])
    u = by_theta @ d_theta + plain + d_log_det
    log_ratio = log_q + log_det + 0.5 * z @ z + z.shape[0] * HALF_LOG_2PI

    chart = transport.at(new_s)
    step = (0.8 + 0.4 * draw[2]) * jnp.exp(interpolate(parameters.log_step, new_s))
    momentum = jax.random.normal(key_momentum, z.shape)
    proposal = hmc.propose(momentum, z, chart, lambda x: path.gradient(x, lam, args), step, steps)
    value = path.value(proposal.theta, lam, args)
    new_log_q, at_end = as_energies(value), rejected_end(value[None], proposal.theta, proposal.no_gradient)
    probability = hmc.acceptance(new_log_q - log_q + proposal.kinetic_fall)
    accepted = draw[3] < probability
    moved = PathState(jnp.where(accepted, proposal.theta, theta), a, jnp.where(accepted, new_log_q, log_q))
    met = worse(on_lattice, at_end._replace(point=jnp.append(at_end.point, lam)))
    jump = jnp.abs(new_s - s)
    return moved, PathStep(new_s, a, u, plain, log_ratio, theta, by_theta, probability, jump, masses, met)


def _bin(parameters: PathParameters, a: Array, cells: int) -> Array:
    """Bin of a: 0 and K + 1 are the flat ends, 1..K the cells of s."""
    r = fold(a)
    cell = 1 + jnp.clip(jnp.floor(jax.vmap(parameters.position)(a) * cells).astype(int), 0, cells - 1)
    return jnp.where(r < parameters.ends[0], 0, jnp.where(r > 1.0 - parameters.ends[1], cells + 1, cell))


@storable
class PathRecord(NamedTuple):
    """What comes back to the host after a round of n iterations and C chains.

    Parameters
    ----------
    s, a, u, plain, log_ratio, acceptance
        As in :class:`PathStep`, shape (n, C).
    theta, gradient, theta_a
        Draws of every second iteration and the gradients there, shape (n // 2, C, dim), and their a.
    masses
        Summed conditional probabilities, shape (C, K + 2).
    jump
        Mean distance in s moved along the orbit.
    leapfrogs
        Leapfrogs of each iteration, shape (n,).
    rejected
        What the evaluations met that is no density: codes (n, C), and a point of each iteration (n, dim + 1).
    """

    s: Array
    a: Array
    u: Array
    plain: Array
    log_ratio: Array
    acceptance: Array
    theta: Array
    gradient: Array
    theta_a: Array
    masses: Array
    jump: Array
    leapfrogs: Array
    rejected: Rejected


@dataclass(frozen=True)
class PathShape:
    """The static sizes of a round."""

    iterations: int
    leapfrogs: int
    points: int


def spacing_of(u: Array, points: int) -> Array:
    """Distance of the points of the orbit on the circle from a uniform ``u``.

    Half the windows span between a half and the whole of the circle; the others are shorter by powers of two, for
    where the transport is poor. The spacing is continuous, so that every place is among the points as often.
    """
    shrink = 0.5 ** jnp.floor(6.0 * jnp.maximum(2.0 * u - 1.0, 0.0))
    return 2.0 / points * shrink * (0.5 + 0.5 * jnp.mod(8.0 * u, 1.0))


def make_round(
    path: FunctionPath, shape: PathShape
) -> Callable[[Array, Array, PathState, PathParameters], tuple[PathState, PathRecord]]:
    """The function of one round, to be jitted: ``(seed, number of the round, chains, parameters)``."""
    kernel = partial(iterate, path=path, points=shape.points)

    def one_round(
        seed: Array, number: Array, chains: PathState, parameters: PathParameters
    ) -> tuple[PathState, PathRecord]:
        key = round_key(seed, number)
        count, cells = chains.a.shape[0], parameters.log_c.shape[0] - 1

        def body(carry: tuple[PathState, Array], i: Array) -> tuple[tuple[PathState, Array], Any]:
            chains, masses = carry
            key_shared, key_chains = jax.random.split(jax.random.fold_in(key, i))
            u = jax.random.uniform(key_shared, (2,))
            steps = 1 + jnp.floor(u[0] * shape.leapfrogs).astype(int)
            spacing = spacing_of(u[1], shape.points)
            keys = jax.vmap(lambda c: jax.random.fold_in(key_chains, c))(jnp.arange(count))
            chains, made = jax.vmap(kernel, (0, 0, None, None, None))(keys, chains, steps, spacing, parameters)
            kept = (
                *(made.s, made.a, made.u, made.plain, made.log_ratio, made.acceptance),
                *(made.jump, steps, made.rejected.code, point_of(made.rejected)),
            )
            return (chains, masses + made.masses), (kept, (made.theta, made.gradient, made.a))

        def block(carry: tuple[PathState, Array], i: Array) -> tuple[tuple[PathState, Array], Any]:
            carry, (kept, points) = jax.lax.scan(body, carry, i)
            return carry, (kept, tuple(x[-1] for x in points))

        start = (chains, jnp.zeros((count, cells + 2)))
        (chains, masses), (kept, (theta, gradient, theta_a)) = jax.lax.scan(
            block, start, jnp.arange(shape.iterations).reshape(-1, THIN)
        )
        s, a, u, plain, log_ratio, acceptance, jump, leapfrogs, *met = (x.reshape(-1, *x.shape[2:]) for x in kept)
        return chains, PathRecord(
            s,
            a,
            u,
            plain,
            log_ratio,
            acceptance,
            theta,
            gradient,
            theta_a,
            masses,
            jnp.mean(jump),
            leapfrogs,
            Rejected(*met),
        )

    return one_round
