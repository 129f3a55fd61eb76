"""From a finished run of the default engine to its draws, its diagnostics and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.chains import Chains
from pathtemp.engines.default.learner import spread_of_delta, target_thetas
from pathtemp.engines.default.trace import Trace
from pathtemp.estimators.mbar import mbar_with_se
from pathtemp.estimators.tours import TargetVisits
from pathtemp.kernels.kept import Kept
from pathtemp.model.evaluate import energies_of, exact_draws, values_of
from pathtemp.model.inputs import coordinate_name
from pathtemp.model.model import Model
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import thermodynamic_length
from pathtemp.result.curve import LogZ
from pathtemp.result.grouping import MOST_GROUPS, Grouped, grouped
from pathtemp.result.run import Check, Counts, Rejections, RoundRecord, Run
from pathtemp.seeds import Draws
from pathtemp.settings import Settings
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.densities import check_met, check_normalisable
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics

RADII = (5.0, 50.0, 500.0)
"""Distances from the middle of the target draws, in standard deviations, at which a tail is looked at."""

TARGET_VISITS = 0.5
"""Share of the iterations that end at the target, at most: chains are to spend a fifth of their time there."""

MOST_RAYS = 64
"""Coordinates along which it is."""

MBAR_POINTS = 20_000
"""Draws from which the second estimate of log z is made."""


def target_draws(chains: Chains) -> Grouped:
    """The target draws of a run: as many as were asked for, or all that were kept."""
    count = chains.settings.chains
    return grouped(chains.state.target, count, most=count * chains.draws if chains.must_draw else None)


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
    value, se = mbar_with_se(lam, delta, chain, grid)
    return float(value[-1]), float(se[-1])


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


@dataclass(frozen=True)
class Frozen:
    """All that a verdict is made of: what the frozen rounds of a run leave, or those of several islands together.

    Parameters
    ----------
    model, settings, seed
        What was sampled, from the base of the path, and how.
    chains, islands
        Number of chains, and of the islands that they are of.
    asked, wanted
        Target draws that were asked for, over all chains, None where nobody did; and how many the run was to bring.
    target, base
        Draws at lam = 1, and at lam = 0 where the base cannot be sampled.
    seen
        What the rounds have left on the host.
    curve, ends, second, khat
        The log z curve; log z(1) and its standard error by estimator, and by MBAR; k-hat of 1/p(a).
    nodes, edges, length
        lam where acceptance was measured, lam at the edges of the bins of the path, and the length inside each bin.
    reached, base_rhat, rejected, counts, seconds
        As the chains have them.
    """

    model: Model
    settings: Settings
    seed: int
    chains: int
    islands: int
    asked: int | None
    wanted: int
    target: Kept
    base: Kept
    seen: Seen
    curve: LogZ
    ends: dict[str, tuple[float, float]]
    second: tuple[float, float]
    khat: float
    nodes: FloatArray
    edges: FloatArray
    length: FloatArray
    reached: float
    base_rhat: float
    rejected: Rejections
    counts: Counts
    seconds: dict[str, float]

    @property
    def draws(self) -> Grouped:
        """The target draws: as many as were asked for, or all that were kept."""
        return grouped(self.target, self.chains, most=self.asked, islands=self.islands)

    def rhat_limit(self, *, several: bool) -> float:
        """Largest R-hat of the target draws, of one mode or of ``several``."""
        return gates.rhat_limit(self.settings.rhat, self.wanted, several=several)

    def base_draws(self, shape: tuple[int, int]) -> FloatArray:
        """Draws at lam = 0: exact where the base can be sampled, else the chains' own."""
        sample, count = self.model.sample_base, shape[0] * shape[1]
        if sample is None:
            return grouped(self.base, self.chains, most=count, islands=self.islands).theta
        return exact_draws(sample, seed=self.seed, stream=Draws.BASE, count=count).reshape(*shape, -1)

    def with_energies(self, theta: FloatArray) -> FloatArray:
        """Points (n, dim) with their log target density as one more column: the scalar that shows most."""
        path = GeometricPath(self.model.log_base, self.model.log_target)
        energies = energies_of(path, theta)[:, 1:] if len(theta) else np.empty((0, 1))
        return np.concatenate([theta, energies], axis=1)


