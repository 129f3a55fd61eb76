"""A base that knows the modes: a normalised mixture of their local laws and a leg of the user's own base.

It can be sampled and evaluated, so log z stays absolute and each visit to lam = 0 stays a regeneration. Its arrays
have a power of two of components and of ranks, so that one compilation serves any number of modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler
from pathtemp.kernels.spread import on_device
from pathtemp.kernels.transport import AffineMap
from pathtemp.modes.local import HEAVY_DF, LOW_RANK, Local, power_of_two

SAFETY = 0.1
"""Weight of the user's base in the mixture."""

FEWEST_COMPONENTS = 8
"""Components that the arrays have at least, so that few modes more or less compile nothing."""

LARGE = 8192
"""Numbers of one map, dim times rank, from which no component is there only to fill up: each is evaluated."""

MOST_OF_SEVERAL = 131_072
"""Numbers of one map at most, dim times rank, where there are several: every chain then has a copy of its own."""


def inflation(dim: int) -> float:
    """Factor of the scales of a local law: it adds the same length to the path in any dimension, one unit.

    >>> round(inflation(1), 2), round(inflation(100), 2)
    (2.03, 1.07)
    """
    return float(np.exp(np.sqrt(0.5 / dim)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureBase:
    """Log density of the mixture; callable on one point (dim,).

    Parameters
    ----------
    log_weight
        Of each of K components, -inf for those that only fill up; together with the safety leg they add up to one.
    centre, scale
        (K, dim).
    basis, gain
        Low-rank parts, (K, dim, rank) and (K, rank).
    log_det
        Log volume of each local map, (K,).
    heavy
        Whether a component is Student-t, (K,).
    log_safety
        Log weight of the user's base.
    user
        Log density of the user's base; it may hold arrays too.
    """

    log_weight: Array
    centre: Array
    scale: Array
    basis: Array
    gain: Array
    log_det: Array
    heavy: Array
    log_safety: Array
    user: LogDensity

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        return logsumexp(self.log_legs(theta))

    @property
    def count(self) -> int:
        """Number of legs: the components and the user's base, which is the last."""
        return len(self.log_weight) + 1

    def log_legs(self, theta: Array) -> Array:
        """Log weighted density of each leg at ``theta`` (dim,), shape (K + 1,)."""
        local = jax.vmap(self._log_local, (0, None))(jnp.arange(len(self.log_weight)), theta)
        return jnp.append(local, self.log_safety + self.user(theta))

    def log_leg(self, theta: Array, leg: Array) -> Array:
        """Log weighted density of one leg."""
        last = leg == len(self.log_weight)
        return jnp.where(last, self.log_safety + self.user(theta), self._log_local(leg, theta))

    def local_map(self, leg: Array) -> AffineMap:
        """The map of a leg from z to theta; of the last component for the user's base, which has none."""
        # The one map of a single mode is shared by all chains.
        leg = jnp.zeros((), int) if len(self.log_weight) == 1 else leg
        return AffineMap(self.centre[leg], self.scale[leg], None, self.basis[leg], self.gain[leg])

    def narrowing(self, lam: Array) -> Array:
        """Scale of a leg's law at lam relative to lam = 0, where it is inflated.

        Exact for a normal mode: precisions mix linearly on the geometric path.
        """
        return 1.0 / jnp.sqrt(1.0 - lam + lam * inflation(self.centre.shape[1]) ** 2)

    def _log_local(self, leg: Array, theta: Array) -> Array:
        dim = theta.shape[0]
        square = jnp.sum(self.local_map(leg).inverse(theta) ** 2)
        normal = -0.5 * square - 0.5 * dim * float(np.log(2 * np.pi))
        nu = float(HEAVY_DF)
        constant = gammaln(0.5 * (nu + dim)) - gammaln(0.5 * nu) - 0.5 * dim * float(np.log(nu * np.pi))
        student = constant - 0.5 * (nu + dim) * jnp.log1p(square / nu)
        return self.log_weight[leg] - self.log_det[leg] + jnp.where(self.heavy[leg], student, normal)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureSampler:
    """Exact draws of a mixture; callable on a key.

    Parameters
    ----------
    base
        The mixture.
    user
        Exact draws of the user's base.
    """

    base: MixtureBase
    user: Sampler

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        base = self.base
        key_leg, key_normal, key_user = jax.random.split(key, 3)
        dim = base.centre.shape[1]
        leg = jax.random.categorical(key_leg, jnp.append(base.log_weight, base.log_safety))
        k = jnp.minimum(leg, len(base.log_weight) - 1)
        normal = jax.random.normal(key_normal, (dim + HEAVY_DF,))
        z, rest = normal[:dim], normal[dim:]
        z = z * jnp.where(base.heavy[k], jnp.sqrt(HEAVY_DF / jnp.sum(rest**2)), 1.0)
        local = base.centre[k] + base.scale[k] * (z + base.basis[k] @ (base.gain[k] * (base.basis[k].T @ z)))
        return jnp.where(leg == len(base.log_weight), self.user(key_user), local)


def mixture_base(
    laws: Sequence[Local], weights: FloatArray, log_prob: LogDensity, sample: Sampler, *, safety: float = SAFETY
) -> tuple[MixtureBase, MixtureSampler]:
    """Join local laws, a little inflated, with ``weights`` that add up to one, and a leg of the user's base.

    That has the weight ``safety``.

    >>> from pathtemp.modes.local import from_covariance
    >>> law = from_covariance(np.zeros(1), np.eye(1), 0.0)
    >>> base, draw = mixture_base([law], np.ones(1), lambda x: -jnp.inf, lambda key: jnp.zeros(1))
    >>> round(float(jnp.exp(base(jnp.zeros(1)))), 4), draw(jax.random.key(0)).shape  # .9 normal(0, 2.03)
    (0.177, (1,))
    """
    dim = len(laws[0].centre)
    rank = min(power_of_two(max(len(law.gain) for law in laws)), dim)
    if len(laws) > 1:
        rank = min(rank, max(LOW_RANK, MOST_OF_SEVERAL // dim))
        laws = [replace(law, basis=law.basis[:, :rank], gain=law.gain[:rank]) for law in laws]
    count = power_of_two(max(len(laws), FEWEST_COMPONENTS if dim * rank < LARGE else 1))
    empty = Local(np.zeros(dim), np.ones(dim), np.zeros((dim, 0)), np.zeros(0), 0.0)
    wide = [replace(law, scale=law.scale * inflation(dim)) for law in laws] + [empty] * (count - len(laws))
    basis, gain = np.zeros((count, dim, rank)), np.zeros((count, rank))
    for k, law in enumerate(wide):
        basis[k, :, : len(law.gain)], gain[k, : len(law.gain)] = law.basis, law.gain
    log_weight = np.full(count, -np.inf)
    log_weight[: len(laws)] = np.log(weights * (1.0 - safety))
    base = MixtureBase(
        on_device(log_weight),
        on_device(np.stack([law.centre for law in wide])),
        on_device(np.stack([law.scale for law in wide])),
        on_device(basis),
        on_device(gain),
        on_device([law.log_det for law in wide]),
        on_device([law.heavy for law in wide]),
        on_device(np.log(safety)),
        log_prob,
    )
    return base, MixtureSampler(base, sample)
