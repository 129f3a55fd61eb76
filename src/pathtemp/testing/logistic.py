"""Logistic regression from prior to posterior: one mode, a long path, no closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_t

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import Problem


def logistic_regression(
    dim: int = 30, n: int = 2000, *, prior_scale: float = 2.5, seed: int = 0, reference_draws: int = 20_000
) -> Problem:
    """``y ~ bernoulli(logit = X beta)``, ``beta ~ normal(0, prior_scale)``; the prior is the base.

    The rows of X are equicorrelated normals. log z(lam) is a reference, computed when it is first asked for
    at that lam: importance sampling from a normal at the mode, then from a Student-t with the moments so
    found, ``reference_draws`` draws each; the standard error at the end is ``log_z_error``.
    About -119.48 for (10, 300) and -941.25 for (30, 2000).

    >>> problem = logistic_regression(2, 20)
    >>> problem.model.dim, problem.log_z_error < 0.01
    (2, True)
    """
    design, outcome = simulate(dim, n, seed)
    x, y = jnp.asarray(design), jnp.asarray(outcome)

    def log_base(beta: Array) -> Array:
        constant = dim * np.log(prior_scale * np.sqrt(2 * np.pi))
        return jnp.asarray(-0.5 * jnp.sum(beta**2) / prior_scale**2 - constant)

    def log_target(beta: Array) -> Array:
        logit = x @ beta
        return log_base(beta) + jnp.sum(y * logit - jax.nn.softplus(logit))

    def sample_base(key: Key) -> Array:
        return prior_scale * jax.random.normal(key, (dim,))

    def log_joint(beta: Array, lam: Array) -> Array:
        return (1.0 - lam) * log_base(beta) + lam * log_target(beta)

    many = jax.jit(jax.vmap(log_joint, (0, None)))

    @cache
    def reference(lam: float) -> tuple[float, float]:
        def log_density(beta: FloatArray) -> FloatArray:
            return np.concatenate(
                [np.asarray(many(part, lam)) for part in np.array_split(beta, max(1, len(beta) // 1000))]
            )

        mode, precision = _newton(design, outcome, prior_scale, lam)
        return _adapted_importance(log_density, mode, np.asarray(np.linalg.inv(precision)), reference_draws)

    def log_z(lam: ArrayLike) -> FloatArray:
        at = np.asarray(lam, float)
        return np.asarray([reference(float(l))[0] for l in at.ravel()], float).reshape(at.shape)

    return Problem(
        name="logistic_regression",
        model=Model(log_base, log_target, Layout({"beta": (dim,)}), sample_base, name="logistic_regression"),
        log_z=log_z,
        accuracy=lambda: reference(1.0)[1],
    )


def simulate(dim: int, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Design ``(n, dim)`` and outcomes ``(n,)`` of 0 and 1.

    >>> [part.shape for part in simulate(3, 10, seed=0)]
    [(10, 3), (10,)]
    """
    rng = data_rng(seed)
    correlation = 0.5 * np.eye(dim) + 0.5
    design = 2.0 / np.sqrt(dim) * rng.normal(size=(n, dim)) @ np.linalg.cholesky(correlation).T
    coefficients = 1.5 * rng.normal(size=dim)
    outcome = (rng.uniform(size=n) < expit(design @ coefficients)).astype(float)
    return design, outcome


def _adapted_importance(
    log_density: Callable[[FloatArray], FloatArray], mode: FloatArray, covariance: FloatArray, draws: int
) -> tuple[float, float]:
    """Log integral of a density close to a normal, and its standard error, in two rounds."""
    rng = data_rng(1)
    centre, spread = mode, 1.05 * covariance
    for df in (np.inf, 100.0):
        proposal = multivariate_t(centre, spread, df=df, seed=rng)  # type: ignore[arg-type]
        x = np.atleast_2d(proposal.rvs(draws)).reshape(draws, len(mode))
        log_weights = log_density(x) - proposal.logpdf(x)
        weights = np.exp(log_weights - log_weights.max())
        centre = np.average(x, axis=0, weights=weights)
        spread = np.atleast_2d(np.cov(x.T, aweights=weights))
    se = float(weights.std() / weights.mean() / np.sqrt(draws))
    return float(logsumexp(log_weights) - np.log(draws)), se


def _newton(design: FloatArray, outcome: FloatArray, prior_scale: float, lam: float) -> tuple[FloatArray, FloatArray]:
    """Mode and negative Hessian of the log density at lam; each step is halved until it climbs."""
    prior_precision = np.eye(design.shape[1]) / prior_scale**2

    def objective(beta: FloatArray) -> float:
        logit = design @ beta
        return float(lam * (logit @ outcome - np.logaddexp(0.0, logit).sum()) - 0.5 * beta @ prior_precision @ beta)

    def curvature(beta: FloatArray) -> FloatArray:
        p = expit(design @ beta)
        return np.asarray(prior_precision + lam * (design.T * (p * (1.0 - p))) @ design)

    beta = np.zeros(design.shape[1])
    for _ in range(100):
        gradient = lam * design.T @ (outcome - expit(design @ beta)) - prior_precision @ beta
        step = np.linalg.solve(curvature(beta), gradient)
        while objective(beta + step) < objective(beta) - 1e-12 * abs(objective(beta)) and np.any(step):
            step = 0.5 * step
        beta = beta + step
        if np.abs(step).max() < 1e-12:
            break
    return beta, curvature(beta)
