"""Heavy-tailed, curved, unequal modes: what mixtures of normals fitted to modes get wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import IntArray, Problem

DIM, DF = 8, 5.0
WEIGHTS = np.array([0.05, 0.1, 0.2, 0.25, 0.4])
SCALES = np.array([0.5, 2.0, 1.5, 1.0, 0.3])
BENDS = np.array([0.0, 0.3, -0.5, 0.8, 1.0])
"""How far the second coordinate of each mode follows the square of its first."""


def student_modes(*, base_scale: float = 20.0, seed: int = 0) -> Problem:
    """Five separated modes in 8 dimensions: Student-t with 5 degrees of freedom, bent into bananas, turned.

    Mode k is c_k + s_k R_k (t_1, t_2 + b_k (t_1^2 - 5/3), t_3, ..., t_8) with t a multivariate Student-t,
    weights .05 to .4, scales .3 to 2, bends from 0 to 1 and R_k a rotation; the base is
    ``normal(0, base_scale)``. Normalised: log z(1) = 0. A draw's label is the mode that most likely made it;
    the share of a label is its weight to within .001.

    >>> student_modes().shares
    array([0.05, 0.1 , 0.2 , 0.25, 0.4 ])
    """
    centres, rotations = _places(seed)
    log_constant = gammaln(0.5 * (DF + DIM)) - gammaln(0.5 * DF) - 0.5 * DIM * np.log(DF * np.pi)
    heights = jnp.asarray(np.log(WEIGHTS) + log_constant - DIM * np.log(SCALES))
    turn_back = jnp.asarray(np.swapaxes(rotations, 1, 2) / SCALES[:, None, None])
    offsets, bends = jnp.einsum("kij,kj->ki", turn_back, jnp.asarray(centres)), jnp.asarray(BENDS)

    def log_components(x: Array) -> Array:
        y = turn_back @ x - offsets
        straight = y[:, 1] - bends * (y[:, 0] ** 2 - DF / (DF - 2.0))
        square = jnp.sum(y**2, axis=1) - y[:, 1] ** 2 + straight**2
        return heights - 0.5 * (DF + DIM) * jnp.log1p(square / DF)

    def log_base(x: Array) -> Array:
        return jnp.asarray(-0.5 * jnp.sum(x**2) / base_scale**2 - DIM * np.log(base_scale * np.sqrt(2 * np.pi)))

    def log_target(x: Array) -> Array:
        return jax.nn.logsumexp(log_components(x))

    def sample_base(key: Key) -> Array:
        return base_scale * jax.random.normal(key, (DIM,))

    def target_sampler(rng: np.random.Generator, n: int) -> FloatArray:
        k = rng.choice(len(WEIGHTS), size=n, p=WEIGHTS)
        t = rng.standard_normal((n, DIM)) / np.sqrt(rng.chisquare(DF, size=(n, 1)) / DF)
        t[:, 1] += BENDS[k] * (t[:, 0] ** 2 - DF / (DF - 2.0))
        return np.asarray(centres[k] + SCALES[k, None] * np.einsum("nij,nj->ni", rotations[k], t))

    most_likely = jax.jit(jax.vmap(lambda x: jnp.argmax(log_components(x))))

    def labels(draws: FloatArray) -> IntArray:
        return np.asarray(most_likely(draws), np.int64)

    mean = WEIGHTS @ centres
    within = SCALES[:, None] ** 2 * np.einsum("kij,kj->ki", rotations**2, _variances())
    return Problem(
        name="student_modes",
        model=Model(log_base, log_target, Layout({"theta": (DIM,)}), sample_base, name="student_modes"),
        end=0.0,
        labels=labels,
        shares=WEIGHTS,
        target_sampler=target_sampler,
        target_mean=mean,
        target_var=WEIGHTS @ (within + (centres - mean) ** 2),
    )


def _places(seed: int) -> tuple[FloatArray, FloatArray]:
    """Centres ``(5, 8)``, on orthogonal directions and so at least 42 apart, and rotations ``(5, 8, 8)``."""
    rng = data_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0][: len(WEIGHTS)]
    return 30.0 * directions, np.linalg.qr(rng.normal(size=(len(WEIGHTS), DIM, DIM)))[0]


def _variances() -> FloatArray:
    """Variance of every bent coordinate before scaling and turning, ``(5, 8)``."""
    plain = DF / (DF - 2.0)
    of_square = 3.0 * DF**2 / ((DF - 2.0) * (DF - 4.0)) - plain**2
    out = np.full((len(WEIGHTS), DIM), plain)
    out[:, 1] += BENDS**2 * of_square
    return out
