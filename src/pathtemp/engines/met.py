"""What a compiled program met that is no density, counted on the host by kind and place; +inf is an error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.errors import InfiniteDensity, InputError
from pathtemp.io.printable import printable
from pathtemp.kernels.rejected import Rejected, kinds
from pathtemp.model.evaluate import values_of
from pathtemp.model.inputs import in_words
from pathtemp.model.model import Model
from pathtemp.paths.geometric import HUGE, GeometricPath
from pathtemp.result.run import NOWHERE, Rejections

log = logging.getLogger("pathtemp")

MOST_ZEROS = 0.5
"""Share of points without density above which it is told."""

DROP = 745.0
"""Fall of a log density after which the density is zero to double precision."""

TOWARDS = 1.0 - 2.0 ** -np.arange(16)
"""Shares of the way from the origin to a point, ever closer to it."""

FEWEST = 8
"""Trajectories, each of which met a gradient that is no number, after which there is no hope of any other."""


@dataclass(frozen=True)
class Place:
    """A point that a program evaluated, as the user's model has it.

    Parameters
    ----------
    theta
        Unconstrained, shape (dim,).
    values
        Log densities of base and target there, shape (2,), or the one that the path has, shape (1,).
    lam
        Where on the path, for a density that is a function of it.
    """

    theta: FloatArray
    values: FloatArray
    lam: float | None = None


def target_at(model: Model, flat: FloatArray) -> Place:
    """The place of a point of the target alone, shape (dim,)."""
    return Place(flat, _values(GeometricPath(model.log_target, model.log_target), flat)[1:])


def _values(path: GeometricPath, flat: FloatArray) -> FloatArray:
    """Log densities (2,) of a point (dim,), by a compiled program: outside of one, NumPyro refuses scales of zero."""
    return np.asarray(values_of(path, flat[None])[0])


@dataclass(frozen=True)
class Watch:
    """Counts what the programs of one engine meet.

    Parameters
    ----------
    model
        The user's, whose names are in messages.
    place
        What a point of the program is.
    held
        Number of last coordinates of a point that are no place but a position on the path.
    """

    model: Model
    place: Callable[[FloatArray], Place]
    held: int = 0

    def met(self, rejected: Rejected, lam: FloatArray | None, evaluations: int) -> Rejections:
        """Of so many evaluations.

        Parameters
        ----------
        rejected
            Codes (n, m), and a point of each row (n, dim).
        lam
            Where the chains stood, shape (n, m); None where that is not known.
        """
        found = kinds(rejected.code)
        if found.infinite.any():
            point = _worst(rejected, found.infinite)
            at = self.place(point)
            if np.any(at.values > HUGE) and not self._overflows(point, at.values > HUGE):
                raise InfiniteDensity(at.theta, np.append(-np.inf, at.values)[-2:], lam=at.lam)
            # Log densities of -1e28 are rounded by 1e12, and what one rounds to +inf another does not; and where
            # a log density has fallen to -1e200, its parts overflow, some of them to +inf.
            found = found._replace(nan=found.nan + found.infinite)
        counts = Rejections(
            int(found.zero.sum()),
            int(found.nan.sum()),
            evaluations,
            _ends(lam, found.nan),
            _ends(lam, found.zero),
        )
        if found.gradient.any():
            more = self._without_gradient(rejected, found.gradient, lam)
            if more.gradient >= max(rejected.code.size, FEWEST):
                raise InputError(_nothing_moves(more.gradient_at))
            return counts + more
        return counts

    def _overflows(self, point: FloatArray, infinite: np.ndarray) -> bool:
        """Whether +inf is where numbers end: the density has long been zero on the way there from the origin."""
        still = np.arange(len(point)) >= len(point) - self.held
        on_the_way = np.array([self.place(np.where(still, point, share * point)).values for share in TOWARDS])
        columns = [x[np.isfinite(x) & (x < HUGE)] for x in on_the_way.T[infinite]]
        return all(len(x) > 0 and bool(x[-1] < x.max() - DROP) for x in columns)

    def _without_gradient(self, rejected: Rejected, count: IntArray, lam: FloatArray | None) -> Rejections:
        """Trajectories on which a gradient was no number; of another kind where the density there is none either."""
        point, number = _worst(rejected, count), int(count.sum())
        if np.isnan(point).any():  # NUTS, which ends at any point without density, knows no more
            return Rejections(gradient=number)
        at = self.place(point)
        if np.isnan(at.values).any():
            return Rejections(nan=number, nan_lam=_ends(lam, count))
        if np.isinf(at.values).any():
            return Rejections(zero=number, zero_lam=_ends(lam, count))
        words = in_words(self.model, at.theta, at.lam)
        return Rejections(gradient=number, gradient_at=f"{words} (log density {at.values[-1]:.4g})")


def watch_of(model: Model) -> Watch:
    """The watch over the base and the target of a model."""
    path = GeometricPath(model.log_base, model.log_target)
    return Watch(model, lambda point: Place(point, _values(path, point)))


def _nothing_moves(at: str) -> str:
    where = f", for instance at {at}" if at else ""
    return (
        f"model: the gradient of its log density is NaN where the density is finite{where}, and nothing moves; mend it "
        "(both branches of jnp.where are differentiated; sqrt and norm have no gradient at zero)"
    )


def _worst(rejected: Rejected, count: IntArray) -> FloatArray:
    """A point of the first row that holds any of a kind."""
    return np.asarray(rejected.point)[int(np.argmax(count.any(axis=1)))]


def _ends(lam: FloatArray | None, count: IntArray) -> tuple[float, float]:
    """Lowest and highest lam of the chains that met a kind."""
    if lam is None or not count.any():
        return NOWHERE
    at = np.broadcast_to(lam, count.shape)[count > 0]
    return float(at.min()), float(at.max())


def tell_of_zeros(name: str, rejected: Rejections) -> None:
    """Say where most points that were tried had no density: that is no error, but most of the work is for nothing."""
    if rejected.zero > MOST_ZEROS * max(rejected.evaluations, 1):
        log.warning(
            "%s: the log density was -inf at %d of %d points, %s; a base with the support of the target wastes less",
            *(printable(name), rejected.zero, rejected.evaluations, rejected.where_zero),
        )
