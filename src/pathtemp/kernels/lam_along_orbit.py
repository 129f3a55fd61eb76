"""Moves of lam along the orbit of z: theta follows the transport while a moves on a lattice of the circle [0, 2).

Given a, draw a random window of J equispaced points of the circle that holds it, at any place in the window with the
same probability. Every point of the window would have drawn the same window equally often, so choosing among its
points with probability proportional to the transported density leaves the joint law invariant, without rejection
(a multiple-proposal move, Tjelmeland 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.kernels.lam_given_theta import PseudoPrior, choose
from pathtemp.kernels.legs import OneTransport
from pathtemp.kernels.rejected import Rejected, rejected_at
from pathtemp.paths.geometric import as_energies, log_density
from pathtemp.paths.links import MetricLink, unit


class Point(NamedTuple):
    """Where a chain is: a, theta (dim,), the z (dim,) that the transport takes to theta, and (log psi, log q) there."""

    a: Array
    theta: Array
    z: Array
    energies: Array


class Lattice(NamedTuple):
    """Points of the circle among which a moves: how far apart, how many, and the law of a given theta."""

    spacing: Array
    points: int
    link: MetricLink
    prior: PseudoPrior


class OrbitMove(NamedTuple):
    """The state after the move, and what the lattice held.

    Parameters
    ----------
    a, theta, energies
        The chosen point.
    rejected
        What the evaluations met that is no density.
    lattice, probability
        All J points of the window (the first is the point of departure) and their probabilities: the conditional
        law of a, which Rao-Blackwellises every estimate of p(a).
    """

    a: Array
    theta: Array
    energies: Array
    lattice: Array
    probability: Array
    rejected: Rejected


def certain(theta: Array, energies: Array) -> Array:
    """Log probability of the label where there is only one."""
    return jnp.zeros(())


def move(
    u: Array,
    here: Point,
    lattice: Lattice,
    *,
    transport: OneTransport,
    evaluate: Callable[[Array], Array],
    log_label: Callable[[Array, Array], Array] = certain,
) -> OrbitMove:
    """Move a along the orbit of z on a lattice; evaluates as many densities as it has points, less one.

    ``u`` are two uniforms: the place of a in its window, and the choice among the points. ``evaluate`` gives (log psi,
    log q) of a point; ``log_label`` of (theta, energies) is the log probability of the label that the transport belongs
    to.
    """
    spacing, points, link, prior = lattice
    place = jnp.floor(u[0] * points).astype(int)
    other = (place + jnp.arange(1, points)) % points
    window = jnp.concatenate([here.a[None], jnp.mod(here.a + (other - place) * spacing, 2.0)])
    thetas, log_dets = transport.orbit(here.z, unit(window))
    values = jax.vmap(evaluate)(thetas[1:])
    candidates = jnp.concatenate([here.energies[None], as_energies(values)])
    log_p = log_density(candidates, link(window)) + log_dets - jax.vmap(prior)(window)
    log_p = log_p + jax.vmap(log_label)(thetas, candidates)
    log_p = jnp.where(jnp.isnan(log_p), -jnp.inf, log_p)
    probability = jax.nn.softmax(log_p)
    choice = choose(u[1], probability)
    chosen = jnp.where(choice == 0, here.theta, thetas[choice])
    rejected = rejected_at(values, thetas[1:])
    return OrbitMove(window[choice], chosen, candidates[choice], window, probability, rejected)
