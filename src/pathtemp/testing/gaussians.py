"""Problems that are normal at every lam: closed-form curves, moments and draws in any dimension."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import Array, FloatArray, Key
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import Problem

_LOG_2PI = float(np.log(2 * np.pi))


def gaussian_scale(dim: int = 2, *, precision: float = 10.0) -> Problem:
    """``normal(0, 1)`` to (2 pi)^(-dim/2) exp(-precision |x|^2 / 2): log z(1) = -(dim / 2) log precision.

    The thermodynamic length is sqrt(dim / 2) log precision; in two dimensions the communication barrier, the
    integral of half the mean absolute difference of two deltas at the same lam, is log(precision) / 2.

    >>> round(gaussian_scale(2).log_z_end, 4)
    -2.3026
    """
    return _between_normals("gaussian_scale", np.full(dim, precision), np.zeros(dim))


def harmonic_oscillators(
    precisions: ArrayLike = (1.0, 2.0, 4.0, 8.0, 16.0), *, centres: ArrayLike = (0.0, 1.0, -1.0, 2.0, -3.0)
) -> Problem:
    """One harmonic oscillator a coordinate, exp(-K (x - c)^2 / 2) / sqrt(2 pi), from ``normal(0, 1)``.

    Each coordinate adds -log(K) / 2 to log z(1), wherever its centre is.

    >>> round(harmonic_oscillators().log_z_end / float(np.log(2.0)), 6)
    -5.0
    """
    k, c = np.asarray(precisions, float), np.asarray(centres, float)
    if k.ndim != 1 or c.shape != k.shape:
        raise InputError(f"harmonic_oscillators: give as many centres as precisions, not {c.shape} and {k.shape}")
    return _between_normals("harmonic_oscillators", k, c)


def high_dimensional_gaussian(dim: int = 2000, *, sigma: float = 0.05, seed: int = 3) -> Problem:
    """``theta ~ normal(0, I)`` and the unnormalised likelihood exp(-|y - theta|^2 / (2 sigma^2)).

    The prior is the base; y is drawn from its own marginal. Leaving out the likelihood's constant keeps
    log z(1) large, as it is in real problems: -6980 with the defaults.

    >>> round(high_dimensional_gaussian().log_z_end)
    -6980
    """
    y = data_rng(seed).normal(size=dim) * np.sqrt(1.0 + sigma**2)
    precision = np.full(dim, 1.0 + 1.0 / sigma**2)
    height = -0.5 * float(y @ y) / (1.0 + sigma**2)
    return _between_normals("high_dimensional_gaussian", precision, y / (1.0 + sigma**2), height)


def constant_likelihood(dim: int = 3) -> Problem:
    """A likelihood that is 1 everywhere: target and base are ``normal(0, 1)``, and log z = 0 at every lam.

    >>> constant_likelihood().log_z([0.0, 0.5, 1.0])
    array([0., 0., 0.])
    """
    return _between_normals("constant_likelihood", np.ones(dim), np.zeros(dim))


def _between_normals(name: str, precision: FloatArray, centre: FloatArray, height: float = 0.0) -> Problem:
    """``normal(0, 1)`` to exp(height) prod exp(-K (x - c)^2 / 2) / sqrt(2 pi).

    At lam each coordinate is normal with precision P = 1 - lam + lam K and mean lam K c / P, and
    log z(lam) = lam height - 1/2 sum(log P + lam (1 - lam) K c^2 / P).
    """
    if not np.all(precision > 0):
        raise InputError(f"{name}: every precision must be positive, and the least is {precision.min()}")
    dim, k, c = len(precision), jnp.asarray(precision), jnp.asarray(centre)

    def log_base(x: Array) -> Array:
        return -0.5 * jnp.sum(x**2) - 0.5 * dim * _LOG_2PI

    def log_target(x: Array) -> Array:
        return height - 0.5 * jnp.sum(k * (x - c) ** 2) - 0.5 * dim * _LOG_2PI

    def sample_base(key: Key) -> Array:
        return jax.random.normal(key, (dim,))

    def log_z(lam: ArrayLike) -> FloatArray:
        l = np.asarray(lam, float)[..., None]
        p = 1.0 - l + l * precision
        return np.asarray(l[..., 0] * height - 0.5 * np.sum(np.log(p) + l * (1.0 - l) * precision * centre**2 / p, -1))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        l = lam[:, None]
        p = 1.0 - l + l * precision
        return l * precision * centre / p + rng.standard_normal((len(lam), dim)) / np.sqrt(p)

    return Problem(
        name=name,
        model=Model(log_base, log_target, Layout({"theta": (dim,)}), sample_base, name=name),
        log_z=log_z,
        sample_at=sample_at,
        target_mean=centre,
        target_var=1.0 / precision,
    )
