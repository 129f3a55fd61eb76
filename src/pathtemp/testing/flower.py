"""The paper's flower: a ring whose radius waves with the angle, one mode a petal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from pathtemp._types import Array, FloatArray, Key
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.testing.problem import IntArray, Problem
from pathtemp.testing.quadrature import draw_tabulated, gauss_legendre, geometric_curve

RADIUS, AMPLITUDE, WIDTH = 10.0, 6.0, 1.0
"""The paper's r, A and sigma."""

Proposal = Callable[[np.random.Generator, FloatArray], tuple[FloatArray, FloatArray]]


def flower(petals: int = 40, *, base_scale: float = 8.0, variant: Literal["squared", "printed"] = "squared") -> Problem:
    """A flower with ``petals`` equal modes in the plane; the base is ``normal(0, base_scale)`` both ways.

    With h = rho - 10 - 6 cos(petals phi) the target is exp(-h^2 / 2) (``"squared"``, the ring of the paper's
    figures: log z(1) = 5.0594007) or exp(-h / 2) (``"printed"``, the paper's formula as it stands: 9.809479).
    In the phase petals * phi the density does not depend on the number of petals, so neither does log z.
    A draw's label is its petal, the nearest by angle.

    >>> round(flower(6).log_z_end, 6)
    5.059401
    """
    if petals < 3:
        raise InputError(f"flower: petals must be 3 or more, and is {petals}")
    if variant not in ("squared", "printed"):
        raise InputError(f"flower: variant must be 'squared' or 'printed', and is {variant!r}")
    squared = variant == "squared"

    def log_base(x: Array) -> Array:
        return jnp.asarray(-0.5 * jnp.sum(x**2) / base_scale**2 - np.log(2 * np.pi * base_scale**2))

    def log_target(x: Array) -> Array:
        # The angle has no gradient at the origin: step aside from it.
        first = jnp.where(jnp.all(x == 0.0), 1e-12, x[0])
        rho, phi = jnp.hypot(first, x[1]), jnp.arctan2(x[1], first)
        h = (rho - RADIUS - AMPLITUDE * jnp.cos(petals * phi)) / WIDTH
        return -0.5 * h**2 if squared else -0.5 * h / WIDTH

    def sample_base(key: Key) -> Array:
        return base_scale * jax.random.normal(key, (2,))

    base_table, target_table, log_w, radius = _polar_tables(base_scale, squared)
    log_z = geometric_curve(base_table, target_table, log_w)
    second_moment = float(np.exp(logsumexp(target_table + log_w + 2 * np.log(radius)) - log_z(1.0)))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        phase, rho = (_draw_squared if squared else _draw_printed)(rng, lam, base_scale)
        phi = (phase + 2 * np.pi * rng.integers(petals, size=len(lam))) / petals
        return np.stack([rho * np.cos(phi), rho * np.sin(phi)], axis=1)

    def labels(draws: FloatArray) -> IntArray:
        turns = np.arctan2(draws[:, 1], draws[:, 0]) / (2 * np.pi)
        return np.rint(turns * petals).astype(np.int64) % petals

    return Problem(
        name="flower" if squared else "flower_printed",
        model=Model(log_base, log_target, Layout({"theta": (2,)}), sample_base, name="flower"),
        log_z=log_z,
        labels=labels,
        shares=np.full(petals, 1.0 / petals),
        sample_at=sample_at,
        target_mean=np.zeros(2),
        target_var=np.full(2, 0.5 * second_moment),
    )


