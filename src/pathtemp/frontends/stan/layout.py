"""The layout of a Stan program: names, shapes, and the transforms that act element by element."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.names import variables
from pathtemp.model.layout import Layout
from pathtemp.model.transforms import Interval, Positive, Transform
from pathtemp.seeds import Stream, rng

_POINTS = 6
"""Random points at which a transform is recognised."""


@dataclass(frozen=True)
class OneSided:
    """``y = bound + sign exp(x)``: above a bound for sign 1, below it for sign -1.

    >>> float(OneSided(2.0, -1.0)(jnp.asarray(0.0)))
    1.0
    """

    bound: float
    sign: float

    def __call__(self, x: Array) -> Array:
        """Constrained value of ``x``."""
        return self.bound + self.sign * jnp.exp(x)

    def inv(self, y: Array) -> Array:
        """Unconstrained value of ``y``."""
        return jnp.log(self.sign * (y - self.bound))

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Log derivative, which is ``x`` itself."""
        return x


@dataclass(frozen=True)
class Affine:
    """``y = offset + multiplier x``.

    >>> float(Affine(1.0, 2.0)(jnp.asarray(3.0)))
    7.0
    """

    offset: float
    multiplier: float

    def __call__(self, x: Array) -> Array:
        """Constrained value of ``x``."""
        return self.offset + self.multiplier * x

    def inv(self, y: Array) -> Array:
        """Unconstrained value of ``y``."""
        return (y - self.offset) / self.multiplier

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Log multiplier, for each element."""
        return jnp.full_like(x, jnp.log(abs(self.multiplier)))


def stan_layout(instance: Instance) -> Layout:
    """Names of the parameters in the order of the flat vector.

    A parameter whose constraint acts on each element by itself, with fixed bounds, has its shape and its transform
    here; one with another constraint (a simplex, a covariance, bounds that depend on other parameters, the columns
    of a matrix) is one flat array, which only Stan itself can constrain.
    """
    points = rng(Stream.PROBES).uniform(-2.0, 2.0, (_POINTS, instance.dim))
    rows, failures = instance.constrain(points)
    constrained = {v.name: v for v in variables(instance.names())}
    shapes: dict[str, tuple[int, ...]] = {}
    transforms: dict[str, Transform] = {}
    for variable in variables(instance.unconstrained_names):
        name, columns = variable.name, sorted(variable.columns)
        shapes[name] = (len(columns),) if variable.shape else ()
        same = constrained.get(name)
        if failures or same is None or len(same.columns) != len(columns):
            continue
        x, y = points[:, columns], rows[:, same.columns]
        if np.allclose(x, y, rtol=1e-12):
            shapes[name] = same.shape
        elif transform := _recognise(x, y):
            shapes[name], transforms[name] = same.shape, transform
    return Layout(shapes, transforms, first_index=1)


def _recognise(x: FloatArray, y: FloatArray) -> Transform | None:
    """The transform that takes every element of ``x`` to that of ``y``, if it is one of Stan's."""
    for sign in (1.0, -1.0):
        bound = _constant(y - sign * np.exp(x))
        if bound is not None:
            return Positive() if (bound, sign) == (0.0, 1.0) else OneSided(bound, sign)
    for curve, kind in ((1 / (1 + np.exp(-x)), Interval), (x, Affine)):
        high, low = np.argmax(curve), np.argmin(curve)
        slope = float((y.flat[high] - y.flat[low]) / (curve.flat[high] - curve.flat[low]))
        start = _constant(y - slope * curve)
        if start is not None:
            clean = float(f"{slope:.10g}")
            return Interval(start, start + clean) if kind is Interval else Affine(start, clean)
    return None


def _constant(values: FloatArray) -> float | None:
    """The one value that all have, cleaned of rounding; None where they differ."""
    middle = float(np.median(values))
    if not np.allclose(values, middle, rtol=1e-9, atol=1e-9):
        return None
    clean = float(f"{middle:.10g}")
    return 0.0 if abs(clean) < 1e-9 else clean
