"""The verdict on discrete tempering, by the gates that every engine has to pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pathtemp import diagnostics as gates
from pathtemp._types import FloatArray
from pathtemp.estimators.estimate import Estimate
from pathtemp.paper_verdict import LARGEST_RHAT, LEAST_ACCEPTANCE, LEAST_ESS, tours
from pathtemp.run import Check, Diagnostics

if TYPE_CHECKING:
    from pathtemp.baselines.discrete import Trace

MORE = "give more draws, or more adaptations, or rungs between those that differ most"

LARGEST_SE = 0.1
"""Standard error of log z(1) above which it is not known, however well the chains mix."""


def check_precision(se: float) -> Check:
    """Log z(1) is known to a tenth: shares of the draws say it far less well than path sampling does.

    >>> check_precision(0.02).passed, check_precision(float("nan")).passed
    (True, False)
    """
    passed = bool(se <= LARGEST_SE)
    message = (
        f"The standard error of log z(1) is {se:.2g}, above {LARGEST_SE}: the draws of one adaptation are too few to "
        "say it; give longer adaptations, a larger draws in settings."
    )
    return Check("log z error", se, LARGEST_SE, passed, "" if passed else message)


def diagnose(
    trace: Trace, target: FloatArray, ladder: FloatArray, estimates: Mapping[str, Estimate], *, update: str
) -> Diagnostics:
    """Gates and numbers of the last adaptation; ``target`` are its draws at lam = 1, (chain, draw, dim).

    ``update`` names the estimate that the run gives.
    """
    rungs = len(ladder)
    visits = np.bincount(trace.rung.ravel(), minlength=rungs).astype(np.float64)
    acceptance = _by_rung(trace, trace.acceptance, visits)
    square = _by_rung(trace, (trace.delta - _by_rung(trace, trace.delta, visits)[trace.rung]) ** 2, visits)
    # Half of either neighbouring cell belongs to a rung.
    width = np.convolve(np.diff(ladder), [0.5, 0.5])
    local_length = np.sqrt(square) * width
    rhat, ess_bulk, ess_tail = gates.rhat_ess(target)
    trips = tours(trace.lam)
    ends = {name: estimate.log_ratio for name, estimate in estimates.items()}
    checks = (
        _check_coverage(visits, ladder),
        _check_tours(trips),
        gates.check_rhat(rhat, highest=LARGEST_RHAT),
        gates.check_ess(min(ess_bulk, ess_tail), lowest=LEAST_ESS),
        gates.check_acceptance(np.nan_to_num(acceptance), visits, ladder, lowest=LEAST_ACCEPTANCE),
        gates.check_agreement(ends["importance"], ends["rao_blackwell"], ("importance", "Rao-Blackwell")),
        check_precision(ends[update][1]),
    )
    return Diagnostics(
        checks=checks,
        khat=float("nan"),
        rhat=rhat,
        ess_bulk=ess_bulk,
        ess_tail=ess_tail,
        tours=int(trips.sum()),
        length=float(np.nansum(local_length)),
        lam=ladder,
        local_length=local_length,
        acceptance=acceptance,
        visits=visits,
        log_z_by_estimator=ends,
        rejections=0,
    )


def _by_rung(trace: Trace, x: FloatArray, visits: FloatArray) -> FloatArray:
    """Mean of the finite ``x`` (chain, draw) at each rung; NaN where there is none."""
    finite = np.isfinite(x)
    rungs = len(visits)
    count = np.bincount(trace.rung[finite], minlength=rungs)
    total = np.bincount(trace.rung[finite], x[finite], rungs)
    return np.divide(total, count, out=np.full(rungs, np.nan), where=count > 0)


def _check_coverage(visits: FloatArray, ladder: FloatArray) -> Check:
    unseen = ", ".join(f"{lam:.3g}" for lam in ladder[visits == 0])
    message = f"No draw of the last adaptation is at lam = {unseen}; {MORE}."
    return Check("coverage", float(np.mean(visits > 0)), 1.0, not unseen, message if unseen else "")


def _check_tours(trips: np.ndarray) -> Check:
    without = int(np.sum(trips == 0))
    message = (
        f"{without} of {len(trips)} chains made no round trip base -> target -> base in the last adaptation, so their "
        f"draws of the target may all come from one mode; {MORE}."
    )
    return Check("tours", float(trips.min()), 1.0, without == 0, message if without else "")
