"""Continuous tempering with an empirical p(a): log z by how often a was visited, not by path sampling."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.baselines.continuous import check_given, continuous_tempering
from pathtemp.engines.paper.trace import PaperTrace, path_nodes
from pathtemp.model.model import Model
from pathtemp.paths.links import A_MAX, A_MIN
from pathtemp.paths.pseudoprior import Kernels, PseudoPrior
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.settings import PAPER, PaperSettings

CELLS = 20
"""Cells of the histogram between the flat ends."""

UNSEEN = 0.5
"""Draws that an empty cell counts as, so that log z stays finite and the next adaptation favours it."""


def empirical_tempering(model: Model, *, seed: int = 0, settings: PaperSettings = PAPER) -> Fit:
    """Sample (theta, a) by joint NUTS and set c <- p(a) c(a), p(a) the histogram of a (method ii of section 4.1).

    Path, link, sampler and kernels are those of the paper's engine, so that the estimate of log z is all that differs.
    It comes from the draws of one adaptation: histograms under different c cannot be pooled.

    Parameters
    ----------
    model
        Base and target.
    seed
        The same seed gives the same draws.
    settings
        Chains, draws and adaptations; see :class:`~pathtemp.settings.PaperSettings`.

    >>> from pathtemp.testing import gaussian_scale
    >>> fit = empirical_tempering(gaussian_scale(1, precision=4.0).model, settings=PAPER.replace(draws=8000))
    >>> bool(abs(fit.log_z(1.0) + 0.69) < 0.7)
    True
    """
    check_given(model, settings)
    at, grid = path_nodes(settings.grid)

    def estimate(traces: Sequence[PaperTrace], log_c: Kernels) -> LogZ:
        last = traces[-1]
        return empirical_curve(last.folded, log_c, last.group, at=at, lam=grid)

    def prior(curve: LogZ | None, _: Sequence[PaperTrace]) -> Kernels:
        return Kernels.fit(grid, np.zeros(len(grid)) if curve is None else curve.mean, kernels=settings.kernels)

    return continuous_tempering(
        model,
        estimate=estimate,
        prior=prior,
        named=("empirical tempering", "empirical"),
        seed=seed,
        settings=settings,
    )


def empirical_curve(
    folded: FloatArray, log_c: PseudoPrior, group: np.ndarray, *, at: FloatArray, lam: FloatArray
) -> LogZ:
    """The importance estimate log z = log c + log p(a), zero at the base, with errors from groups of draws.

    Parameters
    ----------
    folded, group
        Sampled a, folded to [0, 1], and the independent group of each draw, in the same shape.
    log_c
        The pseudo-prior they were drawn under.
    at, lam
        Positions in a between the flat ends, and lam there, at which the curve is wanted.

    >>> from pathtemp.paths.pseudoprior import PiecewiseLinear
    >>> flat = PiecewiseLinear.fit([0.0, 1.0], [0.0, 0.0])
    >>> a = (np.arange(1000) + 0.5) / 1000
    >>> at, lam = path_nodes(2)
    >>> empirical_curve(a, flat, np.arange(1000) % 2, at=at, lam=lam).mean.round(6)
    array([0., 0., 0.])
    """
    prior = np.asarray(log_c(jnp.asarray(lam)))

    def curve(mask: np.ndarray) -> FloatArray:
        log_z = prior + np.interp(at, *_log_histogram(folded[mask]))
        return np.asarray(log_z - log_z[0])

    curves = np.array([curve(group == g) for g in np.unique(group)])
    spread = np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.full(len(lam), np.nan)
    return LogZ(lam, curve(np.ones(folded.shape, bool)), spread)


def _log_histogram(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positions and log density of a: the flat ends, at their inner edges, and the centres of the cells between."""
    edges = np.concatenate([[0.0], np.linspace(A_MIN, A_MAX, CELLS + 1), [1.0]])
    count = np.histogram(a, edges)[0]
    inner = edges[1:-1]
    centres = np.concatenate([[A_MIN], 0.5 * (inner[1:] + inner[:-1]), [A_MAX]])
    return centres, np.log(np.maximum(count, UNSEEN) / np.diff(edges) / a.size)
