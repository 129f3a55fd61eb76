"""The default engine: Steps 1 to 4 of section 2.1 with transported HMC and regeneration at lam = 0.

After the annealing pass come adaptive rounds, in which link, pseudo-prior, transport and step sizes are refitted to
the pooled draws. Then the kernel is frozen: the estimates come from the frozen rounds, where tours are independent
and errors follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.chains import Chains
from pathtemp.engines.default.effort import work_of
from pathtemp.engines.default.learner import Pool, along_path, from_record, learned
from pathtemp.engines.default.modes import ModeSearch
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.default.trace import KHAT_POINTS, Trace
from pathtemp.engines.default.verdict import (
    Frozen,
    Seen,
    early_targets,
    frozen_of,
    judge,
    target_draws,
    verdict_densities,
)
from pathtemp.engines.protocol import ChainsEngine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.estimators.tours import TargetVisits, TripCounter
from pathtemp.io.persistent import persistent, storable
from pathtemp.kernels.rounds import Record
from pathtemp.model.evaluate import agree, energies_of
from pathtemp.model.model import Model
from pathtemp.modes.made_base import numbers_of, with_numbers
from pathtemp.paths.links import TARGET_START
from pathtemp.result.curve import LogZ, unknown
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, RoundRecord, Run
from pathtemp.seeds import seed_word
from pathtemp.verdict.diagnostics import Mixing
from pathtemp.verdict.draws import FEW_DRAWS, check_both_ess, rhat_limit
from pathtemp.verdict.registry import more_rounds_would_help
from pathtemp.verdict.travel import BINS

REFIT_AT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Adaptive rounds after which everything is refitted; in between only step sizes move."""

PINNED_SHARE = 0.2
"""Share of the budget for which chains on a long path are held at their lam: there the transport alone travels, and
it wants draws in equilibrium, many more than there are dimensions."""

ACCEPTED_EVERYWHERE, FEWEST_MOVES = 0.5, 20
"""Acceptance of HMC moves from which the kernel may be frozen, all along the path where so many moves were made."""

GROWTH = 1.15
"""Factor between the numbers of frozen rounds at which it asks whether it may."""

ANNEAL_SHARE, ANNEAL_SECONDS = 0.4, 0.25
"""Largest share of the budget for the annealing pass, and share of the seconds of a run by which it ends."""

BASE_SHARE = 0.2
"""Largest share of the budget for coming to a base that is only a density."""

KEPT_BACK = 2
"""Rounds of the budget that nothing before them may spend."""

FEWEST_ROUNDS = 4
"""Rounds that a budget must hold at least."""

MOST_GRADIENTS = 1_000_000
"""Gradient evaluations after which a run without a given budget stops."""

MOST_ROUNDS = 100
"""Rounds of which the shares of preparing are taken where no budget is given."""

Start = tuple[FloatArray, FloatArray]
"""Starts theta (chains, dim) and their energies (chains, 2)."""


@storable
@dataclass
class Adaptation:
    """What the last adaptive round left.

    Parameters
    ----------
    pinned
        Rounds, the first ones, in which chains are held at their lam.
    change
        Largest change of log c at the last refit.
    refitted
        Whether the round ended with a refit.
    settled
        Whether the kernel may be frozen.
    orbit_pays
        Whether the orbit moved a far enough.
    """

    pinned: int = 0
    change: float = float("inf")
    refitted: bool = False
    settled: bool = False
    orbit_pays: bool = True


