"""Models with a margin that ordinary samplers cannot explore, and the exact law of that margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Positive
from pathtemp.seeds import data_rng
from pathtemp.testing.eight_schools import EFFECT, STDERR, eight_schools, eight_schools_tau
from pathtemp.testing.funnel import funnel
from pathtemp.testing.quadrature import TabulatedDensity, gauss_legendre

HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))

MU_SCALE = 10.0
"""Prior scale of mu in the hierarchical models."""

LOG_TAU = np.linspace(-30.0, 12.0, 253)
"""Panels of log tau for the exact laws."""


@dataclass(frozen=True)
class MarginProblem:
    """A model, a margin of it, and what is known exactly.

    Parameters
    ----------
    name, model, margin
        The model and the name of its margin.
    law
        The exact law of the margin, on the constrained scale.
    log_evidence
        Log of the integral of the target; NaN where it is not known.
    interval
        Where the law lives, None for everywhere.
    """

    name: str
    model: Model
    margin: str
    law: TabulatedDensity
    log_evidence: float
    interval: tuple[float, float] | None = None


def neal_funnel(xs: int = 9) -> MarginProblem:
    """``y ~ normal(0, 3)``, ``x_i ~ normal(0, exp(y / 2))``: the margin is y.

    >>> round(float(neal_funnel().law.cdf(-6.0)), 4)
    0.0228
    """
    law = TabulatedDensity(lambda y: -0.5 * (y / 3.0) ** 2, np.linspace(-30.0, 30.0, 121))
    return MarginProblem(f"funnel_{xs}", funnel(xs).model, "y", law, 0.0)


def eight_schools_prior() -> MarginProblem:
    """Centred eight schools with ``mu ~ normal(0, 5)`` and ``tau ~ half-cauchy(0, 5)``: the margin is tau.

    >>> round(eight_schools_prior().log_evidence, 6)
    -31.311347
    """
    problem = eight_schools(centred=True)
    return MarginProblem("eight_schools", problem.model, "tau", eight_schools_tau(), problem.log_z_end)


def eight_schools_flat() -> MarginProblem:
    """The paper's experiment: centred eight schools, mu flat, tau uniform on (.1, 100): the margin is tau.

    >>> round(float(eight_schools_flat().law.quantile(0.5)), 3)
    5.302
    """
    model = _hierarchical(EFFECT, STDERR, _flat, None, "eight_schools_flat")
    return MarginProblem("eight_schools_flat", model, "tau", eight_schools_tau("flat"), float("nan"), (0.1, 100.0))


def hierarchical(groups: int = 50, *, seed: int = 1) -> MarginProblem:
    """``y_j ~ normal(theta_j, 2 / sqrt(n_j))``, ``theta_j ~ normal(mu, tau)``, n_j from 1 to 40, centred.

    With ``mu ~ normal(0, 10)`` and ``tau ~ half-normal(0, 5)``; the data have tau = .3, little beside their errors.

    >>> problem = hierarchical()
    >>> problem.model.dim, bool(problem.law.quantile(0.01) < 0.1)
    (52, True)
    """
    rng = data_rng(seed)
    error = 2.0 / np.sqrt(rng.integers(1, 41, groups))
    effect = 1.5 + 0.3 * rng.normal(size=groups) + error * rng.normal(size=groups)
    return _exact(effect, error, _half_normal, f"hierarchical_{groups}")


def two_mode_scale() -> MarginProblem:
    """Centred eight schools whose tau has two modes, near .15 and near 12: its prior is a mixture on the log scale.

    >>> law = two_mode_scale().law
    >>> bool(0.2 < law.cdf(1.0) < 0.8)
    True
    """
    return _exact(EFFECT, STDERR, _two_lognormals, "two_mode_scale")


def _flat(log_tau: Array) -> Array:
    """Uniform tau, on the log scale."""
    return log_tau


def _half_normal(log_tau: Array) -> Array:
    """Half-normal tau of scale 5, on the log scale."""
    return log_tau - 0.5 * (jnp.exp(log_tau) / 5.0) ** 2 + float(np.log(2.0 / 5.0)) - HALF_LOG_2PI


def _two_lognormals(log_tau: Array) -> Array:
    """An even mixture of normals of log tau at log .15 and log 15, of scale .4."""
    scale = 0.4
    at = [-0.5 * ((log_tau - float(np.log(centre))) / scale) ** 2 for centre in (0.15, 15.0)]
    return jnp.logaddexp(at[0] + np.log(0.2), at[1] + np.log(0.8)) - float(np.log(scale)) - HALF_LOG_2PI


def _exact(effect: FloatArray, error: FloatArray, prior: Callable[[Array], Array], name: str) -> MarginProblem:
    """A problem with its law by quadrature: given tau, all else is normal."""

    def log_joint(log_tau: FloatArray) -> FloatArray:
        variance = error**2 + np.exp(2 * log_tau)[..., None]
        precision = 1.0 / MU_SCALE**2 + (1.0 / variance).sum(-1)
        mean = (effect / variance).sum(-1)
        exponent = -0.5 * (effect**2 / variance).sum(-1) + 0.5 * mean**2 / precision
        constant = -0.5 * np.log(variance).sum(-1) - len(effect) * HALF_LOG_2PI - 0.5 * np.log(precision * MU_SCALE**2)
        return np.asarray(exponent + constant + np.asarray(prior(jnp.asarray(log_tau))))

    x, log_w = gauss_legendre(LOG_TAU)
    law = TabulatedDensity(lambda tau: log_joint(np.log(tau)) - np.log(tau), np.exp(LOG_TAU))
    model = _hierarchical(effect, error, prior, MU_SCALE, name)
    return MarginProblem(name, model, "tau", law, float(logsumexp(log_joint(x) + log_w)))


def _hierarchical(
    effect: FloatArray, error: FloatArray, prior: Callable[[Array], Array], mu_scale: float | None, name: str
) -> Model:
    """Centred hierarchical normal model of (mu, log tau, theta); the base only starts the chains."""
    groups = len(effect)
    layout = Layout({"mu": (), "tau": (), "theta": (groups,)}, {"tau": Positive()})
    y, s = jnp.asarray(effect), jnp.asarray(error)
    centre, spread = float(np.mean(effect)), float(np.std(effect)) + 1e-3

    def log_target(x: Array) -> Array:
        mu, log_tau, theta = x[0], x[1], x[2:]
        data = jnp.sum(-0.5 * ((y - theta) / s) ** 2 - jnp.log(s)) - groups * HALF_LOG_2PI
        latent = jnp.sum(-0.5 * ((theta - mu) * jnp.exp(-log_tau)) ** 2) - groups * (log_tau + HALF_LOG_2PI)
        log_mu = 0.0 if mu_scale is None else -0.5 * (mu / mu_scale) ** 2 - np.log(mu_scale) - HALF_LOG_2PI
        return data + latent + prior(log_tau) + log_mu

    def standard(x: Array) -> Array:
        return jnp.concatenate([(x[:1] - centre) / spread, x[1:2] / 1.5, (x[2:] - centre) / spread])

    def log_base(x: Array) -> Array:
        log_det = (groups + 1) * float(np.log(spread)) + float(np.log(1.5))
        return -0.5 * jnp.sum(standard(x) ** 2) - (groups + 2) * HALF_LOG_2PI - log_det

    def sample_base(key: Key) -> Array:
        z = jax.random.normal(key, (groups + 2,))
        return jnp.concatenate([centre + spread * z[:1], 1.5 * z[1:2], centre + spread * z[2:]])

    return Model(log_base, log_target, layout, sample_base, name=name)
