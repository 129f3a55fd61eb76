"""The adaptive loop of section 2.1 with the default kernel: sample, estimate log z, set c <- z, diagnose, repeat.

After the annealing pass come adaptive rounds, in which link, pseudo-prior, transport and step sizes are refitted to
the pooled draws. Then the kernel is frozen: the estimates come from the frozen rounds, where tours are independent
and errors follow from them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathtemp.curve import LogZ, unknown
from pathtemp.diagnostics import rhat_ess
from pathtemp.engine import Engine
from pathtemp.errors import InputError
from pathtemp.kernels.rounds import Record
from pathtemp.learner import from_record
from pathtemp.links import TARGET_START
from pathtemp.progress import Progress
from pathtemp.run import RoundRecord, Run
from pathtemp.tours import TargetVisits, TripCounter
from pathtemp.trace import Trace
from pathtemp.verdict import all_drawn, judge, target_draws

REFIT_AT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Adaptive rounds after which everything is refitted; in between only step sizes move."""

PINNED_SHARE = 0.2
"""Share of the budget for which chains on a long path are held at their lam: there the transport alone travels, and
it wants draws in equilibrium, many more than there are dimensions."""

MANY_TOURS = 20
"""Round trips a chain from which the R-hat of the verdict is enough to stop."""

SMALL_RHAT = 1.01
"""R-hat of the target draws below which a run without a given budget may stop."""

ANNEAL_SHARE = 0.4
"""Largest share of the budget for the annealing pass."""

BASE_SHARE = 0.2
"""Largest share of the budget for coming to a base that is only a density."""

KEPT_BACK = 2
"""Rounds of the budget that nothing before them may spend."""

FEWEST_ROUNDS = 4
"""Rounds that a budget must hold at least."""

SPARE = 1.1
"""Rounds that must fit into what is left for one to begin: trajectories are random, so one may cost a little more."""


@dataclass
class Adaptation:
    """How far the adaptive rounds have come.

    Parameters
    ----------
    pinned
        Rounds, the first ones, in which chains are held at their lam.
    rounds
        Rounds done.
    change
        Largest change of log c at the last refit.
    refitted, settled
        Whether the last round ended with a refit, and whether it was the last.
    orbit_pays
        Whether the orbit moved a far enough in the last round.
    """

    pinned: int
    rounds: int = 0
    change: float = float("inf")
    refitted: bool = False
    settled: bool = False
    orbit_pays: bool = True


