"""Exact draws of a base by a Stan program that writes them, inside XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity
from pathtemp.errors import InputError
from pathtemp.frontends.stan.bridge import StanDensity, loaded_bridge
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.mass import LOG_MASS
from pathtemp.frontends.stan.release import released_with
from pathtemp.seeds import probe_key

LEAST_ACCEPTED = 0.05
"""Share of accepted tries below which exact draws cost more than they are worth."""

TRIES = 1000
"""Times a draw that the base refuses is made again; a sampler worth its cost never needs as many."""

FIRST_PROBES, PROBES = 16, 2048
"""Draws on which a sampler is tried before it is trusted: a few first, since one that is always refused is slow."""

PRECISE, MOST_DRAWS = 1e-3, 1 << 19
"""Relative error of a mass that is found by counting refused draws, and the most draws for it."""

LARGEST_Z = 6.0
"""Largest deviation, in standard errors, of the mean of an identity from zero."""


class ExactDraws:
    """One exact draw of a base on the unconstrained scale: ``key -> (dim,)``.

    Parameters
    ----------
    forward
        A program without parameters whose generated quantities are the constrained parameters, and a last one that
        is not zero where they could not be drawn.
    base
        The density that they are drawn from.
    """

    def __init__(self, forward: Instance, base: Instance) -> None:
        self._kept = (forward, base)
        self._dim = base.dim
        self._bridge = loaded_bridge()
        self._number = int(
            self._bridge.pathtemp_register_sampler(
                forward.pointer,
                base.pointer,
                forward.address("bs_draw"),
                base.address("bs_param_unconstrain"),
                base.address("bs_log_density"),
                base.address("bs_free_error_msg"),
                len(forward.names(generated=True)),
                TRIES,
            )
        )
        if self._number < 0:
            raise InputError("program: this process has made too many Stan samplers; start a new one")
        released_with(self, self._bridge.pathtemp_release_sampler, self._number)

    def __call__(self, key: Key) -> Array:
        """One draw."""
        struct: Any = jax.ShapeDtypeStruct
        call: Any = jax.ffi.ffi_call("pathtemp_draws", struct((self._dim,), jnp.float64), vmap_method="broadcast_all")
        return jnp.asarray(call(jax.random.key_data(key), sampler=np.int64(self._number)))

    @property
    def log_mass(self) -> float:
        """Log of what the base would integrate to if nothing were refused; infinite where that is not known."""
        forward = self._kept[0]
        values, _ = forward.constrain(np.zeros((1, 0)), generated=True)
        return float(values[0, forward.names(generated=True).index(LOG_MASS)])

    @property
    def accepted(self) -> float:
        """Share of the tries so far that the base accepted."""
        return float(self._bridge.pathtemp_accepted(self._number))


def why_not(sampler: ExactDraws, density: StanDensity, among: Sequence[int] | None = None) -> str:
    """Why draws and density do not belong together, or cost too much; empty where all is well.

    ``among`` are the coordinates that are drawn, where not all are.
    """
    many = jax.jit(jax.vmap(sampler))
    for count in (FIRST_PROBES, PROBES):
        draws = many(jax.random.split(probe_key(), count))
        if not np.isfinite(draws).all():
            return "it is not a recipe for draws"
    if sampler.accepted < LEAST_ACCEPTED:
        return f"only {sampler.accepted:.1%} of the draws lie within the constraints of the parameters"
    z = stein_z(density, np.asarray(draws))
    belong = np.all(np.abs(z if among is None else z[:, list(among)]) < LARGEST_Z)
    return "" if belong else "the draws are not those of the density"


def log_mass(sampler: ExactDraws) -> float:
    """Log of what the base integrates to; infinite where that is not known.

    The program that draws knows it for bounds that it draws within; what the base then refuses is counted.

    Parameters
    ----------
    sampler
        One that :func:`why_not` has nothing against.
    """
    known = sampler.log_mass
    if sampler.accepted == 1.0 or not np.isfinite(known):
        return known
    many = jax.jit(jax.vmap(sampler))
    batch, drawn = 4 * PROBES, FIRST_PROBES + PROBES
    # Of n tries, the relative error of the accepted share p is that of sqrt((1 - p) / (n p)).
    while drawn < MOST_DRAWS and 1.0 - sampler.accepted > PRECISE**2 * drawn:
        many(jax.random.split(probe_key(drawn), batch)).block_until_ready()
        drawn += batch
    return known + float(np.log(sampler.accepted))


def stein_z(density: LogDensity, draws: FloatArray) -> FloatArray:
    """z-scores ``(2, dim)`` of Stein's identities E[g] = 0 and E[u g] = -1 for the gradient g of a log density at u.

    Both hold for every density on the whole space under its own draws, and between them they see a wrong place and a
    wrong scale.

    >>> u = np.random.default_rng(0).normal(size=(4000, 3))
    >>> bool(np.abs(stein_z(lambda x: -0.5 * x @ x, u)).max() < 7)
    True
    >>> bool(np.abs(stein_z(lambda x: -1.0 * x @ x, u))[1].min() > 10)
    True
    """
    gradients = np.asarray(jax.jit(jax.vmap(jax.grad(density)))(draws))
    terms = np.stack([gradients, draws * gradients + 1.0])
    error = terms.std(axis=1) / np.sqrt(len(draws))
    return np.asarray(terms.mean(axis=1) / np.where(error > 0, error, 1.0))
