"""Parameters of which a base says nothing, or too little."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.frontends.stan.library import Instance, StanError
from pathtemp.frontends.stan.names import variables
from pathtemp.seeds import Stream, rng

_TRIES = 20
_POINTS = 3
_FAR = 20.0
"""A step on the unconstrained scale within which any proper transform loses more than a nat."""

_RAY = (1e2, 1e8)
"""Distances between which a proper density falls; a normal with a scale of a million does."""

_MOST = 2000
"""Dimensions up to which directions are looked for: it takes as many gradients."""

_SMALL = 1e-9
"""Singular values, relative to the largest, that are rounding."""


def improper_parameters(instance: Instance) -> list[str]:
    """Parameters that do not enter the density though their range is unbounded: it has no finite integral.

    A parameter does not enter where the gradient without Jacobian is exactly zero at several random points;
    it is bounded where the Jacobian alone falls on both sides, as for an interval, a simplex or a correlation
    matrix.
    """
    points = _finite_points(instance)
    if not points:
        return []  # nothing is known: every point tried was rejected
    gradients = np.array([instance.gradient(x, jacobian=False)[1] for x in points])
    silent = ~np.any(gradients != 0.0, axis=0)
    return [
        v.name
        for v in variables(instance.unconstrained_names)
        if any(silent[k] and _does_not_fall(instance, points[0], k) for k in v.columns)
    ]


def does_not_fall_off(instance: Instance) -> list[str]:
    """Parameters along which the density falls no faster than 1 / r: it has no finite integral."""
    points = _finite_points(instance)
    if not points:
        return []
    axes = np.eye(instance.dim)
    return [
        v.name
        for v in variables(instance.unconstrained_names)
        if any(_stays(instance, points[0], axes[k]) for k in v.columns)
    ]


def moves_freely(instance: Instance) -> list[str]:
    """Parameters that can move together without end and without a change of the density: it has no finite integral.

    So do the states of a random walk whose first state has no prior, and all but the sum of an intrinsic
    autoregression. In such a direction every gradient is zero, so gradients at more points than there are dimensions
    do not span it.
    """
    count = instance.dim + 4
    points = _finite_points(instance, count, 2 * count) if instance.dim <= _MOST else []
    if len(points) < count:
        return []  # nothing is known
    gradients = np.array([instance.gradient(x, jacobian=False)[1] for x in points])
    scale = np.sqrt(np.mean(gradients**2, axis=0))
    active = np.flatnonzero(scale > 0)
    if not len(active) or not np.isfinite(scale).all():
        return []
    scaled = gradients[:, active] / scale[active]
    _, size, directions = np.linalg.svd(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
    moved = np.zeros(instance.dim, dtype=bool)
    for k in np.flatnonzero(size < _SMALL * size[0]):
        step = np.zeros(instance.dim)
        step[active] = directions[k] / scale[active]
        step /= np.abs(step).max()
        if _stays(instance, points[0], step):
            moved |= np.abs(step) > 1e-6
    return [v.name for v in variables(instance.unconstrained_names) if any(moved[list(v.columns)])]


def _stays(instance: Instance, x: FloatArray, step: FloatArray) -> bool:
    """Whether the density falls no faster than 1 / r along a direction or against it."""
    for sign in (-1.0, 1.0):
        near, far = (_value(instance, x + sign * r * step) for r in _RAY)
        if np.isfinite(far) and near - far < 0.5 * np.log(_RAY[1] / _RAY[0]):
            return True
    return False


def _finite_points(instance: Instance, count: int = _POINTS, tries: int = _TRIES) -> list[FloatArray]:
    probes, found = rng(Stream.PROBES), []
    for _ in range(tries):
        x = probes.uniform(-1.0, 1.0, instance.dim)
        if np.isfinite(_value(instance, x)):
            found.append(x)
        if len(found) == count:
            break
    return found


def _does_not_fall(instance: Instance, x: FloatArray, coordinate: int) -> bool:
    step = np.zeros_like(x)
    step[coordinate] = _FAR
    return max(_value(instance, x - step), _value(instance, x + step)) > _value(instance, x) - 1.0


def _value(instance: Instance, x: FloatArray) -> float:
    try:
        value = instance.log_density(x)
    except StanError:
        return -np.inf
    return -np.inf if np.isnan(value) else value
