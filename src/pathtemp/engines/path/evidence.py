"""The absolute scale of a margin: log of the integral of q by bridge sampling (eq. bridge).

The bridge leads from a reference that can be sampled and is normalised, normal(z) x p(s), to q itself. With p the
marginal that path sampling found and a good transport the two are nearly the same law. An error of p costs precision
alone: whatever p is, the reference is normalised exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from pathtemp._types import Array, FloatArray, HostArray
from pathtemp.engines.path.chains import PathChains
from pathtemp.engines.path.estimates import groups_of, jackknife
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.path_rounds import HALF_LOG_2PI, PathParameters
from pathtemp.kernels.rejected import Rejected, code_of, point_of
from pathtemp.paths.function import FunctionPath
from pathtemp.paths.geometric import as_energies
from pathtemp.result.fit import LogEvidence
from pathtemp.result.run import Counts
from pathtemp.seeds import KeyStream, stream_key


def log_evidence(
    chains: PathChains, log_p: FloatArray, s: FloatArray, log_ratio: FloatArray, inside: HostArray, *, trips: int
) -> tuple[LogEvidence, Counts]:
    """Log of the integral of q over theta and the interval, and what it cost.

    Parameters
    ----------
    chains
        Whose kernel is frozen.
    log_p
        The marginal along the path at its nodes, up to a constant: the reference.
    s, log_ratio, inside
        Positions of all draws, log q |F| / normal(z) there, and whether they lie between the flat ends, shape
        (iterations, chains).
    trips
        Of the chains from end to end and back: as many of their draws count as independent, and one of each chain.
    """
    nodes = np.linspace(0.0, 1.0, len(log_p))
    log_reference = log_p - _log_integral(log_p)
    reference = _reference_ratios(chains, log_reference, count=s.size)
    ratio = log_ratio - np.interp(s, nodes, log_reference)
    usable = np.asarray(inside) & ~np.isnan(ratio)
    # The chains have the density q / c, so that their draws stand for q with the weight c.
    log_weight = np.where(usable, np.interp(s, nodes, chains.log_c), -np.inf)
    independent = trips + s.shape[1]
    value, se = weighted_bridge(reference, np.where(usable, ratio, 0.0), log_weight, independent=independent)
    return LogEvidence(value + float(np.log(chains.high - chains.low)), se), Counts(0, reference.size)


def weighted_bridge(
    reference: FloatArray, draws: FloatArray, log_weight: FloatArray, *, independent: float
) -> tuple[float, float]:
    """Log of the integral of a density by the bridge of least variance from a normalised reference, and its error.

    Parameters
    ----------
    reference
        Log density minus log reference at independent draws of the reference, shape (n,).
    draws
        The same at draws of chains, shape (iterations, chains).
    log_weight
        Log weight with which such a draw stands for the density, up to a constant; -inf to leave it out.
    independent
        Draws of the chains that count as independent. It decides how much they count beside the reference, and is
        right or wrong about precision alone.

    The error is that of the jackknife over groups of chains, and that of the independent draws of the reference.

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=4000), rng.normal(scale=1.2, size=(500, 8))
    >>> log_ratio = lambda x: np.log(2.0) - x**2 / 2.88 + x**2 / 2.0  # 2.4 normal(0, 1.2) over normal(0, 1)
    >>> value, se = weighted_bridge(log_ratio(x), log_ratio(y), np.zeros_like(y), independent=4000)
    >>> bool(abs(value - np.log(2.4)) < 6 * se), bool(se < 0.02)
    (True, True)
    """
    weight = np.exp(log_weight - log_weight.max())
    offset = float(np.log(independent / len(reference)))

    def terms(value: float) -> tuple[FloatArray, FloatArray]:
        return expit(reference + offset - value), expit(value - offset - draws)

    def excess(value: float) -> float:
        up, down = terms(value)
        return float(up.mean() - np.exp(offset) * np.average(down, weights=weight))

    finite = np.concatenate([reference[np.isfinite(reference)], draws[weight > 0]])
    # Beyond the extremes by so much every term but one fades.
    margin = 50.0 + float(np.log(finite.size))
    value = float(brentq(excess, finite.min() - margin, finite.max() + margin, xtol=1e-12))
    up, down = terms(value)
    slope = float(np.mean(up * (1.0 - up)) + np.exp(offset) * np.average(down * (1.0 - down), weights=weight))
    of_reference = float(np.std(up)) / np.sqrt(len(up)) / slope
    of_chains = np.exp(offset) / slope * jackknife(_means_without(down, weight))
    return value, float(np.hypot(of_reference, of_chains))


def _means_without(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted means of x (iterations, chains) without each group of chains, shape (groups,)."""
    groups = groups_of(x.shape[1])
    total, norm = (np.bincount(groups, y.sum(axis=0)) for y in (weight * x, weight))
    return np.asarray((total.sum() - total) / (norm.sum() - norm))


