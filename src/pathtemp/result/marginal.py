"""The marginal density of one parameter: density, distribution function, quantiles and expectations by quadrature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, positive_number, shown, whole_number
from pathtemp.errors import InputError

FINE = 16
"""Points of the quadrature for each cell of the curve."""


class Estimated(NamedTuple):
    """A value, or an array of values, and its standard error."""

    value: FloatArray
    se: FloatArray


@dataclass(frozen=True)
class Marginal:
    """The marginal of one parameter, estimated by path sampling (section 2.3).

    Parameters
    ----------
    name
        Of the parameter.
    u
        Increasing nodes on the unconstrained scale, shape (n,).
    log_p
        Log density of u at the nodes, up to a constant.
    without
        The same without the draws of one group of chains each, shape (groups, n): the jackknife over them gives every
        standard error here.
    grid, values
        A finer grid of u, which unless restricted goes a whole interval beyond on either side, and the parameter there,
        increasing, shape (m,) each.
    restricted
        Whether the law is that of the parameter inside the interval; otherwise log p continues beyond it as straight
        lines, and what is asked from there comes with a warning.

    >>> u = np.linspace(-8.0, 8.0, 129)
    >>> normal = Marginal.of("x", u, -0.5 * u**2, np.tile(-0.5 * u**2, (4, 1)), lambda u: u, restricted=False)
    >>> round(float(normal.quantile(0.975).value), 3), round(float(normal.moment(4).value), 3)
    (1.96, 3.0)
    """

    name: str
    u: FloatArray
    log_p: FloatArray
    without: FloatArray
    grid: FloatArray
    values: FloatArray
    restricted: bool

    @classmethod
    def of(
        cls,
        name: str,
        u: FloatArray,
        log_p: FloatArray,
        without: FloatArray,
        values: Callable[[FloatArray], FloatArray],
        *,
        restricted: bool,
    ) -> Marginal:
        """From curves at nodes ``u`` and the map ``values`` from u to the parameter, increasing or decreasing."""
        inside = FINE * (len(u) - 1)
        beyond = 0 if restricted else inside
        step = (u[-1] - u[0]) / inside
        grid = np.concatenate([u[0] - step * np.arange(beyond, 0, -1), np.linspace(u[0], u[-1], inside + 1)])
        grid = np.concatenate([grid, u[-1] + step * np.arange(1, beyond + 1)])
        x = np.asarray(values(grid), float)
        if x[-1] < x[0]:
            u, log_p, without = -u[::-1], log_p[::-1], without[:, ::-1]
            grid, x = -grid[::-1], x[::-1]
        return cls(name, u, log_p, without, grid, x, restricted)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the density was sampled, on the scale of the parameter."""
        low, high = np.interp([self.u[0], self.u[-1]], self.grid, self.values)
        return float(low), float(high)

    @property
    def tails(self) -> tuple[float, float]:
        """Mass beyond either end of the interval, by continuing log p as straight lines; zero where restricted."""
        return self._laws[0].tails

    def log_pdf(self, x: ArrayLike) -> Estimated:
        """Log density of the parameter at ``x``."""
        at = finite_array("x", x, or_infinite=True)
        return self._estimate(lambda law: law.log_pdf(at), beyond=self._outside(at))

    def pdf(self, x: ArrayLike) -> Estimated:
        """Density of the parameter at ``x``."""
        at = finite_array("x", x, or_infinite=True)
        return self._estimate(lambda law: np.exp(law.log_pdf(at)), beyond=self._outside(at))

    def cdf(self, x: ArrayLike) -> Estimated:
        """Probability that the parameter is below ``x``."""
        at = finite_array("x", x, or_infinite=True)
        return self._estimate(lambda law: law.cdf(at), beyond=self._outside(at))

    def quantile(self, p: ArrayLike) -> Estimated:
        """Value below which the parameter lies with probability ``p``, which may be as small as 1e-6."""
        level = finite_array("p", p)
        if not np.all((level > 0) & (level < 1)):
            raise InputError("p: probabilities must lie between 0 and 1, both excluded")
        low, high = self.tails
        return self._estimate(lambda law: law.quantile(level), beyond=bool(np.any((level < low) | (level > 1 - high))))

    def expectation(self, function: Callable[[FloatArray], FloatArray]) -> Estimated:
        """Expectation of ``function`` of the parameter, which takes and returns an array, over the interval."""
        if not callable(function):
            raise InputError(f"function: expected a function of an array, and it is {shown(function)}")
        x = self.values[self._inside]
        values = np.asarray(function(x), float)
        if values.shape != x.shape:
            raise InputError(f"function: it must return one number for each of {len(x)} values")
        return self._estimate(lambda law: law.mean(values), beyond=False)

    def moment(self, k: int) -> Estimated:
        """Moment E x^k."""
        whole_number("k", k, least=0)
        return self.expectation(lambda x: x**k)

    def sd(self) -> Estimated:
        """Standard deviation."""
        x = self.values[self._inside]

        def deviation(law: _Law) -> FloatArray:
            mean = law.mean(x)
            return np.sqrt(law.mean((x - mean) ** 2))

        return self._estimate(deviation, beyond=False)

    def scaled(self, factor: float) -> Marginal:
        """The same with the error of log p multiplied: for estimates that came from fewer draws than they seem."""
        factor = positive_number("factor", factor)
        return replace(self, without=self.log_p + factor * (self.without - self.log_p))

    @cached_property
    def _inside(self) -> slice:
        """The part of the grid in the interval."""
        beyond = (len(self.grid) - 1 - FINE * (len(self.u) - 1)) // 2
        return slice(beyond, len(self.grid) - beyond)

    @cached_property
    def _scale(self) -> _Scale:
        slope = np.asarray(CubicSpline(self.grid, self.values)(self.grid, 1))
        return _Scale(self.grid, self.values, np.maximum(slope, 1e-300))

    @cached_property
    def _laws(self) -> list[_Law]:
        """The estimate first, then those without each group."""
        return [_law(self, curve) for curve in (self.log_p, *self.without)]

    def _estimate(self, functional: Callable[[_Law], FloatArray], *, beyond: bool) -> Estimated:
        if beyond and not self.restricted:
            low, high = self.interval
            warnings.warn(
                f"{self.name} was sampled from {low:.4g} to {high:.4g}; beyond that its density is extrapolated",
                stacklevel=3,
            )
        value, *without = (np.asarray(functional(law)) for law in self._laws)
        groups = len(without)
        spread = np.sum((np.array(without) - np.mean(without, axis=0)) ** 2, axis=0)
        return Estimated(value, np.asarray(np.sqrt((groups - 1) / groups * spread)))

    def _outside(self, x: FloatArray) -> bool:
        low, high = self.interval
        return bool(np.any((x < low) | (x > high)))


