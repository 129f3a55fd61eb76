"""From a finished run of the default engine to its draws, its diagnostics and its verdict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.chains import Chains
from pathtemp.engines.default.learner import spread_of_delta, target_thetas
from pathtemp.engines.default.trace import Trace
from pathtemp.estimators.mbar import mbar, mbar_se
from pathtemp.estimators.tours import TargetVisits
from pathtemp.model.evaluate import energies_of, exact_draws
from pathtemp.paths.links import thermodynamic_length
from pathtemp.result.curve import LogZ
from pathtemp.result.grouping import MOST_GROUPS, Grouped, grouped
from pathtemp.result.run import Check, RoundRecord, Run
from pathtemp.seeds import Draws
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics

MBAR_POINTS = 20_000
"""Draws from which the second estimate of log z is made."""


def target_draws(chains: Chains) -> Grouped:
    """The target draws of a run: as many as were asked for, or all that were kept."""
    count = chains.settings.chains
    return grouped(chains.state.target, count, most=count * chains.draws if chains.must_draw else None)


def base_draws(chains: Chains, shape: tuple[int, int]) -> FloatArray:
    """Draws at lam = 0: exact where the base can be sampled, else the chains' own."""
    sample = chains.model.sample_base
    if sample is None:
        return grouped(chains.state.base, chains.settings.chains, most=shape[0] * shape[1]).theta
    return exact_draws(sample, seed=chains.seed, stream=Draws.BASE, count=shape[0] * shape[1]).reshape(*shape, -1)


