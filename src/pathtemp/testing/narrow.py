"""A narrow mode beside a broad one: little of the base leads to it, and much of the target is in it."""

from __future__ import annotations

import numpy as np

from pathtemp.testing.mixtures import gaussian_mixture
from pathtemp.testing.problem import Problem


def narrow_mode(
    dim: int = 3, *, width: float = 0.05, weight: float = 0.3, distance: float = 10.0, base_scale: float = 5.0
) -> Problem:
    """A standard normal at -2 and a normal of scale ``width``, with ``weight``, ``distance`` away on the first axis.

    The base is ``normal(0, base_scale)``. Its draws within about width * distance of the narrow mode climb to it, all
    others to the broad one: with the defaults one in ten thousand.

    >>> narrow_mode().shares
    array([0.7, 0.3])
    """
    centres = np.zeros((2, dim))
    centres[0, 0], centres[1, 0] = -2.0, distance - 2.0
    scales = [1.0, width]
    return gaussian_mixture([1.0 - weight, weight], centres, scales=scales, base_scale=base_scale, name="narrow_mode")
