"""Conjugate linear regression: the evidence and the whole curve in closed form, with sigma known or not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Positive
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import Problem

_LOG_2PI = float(np.log(2 * np.pi))


def simulate(dim: int, n: int, sigma: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Design ``(n, dim)`` with columns of unequal size, and outcomes ``(n,)``.

    >>> [part.shape for part in simulate(3, 10, sigma=1.0, seed=0)]
    [(10, 3), (10,)]
    """
    rng = data_rng(seed)
    design = rng.normal(size=(n, dim)) * np.geomspace(0.3, 3.0, dim)
    return design, design @ rng.normal(size=dim) + sigma * rng.normal(size=n)


def conjugate_regression(
    dim: int = 5, n: int = 50, *, sigma: float = 1.0, prior_scale: float = 2.0, seed: int = 0
) -> Problem:
    """``y ~ normal(X beta, sigma)``, ``beta ~ normal(0, prior_scale)``, sigma known; the prior is the base.

    >>> problem = conjugate_regression()
    >>> problem.model.dim, problem.log_z_end < 0
    (5, True)
    """
    design, y = simulate(dim, n, sigma, seed)
    x, outcome = jnp.asarray(design), jnp.asarray(y)
    fit = _LeastSquares(design / sigma, y / sigma, prior_scale)

    def log_base(beta: Array) -> Array:
        return -0.5 * jnp.sum(beta**2) / prior_scale**2 - dim * (float(np.log(prior_scale)) + 0.5 * _LOG_2PI)

    def log_target(beta: Array) -> Array:
        square = jnp.sum((outcome - x @ beta) ** 2) / sigma**2
        return log_base(beta) - 0.5 * square - n * (float(np.log(sigma)) + 0.5 * _LOG_2PI)

    def sample_base(key: Key) -> Array:
        return prior_scale * jax.random.normal(key, (dim,))

    def log_z(lam: ArrayLike) -> FloatArray:
        l = np.asarray(lam, float)
        constant = n * (np.log(sigma) + 0.5 * _LOG_2PI)
        return np.asarray(-l * constant - 0.5 * fit.log_determinant(l) - 0.5 * fit.residual(l))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return fit.mean(lam) + fit.noise(rng, lam)

    return Problem(
        name="conjugate_regression",
        model=Model(log_base, log_target, Layout({"beta": (dim,)}), sample_base, name="conjugate_regression"),
        log_z=log_z,
        sample_at=sample_at,
        target_mean=fit.mean(np.ones(1))[0],
        target_var=fit.var(np.ones(1))[0],
    )


def unknown_scale_regression(
    dim: int = 5,
    n: int = 50,
    *,
    prior_scale: float = 2.0,
    shape: float = 3.0,
    rate: float = 2.0,
    seed: int = 0,
) -> Problem:
    """``y ~ normal(X beta, sigma)`` with the normal-inverse-gamma prior, which is the base.

    ``sigma^2 ~ inverse-gamma(shape, rate)``, ``beta ~ normal(0, prior_scale sigma)``; the flat vector is beta
    and log sigma. At lam the posterior is of the same family with lam n observations.

    >>> problem = unknown_scale_regression()
    >>> problem.model.layout.shapes
    {'beta': (5,), 'sigma': ()}
    """
    design, y = simulate(dim, n, 1.0, seed)
    x, outcome = jnp.asarray(design), jnp.asarray(y)
    fit = _LeastSquares(design, y, prior_scale)
    log_gamma_constant = shape * float(np.log(rate)) - float(gammaln(shape))

    def log_base(v: Array) -> Array:
        beta, log_sigma = v[:-1], v[-1]
        # inverse-gamma of sigma^2 times its derivative by log sigma, 2 sigma^2
        log_scale = log_gamma_constant - 2 * shape * log_sigma - rate * jnp.exp(-2 * log_sigma) + float(np.log(2.0))
        square = jnp.sum(beta**2) * jnp.exp(-2 * log_sigma) / prior_scale**2
        return log_scale - 0.5 * square - dim * (log_sigma + float(np.log(prior_scale)) + 0.5 * _LOG_2PI)

    def log_target(v: Array) -> Array:
        square = jnp.sum((outcome - x @ v[:-1]) ** 2) * jnp.exp(-2 * v[-1])
        return log_base(v) - 0.5 * square - n * (v[-1] + 0.5 * _LOG_2PI)

    def sample_base(key: Key) -> Array:
        for_sigma, for_beta = jax.random.split(key)
        log_sigma = 0.5 * (float(np.log(rate)) - jax.random.loggamma(for_sigma, shape))
        beta = prior_scale * jnp.exp(log_sigma) * jax.random.normal(for_beta, (dim,))
        return jnp.append(beta, log_sigma)

    def posterior(lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        return shape + 0.5 * lam * n, rate + 0.5 * fit.residual(lam)

    def log_z(lam: ArrayLike) -> FloatArray:
        l = np.asarray(lam, float)
        a, b = posterior(l)
        evidence = log_gamma_constant - a * np.log(b) + gammaln(a)
        return np.asarray(-0.5 * l * n * _LOG_2PI - 0.5 * fit.log_determinant(l) + evidence)

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        a, b = posterior(lam)
        sigma = np.sqrt(b / rng.gamma(a))
        beta = fit.mean(lam) + sigma[:, None] * fit.noise(rng, lam)
        return np.concatenate([beta, np.log(sigma)[:, None]], axis=1)

    return Problem(
        name="unknown_scale_regression",
        model=Model(
            log_base,
            log_target,
            Layout({"beta": (dim,), "sigma": ()}, {"sigma": Positive()}),
            sample_base,
            name="unknown_scale_regression",
        ),
        log_z=log_z,
        accuracy=1e-9,
        sample_at=sample_at,
    )


class _LeastSquares:
    """Ridge regression with the data raised to the power lam, for unit noise, along the axes of X'X."""

    def __init__(self, design: FloatArray, y: FloatArray, prior_scale: float) -> None:
        self.eigenvalues, self.axes = np.linalg.eigh(design.T @ design)
        self.score = self.axes.T @ (design.T @ y)
        self.square = float(y @ y)
        self.prior_scale = prior_scale

    def precision(self, lam: FloatArray) -> FloatArray:
        """Posterior precision along each axis, ``(..., dim)``."""
        return np.asarray(1.0 / self.prior_scale**2 + lam[..., None] * self.eigenvalues)

    def mean(self, lam: FloatArray) -> FloatArray:
        """Posterior mean of beta, ``(..., dim)``."""
        return np.asarray((lam[..., None] * self.score / self.precision(lam)) @ self.axes.T)

    def var(self, lam: FloatArray) -> FloatArray:
        """Posterior variance of each beta, ``(..., dim)``."""
        return np.asarray((1.0 / self.precision(lam)) @ (self.axes**2).T)

    def noise(self, rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        """Draws of beta minus its mean."""
        p = self.precision(lam)
        return np.asarray((rng.standard_normal(p.shape) / np.sqrt(p)) @ self.axes.T)

    def log_determinant(self, lam: FloatArray) -> FloatArray:
        """Log determinant of posterior over prior precision."""
        return np.asarray(np.log(self.precision(lam) * self.prior_scale**2).sum(axis=-1))

    def residual(self, lam: FloatArray) -> FloatArray:
        """Lam y'y minus what the fit explains."""
        explained = ((lam[..., None] * self.score) ** 2 / self.precision(lam)).sum(axis=-1)
        return np.asarray(lam * self.square - explained)
