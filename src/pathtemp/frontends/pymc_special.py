"""Functions of PyMC's densities that PyTensor translates to JAX only through another package, or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0, i0e, i1, i1e, log_ndtr

from pathtemp._types import Array


def erfcx(x: Array) -> Array:
    """Scaled complementary error function exp(x^2) erfc(x), to 13 digits.

    >>> round(float(erfcx(jnp.asarray(30.0))), 12)
    0.018795888861
    """
    # Where exp(x^2) erfc(x) starts to cancel, the asymptotic series is already exact.
    edge = 12.0
    near, far = jnp.minimum(x, edge), jnp.maximum(x, edge)
    s = 0.5 / far**2
    series = jnp.ones_like(s)
    for k in (15, 13, 11, 9, 7, 5, 3, 1):
        series = 1.0 - k * s * series
    exact = 2.0 * jnp.exp(near**2 + log_ndtr(-np.sqrt(2.0) * near))
    return jnp.where(x < edge, exact, series / (far * np.sqrt(np.pi)))


def bessel_i(order: Array, x: Array) -> Array:
    """Modified Bessel function of the first kind; the order is -1, 0 or 1."""
    return jnp.where(order == 0, i0(x), i1(x))


def bessel_ie(order: Array, x: Array) -> Array:
    """``bessel_i`` times exp(-|x|)."""
    return jnp.where(order == 0, i0e(x), i1e(x))


def spline(of: Any) -> Callable[[Array], Array]:
    """A spline of SciPy: a polynomial between each two knots, zero beyond the last where SciPy has it so.

    >>> from scipy.interpolate import InterpolatedUnivariateSpline
    >>> line = spline(InterpolatedUnivariateSpline([0.0, 1.0, 3.0], [0.0, 2.0, 0.0], k=1, ext="zeros"))
    >>> line(jnp.array([-0.5, 0.5, 2.0, 3.5])).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    knots = np.asarray(of.get_knots())
    middle = (knots[1:] + knots[:-1]) / 2
    derivatives = np.array([of.derivatives(x) for x in middle])
    terms = [jnp.asarray(column / math.factorial(k)) for k, column in enumerate(derivatives.T)]
    zeros = of.ext == 1

    def value(x: Array) -> Array:
        at = jnp.clip(jnp.searchsorted(jnp.asarray(knots), x, side="right") - 1, 0, len(middle) - 1)
        step, total = x - jnp.asarray(middle)[at], jnp.zeros_like(x)
        for term in reversed(terms):
            total = total * step + term[at]
        return jnp.where((x < knots[0]) | (x > knots[-1]), 0.0, total) if zeros else total

    return value


SPECIAL: Mapping[str, Callable[..., Array]] = {"Erfcx": erfcx, "Iv": bessel_i, "Ive": bessel_ie}
"""By the name of PyTensor's scalar operation."""

LOW_ORDERS = frozenset({"Iv", "Ive"})
"""Those that are right only for the orders -1, 0 and 1."""