def frozen_of(chains: Chains, seen: Seen, curve: LogZ) -> Frozen:
    """What the frozen rounds of some chains leave."""
    trace, link, settings = seen.trace, chains.parameters.link, chains.settings
    edges, nodes = (link.host_at(np.linspace(0.0, 1.0, count)) for count in (travel.BINS + 1, len(trace.moves)))
    return Frozen(
        model=chains.model,
        settings=settings,
        seed=chains.seed,
        chains=settings.chains,
        islands=1,
        asked=settings.chains * chains.draws if chains.must_draw else None,
        wanted=settings.chains * chains.draws,
        target=chains.state.target,
        base=chains.state.base,
        seen=seen,
        curve=curve,
        ends={name: (c.mean[-1], c.stderr[-1]) for name, c in chains.curves().items()},
        second=second_estimate(trace),
        khat=trace.khat(curve, chains.parameters) if trace.rounds else float("nan"),
        nodes=nodes,
        edges=edges,
        length=_local_length(trace, edges),
        reached=chains.reached,
        base_rhat=chains.base_rhat,
        rejected=chains.rejected,
        counts=chains.counts,
        seconds=dict(chains.seconds),
    )


def judge(frozen: Frozen, history: tuple[RoundRecord, ...]) -> Run:
    """Draws, diagnostics and verdict of a run."""
    trace, draws, curve = frozen.seen.trace, frozen.draws, frozen.curve
    final = frozen.with_energies(draws.flat)
    mixing = Mixing.of(final.reshape(*draws.chain.shape, final.shape[1]))
    first = float(curve.mean[-1]), float(curve.stderr[-1])
    checks = [
        *_travel_gates(frozen),
        *_draws_gates(frozen, draws, final),
        gates.check_rhat(mixing.rhat, limit=frozen.rhat_limit(several=True)),
        gates.check_both_ess(mixing.bulk, mixing.tail, frozen.wanted),
        travel.check_agreement(first, frozen.second, ("Rao-Blackwell", "MBAR")),
        travel.check_precision(first[1]),
    ]
    probes = 0
    if not all(check.passed for check in checks):
        found = _normalisable(frozen, draws.flat)
        checks, probes = [*found, *checks], len(found) * probes_in(frozen.model.dim)
    return Run(
        target=draws.theta,
        base=frozen.base_draws((len(draws.theta), max(draws.theta.shape[1], 1))),
        a=trace.a,
        lam=trace.lam,
        delta=trace.delta,
        theta0=trace.first,
        points=trace.points,
        log_z=curve,
        history=history,
        diagnostics=diagnostics(
            checks,
            mixing,
            _along_path(frozen),
            khat=frozen.khat,
            tours=frozen.seen.trips,
            ends=frozen.ends | {"MBAR": frozen.second},
            rejected=frozen.rejected,
        ),
        counts=frozen.counts + Counts(0, len(final) + len(frozen.seen.early_targets) + probes),
        seconds=dict(frozen.seconds),
        stats={"lp": final[:, -1].reshape(draws.chain.shape), "tour": draws.numbered_tours, "walker": draws.chain},
    )


def with_strict_rhat(run: Run, limit: float) -> tuple[Check, ...]:
    """The checks of a run with the limit on R-hat that holds within one mode."""
    strict = gates.check_rhat(run.diagnostics.rhat, limit=limit)
    return tuple(strict if check.name == strict.name else check for check in run.diagnostics.checks)


def _travel_gates(frozen: Frozen) -> list[Check]:
    trace, lam = frozen.seen.trace, frozen.seen.trace.lam
    return [
        travel.check_reach(frozen.reached),
        travel.check_rounds(trace.rounds),
        travel.check_coverage(trace.bins, frozen.edges, at_ends=(trace.at_ends[0], trace.at_ends[1])),
        travel.check_tours(frozen.seen.trips),
        travel.check_stuck(trace.returns, lam.T if lam.size else np.zeros((1, len(trace.returns)))),
        travel.check_acceptance(trace.acceptance, trace.moves, frozen.nodes),
    ]


