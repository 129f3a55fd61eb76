"""The verdict on a run of the paper's engine: k-hat, and the gates without which k-hat says nothing.

k-hat sees the visited part of the path only: it passes while log z is off by many nats when the chains have
not been to the target. So the path must be covered, every chain must have gone base -> target -> base, the
chains must agree about the target, and NUTS must accept everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
from pathtemp.diagnostics import rhat_ess
from pathtemp.paper_trace import PaperTrace, path_nodes
from pathtemp.run import Check, Diagnostics
from pathtemp.settings import PaperSettings
from pathtemp.tours import TripCounter

BINS = 20
"""Bins between the flat ends, equal in a."""

LARGEST_RHAT = 1.05
LEAST_ACCEPTANCE = 0.4
LEAST_ESS = 100.0


def tours(lam: FloatArray) -> np.ndarray:
    """Round trips base -> target -> base of each chain in one trace of lam, shape (chain, iteration).

    >>> tours(np.array([[0.0, 0.4, 1.0, 0.2, 0.0, 1.0], [1.0, 0.0, 0.3, 0.0, 0.0, 0.0]]))
    array([1, 0])
    """
    counter = TripCounter(len(lam))
    counter.add((lam == 0).T, (lam == 1).T)
    return counter.trips


def diagnose(
    traces: Sequence[PaperTrace], curve: LogZ, khat: float, *, rejections: int, settings: PaperSettings
) -> Diagnostics:
    """Gates and numbers of a run: its traces in order, the final curve, and k-hat of the last adaptation."""
    pooled, last = PaperTrace.join(traces), traces[-1]
    target = pooled.at(1.0)
    rhat, ess_bulk, ess_tail = rhat_ess(target)
    _, lam = path_nodes(2 * BINS, last.link)
    edges, centres = lam[::2], lam[1::2]
    visits, acceptance = bin_means(last, last.acceptance)
    local_length = bin_sd(pooled) * np.diff(edges)
    trips = [tours(trace.lam) for trace in traces]
    checks = (
        _check_khat(khat, len(traces), visits, edges, settings),
        _check_coverage(last, visits, edges, settings),
        _check_tours(trips[-1], settings),
        _check_rhat(rhat, target, settings),
        _check_ess(min(ess_bulk, ess_tail), target, settings),
        _check_acceptance(acceptance, edges),
    )
    return Diagnostics(
        checks=checks,
        khat=khat,
        rhat=rhat,
        ess_bulk=ess_bulk,
        ess_tail=ess_tail,
        tours=int(np.sum(trips)),
        length=float(local_length.sum()),
        lam=centres,
        local_length=local_length,
        acceptance=acceptance,
        visits=visits,
        log_z_by_estimator={"path_sampling": (float(curve.mean[-1]), float(curve.stderr[-1]))},
        rejections=rejections,
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


def _check_khat(khat: float, adaptations: int, visits: FloatArray, edges: FloatArray, settings: PaperSettings) -> Check:
    passed = bool(khat < settings.khat)
    fewest = int(np.argmin(visits))
    what = "cannot be told, too few" if np.isnan(khat) else f"is {khat:.2f}, not below {settings.khat:.2g}, fewest"
    message = (
        f"k-hat of 1/p(a) after {adaptations} adaptations {what} draws being at lam in {edges[fewest]:.3g}.."
        f"{edges[fewest + 1]:.3g}: a is not yet near uniform, and log z not to be trusted; "
        f"allow more adaptations, settings.PAPER.replace(adaptations={2 * adaptations})"
    )
    return Check("k-hat", khat, settings.khat, passed, "" if passed else message)


def _check_coverage(last: PaperTrace, visits: FloatArray, edges: FloatArray, settings: PaperSettings) -> Check:
    at_ends = [np.sum(last.lam == 0), np.sum(last.lam == 1)]
    everywhere = np.concatenate([at_ends[:1], visits, at_ends[1:]])
    share = float(np.mean(everywhere > 0))
    places = [name for name, seen in zip(("lam = 0", "lam = 1"), at_ends, strict=True) if not seen]
    places += _ranges(visits == 0, edges)
    where = ", ".join(places)
    message = f"no draw of the last adaptation lies at {where}: the path is not covered; {_more(settings)}"
    return Check("coverage", share, 1.0, not places, message if places else "")


def _ranges(mask: np.ndarray, edges: FloatArray) -> list[str]:
    """Runs of bins where ``mask`` holds, as ranges of lam.

    >>> _ranges(np.array([False, True, True]), np.array([0.0, 0.1, 0.4, 1.0]))
    ['lam in 0.1..1']
    """
    padded = np.concatenate([[False], mask, [False]]).astype(int)
    first, end = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1)
    return [f"lam in {edges[i]:.3g}..{edges[j]:.3g}" for i, j in zip(first, end, strict=True)]


def _check_tours(trips: np.ndarray, settings: PaperSettings) -> Check:
    without = int(np.sum(trips == 0))
    message = (
        f"{without} of {len(trips)} chains made no round trip base -> target -> base in the last adaptation, "
        f"so their draws of the target may all come from one mode; {_more(settings)}"
    )
    return Check("tours", float(trips.min()), 1.0, without == 0, message if without else "")


def _check_rhat(rhat: float, target: FloatArray, settings: PaperSettings) -> Check:
    passed = bool(rhat <= LARGEST_RHAT)
    chains, draws, _ = target.shape
    what = (
        f"cannot be told from {chains} chains of {draws} draws"
        if np.isnan(rhat)
        else f"is {rhat:.3f}, above {LARGEST_RHAT}: the chains disagree"
    )
    message = f"R-hat of the draws at lam = 1 {what}; {_more(settings)}"
    return Check("R-hat", rhat, LARGEST_RHAT, passed, "" if passed else message)


def _check_ess(ess: float, target: FloatArray, settings: PaperSettings) -> Check:
    passed = bool(ess >= LEAST_ESS)
    chains, draws, _ = target.shape
    size = "unknown" if np.isnan(ess) else f"{ess:.0f}"
    message = (
        f"the effective sample size of the {chains} x {draws} draws at lam = 1 is {size}, and should be at "
        f"least {LEAST_ESS:.0f}; {_more(settings)}"
    )
    return Check("ESS", ess, LEAST_ESS, passed, "" if passed else message)


def _check_acceptance(acceptance: FloatArray, edges: FloatArray) -> Check:
    seen = np.where(np.isnan(acceptance), np.inf, acceptance)
    worst = int(np.argmin(seen))
    value = float(seen[worst]) if np.isfinite(seen[worst]) else float("nan")
    passed = not value < LEAST_ACCEPTANCE
    message = (
        f"NUTS accepts only {value:.2f} at lam in {edges[worst]:.3g}..{edges[worst + 1]:.3g}, below "
        f"{LEAST_ACCEPTANCE}: one step size does not suit the whole path; use the default engine, whose step "
        "size depends on lam, or rescale the parameters"
    )
    return Check("acceptance", value, LEAST_ACCEPTANCE, passed, "" if passed else message)
