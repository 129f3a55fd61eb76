"""The path along a margin: lam is one parameter of a model, theta are all the others (section 2.3).

q(theta, lam) is the target itself, so that z(lam) is the marginal density of the margin, up to a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, LogDensity
from pathtemp.api.arguments import shown, text
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import invert

STEP = 0.37
"""How far each coordinate is moved to see which parameters depend on it."""


@dataclass(frozen=True)
class Margin:
    """A margin that is a function of several parameters, with the inverse that solves it for one of them.

    Parameters
    ----------
    function
        The margin as a function of the parameters by name (constrained), traceable by JAX: ``params -> ()``.
    inverse
        The value of the parameter ``replaces`` at which the margin has a given value, the other parameters being as
        they are: ``(value, params) -> ()``.
    replaces
        Name of that parameter, which is a scalar.
    name
        What to call the margin.

    >>> ratio = Margin(lambda p: p["a"] / p["b"], lambda v, p: v * p["b"], replaces="a", name="a over b")
    >>> float(ratio.inverse(2.0, {"b": 3.0}))
    6.0
    """

    function: Callable[[dict[str, Array]], Array]
    inverse: Callable[[Any, dict[str, Array]], Array]
    replaces: str
    name: str = "margin"

    def __post_init__(self) -> None:
        for name in ("function", "inverse"):
            if not callable(getattr(self, name)):
                raise InputError(f"{name}: expected a function, and it is {shown(getattr(self, name))}")
        text("replaces", self.replaces)
        text("name", self.name)


class Coordinates(Protocol):
    """How the flat vector of a model falls into the margin lam and all the rest theta."""

    def split(self, flat: Array) -> tuple[Array, Array]:
        """(theta (dim - 1,), lam ()) of ``flat`` (dim,)."""
        ...

    def join(self, theta: Array, lam: Array) -> Array:
        """The flat vector of (theta, lam)."""
        ...

    def log_jacobian(self, theta: Array, lam: Array) -> Array:
        """Log of the derivative of the coordinate that lam stands for by lam."""
        ...


@dataclass(frozen=True)
class OneCoordinate:
    """The margin is the flat coordinate ``index`` itself.

    >>> theta, lam = OneCoordinate(1).split(jnp.arange(3.0))
    >>> theta.tolist(), float(lam), OneCoordinate(1).join(theta, lam).tolist()
    ([0.0, 2.0], 1.0, [0.0, 1.0, 2.0])
    """

    index: int

    def split(self, flat: Array) -> tuple[Array, Array]:
        """(theta, lam) of ``flat``."""
        return jnp.concatenate([flat[: self.index], flat[self.index + 1 :]]), flat[self.index]

    def join(self, theta: Array, lam: Array) -> Array:
        """The flat vector of (theta, lam)."""
        return jnp.concatenate([theta[: self.index], jnp.reshape(lam, (1,)), theta[self.index :]])

    def log_jacobian(self, theta: Array, lam: Array) -> Array:
        """Zero: lam is the coordinate."""
        return jnp.zeros(())


@dataclass(frozen=True, eq=False)
class SolvedCoordinate:
    """The margin is a function of several parameters, solved for the flat coordinate ``index`` of one of them."""

    margin: Margin
    layout: Layout
    index: int

    def split(self, flat: Array) -> tuple[Array, Array]:
        """(theta, lam) of ``flat``."""
        return OneCoordinate(self.index).split(flat)[0], jnp.asarray(self.margin.function(self._named(flat)))

    def join(self, theta: Array, lam: Array) -> Array:
        """The flat vector of (theta, lam)."""
        return OneCoordinate(self.index).join(theta, self._solve(lam, theta))

    def log_jacobian(self, theta: Array, lam: Array) -> Array:
        """Log of the derivative of the coordinate by the margin."""
        return jnp.log(jnp.abs(jax.grad(self._solve)(lam, theta)))

    def _solve(self, lam: Array, theta: Array) -> Array:
        # What the replaced parameter holds meanwhile does not matter: the inverse may not look at it.
        named = self._named(OneCoordinate(self.index).join(theta, jnp.zeros(())))
        value = jnp.asarray(self.margin.inverse(lam, named))
        transform = self.layout.transforms.get(self.margin.replaces)
        return value if transform is None else invert(transform, value)

    def _named(self, flat: Array) -> dict[str, Array]:
        return self.layout.constrain(flat)[0]


@dataclass(frozen=True)
class MarginLogQ:
    """Log density of (theta, lam); equal for the same target and coordinates, so that it is compiled once."""

    log_target: LogDensity
    coordinates: Coordinates

    def __call__(self, theta: Array, lam: Array) -> Array:
        """Log q(theta, lam), Jacobian included."""
        return self.log_target(self.coordinates.join(theta, lam)) + self.coordinates.log_jacobian(theta, lam)


@dataclass(frozen=True)
class MarginPath:
    """A margin of a model as a path.

    Parameters
    ----------
    name
        Of the margin.
    coordinates
        How the flat vector falls into (theta, lam).
    log_q
        Log density of (theta, lam), Jacobian included.
    values
        Constrained values of the margin at an array of lam, monotone, on the host.
    """

    name: str
    coordinates: Coordinates
    log_q: MarginLogQ
    values: Callable[[FloatArray], FloatArray]


def margin_path(model: Model, margin: str | Margin, points: FloatArray) -> MarginPath:
    """The path along ``margin``; ``points`` (n, dim) are places of the flat vector at which it is tried out.

    >>> from pathtemp.testing import eight_schools
    >>> path = margin_path(eight_schools().model, "tau", np.zeros((2, 10)))
    >>> path.coordinates.index, path.values(np.zeros(1)).tolist()
    (1, [1.0])
    """
    if isinstance(margin, Margin):
        return _function_margin(model, margin, points)
    if not isinstance(margin, str):
        raise InputError(f"margin: expected a name such as 'tau' or 'theta[3]', or a pt.Margin, got {margin!r}")
    index = _coordinate(model, margin, points)
    anywhere = points[0]

    def values(lam: FloatArray) -> FloatArray:
        flat = np.tile(anywhere, (len(lam), 1))
        flat[:, index] = lam
        return _element(model, margin, flat)

    steps = np.diff(values(anywhere[index] + np.linspace(-3.0, 3.0, 25)))
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise InputError(
            f"margin: {margin!r} is not a one-to-one function of a parameter, so it cannot be inverted; "
            "choose the parameter itself"
        )
    coordinates = OneCoordinate(index)
    return MarginPath(margin, coordinates, MarginLogQ(model.log_target, coordinates), values)


def _coordinate(model: Model, name: str, points: FloatArray) -> int:
    """Index of the one flat coordinate that the named scalar is a function of."""
    dim = model.dim
    tried = points[: min(3, len(points))]
    moved = [x + step for x in tried for step in (np.zeros(dim), np.zeros(dim), *(STEP * np.eye(dim)))]
    values = _element(model, name, np.array(moved)).reshape(len(tried), dim + 2)
    if np.any(values[:, 0] != values[:, 1]):
        raise InputError(f"margin: {name!r} is random given the parameters; choose a parameter of the model")
    change = np.abs(values[:, 2:] - values[:, :1])
    depends = np.flatnonzero(np.any(change > 1e-12 * (1.0 + np.abs(values[:, :1])), axis=0))
    if len(depends) == 0:
        raise InputError(
            f"margin: {name!r} does not vary with any continuous parameter (it is discrete, or constant); "
            "choose a continuous parameter"
        )
    if len(depends) > 1:
        raise InputError(
            f"margin: {name!r} is a function of {len(depends)} parameters and cannot be inverted by itself; choose one "
            "parameter, or give pt.Margin(function, inverse, replaces=...)"
        )
    return int(depends[0])


def _element(model: Model, name: str, flat: FloatArray) -> FloatArray:
    """Values of one named scalar at points (n, dim): ``tau``, ``theta[3]`` or ``theta[school A]``."""
    match = re.fullmatch(r"(.+?)(?:\[(.+)\])?", name)
    head, inside = (match.group(1), match.group(2)) if match else (name, None)
    draws = model.draws(flat)
    if head not in draws:
        raise InputError(f"margin: the model has no {head!r}; it has {', '.join(map(repr, draws))}")
    values = np.asarray(draws[head])
    if values.dtype.kind not in "fiub":
        raise InputError(f"margin: {head!r} is not a number")
    shape, first = values.shape[1:], str(model.layout.first_index)
    if inside is None:
        if shape != ():
            raise InputError(
                f"margin: {head!r} has shape {shape}; name one element, such as {head}[{', '.join(first * len(shape))}]"
            )
        return np.asarray(values, float)
    parts = [part.strip() for part in inside.split(",")]
    if len(parts) != len(shape):
        raise InputError(f"margin: {head!r} has shape {shape}, and {name!r} gives {len(parts)} indices")
    dims = model.layout.dims.get(head, ())
    coords = model.layout.coords
    index = tuple(
        _index(name, part, size, list(coords.get(dims[axis], ())) if axis < len(dims) else [], int(first))
        for axis, (part, size) in enumerate(zip(parts, shape, strict=True))
    )
    at: Any = (slice(None), *index)
    return np.asarray(values[at], np.float64)


def _index(name: str, part: str, size: int, labels: list[Any], first: int) -> int:
    texts = [str(label) for label in labels]
    if part in texts:
        return texts.index(part)
    if not re.fullmatch(r"-?\d+", part) or not (first <= int(part) < size + first or -size <= int(part) < 0):
        raise InputError(f"margin: {name!r} has no index {part!r}; indices run from {first} to {size + first - 1}")
    return int(part) - first if int(part) >= 0 else int(part)


def _function_margin(model: Model, margin: Margin, points: FloatArray) -> MarginPath:
    layout = model.layout
    if layout.shapes.get(margin.replaces) != ():
        raise InputError(
            f"margin: replaces={margin.replaces!r} is not a scalar parameter of the model; it has "
            + ", ".join(repr(name) for name, shape in layout.shapes.items() if shape == ())
        )
    before = list(layout.shapes)[: list(layout.shapes).index(margin.replaces)]
    index = sum(int(np.prod(layout.shapes[name])) for name in before)
    coordinates = SolvedCoordinate(margin, layout, index)
    for point in points[: min(5, len(points))]:
        theta, lam = coordinates.split(jnp.asarray(point))
        if jnp.shape(lam) != ():
            raise InputError(f"margin: the function of {margin.name!r} must return one number")
        back = np.asarray(coordinates.join(theta, lam))
        if not np.allclose(back, point, rtol=1e-6, atol=1e-8):
            raise InputError(
                f"margin: the inverse of {margin.name!r} does not undo its function (it gives {back[index]:.4g} for "
                f"{point[index]:.4g} on the unconstrained scale of {margin.replaces!r}); give the exact inverse"
            )
    return MarginPath(margin.name, coordinates, MarginLogQ(model.log_target, coordinates), _same)


def _same(lam: FloatArray) -> FloatArray:
    return np.asarray(lam, np.float64)
