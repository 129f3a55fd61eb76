"""Continuous tempering with a log-linear pseudo-prior (Graham and Storkey 2017)."""

from __future__ import annotations

from collections.abc import Sequence

from pathtemp.api.arguments import finite_array
from pathtemp.baselines.continuous import check_given, continuous_tempering
from pathtemp.engines.paper.trace import PaperTrace, log_z_curve, path_nodes
from pathtemp.errors import InputError
from pathtemp.model.model import Model
from pathtemp.paths.pseudoprior import Kernels
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.settings import PAPER, PaperSettings


def log_linear_tempering(
    model: Model, *, log_zeta: float | None = None, seed: int = 0, settings: PaperSettings = PAPER
) -> Fit:
    """Sample psi^(1 - lam) q^lam zeta^(-lam) by joint NUTS: log c is a line, whatever log z is (section 3.3).

    The path, its link and its sampler are those of the paper's engine, so that the pseudo-prior is all that differs.
    log z is estimated by path sampling from the draws of all adaptations.

    Parameters
    ----------
    model
        Base and target.
    log_zeta
        Slope of log c, a guess of log z(1) - log z(0). None starts from zero and sets it to the estimate of log z(1)
        after each adaptation.
    seed
        The same seed gives the same draws.
    settings
        Chains, draws and adaptations; see :class:`~pathtemp.settings.PaperSettings`.

    >>> from pathtemp.testing import gaussian_scale
    >>> problem = gaussian_scale(1, precision=4.0)
    >>> fit = log_linear_tempering(problem.model, log_zeta=-0.69, settings=PAPER.replace(draws=4000, adaptations=1))
    >>> bool(abs(fit.log_z(1.0) + 0.69) < 0.3)
    True
    """
    if log_zeta is not None and finite_array("log_zeta", log_zeta).ndim:
        raise InputError(f"log_zeta: it must be a finite guess of log z(1) - log z(0), or None, and is {log_zeta}")
    check_given(model, settings)
    _, grid = path_nodes(settings.grid)

    def estimate(traces: Sequence[PaperTrace], _: Kernels) -> LogZ:
        return log_z_curve(PaperTrace.join(traces), settings.grid)

    def prior(curve: LogZ | None, _: Sequence[PaperTrace]) -> Kernels:
        guess = 0.0 if curve is None else float(curve.mean[-1])
        return Kernels.fit(grid, (guess if log_zeta is None else log_zeta) * grid, kernels=settings.kernels)

    return continuous_tempering(
        model,
        estimate=estimate,
        prior=prior,
        named=("log-linear tempering", "path_sampling"),
        seed=seed,
        settings=settings,
    )