def second_estimate(trace: Trace) -> tuple[float, float]:
    """Log z(1) by MBAR over the frozen rounds, with a standard error over chains."""
    lam, delta = trace.lam, trace.delta
    if lam.size == 0 or not np.any(lam > 0):
        return float("nan"), float("inf")
    thin = max(1, lam.size // MBAR_POINTS)
    lam, delta = lam[:, ::thin], delta[:, ::thin]
    chain = np.broadcast_to(np.arange(len(lam))[:, None] % 8, lam.shape)
    centres, spread = spread_of_delta(lam.ravel(), delta.ravel())
    fine = np.concatenate([[0.0], np.geomspace(1e-10, 1.0, 2000)])
    length = thermodynamic_length(centres, spread, fine)
    count = int(np.clip(length[-1] / 0.3, 32, 512))
    grid = np.unique(np.interp(np.linspace(0, length[-1], count + 1), length, fine))
    grid = np.unique(np.concatenate([[0.0], grid, [1.0]]))
    value = mbar(lam, delta, grid)[-1]
    return float(value), float(mbar_se(lam, delta, chain, grid)[-1])


class Seen(NamedTuple):
    """What the rounds of a run have left on the host.

    Parameters
    ----------
    trace
        Of the frozen rounds.
    trips
        Round trips of all chains in the frozen rounds.
    early_visits, early_targets
        Target draws of the tours of the adaptive rounds, and points (n, dim) seen at lam = 1 before the kernel was
        frozen.
    """

    trace: Trace
    trips: int
    early_visits: TargetVisits
    early_targets: FloatArray


def judge(chains: Chains, seen: Seen, curve: LogZ, history: tuple[RoundRecord, ...]) -> Run:
    """Draws, diagnostics and verdict of a run."""
    trace, draws = seen.trace, target_draws(chains)
    final = _with_energies(chains, draws.flat)
    mixing = Mixing.of(final.reshape(*draws.chain.shape, final.shape[1]))
    first, second = (float(curve.mean[-1]), float(curve.stderr[-1])), second_estimate(trace)
    checks = [
        *_travel_gates(chains, seen),
        *_draws_gates(chains, seen, draws, final),
        gates.check_rhat(mixing.rhat, limit=chains.settings.rhat),
        gates.check_ess(min(mixing.bulk, mixing.tail)),
        travel.check_agreement(first, second, ("Rao-Blackwell", "MBAR")),
        travel.check_precision(first[1]),
    ]
    by_estimator = {name: (c.mean[-1], c.stderr[-1]) for name, c in chains.curves().items()}
    return Run(
        target=draws.theta,
        base=base_draws(chains, (len(draws.theta), max(draws.theta.shape[1], 1))),
        a=trace.a,
        lam=trace.lam,
        delta=trace.delta,
        theta0=trace.first,
        log_z=curve,
        history=history,
        diagnostics=diagnostics(
            checks,
            mixing,
            _along_path(chains, trace),
            khat=trace.khat(curve, chains.parameters) if trace.rounds else float("nan"),
            tours=seen.trips,
            ends=by_estimator | {"MBAR": second},
            rejected=chains.rejected,
        ),
        counts=chains.counts,
        seconds=dict(chains.seconds),
        stats={"lp": final[:, -1].reshape(draws.chain.shape), "tour": draws.numbered_tours, "walker": draws.chain},
    )


def _travel_gates(chains: Chains, seen: Seen) -> list[Check]:
    trace, link = seen.trace, chains.parameters.link
    edges, nodes = (link.host_at(np.linspace(0.0, 1.0, count)) for count in (travel.BINS + 1, len(trace.moves)))
    lam = trace.lam
    return [
        travel.check_reach(chains.reached),
        travel.check_rounds(trace.rounds),
        travel.check_coverage(trace.bins, edges, at_ends=(trace.at_ends[0], trace.at_ends[1])),
        travel.check_tours(seen.trips),
        travel.check_stuck(trace.returns, lam.T if lam.size else np.zeros((1, len(trace.returns)))),
        travel.check_acceptance(trace.acceptance, trace.moves, nodes),
    ]


def _draws_gates(chains: Chains, seen: Seen, draws: Grouped, final: FloatArray) -> list[Check]:
    visits = seen.trace.visits.values()
    asked = chains.settings.chains * chains.draws if chains.must_draw else 1
    checks = [
        gates.check_effective_tours(np.concatenate(visits)),
        gates.check_long_tours(*visits),
        gates.check_early_long_tours(*seen.early_visits.values()),
        gates.check_lost(_with_energies(chains, seen.early_targets), final),
        gates.check_peak(final[:, -1], draws.chain.ravel()),
        gates.check_draws(draws.size, int(chains.state.target.visits), limit=asked, short=MOST_GROUPS),
    ]
    if chains.model.sample_base is None:
        checks.append(gates.check_base(chains.base_rhat))
    if chains.rejected.nan:
        checks.append(gates.check_nan(chains.rejected))
    return checks


def _along_path(chains: Chains, trace: Trace) -> AlongPath:
    edges = chains.parameters.link.host_at(np.linspace(0.0, 1.0, travel.BINS + 1))
    middles = (np.arange(travel.BINS) + 0.5) / travel.BINS
    acceptance = np.interp(middles, np.linspace(0.0, 1.0, len(trace.moves)), trace.acceptance)
    return AlongPath(edges, _local_length(trace, edges), acceptance, trace.bins)


def early_targets(chains: Chains) -> FloatArray:
    """Points seen at lam = 1 before the kernel was frozen: of the annealing pass and of the adaptive rounds."""
    last = chains.last_level
    annealed = last.theta if last.lam >= 1.0 else last.theta[:0]
    return np.concatenate([annealed, target_thetas(chains.pool)])


def _with_energies(chains: Chains, theta: FloatArray) -> FloatArray:
    """Points (n, dim) with their log target density as one more column: the scalar that shows most."""
    energies = energies_of(chains.path, theta)[:, 1:] if len(theta) else np.empty((0, 1))
    return np.concatenate([theta, energies], axis=1)


def _local_length(trace: Trace, edges: FloatArray) -> FloatArray:
    """Thermodynamic length inside each bin of the path."""
    lam, delta = trace.lam.ravel(), trace.delta.ravel()
    if lam.size < 60:
        return np.full(len(edges) - 1, np.nan)
    return np.diff(thermodynamic_length(*spread_of_delta(lam, delta), edges))
