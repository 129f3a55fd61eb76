"""The base that is found for a target that came without one: a multivariate Student-t around what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from pathtemp._types import Array, Key
from pathtemp.kernels.spread import on_device
from pathtemp.kernels.transport import AffineMap
from pathtemp.model.bases import ProperPart
from pathtemp.modes.local import LOW_RANK, Local, from_covariance, power_of_two

MOST_DF = 30
"""Degrees of freedom of a found base at most; its tails are then those of a normal but for a little."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StudentBase:
    """A multivariate Student-t, theta = centre + scale * (z + basis (gain * basis' z)); callable on one point (dim,).

    Its numbers are arrays of one shape for each dimension, so that a program that is compiled for one base serves any.
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
class StudentSampler:
    """Exact draws of a Student-t; callable on a key."""

    student: StudentBase

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        key_normal, key_square = jax.random.split(key)
        z = jax.random.normal(key_normal, self.student.centre.shape)
        return self.student.affine.forward(z * jnp.sqrt(self.student.df / chi_square(key_square, self.student.df)))


def chi_square(key: Key, df: Array) -> Array:
    """One draw of a chi square law with ``df`` degrees of freedom, a whole number from 1 to ``MOST_DF``.

    Pairs of squared normals are exponential. Without the rejections of ``jax.random.gamma`` it compiles at once.

    >>> draws = jax.vmap(chi_square, in_axes=(0, None))(jax.random.split(jax.random.key(0), 20_000), 5.0)
    >>> abs(float(draws.mean()) - 5.0) < 0.15, abs(float(draws.var()) - 10.0) < 1.0
    (True, True)
    """
    key_pairs, key_odd = jax.random.split(key)
    pairs = 2.0 * jax.random.exponential(key_pairs, (MOST_DF // 2,))
    odd = jnp.where(df % 2 == 1, jax.random.normal(key_odd) ** 2, 0.0)
    return odd + jnp.sum(jnp.where(2 * jnp.arange(1, MOST_DF // 2 + 1) <= df, pairs, 0.0))


@partial(jax.tree_util.register_dataclass, data_fields=("student",), meta_fields=("proper",))
@dataclass(frozen=True)
class PartBase:
    """The proper part of a prior, and a Student-t of the rest; callable on one point (dim,)."""

    student: StudentBase
    proper: ProperPart

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        return self.proper.log_prob(theta) + self.student(theta[jnp.array(self.proper.rest)])


@partial(jax.tree_util.register_dataclass, data_fields=("student",), meta_fields=("proper",))
@dataclass(frozen=True)
class PartSampler:
    """Exact draws of a part and a Student-t; callable on a key."""

    student: StudentBase
    proper: ProperPart

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        key_part, key_rest = jax.random.split(key)
        return self.proper.sample(key_part).at[jnp.array(self.proper.rest)].set(StudentSampler(self.student)(key_rest))


def marginal(student: StudentBase, coordinates: Sequence[int]) -> StudentBase:
    """The law of some coordinates of a Student-t, which is a Student-t again.

    >>> from pathtemp.modes.local import from_covariance
    >>> law = from_covariance(np.arange(3.0), np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]]), 0.0)
    >>> part = marginal(student_of_law(law, wider=1.0, df=5.0), (0, 1))
    >>> root = jax.vmap(part.affine.forward)(jnp.eye(2)) - part.centre
    >>> part.centre.tolist(), np.asarray(root.T @ root).round(6).tolist()
    ([0.0, 1.0], [[4.0, 1.0], [1.0, 2.0]])
    """
    kept = np.array(coordinates)
    scale, basis, gain = (np.asarray(part) for part in (student.scale, student.basis, student.gain))
    own = scale[kept, None] * basis[kept]
    covariance = np.diag(scale[kept] ** 2) + (own * ((1.0 + gain) ** 2 - 1.0)) @ own.T
    law = from_covariance(np.asarray(student.centre)[kept], covariance, 0.0)
    return student_of_law(law, wider=1.0, df=float(student.df))


def student_of_law(law: Local, *, wider: float, df: float) -> StudentBase:
    """A Student-t with the centre and shape of a local law, ``wider`` times as wide.

    ``df`` is rounded down to a whole number, but for rounding errors: the tails become no lighter.

    >>> from pathtemp.modes.local import from_covariance
    >>> law = from_covariance(np.zeros(2), np.array([[1.0, 0.9], [0.9, 1.0]]), 0.0)
    >>> student = student_of_law(law, wider=2.0, df=5.0)
    >>> StudentSampler(student)(jax.random.key(0)).shape, round(float(student(jnp.zeros(2))), 4)
    ((2,), -2.3938)
    """
    dim = len(law.centre)
    rank = min(dim, max(LOW_RANK, power_of_two(len(law.gain))))
    basis, gain = np.zeros((dim, rank)), np.zeros(rank)
    basis[:, : len(law.gain)], gain[: len(law.gain)] = law.basis, law.gain
    parts = (law.centre, wider * law.scale, basis, gain, np.floor(df + 0.1))
    return StudentBase(*(on_device(np.asarray(part, float)) for part in parts))
