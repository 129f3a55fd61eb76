"""What an estimator returns, and the checks and groupings that the estimators share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, float_array
from pathtemp.errors import InputError

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
"""A NumPy array of indices."""

MAX_BLOCKS = 16
"""Groups are merged to at most this many blocks: enough to estimate a variance, few enough to stay cheap."""


@dataclass(frozen=True)
class Estimate:
    """A curve on the log scale: log z along a path or a ladder, relative to its first point.

    Parameters
    ----------
    at
        Positions along the path, increasing, shape (n,); 0 and 1 when there are only two states.
    mean, stderr
        Estimate and standard error at each position, shape (n,); NaN where theory gives no error.

    >>> estimate = Estimate(np.array([0.0, 1.0]), np.array([0.0, -2.0]), np.array([0.0, 0.1]))
    >>> estimate.log_ratio
    (-2.0, 0.1)
    """

    at: FloatArray
    mean: FloatArray
    stderr: FloatArray

    @property
    def log_ratio(self) -> tuple[float, float]:
        """Value and standard error of log z at the last position minus log z at the first."""
        return float(self.mean[-1]), float(self.stderr[-1])


def two_states(log_ratio: float, stderr: float) -> Estimate:
    """The estimate of a single log ratio.

    >>> two_states(-2.0, 0.1).log_ratio
    (-2.0, 0.1)
    """
    return Estimate(np.array([0.0, 1.0]), np.array([0.0, log_ratio]), np.array([0.0, stderr]))


def vector(name: str, x: ArrayLike, *, size: int | None = None) -> FloatArray:
    """Flatten ``x`` to a non-empty vector of float64 without NaN, of length ``size`` when that is given.

    >>> vector("delta", [[1, 2], [3, 4]])
    array([1., 2., 3., 4.])
    """
    out = np.ravel(float_array(name, x))
    if size is not None and out.size != size:
        raise InputError(f"{name} must have {size} values, one for each draw, and has {out.size}")
    if out.size == 0:
        raise InputError(f"{name} is empty; give at least one draw")
    if np.isnan(out).any():
        raise InputError(f"{name} has {int(np.isnan(out).sum())} NaN values; drop those draws first")
    return out


def increasing(name: str, x: ArrayLike) -> FloatArray:
    """Check that ``x`` is a strictly increasing finite vector.

    >>> increasing("grid", [0, 1])
    array([0., 1.])
    """
    out = vector(name, x)
    if not np.isfinite(out).all() or (np.diff(out) <= 0).any():
        raise InputError(f"{name} must be finite and strictly increasing; sort it and drop repeated values")
    return out


def blocks(groups: ArrayLike, *, size: int) -> IntArray:
    """Block index 0, 1, ... of each of ``size`` draws: groups (chains) merged to at most ``MAX_BLOCKS``.

    >>> blocks([7, 7, 3], size=3).tolist()
    [1, 1, 0]
    """
    labels = np.ravel(finite_array("groups", groups))
    if labels.size != size:
        raise InputError(f"groups must have {size} values, one for each draw, and has {labels.size}")
    _, index = np.unique(labels, return_inverse=True)
    return np.asarray(index % MAX_BLOCKS, dtype=np.intp)


def log_densities(log_q: ArrayLike) -> FloatArray:
    """Check a table of log densities of n draws under K states; ``-inf`` may occur, but not in a whole row.

    >>> log_densities([[0.0, -np.inf]])
    array([[  0., -inf]])
    """
    out = float_array("log_q", log_q)
    if out.ndim != 2 or out.size == 0:
        raise InputError(f"log_q must have shape (draws, states), and has {out.shape}")
    if np.isnan(out).any() or np.isposinf(out).any() or np.isneginf(out).all(axis=1).any():
        raise InputError("log_q must be neither NaN nor +inf, and finite for each draw under some state")
    return out


def ladder_positions(at: ArrayLike | None, states: int) -> FloatArray:
    """Positions of the states of a ladder, 0, 1, 2, ... when none are given.

    >>> ladder_positions(None, 3)
    array([0., 1., 2.])
    """
    positions = np.arange(float(states)) if at is None else increasing("at", at)
    if positions.size != states:
        raise InputError(f"at must have {states} positions, one for each state, and has {positions.size}")
    return positions


def log_mean_exp(log_w: FloatArray) -> tuple[float, float]:
    """Log of the mean of weights, and its standard error to first order for independent weights.

    >>> log_mean_exp(np.zeros(4))
    (0.0, 0.0)
    """
    largest = log_w.max()
    if not np.isfinite(largest):
        raise InputError("all ratios are zero or one is infinite; put states in between")
    w = np.exp(log_w - largest)
    stderr = w.std(ddof=1) / w.mean() / np.sqrt(w.size) if w.size > 1 else np.nan
    return float(largest + np.log(w.mean())), float(stderr)
