"""Eight schools: a hierarchical normal model whose group scale makes a funnel when it is written centred."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray, Key
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Positive
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import TabulatedDensity, draw_tabulated, gauss_legendre

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
"""Estimated effect of coaching in each school."""

STDERR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
"""Standard error of each estimate."""

SCALE = 5.0
"""Prior scale of mu (normal) and of tau (half-Cauchy)."""

_LOG_TAU = np.linspace(-40.0, 40.0, 321)
# Log-linear in both tails: only the middle needs a fine table.
_TABLE = np.concatenate([np.arange(-40.0, -4.0, 0.5), np.arange(-4.0, 12.0, 0.02), np.arange(12.0, 40.5, 0.5)])


def eight_schools(*, centred: bool = False) -> Problem:
    """``y_j ~ normal(theta_j, s_j)``, ``theta_j ~ normal(mu, tau)``, the prior of all thetas being the base.

    With ``mu ~ normal(0, 5)`` and ``tau ~ half-cauchy(0, 5)``. The flat vector is mu, log tau, and theta
    (``centred``) or eta = (theta - mu) / tau; draws come out as mu, tau and theta (and eta) by name.
    Given tau all else is normal, so log z(lam) is an integral over tau alone, whichever way it is written:
    log z(1) = -31.311347.

    >>> round(eight_schools().log_z_end, 6)
    -31.311347
    """
    schools = {"school": [f"school {c}" for c in "ABCDEFGH"]}
    last = "theta" if centred else "eta"
    layout = Layout(
        {"mu": (), "tau": (), last: (8,)},
        {"tau": Positive()},
        dims={"theta": ("school",), last: ("school",)},
        coords=schools,
    )

    def log_base(x: Array) -> Array:
        mu, log_tau, rest = x[0], x[1], x[2:]
        tau = jnp.exp(log_tau)
        # Half-Cauchy in log tau, 2 / pi (tau / 5) / (1 + (tau / 5)^2), written so that it does not overflow.
        u = log_tau - np.log(SCALE)
        log_p_tau = np.log(2 / np.pi) + u - jax.nn.softplus(2 * u)
        log_p_mu = -0.5 * (mu / SCALE) ** 2 - np.log(SCALE * np.sqrt(2 * np.pi))
        z = (rest - mu) / tau if centred else rest
        jacobian = 8 * log_tau if centred else 0.0
        return jnp.asarray(log_p_tau + log_p_mu - 0.5 * jnp.sum(z**2) - 4 * np.log(2 * np.pi) - jacobian)

    def log_target(x: Array) -> Array:
        theta = x[2:] if centred else x[0] + jnp.exp(x[1]) * x[2:]
        z = (jnp.asarray(EFFECT) - theta) / STDERR
        return jnp.asarray(log_base(x) - 0.5 * jnp.sum(z**2) - np.log(STDERR * np.sqrt(2 * np.pi)).sum())

    def sample_base(key: Key) -> Array:
        for_mu, for_tau, for_eta = jax.random.split(key, 3)
        mu = SCALE * jax.random.normal(for_mu)
        angle = 0.5 * np.pi * jax.random.uniform(for_tau, minval=1e-300)
        log_tau = np.log(SCALE) + jnp.log(jnp.tan(angle))
        eta = jax.random.normal(for_eta, (8,))
        return jnp.concatenate([jnp.stack([mu, log_tau]), mu + jnp.exp(log_tau) * eta if centred else eta])

    def constrain_draws(flat: FloatArray) -> dict[str, FloatArray]:
        draws = layout.constrain_draws(flat)
        if centred:
            return draws
        return {**draws, "theta": draws["mu"][:, None] + draws["tau"][:, None] * draws["eta"]}

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        log_tau = draw_tabulated(rng, _TABLE, lambda l: _log_joint_tau(_TABLE, l), lam)
        mean, root = _given_tau(np.exp(log_tau), lam)
        mu_eta = mean + np.einsum("nij,nj->ni", root, rng.standard_normal(mean.shape))
        mu, eta = mu_eta[:, :1], mu_eta[:, 1:]
        return np.concatenate([mu, log_tau[:, None], mu + np.exp(log_tau)[:, None] * eta if centred else eta], axis=1)

    mean, var = _target_moments(centred)
    name = "eight_schools_centred" if centred else "eight_schools"
    return Problem(
        name=name,
        model=Model(log_base, log_target, layout, sample_base, constrain_draws, name=name),
        log_z=_log_z,
        accuracy=1e-9,
        sample_at=sample_at,
        target_mean=mean,
        target_var=var,
    )


def eight_schools_tau(prior: Literal["half-cauchy", "flat"] = "half-cauchy") -> TabulatedDensity:
    """The exact posterior of tau, with its density, distribution function, quantiles and moments.

    ``"half-cauchy"`` is the model of :func:`eight_schools`; ``"flat"`` is that of the paper's experiment with
    implicit divide-and-conquer: mu flat, tau uniform on (.1, 100).

    >>> tau = eight_schools_tau()
    >>> round(float(tau.quantile(0.5)), 5), round(tau.expectation(lambda t: t), 5)
    (2.74873, 3.59771)
    """
    if prior == "half-cauchy":
        return TabulatedDensity(lambda t: _log_joint_tau(np.log(t), 1.0) - np.log(t), np.exp(_LOG_TAU))
    if prior == "flat":
        return TabulatedDensity(_log_flat_tau, np.geomspace(0.1, 100.0, 65))
    raise InputError(f"eight_schools_tau: prior must be 'half-cauchy' or 'flat', and is {prior!r}")


def _log_z(lam: ArrayLike) -> FloatArray:
    at = np.asarray(lam, float)
    x, log_w = gauss_legendre(_LOG_TAU)
    return np.asarray([logsumexp(_log_joint_tau(x, l) + log_w) for l in at.ravel()], float).reshape(at.shape)


def _log_joint_tau(log_tau: FloatArray, lam: ArrayLike) -> FloatArray:
    """Log of p(log tau) times the tempered likelihood of the data given tau, mu and theta integrated out.

    normal(y | theta, s)^lam is exp(-lam (y - theta)^2 / 2 s^2) up to a constant. The integral over theta
    leaves exp(-g (y - mu)^2 / 2) / sqrt(1 + lam tau^2 / s^2), g = lam / (s^2 + lam tau^2); mu has precision
    1/25 + sum g. No term divides by lam, so lam = 0 gives the prior of tau.
    """
    l = np.asarray(lam, float)
    u = log_tau - np.log(SCALE)
    log_p_tau = np.log(2 / np.pi) + u - np.logaddexp(0.0, 2 * u)
    ratio = l[..., None] * (np.exp(log_tau)[..., None] / STDERR) ** 2
    g = l[..., None] / STDERR**2 / (1.0 + ratio)
    precision = 1.0 / SCALE**2 + g.sum(-1)
    exponent = -0.5 * (g * EFFECT**2).sum(-1) + 0.5 * (g * EFFECT).sum(-1) ** 2 / precision
    determinant = -0.5 * np.log1p(ratio).sum(-1) - 0.5 * np.log(precision * SCALE**2)
    return np.asarray(log_p_tau + exponent + determinant - l * np.log(STDERR * np.sqrt(2 * np.pi)).sum())


def _log_flat_tau(tau: FloatArray) -> FloatArray:
    """Unnormalised log posterior density of tau with mu flat and tau uniform."""
    v = STDERR**2 + np.asarray(tau)[..., None] ** 2
    mean = (EFFECT / v).sum(-1, keepdims=True) / (1.0 / v).sum(-1, keepdims=True)
    return np.asarray(
        -0.5 * np.log(v).sum(-1) - 0.5 * np.log((1.0 / v).sum(-1)) - 0.5 * ((EFFECT - mean) ** 2 / v).sum(-1)
    )


def _given_tau(tau: FloatArray, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean ``(n, 9)`` of (mu, eta) given tau and lam, and a root ``(n, 9, 9)`` of the covariance."""
    design = np.zeros((len(tau), 8, 9))
    design[:, :, 0] = 1.0
    design[:, np.arange(8), np.arange(1, 9)] = tau[:, None]
    scaled = np.sqrt(lam)[:, None, None] * design / STDERR[:, None]
    prior = np.diag(np.concatenate([[1.0 / SCALE**2], np.ones(8)]))
    lower = np.linalg.cholesky(prior + np.einsum("nij,nik->njk", scaled, scaled))
    root = np.swapaxes(np.linalg.inv(lower), 1, 2)
    right = np.einsum("nij,i->nj", scaled, EFFECT / STDERR) * np.sqrt(lam)[:, None]
    return np.einsum("nij,nkj,nk->ni", root, root, right), root


def _target_moments(centred: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the flat vector at lam = 1, by the laws of total mean and variance over tau."""
    # tau beyond exp(±20) has a share of the posterior below 1e-8, and ill-conditioned normal equations.
    log_tau, log_w = gauss_legendre(np.linspace(-20.0, 20.0, 161))
    share = np.exp(_log_joint_tau(log_tau, 1.0) + log_w - _log_z(1.0))
    mean, root = _given_tau(np.exp(log_tau), np.ones(len(log_tau)))
    if centred:
        to_theta = np.zeros((len(log_tau), 9, 9))
        to_theta[:, :, 0] = 1.0
        to_theta[:, np.arange(1, 9), np.arange(1, 9)] = np.exp(log_tau)[:, None]
        mean, root = np.einsum("nij,nj->ni", to_theta, mean), np.einsum("nij,njk->nik", to_theta, root)
    first = np.insert(mean, 1, log_tau, axis=1)
    spread = np.insert((root**2).sum(-1), 1, 0.0, axis=1)
    total = share @ first
    return total, share @ spread + share @ (first - total) ** 2
