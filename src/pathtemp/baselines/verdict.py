"""The verdict on discrete tempering, by the gates that every engine has to pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.paper.verdict import LEAST_ACCEPTANCE, LEAST_ESS, tours
from pathtemp.estimators.estimate import Estimate
from pathtemp.result.run import Diagnostics, Rejections
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.densities import check_met
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics

if TYPE_CHECKING:
    from pathtemp.baselines.discrete import Trace

MORE = "give more draws, or more adaptations, or rungs between those that differ most"

LARGEST_SE = 0.1
"""Standard error of log z(1) above which it is not known, however well the chains mix."""


def diagnose(
    trace: Trace, target: FloatArray, estimates: Mapping[str, Estimate], *, update: str, rejected: Rejections
) -> Diagnostics:
    """Gates and numbers of the last adaptation; ``target`` are its draws at lam = 1, (chain, draw, dim).

    ``update`` names the estimate that the run gives.
    """
    ladder = estimates[update].at
    visits = np.bincount(trace.rung.ravel(), minlength=len(ladder)).astype(np.float64)
    acceptance = _by_rung(trace, trace.acceptance, visits)
    square = _by_rung(trace, (trace.delta - _by_rung(trace, trace.delta, visits)[trace.rung]) ** 2, visits)
    # Half of either neighbouring cell belongs to a rung.
    width = np.convolve(np.diff(ladder), [0.5, 0.5])
    mixing, trips = Mixing.of(target), tours(trace.lam)
    ends = {name: estimate.log_ratio for name, estimate in estimates.items()}
    checks = (
        travel.check_coverage(visits, ladder, more=MORE),
        travel.check_tours_by_chain(trips, more=MORE),
        gates.check_rhat(mixing.rhat, more=MORE),
        gates.check_ess(min(mixing.bulk, mixing.tail), limit=LEAST_ESS, more=MORE),
        travel.check_acceptance(np.nan_to_num(acceptance), visits, ladder, limit=LEAST_ACCEPTANCE),
        travel.check_agreement(ends["importance"], ends["rao_blackwell"], ("importance", "Rao-Blackwell")),
        travel.check_precision(ends[update][1], limit=LARGEST_SE),
        *check_met(rejected),
    )
    along = AlongPath(ladder, np.sqrt(square) * width, acceptance, visits)
    return diagnostics(checks, mixing, along, khat=float("nan"), tours=int(trips.sum()), ends=ends, rejected=rejected)


def _by_rung(trace: Trace, x: FloatArray, visits: FloatArray) -> FloatArray:
    """Mean of the finite ``x`` (chain, draw) at each rung; NaN where there is none."""
    finite = np.isfinite(x)
    rungs = len(visits)
    count = np.bincount(trace.rung[finite], minlength=rungs)
    total = np.bincount(trace.rung[finite], x[finite], rungs)
    return np.divide(total, count, out=np.full(rungs, np.nan), where=count > 0)
