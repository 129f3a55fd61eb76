"""Maps from the real line to constrained variables, with their Jacobians.

A transform is anything with ``__call__(x)`` (unconstrained to constrained), ``_inverse(y)`` or ``inv(y)``, and
``log_abs_det_jacobian(x, y)`` (elementwise, or already summed over an event): the interface of NumPyro's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from pathtemp._types import Array
from pathtemp.api.arguments import finite_array, shown
from pathtemp.errors import InputError


@runtime_checkable
class Transform(Protocol):
    """A differentiable bijection from R^n to the support of a variable."""

    def __call__(self, x: Array) -> Array:
        """Constrained value of the unconstrained ``x``."""
        ...

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Log absolute determinant of dy/dx, elementwise or summed."""
        ...


@dataclass(frozen=True)
class Positive:
    """``y = exp(x)``, for scales.

    >>> float(Positive()(jnp.asarray(0.0)))
    1.0
    """

    def __call__(self, x: Array) -> Array:
        """Exponential of ``x``."""
        return jnp.exp(x)

    def inv(self, y: Array) -> Array:
        """Logarithm of ``y``."""
        return jnp.log(y)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Log derivative, which is ``x`` itself."""
        return x


@dataclass(frozen=True)
class Interval:
    """``y`` between ``low`` and ``high`` through a logistic map.

    >>> float(Interval(2.0, 4.0)(jnp.asarray(0.0)))
    3.0
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if finite_array(name, getattr(self, name)).ndim:
                raise InputError(f"{name}: expected one number, and it is {shown(getattr(self, name))}")
        if not self.low < self.high:
            raise InputError(f"low: it must be below high, and they are {self.low!r} and {self.high!r}")

    def __call__(self, x: Array) -> Array:
        """Scaled logistic of ``x``."""
        return self.low + (self.high - self.low) * jax.nn.sigmoid(x)

    def inv(self, y: Array) -> Array:
        """Logit of the position of ``y`` in the interval."""
        u = (y - self.low) / (self.high - self.low)
        return jnp.log(u) - jnp.log1p(-u)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Log derivative of the scaled logistic."""
        return jnp.log(self.high - self.low) + jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x)


def invert(transform: Any, y: Array) -> Array:
    """Unconstrained value of ``y``: ``transform.inv(y)``, or NumPyro's ``transform._inverse``."""
    inverse = getattr(transform, "_inverse", None) or transform.inv
    return jnp.asarray(inverse(y))


def from_support(support: Any) -> Transform | None:
    """Transform onto a NumPyro constraint; None where the support is the whole real space."""
    from numpyro.distributions import biject_to
    from numpyro.distributions.transforms import IdentityTransform

    transform = biject_to(support)
    identity = isinstance(transform, IdentityTransform) or isinstance(
        getattr(transform, "base_transform", None), IdentityTransform
    )
    return None if identity else transform
