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
from scipy.special import ndtri

from pathtemp import seeds
from pathtemp._types import Array, FloatArray, IntArray
from pathtemp.engines.default.transport import fit_transport, median_spread, shrink_scales
from pathtemp.io.persistent import storable
from pathtemp.kernels import hmc
from pathtemp.kernels.rejected import Rejected, point_of, rejected_end
from pathtemp.kernels.spread import held_copied, held_spread, on_device
from pathtemp.kernels.transport import AffineMap, Transport
from pathtemp.kernels.transported_hmc import jitter
from pathtemp.paths.geometric import LOG_ZERO, GeometricPath, as_energies, log_density
from pathtemp.result.run import Counts
from pathtemp.seeds import KeyStream, Stream, stream_key

MAX_LEVELS = 5000

LOST = 30.0
"""Log weight below the largest at which a particle in high dimension is given up."""


@storable
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
        Log HMC step size in units of theta (the geometric mean over coordinates).
    acceptance
        Mean acceptance of the moves.
    """

    lam: float
    theta: FloatArray
    energies: FloatArray
    delta: FloatArray
    log_step: float
    acceptance: float


@dataclass(frozen=True)
class MovesShape:
    """The static part of the moves at one level: number, leapfrogs, target acceptance, chains at once, devices."""

    moves: int
    leapfrogs: int
    acceptance: float
    batch: int | None
    devices: int = 1

    def dearest(self, particles: int, price: float = 0.0) -> float:
        """Gradient equivalents that the moves of one level cost at most, where a density costs ``price``.

        >>> MovesShape(moves=3, leapfrogs=4, acceptance=0.8, batch=None).dearest(64)
        768.0
        """
        return self.moves * (self.leapfrogs + price) * particles


@dataclass(frozen=True)
class Allowance:
    """What may be spent at most: gradient equivalents, a density at ``price`` gradients, until it is ``late``."""

    gradients: float = np.inf
    price: float = 0.0
    late: Callable[[], bool] = lambda: False

    def ends(self, spent: Counts, shape: MovesShape, particles: int) -> bool:
        """Whether the moves of one more level may not be made after what is ``spent``."""
        return spent.cost(self.price) + shape.dearest(particles, self.price) > self.gradients or self.late()


def make_moves(path: GeometricPath, shape: MovesShape) -> Callable[..., Any]:
    """The function that moves all particles at one lam, to be jitted.

    ``(seed, number, theta, energies, lam, chart, log_step) -> (theta, energies, log_step, leapfrogs, acceptance,
    rejected)``
    """

    def run(
        seed: Array,
        number: Array,
        theta: Array,
        energies: Array,
        lam: Array,
        chart: AffineMap,
        log_step: Array,
    ) -> Any:
        key = jax.random.fold_in(stream_key(seed, KeyStream.ANNEAL), number)
        indices = jnp.arange(theta.shape[0])

        def body(carry: tuple[Array, Array, Array], i: Array) -> tuple[Any, Any]:
            theta, energies, log_step = carry
            key_shared, key_particles = jax.random.split(jax.random.fold_in(key, i))
            steps = jax.random.randint(key_shared, (), 1, shape.leapfrogs + 1)

            def one(inputs: tuple[Array, Array, Array]) -> tuple[Array, Array, Array, Rejected]:
                index, theta, energies = inputs
                key_uniform, key_momentum = jax.random.split(jax.random.fold_in(key_particles, index))
                u = jax.random.uniform(key_uniform, (2,))
                step = jnp.exp(log_step) * jitter(u[0])
                momentum = jax.random.normal(key_momentum, theta.shape)
                proposal = hmc.propose(
                    momentum, chart.inverse(theta), chart, lambda x: path.gradient(x, lam), step, steps
                )
                values = path.values(proposal.theta)
                proposed = as_energies(values)
                ratio = log_density(proposed, lam) - log_density(energies, lam) + proposal.kinetic_fall
                probability = hmc.acceptance(ratio)
                accepted = u[1] < probability
                return (
                    jnp.where(accepted, proposal.theta, theta),
                    jnp.where(accepted, proposed, energies),
                    probability,
                    rejected_end(values, proposal.theta, proposal.no_gradient),
                )

            particles = (indices, theta, energies)
            if shape.batch is None or shape.batch >= theta.shape[0]:
                theta, energies, probability, rejected = jax.vmap(one)(particles)
            else:
                theta, energies, probability, rejected = jax.lax.map(one, particles, batch_size=shape.batch)
            # Behind a barrier the sum has one order, however the particles are batched.
            whole = jax.lax.optimization_barrier(held_copied(probability, shape.devices))
            mean = jnp.mean(whole)
            # In single precision the last digit does not depend on how a program for several devices rounds.
            rise = (0.7 * (mean - shape.acceptance)).astype(jnp.float32)
            met = rejected._replace(point=point_of(rejected))
            theta, energies = held_spread((theta, energies), shape.devices)
            return (theta, energies, log_step + rise.astype(theta.dtype)), (steps, mean, met)

        (theta, energies, log_step), (steps, mean, rejected) = jax.lax.scan(
            body, (theta, energies, log_step), jnp.arange(shape.moves)
        )
        return theta, energies, log_step, jnp.sum(steps), jnp.mean(mean), rejected

    return run


def chart_of(theta: FloatArray, *, full: bool) -> AffineMap:
    """Affine map fitted to the particles of one level: full covariance, or the diagonal alone."""
    if not full:
        spread = np.log(median_spread(theta)[1])
        scale = on_device(np.exp(shrink_scales(spread, effective=float(len(np.unique(theta[:, 0]))))))
        location, no_basis = on_device(theta.mean(axis=0)), on_device(np.zeros((theta.shape[1], 1)))
        return AffineMap(location, scale, None, no_basis, on_device(np.zeros(1)))
    table: Transport = fit_transport(np.zeros(len(theta)), theta, positions=2, full=True)
    first = [np.asarray(x)[0] for x in (table.location, table.log_scale, table.factor)]
    return AffineMap(on_device(first[0]), on_device(np.exp(first[1])), on_device(first[2]), None, None)


def log_scale_of(chart: AffineMap) -> float:
    """Log |det F| / dim of a chart, on the host: the log of the geometric mean scale."""
    log_diagonal = 0.0 if chart.factor is None else np.log(np.diagonal(np.asarray(chart.factor)))
    return float(np.mean(np.log(chart.scale) + log_diagonal))


def host_delta(energies: FloatArray) -> FloatArray:
    """Dlog q/dlam of energies (n, 2) on the host, bounded below as :func:`pathtemp.paths.geometric.delta` is."""
    return np.asarray(np.maximum(energies[:, 1], LOG_ZERO) - energies[:, 0])


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


def resample(rng: np.random.Generator, log_weight: FloatArray) -> IntArray:
    """Indices of a systematic resampling."""
    weight = np.exp(log_weight - log_weight.max())
    cumulative = np.cumsum(weight) / weight.sum()
    points = (np.arange(len(weight)) + rng.uniform()) / len(weight)
    return np.minimum(np.searchsorted(cumulative, points), len(weight) - 1)


def replace_lost(rng: np.random.Generator, log_weight: FloatArray) -> IntArray:
    """Indices that keep every particle but those whose weight is all but nothing, which copy others by weight.

    In high dimension the few moves of a level do not forget what resampling has chosen, and level after level chooses
    the same: the particles end too close to each other and too low in energy, where HMC rejects every move. Particles
    that lag behind come after by themselves.

    >>> replace_lost(np.random.default_rng(0), np.array([0.0, -1.0, -np.inf])).tolist()[:2]
    [0, 1]
    """
    return np.where(log_weight > log_weight.max() - LOST, np.arange(len(log_weight)), resample(rng, log_weight))


def equilibrate(
    moves: Callable[..., Any],
    theta: FloatArray,
    energies: FloatArray,
    *,
    full: bool,
    seed: int,
    shape: MovesShape,
    allowed: Allowance,
    calls: int = 60,
) -> tuple[FloatArray, FloatArray, float, Counts]:
    """Bring particles to the base by HMC at lam = 0, where the base is only a density.

    Returns theta, energies, the R-hat of the second half over particles, and what it cost: ``calls`` times the moves of
    ``shape``, or as many as are ``allowed``, and one at least. R-hat is NaN where those are too few to say.
    """
    log_step, spent = on_device(np.log(0.3)), Counts()
    kept: list[FloatArray] = []
    for call in range(calls):
        if kept and allowed.ends(spent, shape, len(theta)):
            break
        chart = chart_of(theta, full=full)
        new, new_energies, log_step, steps, _ = moves(
            np.uint32(seed),
            np.uint32(2**30 + call),
            on_device(theta),
            on_device(energies),
            on_device(0.0),
            chart,
            log_step,
        )
        theta, energies = np.asarray(new), np.asarray(new_energies)
        spent = spent + Counts(int(steps) * len(theta), shape.moves * len(theta))
        kept.append(theta)
    second_half = np.stack(kept[len(kept) // 2 :], axis=1)
    return theta, energies, mixing(second_half), spent


def mixing(draws: FloatArray) -> float:
    """Worst R-hat of the ranks of (particle, draw, quantity), over particles and over the two halves of the draws.

    Particles are many and their draws few, where an R-hat of split chains is far above one even for independent draws.
    NaN where there are fewer than four draws.

    >>> x = np.random.default_rng(0).standard_normal((64, 8, 1))
    >>> apart = x + 3.0 * (np.arange(64) % 2)[:, None, None]
    >>> mixing(x) < 1.1, mixing(apart) > 1.5, mixing(x[:, :3])
    (True, True, nan)
    """
    from scipy.stats import rankdata  # slow to import

    count = draws.shape[1]
    if count < 4:
        return float("nan")
    scores = ndtri((rankdata(draws.reshape(-1, draws.shape[2]), axis=0) - 0.375) / (draws[..., 0].size + 0.25))
    scores = scores.reshape(draws.shape)
    within = np.maximum(scores.var(axis=1, ddof=1).mean(axis=0), 1e-12)
    middle = count // 2
    drift = scores[:, middle:].mean(axis=(0, 1)) - scores[:, :middle].mean(axis=(0, 1))
    between = np.maximum(scores.mean(axis=1).var(axis=0, ddof=1), 0.5 * drift**2)
    return float(np.sqrt(np.max((count - 1) / count + between / within)))


def anneal(
    moves: Callable[..., Any],
    start: tuple[FloatArray, FloatArray],
    *,
    full: bool,
    ess: float,
    seed: int,
    on_level: Callable[[float, int], None],
    shape: MovesShape,
    allowed: Allowance,
) -> tuple[list[Level], Counts]:
    """Carry particles from lam = 0 to lam = 1; returns the levels (the base first) and what they cost.

    ``start`` are particles (n, dim) of the base and their energies (n, 2). It stops early, short of lam = 1, where
    another level is not ``allowed``; the last one then says how far it came. One level above the base is always made.
    """
    rng, (theta, energies) = seeds.rng(Stream.ANNEAL, seed), start
    count, dim = theta.shape
    log_step = float(np.log(0.7 / dim**0.25))
    in_theta = log_step + log_scale_of(chart_of(theta, full=full))
    levels = [Level(0.0, theta, energies, host_delta(energies), in_theta, 1.0)]
    spent = Counts()
    while levels[-1].lam < 1.0 and len(levels) < MAX_LEVELS:
        if len(levels) > 1 and allowed.ends(spent, shape, count):
            break
        last = levels[-1]
        lam = next_lam(last.delta, last.lam, ess)
        log_weight = (lam - last.lam) * last.delta
        index = resample(rng, log_weight) if full else replace_lost(rng, log_weight)
        chosen = last.theta[index]
        chart = chart_of(chosen, full=full)
        theta_new, energies_new, step, steps, acceptance = moves(
            np.uint32(seed),
            np.uint32(len(levels)),
            on_device(chosen),
            on_device(last.energies[index]),
            on_device(lam),
            chart,
            on_device(log_step),
        )
        log_step = float(step)
        in_theta = log_step + log_scale_of(chart)
        energies_host = np.asarray(energies_new)
        levels.append(
            Level(
                lam,
                np.asarray(theta_new),
                energies_host,
                host_delta(energies_host),
                in_theta,
                float(acceptance),
            )
        )
        spent = spent + Counts(int(steps) * count, shape.moves * count)
        on_level(lam, spent.gradients)
    return levels, spent
