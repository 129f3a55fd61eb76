"""The density of a planted mode: a copy of known modes, moved elsewhere and made narrower, with their real tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.modes.local import Local
from pathtemp.modes.shape import Shape

WIDTHS = (1.0, 0.84, 0.7, 0.5, 0.35)
"""Widths of planted modes relative to the widest known mode; between them leads are interpolated."""

MOST_COPIED = 8
"""Known modes that are copied, at most."""


@dataclass(frozen=True)
class Planted:
    """Modes like the known ones.

    Far from its centre a mode's own density cannot be told from that of its neighbours: the target's is an upper bound.
    Each known mode gives such a bound for its copy, and the least of them counts.

    Parameters
    ----------
    shape
        The widest known mode: width and metric of the copies are relative to it.
    laws, log_mass
        Of the modes that are copied, those of the largest mass first.
    log_target
        Log density of the target at points (n, dim).
    """

    shape: Shape
    laws: Sequence[Local]
    log_mass: Sequence[float]
    log_target: Callable[[FloatArray], FloatArray]

    @property
    def densities(self) -> int:
        """Density evaluations for one point of a copy, over all widths, at most."""
        return len(WIDTHS) * min(len(self.laws), MOST_COPIED)

    def log_density(self, u: FloatArray, width: float, need: FloatArray) -> FloatArray:
        """Log density of copies of unit mass at u (n, dim), standardised distances from their centres.

        Points at which it falls below ``need`` (n,) are not looked at again: there it is a bound. Where the target has
        no density around any known mode, as beyond a box, the tails of the shape are taken.

        >>> from pathtemp.modes.local import from_covariance
        >>> from pathtemp.modes.shape import normal_shape
        >>> law = from_covariance(np.zeros(2), np.eye(2), 0.0)
        >>> copies = Planted(normal_shape(law), [law], [np.log(2 * np.pi)], lambda x: -0.5 * np.sum(x**2, axis=1))
        >>> u, need = np.array([[0.0, 0.0], [2.0, 0.0]]), np.full(2, -np.inf)
        >>> (copies.log_density(u, 0.5, need) - copies.log_density(u, 1.0, need)).round(3).tolist()
        [1.386, -4.614]
        """
        reference = self.shape.law.log_det
        smaller = len(self.shape.law.centre) * float(np.log(width))
        lowest, rows = np.full(len(u), np.inf), np.arange(len(u))
        for law, log_mass in zip(self.laws[:MOST_COPIED], self.log_mass[:MOST_COPIED], strict=True):
            if not len(rows):
                break
            value = self.log_target(law.centre + (u[rows] / width) @ law.matrix.T)
            value = value - log_mass + law.log_det - reference - smaller
            lowest[rows] = np.minimum(lowest[rows], np.where(np.isfinite(value), value, np.inf))
            rows = rows[lowest[rows] > need[rows]]
        nowhere = np.isinf(lowest)
        square = np.sum(u[nowhere] ** 2, axis=1)
        lowest[nowhere] = self.shape.log_density(square**self.shape.exponent, width)
        return lowest
