"""Learning the transport along a path: each fit corrects the last one in its own coordinates z.

A draw at position s is taken to z by the map of its own s, so that whatever trend the map already has, even a scale
that falls by orders of magnitude, is gone. What is left is a small correction near each node. It minimises the Fisher
divergence, from draws and gradients together: where theta given lam is normal the gradient is linear in theta, and the
correction is exact, from few draws and even before they have come to equilibrium. Nodes that no draw has come near take
the trend of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator

from pathtemp._types import Array, FloatArray, IntArray
from pathtemp.engines.default.transport import median_spread
from pathtemp.io.persistent import storable
from pathtemp.kernels.transport import Transport, regressions
from pathtemp.model.blocks import in_blocks

NODES = 25
"""Nodes along the path at which the transport is learned."""

FINE = 4
"""Positions of the kernel's table for each cell between nodes."""

FULL_DIM = 100
"""Largest dimension with regressions between coordinates; above it, scales alone."""

FAR = 8.0
"""Draws with a coordinate or a gradient further out than this many spreads are left out of a correction."""

RIDGE = 1e-4
"""Added to the covariances of z and of its gradient, whose ratio it brings nearer to one where there are few draws."""

FEWEST = 20
"""Draws, and two for each dimension, within the distance of a node to the next that a correction needs."""

TREND = 5
"""Nodes whose trend is continued to nodes without draws. Log scales have one; location and regressions stay as they
are, since a trend of theirs, small in the open part of a funnel, would miss its neck."""


@storable
@dataclass(frozen=True)
class NodalTransport:
    """The transport at nodes equispaced in lam.

    Parameters
    ----------
    lam
        Nodes, shape (P,).
    location, log_diagonal
        m and d, shape (P, dim).
    lower
        A, shape (P, dim, dim), or None.
    """

    lam: FloatArray
    location: FloatArray
    log_diagonal: FloatArray
    lower: FloatArray | None

    def at(self, lam: FloatArray) -> NodalTransport:
        """The same at other nodes: cubics between its own; beyond them log scales follow their trend."""
        inside = np.clip(lam, self.lam[0], self.lam[-1])
        # A spline of location and regressions would ring: its ripples fall off more slowly than the scales in a neck.
        lower = None if self.lower is None else np.asarray(PchipInterpolator(self.lam, self.lower)(inside))
        location = np.asarray(PchipInterpolator(self.lam, self.location)(inside))
        log_diagonal = np.asarray(CubicSpline(self.lam, self.log_diagonal, bc_type="natural")(inside))
        beyond = (lam < self.lam[0]) | (lam > self.lam[-1])
        log_diagonal[beyond] += _trend(self.lam, self.log_diagonal, lam[beyond])
        return NodalTransport(lam, location, log_diagonal, lower)

    def transport(self) -> Transport:
        """The kernel's table, finer than the nodes, so that its slope follows the spline."""
        fine = self.at(np.linspace(self.lam[0], self.lam[-1], FINE * (len(self.lam) - 1) + 1))
        lower = None if fine.lower is None else jnp.asarray(fine.lower)
        return regressions(jnp.asarray(fine.location), jnp.asarray(fine.log_diagonal), lower)


def flat_transport(interval: tuple[float, float], theta: FloatArray) -> NodalTransport:
    """A transport that is the same all along the path: median and spread of the draws (n, dim)."""
    lam = np.linspace(*interval, NODES)
    centre, spread = median_spread(theta)
    dim = len(centre)
    lower = np.broadcast_to(np.eye(dim), (NODES, dim, dim)) if dim <= FULL_DIM else None
    return NodalTransport(lam, np.tile(centre, (NODES, 1)), np.tile(np.log(spread), (NODES, 1)), lower)


def refine(
    learned: NodalTransport, lam: FloatArray, theta: FloatArray, gradient: FloatArray, *, radius: float = 1.5
) -> NodalTransport:
    """Correct a transport by draws lam (n,), theta (n, dim) and the gradients of log q by theta there (n, dim).

    ``radius`` is the half width of the window of draws at a node, in distances between nodes; it is widened where
    there are few.
    """
    s = (lam - learned.lam[0]) / (learned.lam[-1] - learned.lam[0])
    z, g = to_z(learned.transport(), s, theta, gradient)
    kept = np.isfinite(z).all(axis=1) & np.isfinite(g).all(axis=1)
    s, z, g = s[kept], z[kept], g[kept]
    count, dim = z.shape
    if count < 4:
        return learned
    nodes = np.linspace(0.0, 1.0, len(learned.lam))
    spacing = 1.0 / (len(nodes) - 1)
    near = np.array([np.count_nonzero(np.abs(s - node) < spacing) for node in nodes])
    seen = near >= min(FEWEST + 2 * dim, near.max())
    location, log_diagonal = learned.location.copy(), learned.log_diagonal.copy()
    lower = None if learned.lower is None else np.array(learned.lower)
    for b in np.flatnonzero(seen):
        chosen, weight = _window(s, nodes[b], radius * spacing, wanted=30 + 4 * dim)
        shift, factor = _correction(s[chosen] - nodes[b], z[chosen], g[chosen], weight, full=lower is not None)
        if lower is None:
            location[b] += np.exp(log_diagonal[b]) * shift
            log_diagonal[b] += np.log(factor)
        else:
            old = lower[b] * np.exp(log_diagonal[b])
            location[b] += old @ shift
            whole = old @ factor
            diagonal = np.diag(whole)
            lower[b], log_diagonal[b] = whole / diagonal, np.log(diagonal)
    unseen = np.flatnonzero(~seen)
    if unseen.size:
        known, nearest = np.flatnonzero(seen), np.flatnonzero(seen)[_nearest(nodes[seen], nodes[unseen])]
        log_diagonal[unseen] = log_diagonal[nearest] + _trend(nodes[known], log_diagonal[known], nodes[unseen])
        location[unseen] = location[nearest]
        if lower is not None:
            lower[unseen] = lower[nearest]
    return NodalTransport(learned.lam, location, log_diagonal, lower)


