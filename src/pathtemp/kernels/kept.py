"""Draws kept of a run, spread evenly over all of it, in bounded memory.

All chains share one buffer. Visits to one end of the path are numbered in order, and every ``stride``-th is kept.
Before a round that might overflow the buffer, every second draw goes and the stride doubles. So what is kept is always
a fixed share of all visits, from the first to the last, and a chain is represented in proportion to its visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array
from pathtemp.io.persistent import storable
from pathtemp.kernels.spread import on_device


@storable
class Kept(NamedTuple):
    """A buffer of draws in the order in which they were made; N rows, of which the first ``size`` are filled.

    Parameters
    ----------
    theta
        Shape (N, dim).
    chain, tour
        The chain of each draw, and the number of its tour in that chain, shape (N,).
    size
        Draws kept.
    visits
        Visits numbered so far, kept or not.
    stride
        Of how many visits one is kept: a power of two.
    """

    theta: Array
    chain: Array
    tour: Array
    size: Array
    visits: Array
    stride: Array


def empty(draws: int, chains: int, dim: int, *, coming: int) -> Kept:
    """A buffer that, once it has been full, holds ``draws`` draws a chain at least.

    ``coming`` is the largest number of visits in a round, over all chains.
    """
    rows = _rows(draws, chains)
    theta, chain, tour = (on_device(x) for x in (np.zeros((rows, dim)), np.zeros(rows, int), np.zeros(rows, int)))
    return restart(Kept(theta, chain, tour, theta, theta, theta), coming=coming)


def restart(kept: Kept, *, coming: int) -> Kept:
    """The same buffer with nothing in it."""
    # A round may fill half of the buffer; so a quarter at least is left when the buffer is thinned before it.
    share = 2.0 * coming / max(kept.theta.shape[0] - 4, 1)
    stride = 2 ** int(np.ceil(np.log2(max(share, 1.0))))
    # Each its own buffer: a round donates them all.
    size, visits, spacing = (on_device(np.asarray(x)) for x in (0, 0, stride))
    return kept._replace(size=size, visits=visits, stride=spacing)


def make_room(kept: Kept, coming: int) -> Kept:
    """Thin the draws until ``coming`` more visits find room at the stride that results."""
    rows = kept.theta.shape[0]
    if rows == 0:
        return kept
    order = jnp.minimum(2 * jnp.arange(rows), rows - 1)

    def full(now: Kept) -> Array:
        return now.size + coming // now.stride + 1 > rows

    def thinner(now: Kept) -> Kept:
        half = (now.size + 1) // 2
        return Kept(now.theta[order], now.chain[order], now.tour[order], half, now.visits, 2 * now.stride)

    return jax.lax.while_loop(full, thinner, kept)


def keep(kept: Kept, theta: Array, tour: Array, here: Array) -> Kept:
    """Number the visits of the chains that are ``here`` (C,), and keep those whose turn it is."""
    rows = kept.theta.shape[0]
    number = kept.visits + jnp.cumsum(here) - 1
    chosen = here & (number % kept.stride == 0)
    # A row past the end is dropped.
    slot = jnp.where(chosen, kept.size + jnp.cumsum(chosen) - 1, rows)
    visits = kept.visits + jnp.sum(here)
    if rows == 0:
        return kept._replace(visits=visits)
    return Kept(
        kept.theta.at[slot].set(theta, mode="drop"),
        kept.chain.at[slot].set(jnp.arange(theta.shape[0]), mode="drop"),
        kept.tour.at[slot].set(tour, mode="drop"),
        kept.size + jnp.sum(chosen),
        visits,
        kept.stride,
    )


def enlarge(kept: Kept, draws: int, chains: int) -> Kept:
    """The same draws with room for ``draws`` a chain; the stride stays, so that old and new are spread alike."""
    extra = _rows(draws, chains) - kept.theta.shape[0]

    def padded(x: Array) -> Array:
        return jnp.concatenate([x, jnp.zeros((extra, *x.shape[1:]), x.dtype)])

    return kept._replace(theta=padded(kept.theta), chain=padded(kept.chain), tour=padded(kept.tour))


def joined(parts: Sequence[Kept], chains: int) -> Kept:
    """The draws of several runs of so many ``chains`` each as those of one, on the host.

    All are thinned to the widest stride, so that each counts in proportion to its visits; the chains of each run are
    numbered on from those before it.

    >>> one, two = (Kept(np.arange(4.0)[:, None], np.zeros(4, int), np.arange(4), 4, 4 * s, s) for s in (1, 2))
    >>> both = joined([one, two], chains=1)
    >>> both.theta.ravel().tolist(), both.chain.tolist(), int(both.visits)
    ([0.0, 2.0, 0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1, 1, 1], 12)
    """
    stride = max(int(part.stride) for part in parts)
    rows = [np.arange(0, int(part.size), stride // int(part.stride)) for part in parts]
    theta, chain, tour = (
        np.concatenate([np.asarray(getattr(part, name))[row] for part, row in zip(parts, rows, strict=True)])
        for name in ("theta", "chain", "tour")
    )
    chain = chain + chains * np.repeat(np.arange(len(parts)), [len(row) for row in rows])
    visits = sum(int(part.visits) for part in parts)
    size, visited, spacing = (np.asarray(x) for x in (len(chain), visits, stride))
    return Kept(*(cast(Array, x) for x in (theta, chain, tour, size, visited, spacing)))


def _rows(draws: int, chains: int) -> int:
    """Rows of a buffer: four times as many as are wanted, and a few for rounding."""
    return 4 * draws * chains + 4 if draws else 0
