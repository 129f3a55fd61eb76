"""Integrals and exact draws of one-dimensional densities, by tabulating them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.errors import InputError


def gauss_legendre(edges: FloatArray, *, order: int = 16) -> tuple[FloatArray, FloatArray]:
    """Nodes and log weights of the Gauss-Legendre rule on each panel between increasing ``edges``.

    >>> x, log_w = gauss_legendre(np.array([0.0, 1.0, 3.0]))
    >>> round(float(np.sum(np.exp(log_w) * x**2)), 12)
    9.0
    """
    x, w = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * x).ravel(), np.log(half * w).ravel()


def edges_around(centres: ArrayLike, *, narrowest: float, widest: float, ratio: float = 1.25) -> FloatArray:
    """Panel edges that grow geometrically away from every centre, from ``narrowest`` out to ``widest``.

    >>> edges_around(0.0, narrowest=1.0, widest=4.0, ratio=2.0)
    array([-4., -2., -1.,  0.,  1.,  2.,  4.])
    """
    steps = round(np.log(widest / narrowest) / np.log(ratio))
    away = np.geomspace(narrowest, widest, steps + 1)
    offsets = np.concatenate([-away[::-1], [0.0], away])
    return np.unique(np.add.outer(np.atleast_1d(np.asarray(centres, float)), offsets))


def geometric_curve(
    log_base: FloatArray, log_target: FloatArray, log_weights: FloatArray
) -> Callable[[ArrayLike], FloatArray]:
    """The curve log z(lam) of the geometric path from its two ends, tabulated on the nodes of one rule.

    >>> x, log_w = gauss_legendre(np.linspace(-20.0, 20.0, 41))
    >>> constant = 0.5 * np.log(2 * np.pi)
    >>> curve = geometric_curve(-0.5 * x**2 - constant, -2.0 * x**2 - constant, log_w)
    >>> round(float(curve(1.0)), 10)
    -0.6931471806
    """
    start, delta = log_base + log_weights, log_target - log_base

    def log_z(lam: ArrayLike) -> FloatArray:
        at = np.asarray(lam, float)
        values = [logsumexp(start + l * delta) for l in at.ravel()]
        return np.asarray(values, float).reshape(at.shape)

    return log_z


def draw_tabulated(
    rng: np.random.Generator, x: FloatArray, log_density: Callable[[FloatArray], FloatArray], lam: FloatArray
) -> FloatArray:
    """One independent draw for each of ``lam`` from densities tabulated on ``x`` and log-linear in between.

    Parameters
    ----------
    x
        Increasing points, ``(g,)``.
    log_density
        Unnormalised log density at every point for some values of lam: ``(m, 1) -> (m, g)``. Called once for
        each different lam, in slices, so that no table of all draws is held.

    >>> x = np.linspace(0.0, 1.0, 5)
    >>> draws = draw_tabulated(np.random.default_rng(0), x, lambda lam: lam * np.log1p(x), np.ones(100))
    >>> draws.shape, bool(np.all((draws > 0) & (draws < 1)))
    ((100,), True)
    """
    distinct, which = np.unique(lam, return_inverse=True)
    order = np.argsort(which, kind="stable")
    out, rows_at_once = np.empty(len(lam)), max(1, 500_000 // len(x))
    for start in range(0, len(distinct), rows_at_once):
        stop = min(start + rows_at_once, len(distinct))
        first, last = np.searchsorted(which[order], [start, stop])
        draws = order[first:last]
        out[draws] = _draw_rows(rng, x, log_density(distinct[start:stop, None]), which[draws] - start)
    return out


def _draw_rows(
    rng: np.random.Generator,
    x: FloatArray,
    log_p: FloatArray,
    row: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
) -> FloatArray:
    """A draw from row ``row[i]`` of the table for every i: a cell by its mass, then a place within it."""
    log_p = np.maximum(log_p - log_p.max(axis=1, keepdims=True), -1e4)
    rise = np.diff(log_p, axis=1)
    # From the higher of the two ends of a cell, so that nothing overflows.
    top = np.exp(np.maximum(log_p[:, :-1], log_p[:, 1:]))
    cdf = np.cumsum(top * np.diff(x) * _mean_exponential(-np.abs(rise)), axis=1)
    cells = cdf.shape[1]
    # Row r occupies [r, r + 1], so that one search serves all rows.
    stacked = (cdf / cdf[:, -1:] + np.arange(len(cdf))[:, None]).ravel()
    found = np.searchsorted(stacked, rng.uniform(size=len(row)) + row) - row * cells
    cell = np.clip(found, 0, cells - 1)
    place = _truncated_exponential(rng.uniform(size=len(row)), rise[row, cell])
    return np.asarray(x[cell] + (x[cell + 1] - x[cell]) * place)


def _mean_exponential(b: FloatArray) -> FloatArray:
    """Integral of exp(b t) over t in [0, 1]."""
    safe = np.where(np.abs(b) < 1e-8, 1.0, b)
    return np.where(np.abs(b) < 1e-8, 1.0 + 0.5 * b, np.expm1(safe) / safe)


def _truncated_exponential(u: FloatArray, b: FloatArray) -> FloatArray:
    """The t in [0, 1] where the distribution function of the density proportional to exp(b t) is ``u``."""
    size = np.abs(b)
    safe = np.maximum(size, 1e-8)
    t = -np.log1p(u * np.expm1(-safe)) / safe
    return np.where(size < 1e-8, u, np.where(b > 0, 1.0 - t, t))


@dataclass(frozen=True)
class TabulatedDensity:
    """A one-dimensional distribution known up to its constant, with its integrals by quadrature.

    Parameters
    ----------
    log_density
        Unnormalised log density of any array of points.
    edges
        Increasing panel edges that cover the support; panels must be narrow against the density's features.

    >>> normal = TabulatedDensity(lambda x: -0.5 * x**2, np.linspace(-12.0, 12.0, 97))
    >>> round(float(normal.quantile(0.975)), 6), round(normal.expectation(np.square), 6)
    (1.959964, 1.0)
    """

    log_density: Callable[[FloatArray], FloatArray]
    edges: FloatArray

    @property
    def log_constant(self) -> float:
        """Log of the integral of the unnormalised density."""
        x, log_w = gauss_legendre(self.edges)
        return float(logsumexp(self.log_density(x) + log_w))

    def log_pdf(self, x: ArrayLike) -> FloatArray:
        """Normalised log density; -inf outside the edges."""
        at = np.asarray(x, float)
        inside = (at >= self.edges[0]) & (at <= self.edges[-1])
        values = self.log_density(np.where(inside, at, self.edges[len(self.edges) // 2])) - self.log_constant
        return np.where(inside, values, -np.inf)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Normalised density."""
        return np.exp(self.log_pdf(x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Distribution function: whole panels, then the rule on the part of the last one."""
        at = np.clip(np.asarray(x, float), self.edges[0], self.edges[-1])
        nodes, log_w = gauss_legendre(self.edges)
        panels = np.exp(self.log_density(nodes) + log_w - self.log_constant).reshape(len(self.edges) - 1, -1).sum(1)
        below = np.concatenate([[0.0], np.cumsum(panels)])
        panel = np.clip(np.searchsorted(self.edges, at, side="right") - 1, 0, len(self.edges) - 2)
        t, w = np.polynomial.legendre.leggauss(16)
        half = 0.5 * (at - self.edges[panel])[..., None]
        part = np.sum(half * w * self.pdf(self.edges[panel][..., None] + half * (1.0 + t)), axis=-1)
        return np.asarray(below[panel] + part)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Point below which a share ``p`` in (0, 1) lies, by bisection of the distribution function."""
        share = np.asarray(p, float)
        if not np.all((share > 0) & (share < 1)):
            raise InputError(f"quantile: p must be inside (0, 1), and is {share}")
        low, high = np.full(share.shape, self.edges[0]), np.full(share.shape, self.edges[-1])
        for _ in range(200):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def expectation(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Mean of ``f(x)``."""
        x, log_w = gauss_legendre(self.edges)
        return float(np.sum(f(x) * np.exp(self.log_density(x) + log_w - self.log_constant)))
