"""The default kernel: one iteration moves a along the orbit, z given lam by HMC, and a given theta exactly.

At lam = 0 the HMC proposal is replaced by an exact draw of the base, where there is one: a regeneration.
Every parameter of the kernel is frozen within a round, so each round's kernel is exactly invariant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array, Key, Sampler
from pathtemp.io.persistent import storable
from pathtemp.kernels import hmc, lam_along_orbit, lam_given_theta, strata
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.legs import Legs, LegTransport, OneTransport
from pathtemp.kernels.rejected import Rejected, rejected_end, worse
from pathtemp.kernels.transport import Transport
from pathtemp.paths.geometric import GeometricPath, as_energies, delta, log_density
from pathtemp.paths.links import MetricLink, interpolate, unit


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KernelParameters:
    """What adaptation learns.

    Parameters
    ----------
    link, prior
        The link and the pseudo-prior log c.
    transport
        m, F along the path.
    log_step
        Log HMC step size at equispaced positions s, shape (B,).
    orbit
        Whether a moves along the orbit at all.
    pinned
        Whether a is held where it is.
    frozen
        Whether adaptation has ended, so that masses are summed for the estimates and not for the next fit.
    leg_step
        Log factor of the step size of each leg of a mixture base, shape (legs,); None for another base.
    """

    link: MetricLink
    prior: PseudoPrior
    transport: Transport
    log_step: Array
    orbit: Array
    pinned: Array
    frozen: Array
    leg_step: Array | None = None


@storable
class ChainState(NamedTuple):
    """One chain: theta (dim,), a (), energies (2,)."""

    theta: Array
    a: Array
    energies: Array


class Step(NamedTuple):
    """What one iteration of one chain did.

    Parameters
    ----------
    regenerated
        Whether theta was drawn afresh from the base.
    acceptance, position
        Acceptance probability of the HMC move, and the position s at which it was made.
    orbit_jump, plain_jump
        Distance in s moved along the orbit, and by the draw of a given theta.
    orbit_masses, plain_masses
        Conditional probabilities of the bins of a (see :mod:`pathtemp.kernels.strata`), in the two moves; in frozen
        rounds zero where the lattice did not span the circle.
    rejected
        What the evaluations met that is no density.
    leg
        The label: the leg of a mixture base whose transport was used; 0 for another base.
    """

    regenerated: Array
    acceptance: Array
    position: Array
    orbit_jump: Array
    plain_jump: Array
    orbit_masses: Array
    plain_masses: Array
    rejected: Rejected
    leg: Array


def jitter(u: Array) -> Array:
    """Factor of the step size from a uniform: .8 to 1.2, and .25 one time in ten, which frees chains that got stuck."""
    return jnp.where(u < 0.1, 0.25, 0.8 + 0.4 * (u - 0.1) / 0.9)


def iterate(
    key: Key,
    state: ChainState,
    steps: Array,
    spacing: Array,
    parameters: KernelParameters,
    *,
    path: GeometricPath,
    sample_base: Sampler | None,
    lattice_points: int,
) -> tuple[ChainState, Step]:
    """One iteration of one chain; ``steps`` leapfrogs, orbit lattice ``spacing`` apart."""
    # Few calls of the generator: each is a large graph to compile.
    key_uniform, key_momentum, key_base = jax.random.split(key, 3)
    u = jax.random.uniform(key_uniform, (8,))
    link, prior = parameters.link, parameters.prior
    theta, a, energies = state
    leg, leg_step, transport, log_label = _label(u[7], theta, parameters, path)
    z = transport.at(unit(a)).inverse(theta)
    no_masses = jnp.zeros(strata.count_bins(link.cells))

    def along_orbit() -> tuple[Array, Array, Array, Array, Rejected]:
        here = lam_along_orbit.Point(a, theta, z, energies)
        lattice = lam_along_orbit.Lattice(spacing, lattice_points, link, prior)
        how: dict[str, Any] = {"transport": transport, "evaluate": path.values, "log_label": log_label}
        moved = lam_along_orbit.move(u[:2], here, lattice, **how)
        masses = no_masses.at[strata.bin_of(moved.lattice, link.cells)].add(moved.probability)
        # Of lattices on a part of the circle it is chance how many points lie at the ends.
        counts = ~parameters.frozen | (spacing * lattice_points > 2.0 - 1e-9)
        masses = jnp.where(counts, masses, 0.0)
        return moved.a, moved.theta, moved.energies, masses, moved.rejected

    def stay() -> tuple[Array, Array, Array, Array, Rejected]:
        return a, theta, energies, no_masses, Rejected(jnp.zeros((), int), theta)

    use_orbit = parameters.orbit & ~parameters.pinned
    a_orbit, theta, energies, orbit_masses, on_lattice = jax.lax.cond(use_orbit, along_orbit, stay)

    s, lam = unit(a_orbit), link(a_orbit)
    step = jitter(u[2]) * jnp.exp(interpolate(parameters.log_step, s) + leg_step)
    chart = transport.at(s)
    momentum = jax.random.normal(key_momentum, z.shape)
    proposal = hmc.propose(momentum, z, chart, lambda x: path.gradient(x, lam), step, steps)
    fresh = jnp.zeros((), bool) if sample_base is None else (lam <= 0.0)
    candidate = proposal.theta if sample_base is None else jnp.where(fresh, sample_base(key_base), proposal.theta)
    values = path.values(candidate)
    new_energies = as_energies(values)
    at_end = rejected_end(values, candidate, proposal.no_gradient)
    log_ratio = log_density(new_energies, lam) - log_density(energies, lam) + proposal.kinetic_fall
    log_ratio = log_ratio + log_label(candidate, new_energies) - log_label(theta, energies)
    probability = jnp.where(fresh, 1.0, hmc.acceptance(log_ratio))
    accepted = u[3] < probability
    theta, energies = jnp.where(accepted, candidate, theta), jnp.where(accepted, new_energies, energies)

    a_plain, plain_masses = lam_given_theta.draw(u[4:7], delta(energies), link, prior)
    a_new = jnp.where(parameters.pinned, a_orbit, a_plain)
    made = Step(
        fresh,
        probability,
        s,
        jnp.abs(unit(a_orbit) - unit(a)),
        jnp.abs(unit(a_new) - s),
        orbit_masses,
        strata.cut(plain_masses, link.cells),
        worse(on_lattice, at_end),
        leg,
    )
    return ChainState(theta, a_new, energies), made


def _label(
    u: Array, theta: Array, parameters: KernelParameters, path: GeometricPath
) -> tuple[Array, Array, OneTransport, Callable[[Array, Array], Array]]:
    """The label of theta, the log factor of its step size, its transport, and the log probability of the label.

    That of (theta, energies) is the share of the leg in the density of the base. One transport for all, and labels
    that are certain, for a base without legs.
    """
    legs = path.log_base
    if not isinstance(legs, Legs):
        return jnp.zeros((), int), jnp.zeros(()), parameters.transport, lam_along_orbit.certain
    assert parameters.leg_step is not None
    leg = lam_given_theta.choose(u, jax.nn.softmax(legs.log_legs(theta)))
    transport = LegTransport(legs, leg, parameters.transport, parameters.link)
    return leg, parameters.leg_step[leg], transport, lambda theta, energies: legs.log_leg(theta, leg) - energies[0]
