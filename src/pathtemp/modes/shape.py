"""What a planted mode is like: as the widest known mode, with tails as those of the known modes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.modes.local import Local

CORE = 4.0
"""Squared standardised distance, a dimension, beyond which a point lies in the tails."""

FEWEST = 100
"""Points in the tails from which these are learned; else they are those of a normal."""

EXPONENTS = (0.05, 3.0)
"""Least and greatest exponent of the fall of the log density, in squared distances; that of a normal is one."""


@dataclass(frozen=True)
class Shape:
    """A law, its volume, and how its log density falls: by ``factor`` times the squared distance to the ``exponent``.

    Parameters
    ----------
    law
        Centre and metric.
    log_volume
        Log of its mass relative to its density at the top.
    factor, exponent
        Of the fall, in nats.
    """

    law: Local
    log_volume: float
    factor: float = 0.5
    exponent: float = 1.0

    def log_density(self, powered: FloatArray, width: float) -> FloatArray:
        """Log density of the law made narrower, where ``powered`` is the squared distance to the exponent."""
        fall = np.asarray(powered * powered.dtype.type(self.factor * width ** (-2.0 * self.exponent)))
        return np.asarray(-fall - (self.log_volume + len(self.law.centre) * np.log(width)), powered.dtype)


def normal_shape(law: Local) -> Shape:
    """The shape of a normal law.

    >>> from pathtemp.modes.local import from_covariance
    >>> shape = normal_shape(from_covariance(np.zeros(1), np.eye(1), 0.0))
    >>> round(float(np.exp(shape.log_density(np.zeros(1), 1.0)[0])), 4)
    0.3989
    """
    return Shape(law, law.log_det + 0.5 * len(law.centre) * float(np.log(2 * np.pi)))


def learned_shape(law: Local, log_volume: float, square: FloatArray, fall: FloatArray) -> Shape:
    """The shape with the tails that points show: their squared distances (n,) to their modes, and how far below (n,).

    >>> from pathtemp.modes.local import from_covariance
    >>> law, square = from_covariance(np.zeros(2), np.eye(2), 0.0), np.linspace(10.0, 1000.0, 500)
    >>> shape = learned_shape(law, 1.8, square, 0.1 * square**2)
    >>> round(shape.factor, 3), round(shape.exponent, 3)
    (0.1, 2.0)
    """
    outside = np.isfinite(fall) & (square > CORE * len(law.centre)) & (fall > 0)
    if np.count_nonzero(outside) < FEWEST:
        return Shape(law, log_volume)
    x, y = np.log(square[outside]), np.log(fall[outside])
    near = x < np.median(x)
    low, high = (np.median([x[part], y[part]], axis=1) for part in (near, ~near))
    exponent = float(np.clip((high[1] - low[1]) / max(high[0] - low[0], 1e-3), *EXPONENTS))
    return Shape(law, log_volume, float(np.exp(np.median(y - exponent * x))), exponent)
