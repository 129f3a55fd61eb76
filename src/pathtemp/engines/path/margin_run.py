"""What an engine along a margin hands over, as plain arrays, and the fit that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.engines.path.estimates import Curves
from pathtemp.model.model import Model
from pathtemp.paths.margin import MarginPath
from pathtemp.result.curve import LogZ
from pathtemp.result.draws import draws_dataset
from pathtemp.result.fit import LogEvidence, library_versions
from pathtemp.result.margin_fit import MarginFit
from pathtemp.result.marginal import Marginal
from pathtemp.result.run import Counts, Diagnostics, RoundRecord
from pathtemp.settings import PaperSettings, Settings


@dataclass(frozen=True)
class MarginRun:
    """The outcome of an engine along a margin.

    Parameters
    ----------
    margin, restricted
        The margin, and whether the interval was given.
    posterior
        Flat draws of the target, shape (chain, draw, dim).
    along, log_weight
        All flat draws along the margin (iteration, chain, dim), and their log weights to the target.
    path
        The joint path by name, shapes (chain, iteration).
    lam, curves
        Nodes on the unconstrained scale, and log p there.
    evidence
        Log of the integral of the target; NaN where it was not estimated.
    diagnostics, history, counts, seconds
        As in :class:`pathtemp.result.run.Run`.
    """

    margin: MarginPath
    restricted: bool
    posterior: FloatArray
    along: FloatArray
    log_weight: FloatArray
    path: dict[str, FloatArray]
    lam: FloatArray
    curves: Curves
    evidence: LogEvidence
    diagnostics: Diagnostics
    history: tuple[RoundRecord, ...]
    counts: Counts
    seconds: dict[str, float]


def margin_fit(run: MarginRun, model: Model, *, seed: int, settings: Settings | PaperSettings) -> MarginFit:
    """Name and constrain what an engine hands over."""
    mean = run.curves.mean
    chains, iterations = run.path["lam"].shape
    coords = {"chain": np.arange(chains), "iteration": np.arange(iterations)}
    values = run.margin.values
    return MarginFit(
        posterior=draws_dataset(model, run.posterior),
        base=draws_dataset(model, run.posterior[:, :0]),
        path=xr.Dataset({name: (("chain", "iteration"), x) for name, x in run.path.items()}, coords=coords),
        log_z=LogZ(run.lam, mean - mean.max(), _band(run.curves)),
        diagnostics=run.diagnostics,
        history=run.history,
        counts=run.counts,
        seconds=run.seconds,
        settings=settings,
        seed=seed,
        name=model.name,
        exact_base=False,
        versions=library_versions(),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        model=model,
        marginal=Marginal.of(run.margin.name, run.lam, mean, run.curves.without, values, restricted=run.restricted),
        draws=draws_dataset(model, np.swapaxes(run.along, 0, 1)).assign(
            log_weight=(("chain", "draw"), run.log_weight.T)
        ),
        evidence=run.evidence,
    )


def _band(curves: Curves) -> FloatArray:
    """Standard error of log p about its mean over the mass."""
    weight = np.exp(curves.mean - curves.mean.max())
    return curves.se(lambda log_p: log_p - np.average(log_p, weights=weight))
