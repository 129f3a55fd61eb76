"""Parameters of which a base says nothing."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.frontends.stan.library import Instance, StanError
from pathtemp.frontends.stan.names import variables

_TRIES = 20
_POINTS = 3
_FAR = 20.0
"""A step on the unconstrained scale within which any proper transform loses more than a nat."""

_RAY = (1e2, 1e4)
"""Distances between which a proper density falls, as those that are sampled are checked by too."""


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

    def stays(k: int) -> bool:
        step = np.zeros(instance.dim)
        step[k] = 1.0
        for sign in (-1.0, 1.0):
            near, far = (_value(instance, points[0] + sign * r * step) for r in _RAY)
            if np.isfinite(far) and near - far < 0.5 * np.log(_RAY[1] / _RAY[0]):
                return True
        return False

    return [v.name for v in variables(instance.unconstrained_names) if any(map(stays, v.columns))]


def _finite_points(instance: Instance) -> list[FloatArray]:
    rng, found = np.random.default_rng(0), []
    for _ in range(_TRIES):
        x = rng.uniform(-1.0, 1.0, instance.dim)
        if np.isfinite(_value(instance, x)):
            found.append(x)
        if len(found) == _POINTS:
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
