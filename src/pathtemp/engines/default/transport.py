"""Learning the transport from draws (s, theta): robust location, scale and correlation as functions of s."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.kernels.spread import on_device
from pathtemp.kernels.transport import Transport
from pathtemp.seeds import Stream, rng

FULL_DIM = 100
"""Largest dimension with a full triangular factor; above it, diagonal plus low rank."""

RANK = 20
"""Directions of the low-rank part."""

MOST_WANTED = 500
"""Draws wanted for each position in high dimension, at most; windows widen to find them."""

MOST_TAKEN, TAKEN_PER_DIM = 1000, 40
"""Draws of a window that are taken, at most: so many, and so many a dimension where a full factor is learned."""

CLIP = 4.0
"""Standardised draws are clipped here, so that heavy tails cannot blow up scale and correlation."""


def fit_transport(s: FloatArray, theta: FloatArray, *, positions: int, full: bool) -> Transport:
    """Transport whose tables follow the conditional law of theta given s.

    Parameters
    ----------
    s
        Positions of the draws in [0, 1], shape (n,).
    theta
        Draws, shape (n, dim).
    positions
        Number B of positions of the tables.
    full
        A triangular factor at each position, or a diagonal with a low-rank part.
    """
    dim = theta.shape[1]
    nodes = np.linspace(0.0, 1.0, positions)
    location, log_scale = np.empty((positions, dim)), np.empty((positions, dim))
    factors = np.empty((positions, dim, dim)) if full else None
    standardised, node_weights = [], []
    for b, node in enumerate(nodes):
        chosen, weight = _window(s, node, positions, wanted=60 + 4 * dim if full else min(MOST_WANTED, len(s) // 8))
        chosen, weight = _thinned(chosen, weight, max(MOST_TAKEN, TAKEN_PER_DIM * dim) if full else MOST_TAKEN)
        x = theta[chosen]
        centre, spread = median_spread(x)
        u = np.clip((x - centre) / spread, -CLIP, CLIP)
        intercept, residual = _local_linear(s[chosen] - node, u, weight)
        variance = np.maximum(weight @ residual**2, 1e-4)
        location[b] = centre + spread * intercept
        log_scale[b] = np.log(spread) + 0.5 * np.log(variance)
        if factors is None:
            log_scale[b] = shrink_scales(log_scale[b], effective=1.0 / float(np.sum(weight**2)))
        residual = residual / np.sqrt(variance)
        if factors is not None:
            factors[b] = np.linalg.cholesky(_shrunk_correlation(residual, weight))
        else:
            standardised.append(residual)
            node_weights.append(weight)
    if factors is not None:
        return Transport(on_device(location), on_device(log_scale), factor=on_device(factors))
    basis, gain = _low_rank(standardised, node_weights)
    return Transport(on_device(location), on_device(log_scale), basis=on_device(basis), gain=on_device(gain))


def _window(s: FloatArray, node: float, positions: int, *, wanted: int) -> tuple[IntArray, FloatArray]:
    """Indices and normalised triangular weights of the draws near ``node``; widened until ``wanted`` draws are in."""
    distance = np.abs(s - node)
    radius = 1.0 / (positions - 1)
    while radius < 1.0 and np.count_nonzero(distance < radius) < min(wanted, len(s) // 2):
        radius *= 1.25
    chosen = np.flatnonzero(distance < radius)
    if len(chosen) < 2:
        chosen = np.argsort(distance)[: max(2, min(wanted, len(s)))]
        radius = float(distance[chosen].max()) + 1e-9
    weight = np.maximum(1.0 - distance[chosen] / radius, 1e-3)
    return chosen, weight / weight.sum()


def _thinned(chosen: IntArray, weight: FloatArray, most: int) -> tuple[IntArray, FloatArray]:
    """Evenly spaced draws of a window, ``most`` of them or all, with their weights normalised again."""
    every = -(-len(chosen) // most)
    kept = weight[::every]
    return chosen[::every], kept / kept.sum()


def median_spread(x: FloatArray, most: int = 512) -> tuple[FloatArray, FloatArray]:
    """Median and normal-consistent interquartile spread of each column, from at most ``most`` rows."""
    rows = x[:: max(1, len(x) // most)]
    low, centre, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.349
    fallback = np.std(rows, axis=0)
    spread = np.where(spread > 0, spread, fallback)
    return centre, np.where(spread > 0, spread, 1.0)


def _local_linear(t: FloatArray, u: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted regression of the columns of u on t: value at t = 0, and residuals (normalised weights)."""
    mean_t, mean_u = weight @ t, weight @ u
    spread = weight @ (t - mean_t) ** 2
    slope = (weight * (t - mean_t)) @ (u - mean_u) / spread if spread > 1e-12 else np.zeros(u.shape[1])
    intercept = mean_u - slope * mean_t
    return intercept, u - mean_u - np.outer(t - mean_t, slope)