def _log_integral(log_p: FloatArray) -> float:
    """Log of the integral over [0, 1] of a density that is log-linear between equispaced nodes.

    >>> round(_log_integral(np.log(np.array([1.0, 2.0, 4.0]))), 6) == round(float(np.log(1.5 / np.log(2.0))), 6)
    True
    """
    top = float(log_p.max())
    rise = np.diff(log_p)
    flat = np.abs(rise) < 1e-8
    cells = np.exp(log_p[:-1] - top) * np.where(flat, 1.0 + 0.5 * rise, np.expm1(rise) / np.where(flat, 1.0, rise))
    return top + float(np.log(np.sum(cells) / len(rise)))


def _reference_ratios(chains: PathChains, log_reference: FloatArray, *, count: int) -> FloatArray:
    """Log q |F| / normal(z) - log p at draws of normal(z) x p(s), about ``count``, in batches of one round.

    These draws lie where no chain need have been, so that q is watched here as well: +inf is an error.
    """
    batch = chains.settings.chains * chains.settings.iterations
    arguments = (chains.parameters, jnp.asarray(log_reference))
    word = np.uint32(chains.seed % 2**32)
    program, _ = compiled_once(_batch, (chains.path, batch), (word, np.uint32(0), *arguments))
    ratios = []
    for number in range(max(1, count // batch)):
        ratio, rejected = program(word, np.uint32(number), *arguments)
        chains.watch.met(rejected, None, batch)
        ratios.append(np.asarray(ratio))
    return np.concatenate(ratios)


def _batch(path: FunctionPath, count: int) -> Callable[[Array, Array, PathParameters, Array], tuple[Array, Rejected]]:
    def position(u: Array, log_p: Array) -> tuple[Array, Array]:
        """A draw of the log-linear density from a uniform, and log p there."""
        cells = log_p.shape[0] - 1
        rise = jnp.diff(log_p)
        flat = jnp.abs(rise) < 1e-8
        mass = jnp.exp(log_p[:-1]) * jnp.where(flat, 1.0 + 0.5 * rise, jnp.expm1(rise) / jnp.where(flat, 1.0, rise))
        cumulative = jnp.concatenate([jnp.zeros(1), jnp.cumsum(mass)])
        at = u * cumulative[-1]
        cell = jnp.clip(jnp.searchsorted(cumulative, at, side="right") - 1, 0, cells - 1)
        share = jnp.clip((at - cumulative[cell]) / mass[cell], 0.0, 1.0)
        steep = jnp.where(flat[cell], 1.0, rise[cell])
        x = jnp.where(flat[cell], share, jnp.log1p(share * jnp.expm1(steep)) / steep)
        return (cell + x) / cells, log_p[cell] + x * rise[cell]

    def one(key: Array, parameters: PathParameters, log_p: Array) -> tuple[Array, Rejected]:
        for_z, for_s = jax.random.split(key)
        s, log_reference = position(jax.random.uniform(for_s), log_p)
        chart = parameters.transport.at(s)
        z = jax.random.normal(for_z, chart.location.shape)
        theta, lam = chart.forward(z), parameters.lam(s)
        value = path.value(theta, lam, parameters.args)
        ratio = as_energies(value) + chart.log_det() + 0.5 * z @ z + z.shape[0] * HALF_LOG_2PI - log_reference
        return ratio, Rejected(code_of(value[None]), jnp.append(theta, lam))

    def draws(seed: Array, number: Array, parameters: PathParameters, log_p: Array) -> tuple[Array, Rejected]:
        key = jax.random.fold_in(stream_key(seed, KeyStream.BRIDGE), number)
        ratio, met = jax.vmap(one, (0, None, None))(jax.random.split(key, count), parameters, log_p)
        return ratio, Rejected(met.code[None], point_of(met)[None])

    return draws
