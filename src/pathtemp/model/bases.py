"""Bases: the density at lam = 0, with exact draws where it can be sampled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, Key, LogDensity, Sampler
from pathtemp.api.arguments import a_kind_of, finite_array, kind_name, shown, whole_number
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.transforms import Transform, from_support
from pathtemp.seeds import probe_key


@dataclass(frozen=True, repr=False)
class Base:
    """A base density on R^dim.

    Parameters
    ----------
    log_prob
        Log density of a flat unconstrained point, Jacobians included.
    layout
        Names and shapes of the variables.
    sample
        One exact flat draw; None where the base is only a density: lam = 0 is then sampled by HMC like any other lam.
    """

    log_prob: LogDensity
    layout: Layout
    sample: Sampler | None = None

    def __repr__(self) -> str:
        drawn = "drawn exactly" if self.sample is not None else "a density without exact draws"
        return f"<Base: {self.layout.dim} parameters, {drawn}>"


@dataclass(frozen=True)
class ProperPart:
    """What is proper of a prior that as a whole is not: a normalised law of some coordinates, whatever the rest is.

    Parameters
    ----------
    log_prob
        Log density of a whole flat point, on which the rest has no influence.
    sample
        One exact draw, a whole flat point whose rest means nothing.
    rest
        Numbers of the coordinates of which a law is to be found.
    names
        Variables that these are of.
    """

    log_prob: LogDensity
    sample: Sampler
    rest: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Automatic:
    """Stands for a base that is yet to be found from the target's own modes, once the seed of the run is known.

    Until then it is flat, which is no base: it has no draws and cannot be normalised. Where there is a proper part of
    a prior that is kept, only the rest is found.
    """

    proper: ProperPart | None = None

    def __call__(self, theta: Array) -> Array:
        """Zero, for any point (dim,)."""
        return jnp.zeros((), theta.dtype)


@dataclass(frozen=True, repr=False)
class Normal:
    """Independent normals, with ``log_prob`` and ``sample`` as any distribution has them.

    >>> normal(0.0, 5.0, shape=(2,))
    normal(0.0, 5.0, shape=(2,))
    """

    loc: Array
    scale: Array
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        loc, scale = (f"{float(x)}" if x.ndim == 0 else f"<array of shape {x.shape}>" for x in (self.loc, self.scale))
        return f"normal({loc}, {scale}, shape={self.shape})"

    def log_prob(self, x: Array) -> Array:
        """Log density summed over all elements."""
        z = (x - self.loc) / self.scale
        return jnp.sum(jnp.broadcast_to(-0.5 * z**2 - jnp.log(self.scale) - 0.5 * jnp.log(2 * jnp.pi), self.shape))

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        """Exact draws of shape ``sample_shape + shape``."""
        return self.loc + self.scale * jax.random.normal(key, (*sample_shape, *self.shape))


def is_automatic(base: Any) -> bool:
    """Whether the user asks for a base that is to be found.

    >>> is_automatic("auto"), is_automatic(normal())
    (True, False)
    """
    return isinstance(base, str) and base == "auto"


def normal(loc: Any = 0.0, scale: Any = 1.0, *, shape: tuple[int, ...] | int | None = None) -> Normal:
    """Independent normals as a base; ``shape`` defaults to that of ``loc`` and ``scale`` together.

    >>> normal(0.0, 5.0, shape=(1,)).sample(jax.random.key(0)).shape
    (1,)
    """
    loc, scale = (jax.device_put(finite_array(name, x)) for name, x in (("loc", loc), ("scale", scale)))
    if not np.all(np.asarray(scale) > 0):
        raise InputError(f"scale: it must be positive, and is {shown(np.asarray(scale).tolist())}")
    wanted = None if shape is None else _shape("shape", shape)
    try:
        natural = jnp.broadcast_shapes(loc.shape, scale.shape)
    except ValueError:
        raise InputError(
            f"normal: loc has shape {loc.shape} and scale {scale.shape}, which do not go together"
        ) from None
    if wanted is not None:
        try:
            fits = jnp.broadcast_shapes(natural, wanted) == tuple(wanted)
        except ValueError:
            fits = False
        if not fits:
            raise InputError(f"normal: loc and scale have shape {natural}, which does not broadcast to shape={wanted}")
    return Normal(loc, scale, natural if wanted is None else tuple(wanted))


def function_base(
    log_prob: Callable[[Any], Array],
    *,
    sample: Callable[[Key], Any] | None = None,
    dim: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    transforms: Mapping[str, Transform] | None = None,
) -> Base:
    """A base from a log density and, where there is one, a sampler of exact draws.

    Parameters
    ----------
    log_prob
        Log density of a flat vector (``dim``) or of a dict of arrays (``shapes``), on the constrained scale where
        there are transforms (their Jacobians are added here).
    sample
        ``key -> point`` in the same form; the log density must then be normalised, or log z is off by its constant.
    dim, shapes
        One of them: the length of the flat vector, or the shapes by name.
    transforms
        Constraining transforms by name, see :mod:`pathtemp.model.transforms`.

    Examples
    --------
    >>> base = function_base(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> base.sample is None
    True
    """
    for name, function in (("log_prob", log_prob), ("sample", sample)):
        if not (callable(function) or (name == "sample" and function is None)):
            raise InputError(f"{name}: expected a function, and it is {shown(function)}")
    if (dim is None) == (shapes is None):
        raise InputError("function_base: give either dim= (a flat vector) or shapes= (a dict of arrays)")
    flat = dim is not None
    if shapes is not None:
        a_kind_of("shapes", shapes, Mapping, "a dict of shapes by name")
    named = {str(name): _shape(f"shapes of {name!r}", shape) for name, shape in (shapes or {}).items()}
    layout = Layout({"theta": (whole_number("dim", dim, least=1),)} if flat else named, transforms or {}, flat)
    draw = None if sample is None else _flat_sampler(sample, layout)
    return Base(flat_log_prob(log_prob, layout), layout, draw)


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple, where it is one."""
    try:
        sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        return tuple(whole_number(name, size, least=0) for size in sizes)
    except InputError:
        raise InputError(f"{name}: expected sizes, such as (3,), and it is {shown(shape)}") from None


def flat_log_prob(log_prob: Callable[[Any], Array], layout: Layout) -> LogDensity:
    """``log_prob`` of constrained variables as a log density of the flat unconstrained vector, Jacobian added."""

    def flat(x: Array) -> Array:
        variables, log_jacobian = layout.constrain(x)
        value = log_prob(next(iter(variables.values())) if layout.single else variables)
        if isinstance(value, list | tuple | dict | str) or value is None:
            return value  # which a check tells by what it is, before a sum fails of it
        # The Jacobian must not hide that the density was computed in another type.
        return (value + log_jacobian).astype(getattr(value, "dtype", float))

    return flat


def _flat_sampler(sample: Callable[[Key], Any], layout: Layout) -> Sampler:
    def draw(key: Key) -> Array:
        point = sample(key)
        return layout.unconstrain({next(iter(layout.shapes)): point} if layout.single else point)

    return draw


def as_base(base: Any) -> Base:
    """Read what the user gave as base: a Base, a distribution, or a dict of distributions by name.

    A distribution is anything with ``log_prob(x)`` and ``sample(key)`` or ``sample(seed=key)``; where it has a NumPyro
    ``support`` the variable is moved to the unconstrained scale by itself.
    """
    if isinstance(base, Base):
        return base
    single = not isinstance(base, Mapping)
    distributions: dict[str, Any] = {"theta": base} if single else dict(base)
    if not distributions:
        raise InputError("base: the dict of distributions is empty")
    shapes, transforms = {}, {}
    for name, dist in distributions.items():
        if not isinstance(name, str):
            raise InputError(f"base: the names of a dict of distributions are texts, and one is {shown(name)}")
        if isinstance(dist, type):
            raise InputError(
                f"base: {'it' if single else repr(name)} is the class {dist.__name__}; give a distribution of it, with "
                "its numbers, as in Normal(0.0, 5.0)"
            )
        if not (callable(getattr(dist, "log_prob", None)) and callable(getattr(dist, "sample", None))):
            raise InputError(
                f"base: {'it' if single else repr(name)} is {kind_name(dist)}, which has no log_prob and sample; "
                "give a distribution, a dict of distributions, or pt.function_base(...)"
            )
        draw = jax.eval_shape(lambda key, dist=dist: _draw(dist, key), probe_key())
        if not jnp.issubdtype(draw.dtype, jnp.floating):
            raise InputError(f"base: {name!r} is discrete ({draw.dtype}); only continuous variables can be tempered")
        support = getattr(dist, "support", None)
        transform = None if support is None else from_support(support)
        shapes[name] = draw.shape
        if transform is not None:
            transforms[name] = transform
            shapes[name] = (
                tuple(transform.inverse_shape(draw.shape)) if hasattr(transform, "inverse_shape") else draw.shape
            )
    layout = Layout(shapes, transforms, single)

    def log_prob(variables: Any) -> Array:
        parts = {"theta": variables} if single else variables
        return sum((jnp.sum(dist.log_prob(parts[name])) for name, dist in distributions.items()), jnp.zeros(()))

    def sample(key: Key) -> Any:
        keys = jax.random.split(key, len(distributions))
        draws = {name: _draw(dist, k) for (name, dist), k in zip(distributions.items(), keys, strict=True)}
        return draws["theta"] if single else draws

    return Base(flat_log_prob(log_prob, layout), layout, _flat_sampler(sample, layout))


def _draw(dist: Any, key: Key) -> Array:
    """One draw, whichever way the library spells it."""
    if "seed" in inspect.signature(dist.sample).parameters:
        return jnp.asarray(dist.sample(seed=key))
    return jnp.asarray(dist.sample(key))