def _polar_tables(base_scale: float, squared: bool) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log base, log target, log weights and radii: Gauss-Legendre in rho, midpoints in half a phase."""
    # exp(-rho / 2), the tail of the printed variant, is below 1e-30 at 150.
    farthest = max(12.0 * base_scale, 30.0 if squared else 150.0)
    rho, log_w = gauss_legendre(np.linspace(0.0, farthest, round(farthest) + 1))
    phase = (np.arange(96) + 0.5) * np.pi / 96
    r, p = (grid.ravel() for grid in np.meshgrid(rho, phase, indexing="ij"))
    log_weights = np.repeat(log_w, len(phase)) + np.log(r) + np.log(2 * np.pi / len(phase))
    h = (r - RADIUS - AMPLITUDE * np.cos(p)) / WIDTH
    log_target = -0.5 * h**2 if squared else -0.5 * h / WIDTH
    return -0.5 * (r / base_scale) ** 2 - np.log(2 * np.pi * base_scale**2), log_target, log_weights, r


def _draw_squared(rng: np.random.Generator, lam: FloatArray, base_scale: float) -> tuple[FloatArray, FloatArray]:
    """Phase from its marginal, rho integrated out in closed form; then rho given the phase."""

    def ridge(phase: FloatArray, l: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean over sd, and sd, of the normal that multiplies rho."""
        sd = 1.0 / np.sqrt(l / WIDTH**2 + (1.0 - l) / base_scale**2)
        return l / WIDTH**2 * (RADIUS + AMPLITUDE * np.cos(phase)) * sd, sd

    table = np.linspace(-np.pi, np.pi, 1025)

    def log_density(l: FloatArray) -> FloatArray:
        k, _ = ridge(table, l)
        quadratic = 0.5 * k**2 - 0.5 * l * ((RADIUS + AMPLITUDE * np.cos(table)) / WIDTH) ** 2
        return np.asarray(quadratic + np.log(norm.pdf(k) + k * norm.cdf(k)))

    phase = draw_tabulated(rng, table, log_density, lam)
    k, sd = ridge(phase, lam)
    return phase, sd * _until_accepted(rng, _propose_radial_normal, k)


def _draw_printed(rng: np.random.Generator, lam: FloatArray, base_scale: float) -> tuple[FloatArray, FloatArray]:
    """Phase and rho are independent given lam: von Mises, and rho exp(-precision rho^2 / 2 - decay rho)."""
    phase = rng.vonmises(0.0, 0.5 * AMPLITUDE / WIDTH**2 * lam)
    precision, decay = (1.0 - lam) / base_scale**2, 0.5 * lam / WIDTH**2
    unit = np.sqrt(precision + decay**2)
    return phase, _until_accepted(rng, _propose_damped_gamma, decay / unit) / unit


def _until_accepted(rng: np.random.Generator, propose: Proposal, parameter: FloatArray) -> FloatArray:
    """One draw for each parameter by rejection; ``propose`` gives draws and acceptance probabilities."""
    out, todo = np.empty(len(parameter)), np.arange(len(parameter))
    while len(todo):
        draws, probability = propose(rng, parameter[todo])
        accepted = rng.uniform(size=len(todo)) < probability
        out[todo[accepted]] = draws[accepted]
        todo = todo[~accepted]
    return out


def _propose_radial_normal(rng: np.random.Generator, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For t normal(t | k, 1), t > 0, k >= 0: with z = t - k it is below (k + max(z, 0)) normal(z | 0, 1)."""
    normal = rng.uniform(size=len(k)) * (k + 1.0 / np.sqrt(2 * np.pi)) < k
    z = np.where(normal, rng.standard_normal(len(k)), rng.rayleigh(size=len(k)))
    above = np.maximum(z, 0.0)
    return k + z, np.maximum(k + z, 0.0) / np.maximum(k + above, 1e-300)


def _propose_damped_gamma(rng: np.random.Generator, decay: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For t exp(-(1 - decay^2) t^2 / 2 - decay t), decay in [0, 1]: the narrower factor times the other."""
    precision = 1.0 - decay**2
    exponential = decay**2 > precision
    by_gamma = rng.gamma(2.0, size=len(decay)) / np.where(exponential, decay, 1.0)
    by_rayleigh = rng.rayleigh(size=len(decay)) / np.sqrt(np.where(exponential, 1.0, precision))
    t = np.where(exponential, by_gamma, by_rayleigh)
    return t, np.exp(np.where(exponential, -0.5 * precision * t**2, -decay * t))
