"""Marginals of lam to aim at (the paper's section 2.3 and appendix A, on the choice of p(a))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray

UNIFORM_SHARE = 0.5
"""Share of the uniform marginal in a learned one, so that no part of the path is left out while it is learned."""


@dataclass(frozen=True)
class TargetMarginal:
    """The marginal density of lam that the chains aim at.

    Parameters
    ----------
    kind
        "uniform"; "optimal", proportional to the root of E U^2 given lam, which minimises the variance of log z, U
        being the gradient along the orbit that is averaged; "constant-kl", proportional to the standard deviation of
        the gradient at fixed theta, so that neighbours are equally far apart everywhere (appendix A; the further
        1 / f' that the paper states there is a slip); or "given", a log density by ``log_given``.
    log_given
        Log density of lam, not necessarily normalised, at an array of lam; for "given" only.
    """

    kind: str
    log_given: Callable[[FloatArray], FloatArray] | None = None

    def log_density(self, lam: FloatArray, root: FloatArray, spread: FloatArray) -> FloatArray:
        """Log density at nodes ``lam`` (K + 1), up to a constant.

        ``root`` is the root of E U^2 in each cell (K,), ``spread`` the standard deviation at fixed theta.

        >>> TargetMarginal("uniform").log_density(np.linspace(0, 1, 3), np.ones(2), np.ones(2)).tolist()
        [0.0, 0.0, 0.0]
        """
        if self.kind == "uniform":
            return np.zeros(len(lam))
        if self.log_given is not None:
            value = np.asarray(self.log_given(lam), float)
            return np.asarray(np.maximum(value - value.max(), -30.0))
        wanted = spread if self.kind == "constant-kl" else root
        smooth = np.convolve(np.pad(wanted, 4, mode="edge"), np.ones(9) / 9.0, mode="valid")
        at_nodes = np.interp(np.arange(len(lam)), np.arange(len(smooth)) + 0.5, smooth)
        mean = float(np.mean(at_nodes))
        share = at_nodes / mean if mean > 0 else np.ones(len(lam))
        return np.asarray(np.log(UNIFORM_SHARE + (1.0 - UNIFORM_SHARE) * share))
