"""A base of a bent law and of a leg of the user's base. It is normalised and can be sampled: log z stays absolute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler
from pathtemp.kernels.spread import on_device
from pathtemp.modes.bent import BentLaw, latent, latent_of_one, place_one, placed
from pathtemp.modes.mixture_base import SAFETY, inflation

WIDE, WIDE_SHARE = 3.0, 0.2
"""Factor of the scale of one latent coordinate, any of them, in a part of the draws, and the share of that part.

Tails and bends that few draws have shown are come to one coordinate at a time; all at once would be far away from all.
"""


def log_latent(e: Any, xp: Any = np) -> Any:
    """Log density of the latent law at e (..., dim): normal and inflated, and in part wider in one coordinate."""
    dim = e.shape[-1]
    scale = inflation(dim)
    half = 0.5 * (e / scale) ** 2
    wider = (1.0 - WIDE**-2) * half - float(np.log(WIDE * dim))
    top = xp.maximum(xp.max(wider, axis=-1), 0.0)
    parts = (1.0 - WIDE_SHARE) * xp.exp(-top) + WIDE_SHARE * xp.sum(xp.exp(wider - top[..., None]), axis=-1)
    return top + xp.log(parts) - xp.sum(half, axis=-1) - dim * float(np.log(scale) + 0.5 * np.log(2.0 * np.pi))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BentBase:
    """Log density of the base; callable on one point (dim,).

    Parameters
    ----------
    law
        The bent law, a little inflated.
    user
        Log density of the user's base, of weight ``SAFETY``; it may hold arrays too.
    """

    law: BentLaw
    user: LogDensity

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        e, log_det = latent_of_one(self.law, theta)
        own = float(np.log1p(-SAFETY)) + log_det + log_latent(e, jnp)
        value = jnp.logaddexp(own, float(np.log(SAFETY)) + self.user(theta))
        # Far out, where numbers end, there is no density.
        return jnp.where(value < jnp.inf, value, -jnp.inf)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BentSampler:
    """Exact draws of such a base; callable on a key.

    Parameters
    ----------
    law
        The bent law.
    user
        Exact draws of the user's base.
    """

    law: BentLaw
    user: Sampler

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        key_leg, key_normal, key_user = jax.random.split(key, 3)
        dim = len(self.law.scale)
        u = jax.random.uniform(key_leg, (2,))
        # Below the share the uniform also says which coordinate is wide.
        wide = jnp.floor(u[1] / WIDE_SHARE * dim) == jnp.arange(dim)
        e = inflation(dim) * jnp.where(wide, WIDE, 1.0) * jax.random.normal(key_normal, (dim,))
        return jnp.where(u[0] < SAFETY, self.user(key_user), place_one(self.law, e))


def bent_base(law: BentLaw, log_prob: LogDensity, sample: Sampler) -> tuple[BentBase, BentSampler]:
    """The base of a law and of the user's own base."""
    law = jax.tree.map(on_device, law)
    return BentBase(law, log_prob), BentSampler(law, sample)


def draws_of(law: BentLaw, count: int, rng: np.random.Generator) -> FloatArray:
    """Draws (n, dim) of the inflated law, on the host."""
    dim = len(law.scale)
    wide = np.floor(rng.uniform(size=(count, 1)) / WIDE_SHARE * dim) == np.arange(dim)
    return placed(law, inflation(dim) * np.where(wide, WIDE, 1.0) * rng.standard_normal((count, dim)))


def log_density_of(law: BentLaw, theta: FloatArray) -> FloatArray:
    """Log density (n,) of the inflated law at points (n, dim), on the host."""
    e, log_det = latent(law, theta)
    return np.asarray(log_det + log_latent(e))