@persistent(
    *("mixture", "chains", "trace", "trips", "early_visits", "early_targets"),
    *("adaptation", "modes", "free", "judged"),
)
class TemperEngine(ChainsEngine):
    """One run of the default engine.

    Parameters
    ----------
    model, plan
        The user's model, and what is asked for.
    start
        Where the chains start.
    hints, about
        Points (n, dim) near modes that the user knows of, and how the base was made if by us.
    """

    extended_by: ClassVar[tuple[str, ...]] = ("draws", "budget")
    chains: Chains

    def __init__(
        self, model: Model, plan: TemperPlan, start: Start, *, hints: FloatArray | None = None, about: str = ""
    ) -> None:
        self._model, self._plan, self.start = model, plan, start
        self.density_price = plan.settings.price
        self.chains = self.chains_of(model, start)
        self.modes = ModeSearch(model, start[0], plan, hints=hints, about=about) if plan.search else None
        self.free = 0
        self.forget()

    def chains_of(self, model: Model, start: Start) -> Chains:
        """Chains that have not moved yet, on the path of ``model``."""
        plan = self._plan
        how: dict[str, Any] = {"draws": plan.draws, "must_draw": plan.must_draw, "settings": plan.settings}
        return Chains(model, seed=seed_word(plan.seed), start=start, **how)

    def forget(self) -> None:
        """Count rounds and visits from the next round on."""
        count = self._plan.settings.chains
        self.trace, self.trips, self.early_visits = Trace(count), TripCounter(count), TargetVisits(count)
        self.early_targets: FloatArray | None = None
        self.adaptation = Adaptation()
        # Frozen rounds whose verdict is in the counts; and the last verdict, of what, and what it was made of.
        self.judged = -1
        self._verdict: tuple[tuple[Any, ...], Frozen, Run] | None = None

    def schedule(self, budget: float | None) -> Schedule:
        """How far a run goes: all of a budget, or until everything is there."""
        settings, price = self._plan.settings, 0.0 if budget is None else self.density_price
        one = self.round_gradients + price * self.round_densities
        most = MOST_GRADIENTS if budget is None else budget
        planned = min(most, MOST_ROUNDS * one) if budget is None else most
        return Schedule(
            most=most,
            planned=planned,
            adapt_least=work_of(settings).rounds * one if budget is None else settings.adapt_least * most,
            adapt_most=min(settings.adapt_share * planned, planned - 2 * one),
            until_done=budget is None,
            price=price,
        )

    @property
    def gradient_share(self) -> float:
        """Share of what rounds cost that is gradients."""
        return self.round_gradients / self.round_cost

    @property
    def charged(self) -> float:
        """Gradient equivalents so far, without those of a search that only the price of a density bounds."""
        return self.counts.cost(self.price) - self.free

    def room_before_rounds(self, host: Host) -> float:
        """Gradient equivalents that may still be spent before the first round."""
        return host.schedule.planned - KEPT_BACK * self.round_cost - self.charged

    def prepare(self, host: Host) -> None:
        """The annealing pass; the search for modes and the choice of the base, where modes are looked for."""
        if self.modes is None:
            self.anneal(host)
        else:
            self.modes.prepare(self, host)
        share = PINNED_SHARE * host.schedule.planned / self.round_cost
        self.adaptation = Adaptation(int(share) if bool(self.chains.parameters.pinned) else 0)

    def anneal(self, host: Host, *, kept_back: float = 0.0) -> None:
        """The annealing pass; ``kept_back`` is for what is to come between it and the rounds."""
        host.progress.compile("annealing pass")
        self.chains.anneal(
            ANNEAL_SHARE * host.schedule.planned,
            host.progress.anneal,
            at_base=BASE_SHARE * host.schedule.planned,
            room=self.room_before_rounds(host) - kept_back,
            price=self.price,
            late=lambda: host.late(ANNEAL_SECONDS),
        )
        host.note(self.line("anneal"))

    def line(self, phase: str) -> Line:
        """A line of the history for what was done outside the rounds."""
        return Line(phase, self.best_curve() if self.trace.rounds else self._prior_curve())

    def compile(self) -> None:
        """Compile the round."""
        self.chains.compile()

    def round(self) -> Record:
        """Run one round."""
        return self.chains.round()

    def adapt(self, record: Record, number: int, *, last: bool) -> Line:
        """Pool the draws, move the step sizes, and refit everything after the rounds of ``REFIT_AT``."""
        chains, now, settings = self.chains, self.adaptation, self._plan.settings
        free = number - now.pinned
        visits = record.regenerated, record.lam >= 1
        trips = self.trips.add(*visits)
        if free > 1:
            self.early_visits.add(*visits)
        chains.pool.add(from_record(record, chains.unstick(record) if bool(chains.parameters.pinned) else None))
        chains.adapt_steps(record)
        now.refitted = last or free == 0 or (free if free > 0 else number) in REFIT_AT
        if now.refitted:
            now.change = chains.refit()
            chains.pin(free < 0)
        now.orbit_pays = chains.orbit_pays(record)
        acceptance = float(np.mean(record.acceptance))
        accepts = abs(acceptance - settings.acceptance) < 0.1 and _least_acceptance(record) > ACCEPTED_EVERYWHERE
        travels = trips >= settings.chains / 4 and accepts
        now.settled = learned(chains.parameters, settings, rounds=free) and now.change < 0.5 and travels
        return Line("adapt" if free > 0 else "pin", self._prior_curve(), trips, acceptance)

    @property
    def settled(self) -> bool:
        """Whether the last refit changed little and the chains travel."""
        return self.adaptation.settled

    def restarts(self, record: Record, host: Host) -> bool:
        """Whether target draws of the round led to a mode that the base should know."""
        return self.modes is not None and self.modes.met_new_mode(self, record, host)

    def learn(self, modes: FloatArray, host: Host) -> bool:
        """Hear of modes (n, dim) that were found elsewhere; whether everything is to be prepared again with them."""
        return self.modes is not None and self.modes.learn(modes, self, host)

    def freeze(self) -> None:
        """End adaptation: round trips count from now on, and what only adapting needs goes."""
        if not self.adaptation.refitted:
            self.chains.refit()
        self.chains.pin(False)
        self.chains.freeze(self.adaptation.orbit_pays)
        self.early_targets = early_targets(self.chains)
        self.chains.pool = Pool()
        self.trips = TripCounter(self._plan.settings.chains)

    def burnt_in(self) -> None:
        """Start the estimates afresh."""
        self.chains.reset()

    def keep(self, record: Record) -> Line:
        """Count a frozen round."""
        trips = self.trips.add(record.regenerated, record.lam >= 1)
        self.trace.add(record, self.chains.parameters.link.host_position(np.asarray(record.lam)))
        curve = self.best_curve()
        khat = self.trace.khat(curve, self.chains.parameters, most=KHAT_POINTS)
        return Line("sample", curve, trips, float(np.mean(record.acceptance)), khat)

    def complete(self) -> bool:
        """Whether draws and log z are as good as asked for, and no gate is closed that more rounds might open."""
        chains, settings = self.chains, self._plan.settings
        enough = (
            int(chains.state.target.size) >= chains.draws * settings.chains
            and self.best_curve().stderr[-1] <= settings.log_z_se
            and int(self.trips.trips.sum()) >= 2 * settings.chains
        )
        few = chains.draws * settings.chains < FEW_DRAWS
        # What needs no densities is asked first.
        if not (enough and _asks(self.trace.rounds) and (few or self._mixed())):
            return False
        found = self.outcome(())
        chains.counts, self.judged = found.counts, self.trace.rounds
        return good_enough(found, few=few)

    def _mixed(self) -> bool:
        """Whether R-hat and ESS of the target draws are as they should be, as far as their own coordinates tell."""
        chains, wanted = self.chains, self.chains.draws * self._plan.settings.chains
        mixing = Mixing.of(target_draws(chains).theta)
        limit = rhat_limit(self._plan.settings.rhat, wanted, several=True)
        return mixing.rhat < limit and check_both_ess(mixing.bulk, mixing.tail, wanted).passed

    def kept_back(self, left: float) -> float:
        """Gradient equivalents for the last search among the target draws, and for the densities of the verdict."""
        early = 0 if self.early_targets is None else len(self.early_targets)
        verdict = self.price * verdict_densities(self.chains, early, rounds=left / self.round_cost)
        return verdict + (0.0 if self.modes is None else self.modes.kept_back(self, left - verdict))

    def finish(self, host: Host, room: float) -> bool:
        """Look for modes among the target draws, once for the rounds there are."""
        return self.modes is not None and self.modes.search_draws(self, host, room)

    def begins_again(self, host: Host) -> bool:
        """Make ready to begin again where that search led to a mode that the base should know; whether it did."""
        return self.modes is not None and self.modes.found_late(self, host)

    def make_room(self, draws: int) -> float:
        """Larger buffers; the round is compiled once more for them."""
        self.chains.enlarge(draws)
        visits = (1.0 - TARGET_START) * self._plan.settings.iterations
        per_draw = int(self.chains.state.target.stride) * self.round_cost / visits
        return 4 * per_draw * self.chains.draws

    def best_curve(self) -> LogZ:
        """The Rao-Blackwell curve of the smallest error; where no chain made a round trip nothing is known of it."""
        curve = self.chains.estimates().combined()
        return curve if self.trips.trips.any() else unknown(curve.lam)

    def _prior_curve(self) -> LogZ:
        """The pseudo-prior as a curve, while adapting; its error is not known yet."""
        parameters = self.chains.parameters
        log_c, lam = np.asarray(parameters.prior.log_c), np.asarray(parameters.link.nodes)
        error = np.full(len(lam) - 1, np.nan)
        return LogZ(*(np.append(0.0, x) for x in (lam[1:], log_c[1:], error)))

    def frozen(self) -> Frozen:
        """What the frozen rounds leave, of which draws, estimates and verdict are made."""
        early = early_targets(self.chains) if self.early_targets is None else self.early_targets
        seen = Seen(self.trace, int(self.trips.trips.sum()), self.early_visits, early)
        return frozen_of(self.chains, seen, self.best_curve())

    def outcome(self, history: tuple[RoundRecord, ...]) -> Run:
        """Draws, estimates and verdict of the frozen rounds, as plain arrays."""
        chains, rounds = self.chains, self.trace.rounds
        of = (chains, rounds, chains.draws, chains.rejected)
        if self._verdict is None or self._verdict[0] != of:
            frozen = self.frozen()
            self._verdict = of, frozen, judge(frozen, ())
        _, frozen, run = self._verdict
        densities = 0 if self.judged == rounds else run.counts.densities - frozen.counts.densities
        counts, seconds = chains.counts + Counts(0, densities), dict(chains.seconds)
        run = replace(run, history=history, counts=counts, seconds=seconds)
        return run if self.modes is None else self.modes.added_to(run, frozen)

    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        """Draws, estimates and verdict of the frozen rounds."""
        return Fit.from_run(self.outcome(history), self._model, seed=self._plan.seed, settings=self._plan.settings)

    @property
    def mixture(self) -> dict[str, Any] | None:
        """The numbers of the base that was made for the path; None where it starts from the user's base."""
        return numbers_of(self.chains.model)

    @mixture.setter
    def mixture(self, kept: dict[str, Any] | None) -> None:
        if kept is not None:
            self.chains = self.chains_of(with_numbers(self._model, kept), self.start)

    def restored(self) -> None:
        """Hold the model against the log densities at the chains that were kept."""
        chains = self.chains.state.chains
        if not agree(energies_of(self.chains.path, np.asarray(chains.theta)), np.asarray(chains.energies)):
            raise InputError(
                "model: its log densities at the chains of the checkpoint are not those in the file; give the model, "
                "data and base that the run was of"
            )


def good_enough(found: Run, *, few: bool) -> bool:
    """Whether draws have mixed, and no gate is closed that more rounds might open.

    Where the user asked for ``few`` draws, R-hat and ESS are not waited for.
    """
    left_out = ("R-hat", "ESS") if few else ()
    return not more_rounds_would_help(check for check in found.diagnostics.checks if check.name not in left_out)


def _least_acceptance(record: Record) -> float:
    """The lowest mean acceptance of HMC moves along the path, where there were enough of them."""
    mean, moves = along_path(record.position, record.acceptance, BINS)
    return float(np.min(mean[moves >= FEWEST_MOVES], initial=1.0))


def _asks(rounds: int) -> bool:
    """Whether a run of so many frozen rounds asks if it is complete: a number of times that grows as their logarithm.

    >>> [rounds for rounds in range(1, 30) if _asks(rounds)]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 22, 25, 29]
    """
    steps = np.floor(np.log([max(rounds - 1, 0.5), rounds]) / np.log(GROWTH))
    return bool(steps[1] > steps[0])
