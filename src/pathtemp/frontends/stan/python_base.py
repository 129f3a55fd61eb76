"""A base given in Python for the parameters of a Stan program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler
from pathtemp.errors import InputError
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.names import Variable, variables
from pathtemp.frontends.stan.simplex import LogRatioSimplex
from pathtemp.model.bases import Base, as_base
from pathtemp.model.layout import Layout
from pathtemp.model.transforms import Transform, invert
from pathtemp.seeds import Stream, rng

PROBES = 4
"""Random points at which the transforms of the base are held against Stan's."""


def python_base(base: Any, instance: Instance) -> tuple[LogDensity, Sampler | None]:
    """Log density and exact draws, on Stan's unconstrained scale, of a base given in Python.

    One distribution over a flat vector is on the unconstrained scale. A dict of distributions by parameter,
    or a base with names, is on the constrained scale, where each must have the support that the program
    declares.
    """
    if not isinstance(base, Mapping | Base) and _wants_name(base, instance):
        base = {variables(instance.unconstrained_names)[0].name: base}
    psi = as_base(base)
    if not psi.layout.single:
        return _by_name(psi, instance)
    if psi.layout.transforms:
        raise InputError(
            "base: one distribution for all parameters must live on the whole unconstrained space; "
            "for the constrained scale give a dict of distributions by parameter name"
        )
    if psi.layout.dim != instance.dim:
        raise InputError(
            f"base: it has {psi.layout.dim} dimensions, and the program has {instance.dim} (unconstrained)"
        )
    return psi.log_prob, psi.sample


def _wants_name(base: Any, instance: Instance) -> bool:
    """Whether a single distribution is that of the only parameter, on its constrained scale."""
    return len(variables(instance.unconstrained_names)) == 1 and bool(as_base(base).layout.transforms)


def _by_name(psi: Base, instance: Instance) -> tuple[LogDensity, Sampler | None]:
    free = {v.name: v for v in variables(instance.unconstrained_names)}
    missing, unknown = sorted(set(free) - set(psi.layout.shapes)), sorted(set(psi.layout.shapes) - set(free))
    if missing or unknown:
        what = f"has no distribution for {missing}" if missing else f"names {unknown}, which the program does not have"
        raise InputError(f"base: it {what}; the parameters are {list(free)}")
    order, other = _match(psi.layout, free, instance)
    back = np.argsort(order)

    def log_prob(x: Array) -> Array:
        parts, log_ratio = psi.layout.unravel(x[order]), jnp.zeros(())
        for name, stan in other.items():
            mine, u = psi.layout.transforms[name], parts[name]
            y = stan(u)
            parts[name] = invert(mine, y)
            log_ratio += jnp.sum(stan.log_abs_det_jacobian(u, y))
            log_ratio -= jnp.sum(mine.log_abs_det_jacobian(parts[name], y))
        value = psi.log_prob(psi.layout.ravel(parts)) + log_ratio
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    sample = psi.sample
    if sample is None:
        return log_prob, None

    def draw(key: Key) -> Array:
        parts = psi.layout.unravel(sample(key))
        for name, stan in other.items():
            parts[name] = invert(stan, psi.layout.transforms[name](parts[name]))
        return psi.layout.ravel(parts)[back]

    return log_prob, draw


def _match(layout: Layout, free: Mapping[str, Variable], instance: Instance) -> tuple[np.ndarray, dict[str, Transform]]:
    """Where each coordinate of the base lies in Stan's flat vector, and Stan's transforms that are not the base's.

    Both are found by trying: a choice is right where the constrained values agree at random points.
    """
    points = rng(Stream.PROBES).uniform(-1.5, 1.5, (PROBES, instance.dim))
    rows, failures = instance.constrain(points)
    if failures:
        raise InputError(f"base: Stan cannot constrain a point ({failures[0]})")
    constrained = {v.name: v.take(rows) for v in variables(instance.names())}
    order: list[int] = []
    other: dict[str, Transform] = {}
    for name, shape in layout.shapes.items():
        block = np.array(sorted(free[name].columns))
        stored = [block[k] for k in _storage_orders(shape)] if int(np.prod(shape)) == len(block) else []
        own = layout.transforms.get(name)
        simplex = constrained[name].shape[1:] == (*shape[:-1], *(n + 1 for n in shape[-1:])) and bool(shape)
        choices = [(k, t) for t in (own, *([LogRatioSimplex()] if simplex else [])) for k in stored]
        right = (c for c in choices if _agrees(c[1], points[:, c[0]].reshape(-1, *shape), constrained[name]))
        found = next(right, None)
        if found is None:
            raise InputError(
                f"base: the distribution of {name!r} has not the shape {constrained[name].shape[1:]} or not "
                "the support that the program declares for it"
            )
        order += found[0].tolist()
        if found[1] is not None and found[1] is not own:
            other[name] = found[1]
    return np.array(order), other


def _storage_orders(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Ways in which an array may lie in Stan's flat vector: rows of arrays first, matrices by columns."""
    index = np.arange(int(np.prod(shape)))
    if len(shape) < 2:
        return [index]
    by_columns = index.reshape(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2).ravel()
    return [index, by_columns]


def _agrees(transform: Transform | None, free: FloatArray, constrained: FloatArray) -> bool:
    """Whether the transform gives Stan's constrained values."""
    values = free if transform is None else np.asarray(jax.jit(jax.vmap(transform))(free))
    return values.shape == constrained.shape and np.allclose(values, constrained, rtol=1e-9, atol=1e-12)
