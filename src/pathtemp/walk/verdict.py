"""The verdict on a walk: gates that must all pass before it may be called converged."""

from __future__ import annotations

import numpy as np

from pathtemp import diagnostics as gates
from pathtemp._types import FloatArray
from pathtemp.learner import along_path
from pathtemp.run import Check, Diagnostics
from pathtemp.walk.engine import STEPS
from pathtemp.walk.estimates import Curves, jackknife
from pathtemp.walk.learn import to_z
from pathtemp.walk.run import WalkRun
from pathtemp.walk.widen import tail_masses

BINS = 20
"""Bins of position along the path."""

LARGEST_TAIL = 1e-4
"""Mass beyond the interval above which a margin is not known well enough."""

LARGEST_Z = 5.0
"""Largest difference of the two estimates in standard errors, over sixteen places of the path."""

FLOOR = 0.02
"""Error of a Rao-Blackwell estimate by its bins, in nats."""


def judge(
    run: WalkRun,
    path_sampled: Curves,
    rao_blackwell: Curves,
    draws: FloatArray,
    *,
    margin: bool,
    open_ends: bool = False,
    beyond: Check | None = None,
) -> Diagnostics:
    """All gates, from the frozen rounds.

    Parameters
    ----------
    draws
        Of the law that was asked for, shape (chain, draw, dim).
    margin
        Whether z is the density of a margin, whose error matters where its mass is.
    open_ends
        Whether the margin goes on beyond the interval.
    beyond
        The gate that looked there.
    """
    walk = run.walk
    s, acceptance = run.stacked("s"), run.stacked("acceptance")
    mean, count = along_path(s, acceptance, STEPS)
    rhat, bulk, tail = gates.rhat_ess(draws)
    visits = np.histogram(s, BINS, (0.0, 1.0))[0].astype(float)
    edges = np.linspace(walk.low, walk.high, BINS + 1)
    plain = run.stacked("plain")
    local = np.array([_spread(s, plain, low, low + 1.0 / BINS) for low in np.arange(BINS) / BINS]) / BINS
    trips = int(run.trips.trips.sum())
    checks = [
        gates.check_rounds(len(run.records)),
        _check_coverage(visits, edges),
        _check_trips(trips),
        _check_stuck(s),
        gates.check_acceptance(mean, count, np.linspace(walk.low, walk.high, STEPS)),
        _check_conditional(run),
        gates.check_rhat(rhat, highest=walk.settings.rhat),
        _check_agreement(path_sampled, rao_blackwell),
        _check_precision(path_sampled) if margin else gates.check_precision(float(path_sampled.se(_rise))),
    ]
    if open_ends:
        checks.append(_check_interval(walk.low, walk.high, path_sampled.mean))
    if beyond is not None:
        checks.append(beyond)
    pair = (path_sampled, rao_blackwell)
    ends = [(float(_rise(curves.mean)), float(curves.se(_rise))) for curves in pair]
    return Diagnostics(
        checks=tuple(checks),
        khat=run.khat,
        rhat=rhat,
        ess_bulk=bulk,
        ess_tail=tail,
        tours=trips,
        length=float(np.nansum(local)),
        lam=0.5 * (edges[1:] + edges[:-1]),
        local_length=local,
        acceptance=np.interp(np.arange(BINS) + 0.5, np.linspace(0, BINS, STEPS), mean),
        visits=visits,
        log_z_by_estimator=dict(zip(("path sampling", "Rao-Blackwell"), ends, strict=True)),
        rejections=walk.rejected,
    )


def _rise(curve: FloatArray) -> FloatArray:
    """From the first to the last position."""
    return np.asarray(curve[-1] - curve[0])


def _spread(s: FloatArray, u: FloatArray, low: float, high: float) -> float:
    """Standard deviation of the gradients in one bin, their slope taken off."""
    here = (s >= low) & (s < high) & np.isfinite(u)
    if np.count_nonzero(here) < 4:
        return float("nan")
    x, y = s[here], u[here]
    return float(np.std(y - np.polyval(np.polyfit(x, y, 1), x)))


