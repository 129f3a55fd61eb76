"""A base given in Python for the parameters of a Stan program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler
from pathtemp.bases import Base, as_base
from pathtemp.errors import InputError
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.names import Variable, variables
from pathtemp.layout import Layout

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
    order = _matching_order(psi.layout, free, instance)
    back = np.argsort(order)

    def log_prob(x: Array) -> Array:
        return psi.log_prob(x[order])

    sample = psi.sample
    if sample is None:
        return log_prob, None

    def draw(key: Key) -> Array:
        return sample(key)[back]

    return log_prob, draw


def _matching_order(layout: Layout, free: Mapping[str, Variable], instance: Instance) -> np.ndarray:
    """The permutation that takes Stan's flat vector to the base's, checked at random points."""
    points = np.random.default_rng(0).uniform(-1.5, 1.5, (PROBES, instance.dim))
    rows, failures = instance.constrain(points)
    if failures:
        raise InputError(f"base: Stan cannot constrain a point ({failures[0]})")
    constrained = {v.name: v.take(rows) for v in variables(instance.names())}
    order: list[int] = []
    for name, shape in layout.shapes.items():
        block = np.array(sorted(free[name].columns))
        size = int(np.prod(shape))
        candidates = [block[k] for k in _storage_orders(shape)] if size == len(block) else []
        fits = (k for k in candidates if _agrees(layout, name, points[:, k].reshape(-1, *shape), constrained[name]))
        found = next(fits, None)
        if found is None:
            raise InputError(
                f"base: the distribution of {name!r} has not the shape {constrained[name].shape[1:]} or not "
                "the support that the program declares for it"
            )
        order += found.tolist()
    return np.array(order)


def _storage_orders(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Ways in which an array may lie in Stan's flat vector: rows of arrays first, matrices by columns."""
    index = np.arange(int(np.prod(shape)))
    if len(shape) < 2:
        return [index]
    by_columns = index.reshape(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2).ravel()
    return [index, by_columns]


def _agrees(layout: Layout, name: str, free: FloatArray, constrained: FloatArray) -> bool:
    """Whether the base's transform gives Stan's constrained values."""
    transform: Any = layout.transforms.get(name, lambda x: x)
    values = np.asarray(jax.jit(jax.vmap(transform))(free))
    return values.shape == constrained.shape and np.allclose(values, constrained, rtol=1e-9, atol=1e-12)
