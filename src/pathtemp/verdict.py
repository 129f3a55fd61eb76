"""From a finished run of the default engine to its draws, its diagnostics and its verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pathtemp import diagnostics as gates
from pathtemp._types import FloatArray
from pathtemp.curve import LogZ
from pathtemp.engine import Engine
from pathtemp.estimators.mbar import mbar, mbar_se
from pathtemp.evaluate import energies_of, exact_draws
from pathtemp.grouping import MOST_GROUPS, Grouped, grouped
from pathtemp.learner import spread_of_delta, target_thetas
from pathtemp.links import thermodynamic_length
from pathtemp.run import Check, Diagnostics, RoundRecord, Run
from pathtemp.tours import TargetVisits
from pathtemp.trace import Trace

MBAR_POINTS = 20_000
"""Draws from which the second estimate of log z is made."""


def target_draws(engine: Engine) -> Grouped:
    """The target draws of a run: as many as were asked for, or all that were kept."""
    chains = engine.settings.chains
    return grouped(engine.state.target, chains, most=chains * engine.draws if engine.must_draw else None)


def all_drawn(engine: Engine, draws: Grouped) -> bool:
    """Whether as many target draws were made as asked for; groups of equal length cannot hold every number."""
    asked = engine.settings.chains * engine.draws if engine.must_draw else 1
    return draws.size > max(asked - MOST_GROUPS, 0)


def base_draws(engine: Engine, shape: tuple[int, int]) -> FloatArray:
    """Draws at lam = 0: exact where the base can be sampled, else the chains' own."""
    sample = engine.model.sample_base
    if sample is None:
        return grouped(engine.state.base, engine.settings.chains, most=shape[0] * shape[1]).theta
    return exact_draws(sample, seed=engine.seed, stream=2, count=shape[0] * shape[1]).reshape(*shape, -1)


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


def judge(
    engine: Engine,
    trace: Trace,
    early_visits: TargetVisits,
    history: tuple[RoundRecord, ...],
    curve: LogZ,
    trips: int,
) -> Run:
    """Draws, diagnostics and verdict of a run; ``early_visits`` are those of the adaptive rounds."""
    draws = target_draws(engine)
    final = _with_energies(engine, draws.flat)
    quantities = final.reshape(*draws.chain.shape, final.shape[1])
    rhat, bulk, tail = gates.rhat_ess(quantities)
    link = engine.parameters.link
    edges = link.host_at(np.linspace(0.0, 1.0, gates.BINS + 1))
    lam = trace.lam
    position = link.host_position(lam)
    acceptance, moves = trace.acceptance()
    first = (float(curve.mean[-1]), float(curve.stderr[-1]))
    second = second_estimate(trace)
    checks = [
        gates.check_reach(engine.reached),
        gates.check_rounds(trace.rounds),
        gates.check_coverage(lam, position, edges),
        gates.check_tours(trips),
        gates.check_stuck(trace.returns, lam.T if lam.size else np.zeros((1, len(trace.returns)))),
        gates.check_effective_tours(np.concatenate(trace.visits.values())),
        gates.check_long_tours(*trace.visits.values()),
        _early(gates.check_long_tours(*early_visits.values())),
        gates.check_lost(_with_energies(engine, early_targets(engine)), final),
        gates.check_peak(final[:, -1], draws.chain.ravel()),
        gates.check_acceptance(acceptance, moves, link.host_at(np.linspace(0.0, 1.0, len(acceptance)))),
        gates.check_rhat(rhat, highest=engine.settings.rhat),
        gates.check_ess(min(bulk, tail)),
        gates.check_agreement(first, second, ("Rao-Blackwell", "MBAR")),
        gates.check_precision(first[1]),
    ]
    checks.append(_check_draws(engine, draws))
    if engine.model.sample_base is None:
        checks.append(gates.check_base(engine.base_rhat))
    if engine.rejected.nan:
        checks.append(gates.check_nan(engine.rejected))
    local = _local_length(trace, edges)
    return Run(
        target=draws.theta,
        base=base_draws(engine, (len(draws.theta), max(draws.theta.shape[1], 1))),
        a=trace.a,
        lam=lam,
        delta=trace.delta,
        theta0=trace.first,
        log_z=curve,
        history=history,
        diagnostics=Diagnostics(
            checks=tuple(checks),
            khat=trace.khat(curve, engine.parameters) if trace.rounds else float("nan"),
            rhat=rhat,
            ess_bulk=bulk,
            ess_tail=tail,
            tours=trips,
            length=float(local.sum()),
            lam=0.5 * (edges[1:] + edges[:-1]),
            local_length=local,
            acceptance=acceptance,
            visits=moves,
            log_z_by_estimator={name: (c.mean[-1], c.stderr[-1]) for name, c in engine.curves().items()}
            | {"MBAR": second},
            rejections=engine.rejected.total,
            rejected=engine.rejected,
        ),
        counts=engine.counts,
        seconds=dict(engine.seconds),
    )


def early_targets(engine: Engine) -> FloatArray:
    """Points seen at lam = 1 before the kernel was frozen: of the annealing pass and of the adaptive rounds."""
    last = engine.last_level
    annealed = last.theta if last.lam >= 1.0 else last.theta[:0]
    return np.concatenate([annealed, target_thetas(engine.pool)])


def _with_energies(engine: Engine, theta: FloatArray) -> FloatArray:
    """Points (n, dim) with their log target density as one more column: the scalar that shows most."""
    energies = energies_of(engine.path, theta)[:, 1:] if len(theta) else np.empty((0, 1))
    return np.concatenate([theta, energies], axis=1)


def _early(check: Check) -> Check:
    """The same gate, said of the adaptive rounds."""
    message = check.message and f"In the adaptive rounds, {check.message[0].lower()}{check.message[1:]}"
    return replace(check, name=f"early {check.name}", message=message)


def _check_draws(engine: Engine, draws: Grouped) -> Check:
    """A gate that fails when fewer target draws were made than asked for."""
    made, asked = draws.size, engine.settings.chains * engine.draws if engine.must_draw else 1
    passed = all_drawn(engine, draws)
    message = (
        f"{made} target draws were made of {asked} asked for; the chains were at lam = 1 "
        f"{int(engine.state.target.visits)} times; {gates.MORE}, or ask for fewer draws."
    )
    return Check("draws", made, asked, passed, "" if passed else message)


def _local_length(trace: Trace, edges: FloatArray) -> FloatArray:
    """Thermodynamic length inside each bin of the path."""
    lam, delta = trace.lam.ravel(), trace.delta.ravel()
    if lam.size < 60:
        return np.full(len(edges) - 1, np.nan)
    return np.diff(thermodynamic_length(*spread_of_delta(lam, delta), edges))