def _check_coverage(visits: FloatArray, edges: FloatArray) -> Check:
    share = float(np.mean(visits > 0))
    if share == 1.0:
        return Check("coverage", share, 1.0, True)
    gap = int(np.flatnonzero(visits == 0)[0])
    message = f"No chain visited lam between {edges[gap]:.3g} and {edges[gap + 1]:.3g}; {gates.MORE}."
    return Check("coverage", share, 1.0, False, message)


def _check_trips(trips: int, *, fewest: int = 20) -> Check:
    passed = trips >= fewest
    message = f"The chains went {trips} times from one end of the path to the other and back, of {fewest} at least; "
    return Check("tours", trips, fewest, passed, "" if passed else message + gates.MORE + ".")


def _check_stuck(s: FloatArray) -> Check:
    """Every chain has covered half of the path at least."""
    stuck = np.flatnonzero(np.ptp(s, axis=0) < 0.5)
    named = ", ".join(map(str, stuck[:5])) + (", ..." if len(stuck) > 5 else "")
    message = (
        f"{len(stuck)} of {s.shape[1]} chains (number {named}) covered less than half of the path: a part of the other "
        f"parameters that they cannot leave; {gates.MORE}, or reparametrise."
    )
    return Check("stuck chains", len(stuck), 0, len(stuck) == 0, "" if len(stuck) == 0 else message)


def _check_conditional(run: WalkRun, *, highest: float = 1.1) -> Check:
    """The other parameters given lam, standardised by the transport, have the same law in all chains."""
    walk = run.walk
    theta, a = run.stacked("theta"), run.stacked("theta_a")
    thin = max(1, len(a) // 200)
    theta, a = theta[::thin], a[::thin]
    s = (walk.lam_of(a) - walk.low) / (walk.high - walk.low)
    flat = theta.reshape(-1, walk.dim)
    z = to_z(walk.parameters.transport, s.ravel(), flat, np.zeros_like(flat))[0].reshape(theta.shape)
    rhat = gates.rhat_ess(np.swapaxes(z, 0, 1))[0]
    passed = bool(rhat < highest)
    message = (
        f"R-hat of the other parameters given lam is {rhat:.3f}, and should be below {highest}: the chains disagree on "
        f"them, as if they had several modes at one lam; {gates.MORE}."
    )
    return Check("R-hat given lam", rhat, highest, passed, "" if passed else message)


def _check_agreement(first: Curves, second: Curves) -> Check:
    """Path sampling and Rao-Blackwell agree within their errors."""
    places = np.linspace(0.03, 0.97, 16)

    def contrast(one: FloatArray, two: FloatArray) -> FloatArray:
        values = np.interp(places, first.x, one) - np.interp(places, second.x, two)
        return np.asarray(values - values.mean())

    difference = contrast(first.mean, second.mean)
    spread = jackknife(np.array([contrast(*pair) for pair in zip(first.without, second.without, strict=True)]))
    z = float(np.max(np.abs(difference) / (spread + FLOOR)))
    worst = float(np.max(np.abs(difference)))
    passed = bool(z <= LARGEST_Z)
    message = (
        f"Two estimates of the curve differ by up to {worst:.2g} nats, {z:.1f} standard errors: lam has not reached "
        f"equilibrium; {gates.MORE}."
    )
    return Check("agreement", z, LARGEST_Z, passed, "" if passed else message)


def _check_precision(curves: Curves, *, highest: float = 0.3) -> Check:
    """The standard error of log p where most of the mass is."""
    weight = np.exp(curves.mean - curves.mean.max())
    se = curves.se(lambda log_p: log_p - np.average(log_p, weights=weight))
    worst = float(np.max(se[weight > 1e-3]))
    passed = bool(worst <= highest)
    message = f"The standard error of the log density is {worst:.2g} where the mass is, more than {highest}; "
    return Check("precision", worst, highest, passed, "" if passed else message + gates.MORE + ".")


def _check_interval(low: float, high: float, log_p: FloatArray) -> Check:
    masses, _ = tail_masses(low, high, log_p)
    tail = float(np.exp(min(max(masses), 0.0)))
    passed = tail <= LARGEST_TAIL
    where = "lower" if masses[0] > masses[1] else "upper"
    message = (
        f"About {tail:.2g} of the mass lies beyond the {where} end of the interval, where the density is only "
        f"extrapolated; {gates.MORE}, or give a wider interval."
    )
    return Check("interval", tail, LARGEST_TAIL, passed, "" if passed else message)