class AdaptiveRun:
    """The loop over one engine; can be continued.

    ``after_round`` is called between rounds, where the whole state can be kept and taken up again, and may raise to
    stop the run there.
    """

    def __init__(self, engine: Engine, progress: Progress) -> None:
        self.engine, self.progress = engine, progress
        self.history: list[RoundRecord] = []
        self.trace = Trace(engine.settings.chains)
        self._trips = TripCounter(engine.settings.chains)
        self._early_visits = TargetVisits(engine.settings.chains)
        self._burnt_in = False
        self._annealed = False
        self._adaptation: Adaptation | None = None
        self._frozen = False
        self.limit: tuple[float, bool] | None = None
        self.after_round: Callable[[], None] = lambda: None

    def before_rounds(self, budget: float) -> float:
        """Gradient evaluations that may be spent in all before the first round."""
        return budget - KEPT_BACK * self.engine.round_gradients

    def anneal(self, budget: float, *, kept_back: float = 0.0) -> None:
        """The annealing pass; ``kept_back`` is for what is to come between it and the rounds."""
        self.progress.compile("annealing pass")
        self.engine.anneal(
            ANNEAL_SHARE * budget,
            self.progress.anneal,
            at_base=BASE_SHARE * budget,
            limit=self.before_rounds(budget) - kept_back,
        )
        self._annealed = True
        self.note("anneal")

    def note(self, phase: str) -> None:
        """A line of the history for what was done outside the rounds."""
        self._note(phase, 0, np.nan, self.best_curve() if self.trace.rounds else self._prior_curve())

    def warm_up(self, budget: float, *, least: float, watch: Callable[[Record], bool] = lambda record: False) -> bool:
        """Annealing pass and adaptive rounds, until the kernel has settled or its share of the budget is spent.

        It is not frozen before ``least`` gradient evaluations.
        ``watch`` sees each round, and may end the warm-up by returning True; this then returns False.
        """
        engine, settings = self.engine, self.engine.settings
        if not self._annealed:
            self.anneal(budget)
        self.progress.compile("round")
        engine.compile_round()
        if self._frozen:
            return True
        if self._adaptation is None:
            pinned = int(PINNED_SHARE * budget / engine.round_gradients) if bool(engine.parameters.pinned) else 0
            self._adaptation = Adaptation(pinned)
        now = self._adaptation
        while not now.settled and (engine.counts.gradients + 2 * engine.round_gradients <= budget or now.rounds == 0):
            if self._adapt(budget, least, now, watch):
                self._adaptation = None
                return False
            self.after_round()
        if not now.refitted:
            engine.refit()
        engine.pin(False)
        engine.freeze(now.orbit_pays)
        self._trips = TripCounter(settings.chains)
        self._frozen = True
        return True

    def _adapt(self, budget: float, least: float, now: Adaptation, watch: Callable[[Record], bool]) -> bool:
        """One adaptive round; returns what ``watch`` says of it."""
        engine, settings = self.engine, self.engine.settings
        begin = time.perf_counter()
        record = engine.round()
        now.rounds += 1
        free = now.rounds - now.pinned
        at_base, at_target = record.regenerated | (record.lam <= 0), record.lam >= 1
        trips = self._trips.add(at_base, at_target)
        if free > 1:
            self._early_visits.add(at_base, at_target)
        engine.pool.add(from_record(record, engine.unstick(record) if bool(engine.parameters.pinned) else None))
        engine.adapt_steps(record)
        over = engine.counts.gradients >= settings.adapt_share * budget
        now.refitted = over or free == 0 or (free if free > 0 else now.rounds) in REFIT_AT
        if now.refitted:
            now.change = engine.refit()
            engine.pin(free < 0)
        now.orbit_pays = engine.orbit_pays(record)
        self._note("adapt" if free > 0 else "pin", trips, _mean_acceptance(record), self._prior_curve())
        stopped = watch(record)
        enough = engine.counts.gradients >= least
        now.settled = over or (enough and self._settled(record, now.change, trips, free))
        engine.seconds["adapt"] += time.perf_counter() - begin
        return stopped

    def _settled(self, record: Record, change: float, trips: int, free_rounds: int) -> bool:
        """Whether the last refit changed little and the chains travel: the kernel may be frozen."""
        settings = self.engine.settings
        acceptance = _mean_acceptance(record)
        return (
            free_rounds >= 3
            and change < 0.5
            and trips >= settings.chains / 4
            and abs(acceptance - settings.acceptance) < 0.1
        )

    def sample(self, budget: float, *, until_done: bool) -> None:
        """Frozen rounds until the budget is spent, or, with ``until_done``, until everything asked for is there."""
        engine = self.engine
        self.limit = (budget, until_done)
        while engine.counts.gradients + SPARE * engine.round_gradients <= budget:
            if until_done and self._done():
                break
            begin = time.perf_counter()
            record = engine.round()
            if self._burnt_in:
                trips = self._trips.add(record.regenerated | (record.lam <= 0), record.lam >= 1)
                self.trace.add(record)
                self._note("sample", trips, _mean_acceptance(record), self.best_curve())
            else:
                # The chains still stand as the last adaptive kernel left them.
                self._burnt_in = True
                engine.reset()
            engine.seconds["sample"] += time.perf_counter() - begin
            self.after_round()

    def sample_on(self) -> None:
        """Frozen rounds until the limit that was set when the first of them began."""
        assert self.limit is not None
        budget, until_done = self.limit
        self.sample(budget, until_done=until_done)

    def _done(self) -> bool:
        """All draws are there, log z is precise and tours are many; the verdict itself is left to the end."""
        engine, trips = self.engine, int(self._trips.trips.sum())
        enough = (
            int(engine.state.target.size) >= engine.draws * engine.settings.chains
            and self.best_curve().stderr[-1] <= engine.settings.log_z_se
            and trips >= 2 * engine.settings.chains
        )
        if not enough:
            return False
        # Between modes R-hat falls slowly: many round trips are enough.
        limit = engine.settings.rhat if trips >= MANY_TOURS * engine.settings.chains else SMALL_RHAT
        draws = target_draws(engine)
        return all_drawn(engine, draws) and bool(rhat_ess(draws.theta)[0] < limit)

    def best_curve(self) -> LogZ:
        """The Rao-Blackwell curve with the smallest standard error, from the lattices and the draws given theta.

        Where no chain has made a round trip nothing is known of it.
        """
        curve = self.engine.estimates().combined()
        return curve if self._trips.trips.any() else unknown(curve.lam)

    def result(self) -> Run:
        """Hand over what there is."""
        trips = int(self._trips.trips.sum())
        return judge(self.engine, self.trace, self._early_visits, tuple(self.history), self.best_curve(), trips)

    def make_room(self, *, draws: int | None, budget: float | None) -> float:
        """Make room for ``draws`` more of each chain; gradient evaluations at which the rounds to come are to end."""
        engine = self.engine
        if draws is None and budget is None:
            raise InputError("extend: give draws= or budget=")
        least = SPARE * engine.round_gradients
        if budget is not None and not budget >= least:
            raise InputError(
                f"extend: budget must be {least:.0f} gradient evaluations at least, one round, and is {budget}"
            )
        if draws is not None:
            if draws < 1:
                raise InputError(f"extend: draws must be at least 1, and is {draws}")
            engine.enlarge(draws)
        visits = (1.0 - TARGET_START) * engine.settings.iterations
        per_draw = int(engine.state.target.stride) * engine.round_gradients / visits
        return engine.counts.gradients + (budget if budget is not None else 4 * per_draw * engine.draws)

    @property
    def frozen(self) -> bool:
        """Whether adaptation has ended."""
        return self._frozen

    def go_on(self, *, draws: int | None, budget: float | None) -> Run:
        """More frozen rounds: for ``draws`` more target draws of each chain, or for ``budget`` more gradients."""
        limit = self.make_room(draws=draws, budget=budget)
        if not self.frozen:
            self.warm_up(limit, least=self.engine.settings.adapt_least * limit)
        self.sample(limit, until_done=budget is None)
        return self.result()

    def _prior_curve(self) -> LogZ:
        """The pseudo-prior as a curve, while adapting; its error is not known yet."""
        parameters = self.engine.parameters
        log_c = np.asarray(parameters.prior.log_c)
        lam = np.asarray(parameters.link.nodes)
        return LogZ(
            np.concatenate([[0.0], lam[1:]]),
            np.concatenate([[0.0], log_c[1:]]),
            np.concatenate([[0.0], np.full(len(lam) - 1, np.nan)]),
        )

    def _note(self, phase: str, trips: int, acceptance: float, curve: LogZ) -> None:
        record = RoundRecord(
            phase=phase,
            gradients=self.engine.counts.gradients,
            tours=trips,
            log_z=float(curve.mean[-1]),
            log_z_se=float(curve.stderr[-1]),
            khat=self.trace.khat(curve, self.engine.parameters) if phase == "sample" else float("nan"),
            acceptance=acceptance,
            curve=curve,
        )
        self.history.append(record)
        self.progress.round(record)


def _mean_acceptance(record: Record) -> float:
    return float(np.mean(record.acceptance))
