"""The verdict on a run of the paper's engine: k-hat, and the gates without which k-hat says nothing.

k-hat sees the visited part of the path only: it passes while log z is off by many nats when the chains have
not been to the target. So the path must be covered, every chain must have gone base -> target -> base, the
chains must agree about the target, and NUTS must accept everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.paper.trace import PaperTrace, path_nodes
from pathtemp.estimators.tours import TripCounter
from pathtemp.result.curve import LogZ
from pathtemp.result.run import Diagnostics, Rejections
from pathtemp.settings import PaperSettings
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.densities import check_met
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics

BINS = 20
"""Bins between the flat ends, equal in a."""

LEAST_ACCEPTANCE = 0.4
"""Acceptance of NUTS at every place of the path, whose step size is the same everywhere."""

LEAST_ESS = 100.0
"""Effective draws of the target: few chains, of thousands of draws in all."""


def tours(lam: FloatArray) -> np.ndarray:
    """Round trips base -> target -> base of each chain in one trace of lam, shape (chain, iteration).

    >>> tours(np.array([[0.0, 0.4, 1.0, 0.2, 0.0, 1.0], [1.0, 0.0, 0.3, 0.0, 0.0, 0.0]]))
    array([1, 0])
    """
    counter = TripCounter(len(lam))
    counter.add((lam == 0).T, (lam == 1).T)
    return counter.trips


def diagnose(
    traces: Sequence[PaperTrace], curve: LogZ, khat: float, *, rejections: Rejections, settings: PaperSettings
) -> Diagnostics:
    """Gates and numbers of a run: its traces in order, the final curve, and k-hat of the last adaptation."""
    pooled, last = PaperTrace.join(traces), traces[-1]
    mixing = Mixing.of(pooled.at(1.0))
    _, lam = path_nodes(2 * BINS, last.link)
    edges, middles, more = lam[::2], lam[1::2], _more(settings)
    visits, acceptance = bin_means(last, last.acceptance)
    trips = [tours(trace.lam) for trace in traces]
    at_ends = (float(np.sum(last.lam == 0)), float(np.sum(last.lam == 1)))
    what = f"1/p(a) after {len(traces)} adaptations"
    longer = f"allow more adaptations, settings.PAPER.replace(adaptations={2 * len(traces)})"
    checks = (
        travel.check_khat(khat, what, limit=settings.khat, more=longer),
        travel.check_coverage(visits, edges, at_ends=at_ends, more=more),
        travel.check_tours_by_chain(trips[-1], more=more),
        gates.check_rhat(mixing.rhat, more=more),
        gates.check_ess(min(mixing.bulk, mixing.tail), limit=LEAST_ESS, more=more),
        travel.check_acceptance(np.nan_to_num(acceptance), visits, middles, limit=LEAST_ACCEPTANCE),
        *check_met(rejections),
    )
    return diagnostics(
        checks,
        mixing,
        AlongPath(edges, bin_sd(pooled) * np.diff(edges), acceptance, visits),
        khat=khat,
        tours=int(np.sum(trips)),
        ends={"path_sampling": (float(curve.mean[-1]), float(curve.stderr[-1]))},
        rejected=rejections,
    )


def bin_of(trace: PaperTrace) -> np.ndarray:
    """Bin 0..BINS-1 of each draw between the flat ends; -1 at lam = 0 and BINS at lam = 1."""
    link = trace.link
    cell = np.floor((trace.folded - link.a_min) / (link.a_max - link.a_min) * BINS).astype(int)
    inner = np.clip(cell, 0, BINS - 1)
    return np.where(trace.lam == 0, -1, np.where(trace.lam == 1, BINS, inner))


def bin_means(trace: PaperTrace, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Number of draws and mean of ``x`` in each bin, shape (BINS,); NaN where there is no draw."""
    index = bin_of(trace)
    inner = (index >= 0) & (index < BINS)
    visits = np.bincount(index[inner], minlength=BINS).astype(float)
    total = np.bincount(index[inner], x[inner], BINS)
    return visits, np.divide(total, visits, out=np.full(BINS, np.nan), where=visits > 0)


def bin_sd(trace: PaperTrace) -> FloatArray:
    """Standard deviation of delta in each bin, taken from its neighbours where there are not two draws."""
    visits, mean = bin_means(trace, trace.delta)
    _, square = bin_means(trace, (trace.delta - np.append(mean, [np.nan, np.nan])[bin_of(trace)]) ** 2)
    known = visits > 1
    if not known.any():
        return np.full(BINS, np.nan)
    return np.sqrt(np.interp(np.arange(BINS), np.flatnonzero(known), square[known]))


def _more(settings: PaperSettings) -> str:
    """What to try next."""
    if settings.stop:
        return (
            "go on past the k-hat stop with settings.PAPER.replace(stop=False), or use the default engine, "
            "which crosses the path in fewer gradients"
        )
    return (
        f"give longer adaptations with settings.PAPER.replace(stop=False, draws={2 * settings.draws}), "
        "or use the default engine, which crosses the path in fewer gradients"
    )