def _draws_gates(frozen: Frozen, draws: Grouped, final: FloatArray) -> list[Check]:
    seen = frozen.seen
    visits = seen.trace.visits.values()
    asked = 1 if frozen.asked is None else frozen.asked
    checks = [
        gates.check_effective_tours(np.concatenate(visits)),
        gates.check_long_tours(*visits),
        gates.check_early_long_tours(*seen.early_visits.values()),
        gates.check_lost(frozen.with_energies(seen.early_targets), final),
        gates.check_peak(final[:, -1], draws.chain.ravel()),
        gates.check_draws(draws.size, int(frozen.target.visits), limit=asked, short=MOST_GROUPS),
    ]
    if frozen.model.sample_base is None:
        checks.append(gates.check_base(frozen.base_rhat))
    return [*checks, *check_met(frozen.rejected)]


def verdict_densities(chains: Chains, early: int, *, rounds: float) -> float:
    """Density evaluations of :func:`judge` after so many frozen rounds, at most, with ``early`` targets."""
    settings = chains.settings
    visits = TARGET_VISITS * rounds * settings.chains * settings.iterations
    draws = chains.draws * settings.chains if chains.must_draw else len(chains.state.target.theta)
    return min(visits, draws) + early + probes_in(chains.model.dim)


def probes_in(dim: int) -> int:
    """Density evaluations far out that show whether tails fall off, in ``dim`` dimensions."""
    return 2 * min(dim, MOST_RAYS) * len(RADII)


def _normalisable(frozen: Frozen, theta: FloatArray) -> list[Check]:
    """The gate on tails that do not fall off, of the coordinates of target draws (n, dim); none without."""
    if len(theta) < 2:
        return []
    dim = min(theta.shape[1], MOST_RAYS)
    centre, spread = np.median(theta, axis=0), theta.std(axis=0)
    rays = np.concatenate([np.diag(spread)[:dim], -np.diag(spread)[:dim]])
    path = GeometricPath(frozen.model.log_base, frozen.model.log_target)
    # At three distances, so that a mode that lies on a ray is no tail.
    values = np.stack([values_of(path, centre + radius * rays)[:, 1] for radius in RADII])
    values = np.where(np.isnan(values), -np.inf, values)
    with np.errstate(invalid="ignore"):
        slopes = -np.diff(values, axis=0) / np.diff(np.log(RADII))[:, None]
    slope = np.where(np.isneginf(values[1:]), np.inf, np.nan_to_num(slopes, nan=-np.inf)).max(axis=0)
    worst = int(np.argmin(slope))
    return [check_normalisable(float(slope[worst]), coordinate_name(frozen.model, worst % dim))]


def _along_path(frozen: Frozen) -> AlongPath:
    trace = frozen.seen.trace
    middles = (np.arange(travel.BINS) + 0.5) / travel.BINS
    acceptance = np.interp(middles, np.linspace(0.0, 1.0, len(trace.moves)), trace.acceptance)
    return AlongPath(frozen.edges, frozen.length, acceptance, trace.bins)


def early_targets(chains: Chains) -> FloatArray:
    """Points seen at lam = 1 before the kernel was frozen: of the annealing pass and of the adaptive rounds."""
    last = chains.last_level
    annealed = last.theta if last.lam >= 1.0 else last.theta[:0]
    return np.concatenate([annealed, target_thetas(chains.pool)])


def _local_length(trace: Trace, edges: FloatArray) -> FloatArray:
    """Thermodynamic length inside each bin of the path."""
    lam, delta = trace.lam.ravel(), trace.delta.ravel()
    if lam.size < 60:
        return np.full(len(edges) - 1, np.nan)
    return np.diff(thermodynamic_length(*spread_of_delta(lam, delta), edges))
