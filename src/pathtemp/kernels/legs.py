"""A transport for each leg of a mixture base: theta = c_k + w(lam) F_k z, the label k drawn given theta.

The label is an auxiliary variable: it is drawn from r_k(theta), the probability that leg k of the base made theta, at
the start of an iteration and forgotten at its end. Given k, moves that leave q(theta, lam) r_k(theta) invariant leave
the joint law invariant, so each mode may have a map of its own; none of them needs to be right. The last leg is the
user's base, whose map is the transport learned from all draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.kernels.transport import AffineMap, Transport
from pathtemp.paths.links import MetricLink


@runtime_checkable
class Legs(Protocol):
    """The log density of a mixture base with a local law for each leg but the last."""

    @property
    def count(self) -> int:
        """Number of legs, the user's base included."""
        ...

    def log_legs(self, theta: Array) -> Array:
        """Log weighted density of each leg at ``theta`` (dim,), shape (count,)."""
        ...

    def log_leg(self, theta: Array, leg: Array) -> Array:
        """Log weighted density of one leg."""
        ...

    def local_map(self, leg: Array) -> AffineMap:
        """The map of a leg from z to theta at lam = 0, with a low-rank part; any map for the last leg."""
        ...

    def narrowing(self, lam: Array) -> Array:
        """Scale of a leg's law at lam, relative to that at lam = 0."""
        ...


class OneTransport(Protocol):
    """What the moves of an iteration need of a transport."""

    def at(self, s: Array) -> AffineMap:
        """The map at position s."""
        ...

    def orbit(self, z: Array, s: Array) -> tuple[Array, Array]:
        """Points theta(s) of one z at positions s, and log |det F(s)|."""
        ...


@dataclass(frozen=True)
class LegTransport:
    """The transport of one leg.

    Parameters
    ----------
    legs, leg
        The mixture, and the label.
    rest
        The transport of the last leg, diagonal plus low rank.
    link
        Gives lam of a position.
    """

    legs: Legs
    leg: Array
    rest: Transport
    link: MetricLink

    def at(self, s: Array) -> AffineMap:
        """The map at position s (a scalar)."""
        own, rest = self.legs.local_map(self.leg), self.rest.at(s)
        (basis, gain), (other_basis, other_gain) = own.low_rank(), rest.low_rank()
        rank = max(basis.shape[1], other_basis.shape[1])
        last = self.leg == self.legs.count - 1
        return AffineMap(
            jnp.where(last, rest.location, own.location),
            jnp.where(last, rest.scale, self.legs.narrowing(self.link.at(s)) * own.scale),
            None,
            jnp.where(last, _columns(other_basis, rank), _columns(basis, rank)),
            jnp.where(last, _columns(other_gain, rank), _columns(gain, rank)),
        )

    def orbit(self, z: Array, s: Array) -> tuple[Array, Array]:
        """Points theta(s) of one z at positions s (J,), shape (J, dim), and log |det F(s)|, shape (J,)."""

        def at(s: Array) -> tuple[Array, Array]:
            chart = self.at(s)
            return chart.forward(z), chart.log_det()

        return jax.vmap(at)(s)


def _columns(table: Array, count: int) -> Array:
    """The table with columns of zeros up to ``count``."""
    return jnp.pad(table, [(0, 0)] * (table.ndim - 1) + [(0, count - table.shape[-1])])