def to_z(transport: Transport, s: FloatArray, theta: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The z of draws (n, dim) at positions s, which may lie a little outside [0, 1], and the gradients in z."""
    z, g = in_blocks(_pull_back, (), transport, (s, theta, gradient))
    return z, g


def _pull_back() -> Callable[[Transport, Array, Array, Array], tuple[Array, Array]]:
    def one(transport: Transport, s: Array, theta: Array, gradient: Array) -> tuple[Array, Array]:
        chart = transport.at(s)
        return chart.inverse(theta), chart.adjoint(gradient)

    return one


def _nearest(x: FloatArray, at: FloatArray) -> IntArray:
    return np.asarray(np.argmin(np.abs(at[:, None] - x[None, :]), axis=1))


def _trend(x: FloatArray, table: FloatArray, at: FloatArray) -> FloatArray:
    """Change of a table (P, dim) from its nearest node to each of ``at``, by the line through the ``TREND`` nearest.

    >>> _trend(np.arange(3.0), np.array([[0.0], [2.0], [4.0]]), np.array([4.0, -1.0])).ravel().round(6).tolist()
    [4.0, -2.0]
    """
    change = np.zeros((len(at), table.shape[1]))
    for i, place in enumerate(at):
        order = np.argsort(np.abs(x - place), kind="stable")[:TREND]
        if len(order) > 1:
            slope = np.polynomial.polynomial.polyfit(x[order] - place, table[order], 1)[1]
            change[i] = slope * (place - x[order[0]])
    return change


def _window(s: FloatArray, node: float, radius: float, *, wanted: int) -> tuple[IntArray, FloatArray]:
    """Indices and normalised triangular weights of the draws near ``node``; widened until ``wanted`` are in."""
    distance = np.abs(s - node)
    enough = np.partition(distance, min(wanted, len(s)) - 1)[min(wanted, len(s)) - 1]
    radius = max(radius, 1.25 * float(enough) + 1e-9)
    chosen = np.flatnonzero(distance < radius)
    weight = 1.0 - distance[chosen] / radius
    return chosen, weight / weight.sum()


def _correction(
    t: FloatArray, z: FloatArray, g: FloatArray, weight: FloatArray, *, full: bool
) -> tuple[FloatArray, FloatArray]:
    """Location at t = 0 and triangular factor (scales if not ``full``) of draws z (n, dim), with gradients g.

    With C and G the covariances of z and g, the covariance that minimises the Fisher divergence is the one with
    S G S = C, their geometric mean. Of a normal law z + S g is the location, whatever the draws; it is linear in t.
    """
    near = np.ones(len(z), bool)
    for x in (z, g):
        centre, spread = median_spread(x)
        near &= (np.abs(x - centre) < FAR * spread).all(axis=1)
    if np.count_nonzero(near) > z.shape[1] + 2:
        t, z, g, weight = t[near], z[near], g[near], weight[near] / weight[near].sum()
    zc, gc = z - weight @ z, g - weight @ g
    if full:
        c, gg = ((x * weight[:, None]).T @ x + RIDGE * np.eye(x.shape[1]) for x in (zc, gc))
        covariance = geometric_mean(c, gg)
        factor: FloatArray = np.asarray(np.linalg.cholesky(covariance))
        centres = z + g @ covariance
    else:
        variance = np.sqrt((weight @ zc**2 + RIDGE) / (weight @ gc**2 + RIDGE))
        factor, centres = np.asarray(np.sqrt(variance)), z + g * variance
    # Where scales still differ within the window, z + S g is no location; then the mean of z has to do.
    trust = 1.0 - np.sum(weight @ (centres - weight @ centres) ** 2) / np.sum(weight @ zc**2)
    location = z + np.clip(trust, 0.0, 1.0) * (centres - z)
    mean_t, mean = float(weight @ t), weight @ location
    slope = (weight * (t - mean_t)) @ (location - mean) / max(float(weight @ (t - mean_t) ** 2), 1e-12)
    # At an edge the draws lie to one side of the node; further than this they say little of it.
    return np.asarray(mean - np.clip(slope * mean_t, -1.0, 1.0)), factor


def geometric_mean(c: FloatArray, g: FloatArray) -> FloatArray:
    """The symmetric positive S with S g S = c.

    >>> geometric_mean(np.diag([4.0, 1.0]), np.diag([1.0, 4.0])).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """
    value, vector = np.linalg.eigh(g)
    root = np.sqrt(np.maximum(value, 1e-12))
    half = (vector * root) @ vector.T
    inverse_half = (vector / root) @ vector.T
    value, vector = np.linalg.eigh(half @ c @ half)
    middle = (vector * np.sqrt(np.maximum(value, 1e-24))) @ vector.T
    out = inverse_half @ middle @ inverse_half
    return np.asarray(0.5 * (out + out.T))