def shrink_scales(log_scale: FloatArray, *, effective: float) -> FloatArray:
    """Log scales of many coordinates, shrunk to their mean as far as noise explains their spread (empirical Bayes).

    The log of a standard deviation from n normal draws has variance 1 / (2 n); successive draws of a chain count for a
    third. In high dimension a few scales that are much too large would otherwise set the step size of all.

    >>> shrink_scales(np.array([-0.1, 0.1]), effective=30.0).tolist()
    [0.0, 0.0]
    """
    noise = 1.0 / (2.0 * max(effective / 3.0, 1.0))
    spread = float(np.var(log_scale))
    kept = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
    centre = float(np.mean(log_scale))
    return np.asarray(centre + kept * (log_scale - centre))


def _shrunk_correlation(u: FloatArray, weight: FloatArray) -> FloatArray:
    """Correlation of standardised draws, shrunk to the identity by Ledoit and Wolf's intensity."""
    dim = u.shape[1]
    matrix = (u * weight[:, None]).T @ u
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    matrix = matrix / np.outer(scale, scale)
    noise = weight**2 @ (np.sum((u / scale) ** 2, axis=1) ** 2) - np.sum(weight**2) * np.sum(matrix**2)
    signal = np.sum((matrix - np.eye(dim)) ** 2)
    intensity = float(np.clip(noise / max(signal, 1e-12), 1e-6, 1.0))
    return (1.0 - intensity) * matrix + intensity * np.eye(dim)


def _low_rank(residuals: list[FloatArray], weights: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Directions V (dim, RANK) of excess variance shared along the path, and the gain of each at each position.

    Directions whose variance noise alone could explain (Marchenko-Pastur edge, an eighth of the draws taken as
    independent) get gain zero.
    """
    dim = residuals[0].shape[1]
    rank = min(RANK, dim)
    pooled = np.concatenate([r * np.sqrt(w)[:, None] for r, w in zip(residuals, weights, strict=True)])
    pooled = pooled / np.sqrt(len(residuals))
    sketch = rng(Stream.SKETCH).normal(size=(dim, 2 * rank))
    for _ in range(3):
        sketch, _ = np.linalg.qr(pooled.T @ (pooled @ sketch))
    # The squared singular values and the right-hand vectors of the tall matrix pooled @ sketch.
    seen = pooled @ sketch
    square, columns = np.linalg.eigh(seen.T @ seen)
    basis = sketch @ columns[:, ::-1][:, :rank]
    effective = 1.0 / sum(np.sum(w**2) for w in weights) * len(weights) ** 2
    edge = 1.2 * (1.0 + np.sqrt(8.0 * dim / effective)) ** 2
    kept = square[::-1][:rank] > edge
    variance = np.array([w @ (r @ basis) ** 2 for r, w in zip(residuals, weights, strict=True)])
    gain = np.sqrt(np.maximum(variance, 0.01)) - 1.0
    return basis, np.where(kept[None, :], gain, 0.0)
