"""Points whose densities are held against the known modes: which of them these modes explain least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.local import Local
from pathtemp.modes.refine import log_normal_at

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

AWAY = 0.999
"""Cosine above which a gradient surely points to the centre of a mode."""


EXPLAINED = 0.5
"""Difference from the density of the known local laws, in nats, within which they explain a point."""


class Scan:
    """Points, their log densities, and what the modes known so far say of them.

    Two measures tell a point of another mode. One is its log density beyond that of the known local laws. The other
    needs no tails to be right: the gradient points to the centre of the point's own mode, in the metric of that mode.

    Parameters
    ----------
    theta, log_q
        Points (n, dim), and the target's log density there, (n,).
    gradient
        Gradients at the first of them, (m, dim), m at most n.
    """

    def __init__(self, theta: FloatArray, log_q: FloatArray, gradient: FloatArray) -> None:
        self.theta, self.log_q, self.gradient = theta, log_q, gradient
        self.known = np.full(len(theta), -np.inf)
        self.cosine, self._second = np.full(len(gradient), -1.0), np.full(len(gradient), -1.0)
        self.owner = np.full(len(gradient), -1)
        self._likeliest, self._height = np.full(len(theta), -1), np.full(len(theta), -np.inf)
        self._modes = 0

    def explain(self, laws: Sequence[Local], log_mass: Sequence[float]) -> None:
        """Take in the modes that were not there at the last call."""
        for k in range(self._modes, len(laws)):
            law, mass, sloped = laws[k], log_mass[k], len(self.gradient)
            with np.errstate(over="ignore", invalid="ignore"):
                square, turn = law.square_and_cosine(self.theta[:sloped], self.gradient)
                square = np.append(square, law.square(self.theta[sloped:]))
                log_law = mass + log_normal_at(law, square)
            log_law = np.where(np.isfinite(log_law), log_law, -np.inf)
            self.known = np.logaddexp(self.known, log_law)
            self._likeliest = np.where(log_law > self._height, k, self._likeliest)
            self._height = np.maximum(self._height, log_law)
            self.owner = np.where(turn > self.cosine, k, self.owner)
            self._second = np.maximum(self._second, np.minimum(turn, self.cosine))
            self.cosine = np.maximum(self.cosine, turn)
        self._modes = len(laws)

    def joined(self, other: Scan) -> Scan:
        """The points of both, to be explained anew; gradients of the other where these have one at every point."""
        theta, log_q = np.concatenate([self.theta, other.theta]), np.concatenate([self.log_q, other.log_q])
        whole = len(self.gradient) == len(self.theta)
        return Scan(theta, log_q, np.concatenate([self.gradient, other.gradient]) if whole else self.gradient)

    def held(self, count: int, among: BoolArray) -> IntArray:
        """How many of the points in ``among`` (n,) surely lie in the basin of each of ``count`` modes, (count,).

        The local laws explain the density there, or the gradient points to the centre of the mode and of no other,
        which in one or two dimensions says too little.
        """
        explained = among & (np.abs(self.beyond) < EXPLAINED) & (self._likeliest >= 0)
        turned = (self.owner >= 0) & (self.cosine > AWAY) & np.isfinite(self.log_q[: len(self.owner)])
        turned &= among[: len(self.owner)] & (self._second < AWAY)
        turned &= ~explained[: len(self.owner)] & (self.theta.shape[1] > 2)
        owners = np.concatenate([self._likeliest[explained], self.owner[turned]])
        return np.bincount(owners, minlength=count)

    @property
    def beyond(self) -> FloatArray:
        """Log density beyond that of the known local laws, (n,); -inf where there is no density."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self.log_q), self.log_q - self.known, -np.inf)

    def pick(self, count: int) -> IntArray:
        """Numbers of the ``count`` points that are explained least, by either measure."""
        turned = np.where(np.isfinite(self.log_q[: len(self.cosine)]), self.cosine, 1.0)
        by_turn = [int(i) for i in np.argsort(turned)[: count // 2] if turned[i] < AWAY]
        beyond, taken = self.beyond, set(by_turn)
        rest = [int(i) for i in np.argsort(-beyond)[:count] if i not in taken and np.isfinite(beyond[i])]
        return np.array([*by_turn, *rest][:count], np.int64)

    def levels(self, count: int) -> tuple[float, float]:
        """The excess of log density above which, and the cosine below which, a point is sure to be in ``pick(count)``.

        Another mode could only have shown at points that known modes explain, so both are those of the last picked.
        """
        half = count // 2
        beyond = np.sort(self.beyond)[-min(half, len(self.beyond)) :]
        turned = np.sort(self.cosine)[: min(half, len(self.cosine))]
        return float(beyond[0]) if len(beyond) else np.inf, float(turned[-1]) if len(turned) else -1.0


def cosine(law: Local, theta: FloatArray, gradient: FloatArray) -> FloatArray:
    """Cosine between gradients at points theta (n, dim) and the ways from there to the centre of a law.

    It is taken in the metric of the law, where it is one all around an elliptical mode, whatever its tails. Without a
    finite gradient it is one: nothing can be said.

    >>> from pathtemp.modes.local import from_covariance
    >>> law, theta = from_covariance(np.zeros(2), np.diag([4.0, 1.0]), 0.0), np.array([[2.0, 1.0]])
    >>> slope = np.concatenate([-theta / [4.0, 1.0], theta])
    >>> cosine(law, np.repeat(theta, 2, axis=0), slope).round(3).tolist()
    [1.0, -0.857]
    """
    return law.square_and_cosine(theta, gradient)[1]
