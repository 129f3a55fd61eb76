"""A bent law fitted to weighted draws: an order of the coordinates, a mean and a scale for each, and its own shape.

All by least squares and quantiles. What a curve explains must exceed what it would explain by chance, so that draws of
a normal law give a normal law.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from pathtemp._types import FloatArray
from pathtemp.modes.bent import PARENTS, SPLINES, BentLaw, splines, straightened

RANGE = (0.02, 0.98)
"""Quantiles of a coordinate between which curves are curves."""

BY_CHANCE = 4.0 * SPLINES
"""Fall of the log variance, times the number of draws, from which a curve explains more than chance would."""

SPREAD_BY_CHANCE = 14.0
"""Log likelihood ratio from which a scale depends on another coordinate."""

SHAPE_BY_CHANCE = 4.0
"""Log likelihood ratio from which a coordinate is not normal."""

LINEAR_BY_CHANCE = 6.0
"""Square of a coefficient, in standard errors, from which it is kept."""

DRAWS_A_TERM = 8.0
"""Effective draws for each linear term."""

POINTS = 256
"""Quantiles from which the shape of a coordinate is learned."""

LOG_CHI_SQUARE = 1.27
"""Minus the mean of the log of the square of a standard normal."""

_BENDS = np.diff(np.eye(SPLINES), 2, axis=0)


class Sample:
    """Weighted draws in one frame, standardised, with the splines of each coordinate.

    Parameters
    ----------
    theta, weight, frame
        Points (n, dim), weights (n,), and an orthogonal matrix (dim, dim) whose columns are the coordinates.
    """

    def __init__(self, theta: FloatArray, weight: FloatArray, frame: FloatArray) -> None:
        self.frame, self.weight = frame, weight / weight.sum()
        self.effective = 1.0 / float(np.sum(self.weight**2))
        u = theta @ frame
        low, middle, high = _quantiles(u, self.weight, [0.05, 0.5, 0.95])
        self.middle, self.scale = middle, np.maximum((high - low) / 3.29, 1e-12 * (1.0 + np.abs(middle)))
        self.y = (u - self.middle) / self.scale
        self.low, high = _quantiles(self.y, self.weight, list(RANGE))
        self.high = np.maximum(high, self.low + 1e-3)
        self.curves = splines(self.y, self.low, self.high, onwards=True)
        self.level = splines(self.y, self.low, self.high, onwards=False)

    def ordered(self, order: list[int]) -> Sample:
        """The same draws with their coordinates in another order."""
        new = object.__new__(Sample)
        new.frame, new.weight, new.effective = self.frame[:, order], self.weight, self.effective
        for name in ("middle", "scale", "low", "high"):
            setattr(new, name, getattr(self, name)[order])
        for name in ("y", "curves", "level"):
            setattr(new, name, getattr(self, name)[:, order])
        return new

    def gains(self) -> FloatArray:
        """Fall of the log variance of each coordinate j by a curve in i beyond a line, (dim, dim); zero by chance."""
        dim, weighted = self.y.shape[1], self.weight[:, None] * self.y
        mean = weighted.sum(axis=0)
        moment = (weighted * self.y).sum(axis=0)
        covariance = weighted.T @ self.y - np.outer(mean, mean)
        variance = np.maximum(np.diagonal(covariance), 1e-300)
        gain = np.zeros((dim, dim))
        for i in range(dim):
            b = self.curves[:, i]
            matrix, sides = (b * self.weight[:, None]).T @ b + _penalty(self.effective), b.T @ weighted
            by_curve = np.maximum(moment - np.sum(sides * _solved(matrix, sides), axis=0), 1e-300)
            by_line = np.maximum(variance - covariance[i] ** 2 / variance[i], 1e-300)
            gain[:, i] = np.log(by_line) - np.log(by_curve)
        np.fill_diagonal(gain, 0.0)
        return np.where(gain > BY_CHANCE / self.effective, gain, 0.0)


def fit_bent(theta: FloatArray, weight: FloatArray, frame: FloatArray) -> BentLaw:
    """The bent law of draws (n, dim) with weights (n,), in a frame (dim, dim).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> bent = np.stack([x, x**2 + 0.1 * rng.normal(size=2000)], axis=1)
    >>> law = fit_bent(bent, np.ones(2000), np.eye(2))
    >>> bool(np.ptp(law.curve[1, 0]) > 0.5 and np.ptp(law.curve[0, 0]) == 0.0)  # the second bends with the first
    True
    """
    sample = Sample(theta, weight, frame)
    gains = sample.gains()
    order = order_of(gains)
    sample, gains = sample.ordered(order), gains[np.ix_(order, order)]
    dim = len(order)
    linear, curve, spread = np.zeros((dim, dim)), np.zeros((dim, PARENTS, SPLINES)), np.zeros((dim, SPLINES))
    parent, spread_parent, shape = np.zeros((dim, PARENTS), int), np.zeros(dim, int), np.zeros((4, dim))
    for j in range(dim):
        lines, parents = _chosen(sample, gains[j], j)
        coefficients, rest = _regression(sample, j, lines, parents)
        linear[j, lines] = coefficients[1 : 1 + len(lines)]
        parent[j, : len(parents)] = parents
        curve[j, : len(parents)] = coefficients[1 + len(lines) :].reshape(-1, SPLINES)
        # Splines add up to one: they hold the constant.
        curve[j, 0] += coefficients[0]
        spread_parent[j], spread[j] = _spread(sample, rest, j)
        rest = rest * np.exp(-(sample.level[:, spread_parent[j]] @ spread[j]))
        shape[:, j] = _shape(rest, sample.weight, sample.effective)
    return BentLaw(
        centre=sample.frame @ sample.middle,
        frame=sample.frame,
        scale=sample.scale,
        linear=linear,
        parent=parent,
        curve=curve,
        spread_parent=spread_parent,
        spread=spread,
        low=sample.low,
        high=sample.high,
        location=shape[0],
        size=shape[1],
        skew=shape[2],
        tail=shape[3],
    )


def order_of(gains: FloatArray) -> list[int]:
    """The order of the coordinates: last those that bend with others most, and others with them least.

    >>> order_of(np.array([[0.0, 2.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]]))  # the first bends with the second
    [1, 2, 0]
    """
    left = list(range(len(gains)))
    last: list[int] = []
    while left:
        among = gains[np.ix_(left, left)]
        score = among.max(axis=1) - among.max(axis=0)
        best = int(np.argmax(score)) if score.max() > 0 else len(left) - 1
        last.insert(0, left.pop(best))
    return last


def _quantiles(x: FloatArray, weight: FloatArray, at: list[float]) -> FloatArray:
    """Weighted quantiles of the columns of x (n, k), shape (len(at), k)."""
    out = np.empty((len(at), x.shape[1]))
    for k, column in enumerate(x.T):
        order = np.argsort(column)
        total = np.cumsum(weight[order]) - 0.5 * weight[order]
        out[:, k] = np.interp(at, total, column[order])
    return out


def _solved(matrix: FloatArray, sides: FloatArray) -> FloatArray:
    """Solution of normal equations (k, k) with right sides (k, ...), however unlike the sizes of the columns are.

    >>> _solved(np.array([[1e40, 1e20], [1e20, 1.0]]), np.array([1e20, 1.0])).round(3).tolist()
    [0.0, 0.5]
    """
    size = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    even = matrix / np.outer(size, size) + 1e-10 * np.eye(len(size))
    divided = size if sides.ndim == 1 else size[:, None]
    return np.asarray(np.linalg.solve(even, sides / divided) / divided)


def _penalty(effective: float) -> FloatArray:
    """Of the coefficients of a curve: against bends that few draws ask for."""
    return np.asarray(1e-6 * np.eye(SPLINES) + 1e-3 / effective * _BENDS.T @ _BENDS)


def _regression(sample: Sample, j: int, lines: list[int], parents: list[int]) -> tuple[FloatArray, FloatArray]:
    """Coefficients of coordinate j on a constant, on lines and on curves of the parents, and the residuals (n,)."""
    y = sample.y[:, j]
    columns = [np.ones((len(y), 1)), sample.y[:, lines], *(sample.curves[:, i] for i in parents)]
    design = np.concatenate(columns, axis=1)
    penalty = 1e-9 * np.eye(design.shape[1])
    for place in range(len(parents)):
        block = slice(1 + len(lines) + place * SPLINES, 1 + len(lines) + (place + 1) * SPLINES)
        penalty[block, block] += _penalty(sample.effective)
    weighted = design * sample.weight[:, None]
    coefficients = _solved(weighted.T @ design + penalty, weighted.T @ y)
    return coefficients, y - design @ coefficients


def _chosen(sample: Sample, gains: FloatArray, j: int) -> tuple[list[int], list[int]]:
    """The coordinates before j in which its mean is linear, and those in which it bends."""
    before, weight = np.arange(j), sample.weight
    room = int(sample.effective / DRAWS_A_TERM)
    alike = np.abs((weight * sample.y[:, j]) @ sample.y[:, :j] - (weight @ sample.y[:, j]) * (weight @ sample.y[:, :j]))
    lines = sorted(before[np.argsort(-alike, kind="stable")][:room].tolist())
    parents: list[int] = []
    rest = _regression(sample, j, lines, parents)[1]
    for i in sorted(before[gains[:j] > 0].tolist(), key=lambda i: -gains[i])[: 2 * PARENTS]:
        if len(parents) == PARENTS:
            break
        new = _regression(sample, j, lines, [*parents, i])[1]
        if np.log(weight @ rest**2 / max(weight @ new**2, 1e-300)) > BY_CHANCE / sample.effective:
            parents, rest = [*parents, i], new
    straight = [i for i in lines if i not in parents]
    coefficients, rest = _regression(sample, j, straight, parents)
    square = coefficients[1 : 1 + len(straight)] ** 2 * (weight @ sample.y[:, straight] ** 2)
    kept = square * sample.effective > LINEAR_BY_CHANCE * (weight @ rest**2)
    return [i for i, keep in zip(straight, kept, strict=True) if keep], parents


def _spread(sample: Sample, rest: FloatArray, j: int) -> tuple[int, FloatArray]:
    """The coordinate before j on which the log scale of its residuals (n,) depends most, and the curve; or nothing."""
    weight, best = sample.weight, (0, np.zeros(SPLINES))
    logs = np.log(np.maximum(rest**2, 1e-12 * (weight @ rest**2) + 1e-300)) + LOG_CHI_SQUARE
    plain, most = weight @ (logs - weight @ logs) ** 2, SPREAD_BY_CHANCE
    penalty = 1e-6 * np.eye(SPLINES) + 3.0 / sample.effective * _BENDS.T @ _BENDS
    for i in range(j):
        b = sample.level[:, i]
        coefficients = _solved((b * weight[:, None]).T @ b + penalty, b.T @ (weight * logs))
        gain = 0.5 * sample.effective * np.log(plain / max(weight @ (logs - b @ coefficients) ** 2, 1e-300))
        if gain > most:
            best, most = (i, 0.5 * coefficients), gain
    return best


def _shape(rest: FloatArray, weight: FloatArray, effective: float) -> tuple[float, float, float, float]:
    """Location, size, skew and tail of the sinh-arcsinh law of residuals (n,), by likelihood over their quantiles."""
    low, middle, high = _quantiles(rest[:, None], weight, [0.25, 0.5, 0.75])[:, 0]
    scale = max((high - low) / 1.349, 1e-12)
    mean = float(weight @ rest)
    sd = max(float(np.sqrt(weight @ (rest - mean) ** 2)), 1e-12)
    u = (_quantiles(rest[:, None], weight, list((np.arange(POINTS) + 0.5) / POINTS))[:, 0] - middle) / scale

    def loss(p: FloatArray) -> float:
        with np.errstate(all="ignore"):
            e, log_slope = straightened((u - p[0]) * np.exp(-p[1]), p[2], np.exp(p[3]))
            value = float(np.mean(0.5 * e**2 - log_slope) + p[1]) + 2.0 / effective * (
                0.5 * p[2] ** 2 + 2.0 * p[3] ** 2
            )
        return value if np.isfinite(value) else 1e10

    start = np.zeros(4)
    best = minimize(loss, start, method="BFGS", options={"maxiter": 60, "gtol": 1e-4})
    plain = np.mean(0.5 * ((u - np.mean(u)) / np.std(u)) ** 2) + np.log(max(float(np.std(u)), 1e-12))
    if not best.fun < plain - SHAPE_BY_CHANCE / effective:
        return mean, sd, 0.0, 1.0
    shift, log_size, skew, log_tail = best.x
    return float(middle + scale * shift), float(scale * np.exp(log_size)), float(skew), float(np.exp(log_tail))


def principal_frame(theta: FloatArray, weight: FloatArray) -> FloatArray:
    """Directions (dim, dim) of weighted draws (n, dim) in which their ranks are not correlated, widest first."""
    scores = np.empty_like(theta)
    share = weight / weight.sum()
    for k, column in enumerate(theta.T):
        order = np.argsort(column)
        scores[order, k] = ndtri(np.cumsum(share[order]) - 0.5 * share[order])
    low, high = _quantiles(theta, share, [0.16, 0.84])
    clipped = scores * (0.5 * (high - low))
    clipped = clipped - share @ clipped
    return np.asarray(np.linalg.eigh((clipped * share[:, None]).T @ clipped)[1][:, ::-1])