@dataclass(frozen=True)
class _Scale:
    """The map between u and the parameter x, tabulated with its derivative."""

    u: FloatArray
    x: FloatArray
    slope: FloatArray

    def to_x(self, u: FloatArray) -> FloatArray:
        inside = (u >= self.u[0] - 1e-9) & (u <= self.u[-1] + 1e-9)
        x = CubicHermiteSpline(self.u, self.x, self.slope)(np.clip(u, self.u[0], self.u[-1]))
        return np.asarray(np.where(inside, x, np.nan))

    def to_u(self, x: FloatArray) -> FloatArray:
        u = np.interp(x, self.x, self.u)
        for _ in range(2):
            u = u + np.where((x > self.x[0]) & (x < self.x[-1]), (x - self.to_x(u)) / self.log_slope(u, exp=True), 0.0)
        return np.asarray(u)

    def log_slope(self, u: FloatArray, *, exp: bool = False) -> FloatArray:
        value = np.interp(u, self.u, np.log(self.slope))
        return np.asarray(np.exp(value) if exp else value)


@dataclass(frozen=True)
class _Law:
    """One normalised density on the grid inside the interval, with exponential tails of the given masses and rates."""

    scale: _Scale
    grid: FloatArray
    log_p: FloatArray
    cumulative: FloatArray
    tails: tuple[float, float]
    rates: tuple[float, float]

    def log_pdf(self, x: FloatArray) -> FloatArray:
        u = self.scale.to_u(x)
        low, high = self.grid[0], self.grid[-1]
        log_p = CubicSpline(self.grid, self.log_p)(np.clip(u, low, high))
        log_p = log_p - self.rates[0] * np.maximum(low - u, 0.0) - self.rates[1] * np.maximum(u - high, 0.0)
        beyond = ((u < low) & (self.tails[0] == 0)) | ((u > high) & (self.tails[1] == 0))
        outside = beyond | (x < self.scale.x[0]) | (x > self.scale.x[-1])
        return np.asarray(np.where(outside, -np.inf, log_p - self.scale.log_slope(u)))

    def cdf(self, x: FloatArray) -> FloatArray:
        u = self.scale.to_u(x)
        curve = CubicHermiteSpline(self.grid, self.cumulative, np.exp(self.log_p))
        inside = self.tails[0] + curve(np.clip(u, self.grid[0], self.grid[-1]))
        below = self.tails[0] * np.exp(-self.rates[0] * np.maximum(self.grid[0] - u, 0.0))
        above = 1.0 - self.tails[1] * np.exp(-self.rates[1] * np.maximum(u - self.grid[-1], 0.0))
        return np.asarray(np.where(u < self.grid[0], below, np.where(u > self.grid[-1], above, inside)))

    def quantile(self, p: FloatArray) -> FloatArray:
        below = self.tails[0] + self.cumulative
        above = self.tails[1] + (self.cumulative[-1] - self.cumulative)
        with np.errstate(divide="ignore", invalid="ignore"):
            # From the nearer side and in logs, so that small probabilities keep their digits.
            left = np.interp(np.log(p), np.log(below), self.grid)
            right = -np.interp(np.log1p(-p), np.log(above[::-1]), -self.grid[::-1])
            beyond_low = self.grid[0] + (np.log(p) - np.log(self.tails[0])) / self.rates[0]
            beyond_high = self.grid[-1] - (np.log1p(-p) - np.log(self.tails[1])) / self.rates[1]
        u = np.where(p < 0.5, left, right)
        u = np.where(p < self.tails[0], beyond_low, np.where(1.0 - p < self.tails[1], beyond_high, u))
        return self.scale.to_x(u)

    def mean(self, values: FloatArray) -> FloatArray:
        density = np.exp(self.log_p)
        return np.asarray(np.trapezoid(values * density, self.grid) / np.trapezoid(density, self.grid))


