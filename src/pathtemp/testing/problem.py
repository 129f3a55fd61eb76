"""What a test problem is: a model together with everything that is known exactly about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.model.model import Model

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""A NumPy array of integers."""

Curve = Callable[[ArrayLike], FloatArray]
"""log z(lam) - log z(0) at any array of lam, in the same shape."""


@dataclass(frozen=True)
class Problem:
    """A model whose answers are known.

    Parameters
    ----------
    name
        Short name, that of its constructor.
    model
        Base and target on one flat vector, with an exact base sampler.
    log_z
        Exact log z(lam) - log z(0) for any array of lam; None where only the end is known.
    end
        log z(1) - log z(0), where there is no curve.
    accuracy
        Numerical accuracy of ``log_z`` or ``end`` (of the end, where it varies along the path), or a function
        that computes it when it is asked for.
    labels
        Mode of each draw, ``(n, dim) -> (n,)`` integers from 0, on the host; None where there is one mode.
    shares
        Probability of each label under the target; they add up to one.
    sample_at
        Exact independent draws of theta given lam: ``(rng, lam (n,)) -> (n, dim)``.
    target_sampler
        Exact independent draws of the target, ``(rng, n) -> (n, dim)``, where ``sample_at`` is None.
    target_mean, target_var
        Mean and variance of the flat vector under the target, each ``(dim,)``.

    >>> from pathtemp.testing import gaussian_scale
    >>> problem = gaussian_scale(2, precision=10.0)
    >>> round(problem.log_z_end, 6)
    -2.302585
    >>> problem.sample_at(np.random.default_rng(0), np.linspace(0.0, 1.0, 5)).shape
    (5, 2)
    """

    name: str
    model: Model
    log_z: Curve | None = None
    end: float | None = None
    accuracy: float | Callable[[], float] = 1e-10
    labels: Callable[[FloatArray], IntArray] | None = None
    shares: FloatArray | None = None
    sample_at: Callable[[np.random.Generator, FloatArray], FloatArray] | None = None
    target_sampler: Callable[[np.random.Generator, int], FloatArray] | None = None
    target_mean: FloatArray | None = None
    target_var: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.log_z is None and self.end is None:
            raise InputError(f"Problem {self.name!r}: give log_z (the whole curve) or end (its value at lam = 1)")

    @property
    def log_z_end(self) -> float:
        """The end of the curve, log z(1) - log z(0)."""
        if self.log_z is not None:
            return float(self.log_z(1.0))
        assert self.end is not None
        return self.end

    @property
    def log_z_error(self) -> float:
        """How far ``log_z_end`` may be off: rounding and quadrature, or a reference's standard error."""
        return self.accuracy() if callable(self.accuracy) else self.accuracy

    def sample_target(self, rng: np.random.Generator, n: int) -> FloatArray:
        """``n`` exact independent draws of the target, ``(n, dim)``."""
        if self.target_sampler is not None:
            return self.target_sampler(rng, n)
        if self.sample_at is None:
            raise InputError(f"Problem {self.name!r} has no exact draws of its target; sample it with pathtemp")
        return self.sample_at(rng, np.ones(n))
