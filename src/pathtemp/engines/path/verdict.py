"""The verdict on chains along a path: which gates must pass before it may be called converged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.path.chains import STEPS
from pathtemp.engines.path.estimates import Curves, jackknife
from pathtemp.engines.path.transport import to_z
from pathtemp.engines.path.widen import off_line
from pathtemp.result.run import Check, Diagnostics
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.densities import check_met
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics
from pathtemp.verdict.registry import MORE

if TYPE_CHECKING:
    from pathtemp.engines.path.engine import PathEngine

FLOOR = 0.02
"""Error of a Rao-Blackwell estimate by its bins, in nats."""

PLACES = np.linspace(0.03, 0.97, 16)
"""Positions at which two curves are compared."""


def judge(
    engine: PathEngine, curves: tuple[Curves, Curves], draws: FloatArray, beside: Sequence[Check] | None = None
) -> Diagnostics:
    """All gates, from the frozen rounds.

    Parameters
    ----------
    curves
        By path sampling and by Rao-Blackwell.
    draws
        Of the law that was asked for, shape (chain, draw, dim).
    beside
        Further gates of a margin, where z is a density, whose error matters where its mass is; None for any other path.
    """
    chains, trace, (path_sampled, rao_blackwell) = engine.chains, engine.trace, curves
    mixing, trips = Mixing.of(draws), int(trace.trips.trips.sum())
    edges = np.linspace(chains.low, chains.high, travel.BINS + 1)
    acceptance = trace.accepted / np.maximum(trace.moves, 1e-12)
    margin = beside is not None
    checks = [
        travel.check_rounds(trace.rounds),
        travel.check_coverage(trace.visits, edges, more=MORE),
        travel.check_tours(trips),
        travel.check_local(trace.ends[1] - trace.ends[0]),
        travel.check_acceptance(acceptance, trace.moves, np.linspace(chains.low, chains.high, STEPS)),
        gates.check_conditional(_conditional_rhat(engine)),
        gates.check_rhat(mixing.rhat, limit=chains.settings.rhat),
        travel.check_curves(*_contrast(path_sampled, rao_blackwell)),
        travel.check_density(_error_at_mass(path_sampled))
        if margin
        else travel.check_precision(float(path_sampled.se(_rise))),
        *(beside or ()),
        *check_met(chains.rejected),
    ]
    middles = (np.arange(travel.BINS) + 0.5) / travel.BINS
    at_bins = np.interp(middles, np.linspace(0.0, 1.0, STEPS), acceptance)
    return diagnostics(
        checks,
        mixing,
        AlongPath(edges, _local_length(trace.stacked("s"), trace.stacked("plain")), at_bins, trace.visits),
        khat=engine.khat,
        tours=trips,
        ends={
            name: (float(_rise(each.mean)), float(each.se(_rise)))
            for name, each in zip(("path sampling", "Rao-Blackwell"), curves, strict=True)
        },
        rejected=chains.rejected,
    )


def _rise(curve: FloatArray) -> FloatArray:
    """From the first to the last position."""
    return np.asarray(curve[-1] - curve[0])


def _local_length(s: FloatArray, u: FloatArray) -> FloatArray:
    """Length of the path in each bin: standard deviation of the gradients in it, their slope taken off."""
    found = np.full(travel.BINS, np.nan)
    for i in range(travel.BINS):
        here = (s >= i / travel.BINS) & (s < (i + 1) / travel.BINS) & np.isfinite(u)
        if np.count_nonzero(here) >= 4:
            found[i] = np.std(off_line(s[here], u[here])) / travel.BINS
    return found


def _conditional_rhat(engine: PathEngine) -> float:
    """R-hat of the other parameters given lam, standardised by the transport."""
    chains = engine.chains
    theta, a = engine.trace.stacked("theta"), engine.trace.stacked("theta_a")
    thin = max(1, len(a) // 200)
    theta, a = theta[::thin], a[::thin]
    s = (chains.lam_of(a) - chains.low) / (chains.high - chains.low)
    flat = theta.reshape(-1, chains.dim)
    z = to_z(chains.parameters.transport, s.ravel(), flat, np.zeros_like(flat))[0].reshape(theta.shape)
    return gates.rhat_ess(np.swapaxes(z, 0, 1))[0]


def _contrast(first: Curves, second: Curves) -> tuple[FloatArray, FloatArray]:
    """Difference of two curves at ``PLACES``, about its mean, and its standard error."""

    def contrast(one: FloatArray, two: FloatArray) -> FloatArray:
        values = np.interp(PLACES, first.x, one) - np.interp(PLACES, second.x, two)
        return np.asarray(values - values.mean())

    spread = jackknife(np.array([contrast(*pair) for pair in zip(first.without, second.without, strict=True)]))
    return contrast(first.mean, second.mean), spread + FLOOR


def _error_at_mass(curves: Curves) -> float:
    """The largest standard error of log p where most of the mass is."""
    weight = np.exp(curves.mean - curves.mean.max())
    se = curves.se(lambda log_p: log_p - np.average(log_p, weights=weight))
    return float(np.max(se[weight > 1e-3]))