def _law(marginal: Marginal, log_p: FloatArray) -> _Law:
    grid = marginal.grid[marginal._inside]
    spline = CubicSpline(marginal.u, log_p - np.max(log_p))
    fine = np.asarray(spline(grid))
    density = np.exp(fine)
    # The trapezoid corrected by the derivative at the ends of each cell, far below any sampling error.
    step = np.diff(grid)
    cells = step * (density[1:] + density[:-1]) / 2.0 - step**2 * np.diff(density * spline(grid, 1)) / 12.0
    cumulative = np.concatenate([[0.0], np.cumsum(np.maximum(cells, 0.0))])
    # The line through the last sixteenth: the very last cell alone is too noisy to be continued.
    end = max(2, len(grid) // 16)
    low = float((fine[end] - fine[0]) / (grid[end] - grid[0]))
    high = float((fine[-1 - end] - fine[-1]) / (grid[-1] - grid[-1 - end]))
    ends = (0.0, 0.0) if marginal.restricted else (float(density[0]), float(density[-1]))
    below, above = (mass / rate if rate > 0 else 0.0 for mass, rate in zip(ends, (low, high), strict=True))
    total = float(cumulative[-1]) + below + above
    tails, rates = (below / total, above / total), (max(low, 1e-12), max(high, 1e-12))
    return _Law(marginal._scale, grid, fine - np.log(total), cumulative / total, tails, rates)
