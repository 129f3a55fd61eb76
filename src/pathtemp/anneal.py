"""The annealing pass: particles carried from the base to the target, for the first guess of everything.

Levels of lam are spaced by conditional effective sample size; at each the particles are reweighted, resampled and
moved by HMC (sequential Monte Carlo; Del Moral, Doucet and Jasra 2006). It yields starts all along the path, and
draws (lam, theta, delta) from which the pseudo-prior, the link, the step sizes and the transport are first fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key
from pathtemp.kernels import hmc
from pathtemp.kernels.transport import AffineMap, Transport
from pathtemp.learn import fit_transport
from pathtemp.paths.geometric import GeometricPath, delta, log_density
from pathtemp.run import Counts

MAX_LEVELS = 5000


@dataclass(frozen=True)
class Level:
    """Particles in (near) equilibrium at one lam.

    Parameters
    ----------
    lam
        The level.
    theta, energies, delta
        Particles (n, dim), their (log psi, log q) (n, 2), and dlog q/dlam (n,).
    log_step
        Log HMC step size in units of the particles' own scale.
    acceptance
        Mean acceptance of the moves.
    """

    lam: float
    theta: FloatArray
    energies: FloatArray
    delta: FloatArray
    log_step: float
    acceptance: float


def make_moves(path: GeometricPath, *, moves: int, leapfrogs: int, target: float, batch: int | None) -> Callable[..., Any]:
    """The function that moves all particles at one lam, to be jitted.

    ``(key, theta, energies, lam, chart, log_step) -> (theta, energies, log_step, leapfrogs, acceptance)``
    """

    def run(key: Key, theta: Array, energies: Array, lam: Array, chart: AffineMap, log_step: Array) -> Any:
        indices = jnp.arange(theta.shape[0])

        def body(carry: tuple[Array, Array, Array], i: Array) -> tuple[Any, Any]:
            theta, energies, log_step = carry
            key_shared, key_particles = jax.random.split(jax.random.fold_in(key, i))
            steps = jax.random.randint(key_shared, (), 1, leapfrogs + 1)

            def one(inputs: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
                index, theta, energies = inputs
                k = jax.random.split(jax.random.fold_in(key_particles, index), 3)
                step = jnp.exp(log_step) * (1.0 + 0.2 * (2.0 * jax.random.uniform(k[0]) - 1.0))
                z = chart.inverse(theta)
                proposal = hmc.propose(k[1], z, chart, lambda x: path.gradient(x, lam), step, steps)
                proposed = path.energies(proposal.theta)
                ratio = log_density(proposed, lam) - log_density(energies, lam) + proposal.kinetic_fall
                probability = hmc.acceptance(ratio)
                accepted = jax.random.uniform(k[2]) < probability
                return (
                    jnp.where(accepted, proposal.theta, theta),
                    jnp.where(accepted, proposed, energies),
                    probability,
                )

            particles = (indices, theta, energies)
            if batch is None or batch >= theta.shape[0]:
                theta, energies, probability = jax.vmap(one)(particles)
            else:
                theta, energies, probability = jax.lax.map(one, particles, batch_size=batch)
            mean = jnp.mean(probability)
            return (theta, energies, log_step + 0.7 * (mean - target)), (steps, mean)

        (theta, energies, log_step), (steps, mean) = jax.lax.scan(
            body, (theta, energies, log_step), jnp.arange(moves)
        )
        return theta, energies, log_step, jnp.sum(steps), jnp.mean(mean)

    return run


def chart_of(theta: FloatArray, *, full: bool) -> AffineMap:
    """Affine map fitted to the particles of one level."""
    table: Transport = fit_transport(np.zeros(len(theta)), theta, positions=2, full=full)
    return table.at(jnp.zeros(()))


def next_lam(delta: FloatArray, lam: float, ess: float) -> float:
    """The largest next level at which the conditional effective sample size is still ``ess`` of the particles.

    >>> next_lam(np.array([0.0, 0.0]), 0.2, 0.5)
    1.0
    """
    rest = 1.0 - lam

    def conditional_ess(step: float) -> float:
        w = np.exp(step * (delta - delta.max()))
        return float(w.sum() ** 2 / (w**2).sum() / len(delta))

    if conditional_ess(rest) >= ess:
        return 1.0
    low, high = 0.0, rest
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if conditional_ess(middle) >= ess else (low, middle)
    return lam + max(high, 1e-15)


def resample(rng: np.random.Generator, log_weight: FloatArray) -> FloatArray:
    """Indices of a systematic resampling."""
    weight = np.exp(log_weight - log_weight.max())
    cumulative = np.cumsum(weight) / weight.sum()
    points = (np.arange(len(weight)) + rng.uniform()) / len(weight)
    return np.minimum(np.searchsorted(cumulative, points), len(weight) - 1)


def anneal(
    moves: Callable[..., Any],
    theta: FloatArray,
    energies: FloatArray,
    *,
    full: bool,
    ess: float,
    seed: int,
    most_gradients: float,
    on_level: Callable[[float, int], None],
    density_per_level: int,
) -> tuple[list[Level], Counts]:
    """Carry particles from lam = 0 to lam = 1; returns the levels (the base first) and what they cost.

    Stops early, short of lam = 1, when ``most_gradients`` are spent; the last level then says how far it came.
    """
    rng = np.random.default_rng(seed)
    key = jax.random.key(seed)
    count, dim = theta.shape
    log_step = float(np.log(0.7 / dim**0.25))
    levels = [Level(0.0, theta, energies, np.asarray(delta(jnp.asarray(energies))), log_step, 1.0)]
    spent = Counts()
    while levels[-1].lam < 1.0 and len(levels) < MAX_LEVELS and spent.gradients < most_gradients:
        last = levels[-1]
        lam = next_lam(last.delta, last.lam, ess)
        index = resample(rng, (lam - last.lam) * last.delta)
        start = last.theta[index]
        chart = chart_of(start, full=full)
        theta_new, energies_new, step, steps, acceptance = moves(
            jax.random.fold_in(key, len(levels)),
            jnp.asarray(start),
            jnp.asarray(last.energies[index]),
            jnp.asarray(lam),
            chart,
            jnp.asarray(log_step),
        )
        log_step = float(step)
        energies_host = np.asarray(energies_new)
        level_delta = np.maximum(energies_host[:, 1], -1e30) - energies_host[:, 0]
        levels.append(Level(lam, np.asarray(theta_new), energies_host, level_delta, log_step, float(acceptance)))
        spent = spent + Counts(int(steps) * count, density_per_level * count)
        on_level(lam, spent.gradients)
    return levels, spent
