"""The base that is found for a target that came without one: a multivariate Student-t around what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from pathtemp._types import Array, Key
from pathtemp.kernels.transport import AffineMap
from pathtemp.modes.local import MOST_RANK, Local


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cover:
    """A multivariate Student-t, theta = centre + scale * (z + basis (gain * basis' z)); callable on one point (dim,).

    Its numbers are arrays of one shape for each dimension, so that a program that is compiled for one cover serves any.
    """

    centre: Array
    scale: Array
    basis: Array
    gain: Array
    df: Array

    @property
    def affine(self) -> AffineMap:
        """The map from z to theta."""
        return AffineMap(self.centre, self.scale, None, self.basis, self.gain)

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        dim, nu = theta.shape[0], self.df
        square = jnp.sum(self.affine.inverse(theta) ** 2)
        constant = gammaln(0.5 * (nu + dim)) - gammaln(0.5 * nu) - 0.5 * dim * jnp.log(nu * np.pi)
        return constant - self.affine.log_det() - 0.5 * (nu + dim) * jnp.log1p(square / nu)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CoverSampler:
    """Exact draws of a cover; callable on a key."""

    cover: Cover

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        key_normal, key_square = jax.random.split(key)
        half = 0.5 * self.cover.df
        z = jax.random.normal(key_normal, self.cover.centre.shape)
        return self.cover.affine.forward(z * jnp.sqrt(half / jax.random.gamma(key_square, half)))


def cover_of_law(law: Local, *, wider: float, df: float) -> Cover:
    """A Student-t with the centre and shape of a local law, ``wider`` times as wide.

    >>> from pathtemp.modes.local import from_covariance
    >>> cover = cover_of_law(from_covariance(np.zeros(2), np.array([[1.0, 0.9], [0.9, 1.0]]), 0.0), wider=2.0, df=5.0)
    >>> CoverSampler(cover)(jax.random.key(0)).shape, round(float(cover(jnp.zeros(2))), 4)
    ((2,), -2.3938)
    """
    dim = len(law.centre)
    rank = min(dim, MOST_RANK)
    basis, gain = np.zeros((dim, rank)), np.zeros(rank)
    basis[:, : len(law.gain)], gain[: len(law.gain)] = law.basis, law.gain
    parts = (law.centre, wider * law.scale, basis, gain, df)
    return Cover(*(jnp.asarray(part, float) for part in parts))
