"""The adaptive loop of section 2.1: sample, estimate log z, set c <- z, diagnose, repeat. The only one.

It prepares an engine, runs adaptive rounds until the kernel has settled, freezes it, and runs frozen rounds until the
run is over. Records, progress, interrupts, checkpoints, resuming and extending are its work and no engine's.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from enum import Enum
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import jax

from pathtemp.engines.interrupts import Interrupts, Stopped
from pathtemp.engines.met import tell_of_zeros
from pathtemp.engines.progress import Progress
from pathtemp.engines.protocol import Engine, Keep, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.io.persistent import persistent, restore, state_of
from pathtemp.model.inputs import naming
from pathtemp.model.model import Model
from pathtemp.result.fit import Fit
from pathtemp.result.run import Check, RoundRecord
from pathtemp.result.summary import with_error
from pathtemp.verdict.travel import check_finished, when_interrupted

log = logging.getLogger("pathtemp")

ADAPT_SHARE = 0.5
"""Share of the seconds of a run by which its kernel is frozen."""

SPARE = 1.1
"""Rounds that must fit into what is left for one to begin: trajectories are random, so one may cost a little more."""

MOST_CURVES = 64
"""Records of the history that hold a curve."""


class Stage(Enum):
    """How far a run may go at a time, where several wait for each other."""

    PREPARED = "prepared"
    """All is done that comes before the first round."""
    ADAPTED = "adapted"
    """The kernel is as good as adapting makes it, and not frozen yet."""
    DONE = "done"
    """The run is over."""


@persistent("schedule", "history", "prepared", "adapted", "frozen", "burnt_in", "kept_back", "max_seconds", "engine")
class Driver:
    """One run of an engine; it can be kept, resumed and extended between any two rounds.

    Parameters
    ----------
    engine
        What samples and learns.
    schedule
        How far the run goes.
    model
        The user's, whose names are in messages.
    progress
        Who is told.
    keep
        Called with the state after every round; None where nothing is kept.
    plan
        What was asked for, from which the engine can be made again.
    interrupts
        Who hears Ctrl-C; several runs may share one.
    max_seconds
        Wall seconds after which no round begins that would not end in time; those before a run was resumed count.
    """

    def __init__(
        self,
        engine: Engine,
        schedule: Schedule,
        *,
        model: Model,
        progress: Progress,
        keep: Keep | None = None,
        plan: Any = None,
        interrupts: Interrupts | None = None,
        max_seconds: float = float("inf"),
    ) -> None:
        self.engine, self.schedule, self.progress = engine, schedule, progress
        self.restored()
        self.max_seconds = max_seconds
        self._begun, self._before, self._round_seconds = time.perf_counter(), 0.0, 0.0
        self.history: list[RoundRecord] = []
        self.prepared = self.frozen = self.burnt_in = False
        self.adapted, self.kept_back = 0, 0.0
        self._model, self._keep, self._plan = model, keep, plan
        self._interrupts = Interrupts() if interrupts is None else interrupts
        self._until, self._ripe = Stage.DONE, False
        # Runs that wait for each other, and runs that were extended, keep their base.
        self._may_begin_again = False

    def restored(self) -> None:
        """Tell the engine what a density costs."""
        self.engine.price = self.schedule.price

    def carry_out(self) -> Fit:
        """Do what is left; the fit of it."""
        if self.schedule.most < float("inf"):
            # A bar needs an end to move towards, and moves by gradients.
            self.progress.start(int(self.schedule.most * self.engine.gradient_share))
        self._may_begin_again = True
        return self._fit_after_rounds()

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """Go on where the run stopped; the fit of all rounds together."""
        with jax.transfer_guard("allow"):
            self._may_begin_again, self.max_seconds = False, float("inf")
            self.plan_more(draws=draws, budget=budget)
            return self._fit_after_rounds()

    def plan_more(self, *, draws: int | None, budget: float | None) -> None:
        """Let the run go further than it was to."""
        engine = self.engine
        given = {name for name, value in (("draws", draws), ("budget", budget)) if value is not None}
        if not given or given - set(engine.extended_by):
            names = " or ".join(f"{name}=" for name in engine.extended_by)
            raise InputError(f"extend: give {names}; that is what this run can be extended by")
        engine.price = self.schedule.price if budget is None else engine.density_price
        least = SPARE * engine.round_cost
        if budget is not None and not budget >= least:
            raise InputError(
                f"extend: budget must be {least:.0f} gradient equivalents at least, one round, and is {budget}"
            )
        if draws is not None and draws < 1:
            raise InputError(f"extend: draws must be at least 1, and is {draws}")
        needed = 0.0 if draws is None else engine.make_room(draws)
        most = engine.charged + (needed if budget is None else budget)
        self.schedule = replace(engine.schedule(most), until_done=budget is None, price=engine.price)
        if self.frozen:
            self._keep_back()

    def advance(self, until: Stage) -> bool:
        """Go on to a stage; whether the run came to it, and was not stopped."""
        self._until = until
        try:
            with naming(self._model):
                self._rounds()
        except Stopped:
            return False
        finally:
            self._until = Stage.DONE
        return True

    def begin_again(self) -> None:
        """Prepare once more, for what the engine has learned from elsewhere."""
        self._prepare()

    def freeze(self) -> None:
        """End adaptation."""
        self.engine.freeze()
        self.frozen = True
        self._keep_back()

    def record(self) -> dict[str, Any]:
        """All that it takes to go on from here, but the model: what a checkpoint holds."""
        # Imported here, so that a run without a file knows nothing of them.
        from pathtemp.io.writer import known_of

        return {"plan": self._plan, "model": known_of(self._model), "state": state_of(self)}

    def note(self, line: Line) -> None:
        """Add a line to the history."""
        curve = line.curve
        record = RoundRecord(
            phase=line.phase,
            gradients=self.engine.counts.gradients,
            tours=line.tours,
            log_z=float(curve.mean[-1] - curve.mean[0]),
            log_z_se=float(curve.stderr[-1]),
            khat=line.khat,
            acceptance=line.acceptance,
            curve=curve if line.changed else None,
        )
        self.history.append(record)
        self._thin_curves()
        log.info(
            "%s: %s after %d gradients, log z %s, %d round trips",
            self._model.name,
            record.phase,
            record.gradients,
            with_error(record.log_z, record.log_z_se),
            record.tours,
        )
        self.progress.round(record)

    def _thin_curves(self) -> None:
        """Keep the curves of every so many records, and the last: a round costs the same as any."""
        last = len(self.history) - 1
        stride, before = (2 ** (max(n, 0) // MOST_CURVES).bit_length() for n in (last, last - 1))
        for place in range(0 if stride > before else max(last - 1, 0), last):
            if place % stride and self.history[place].curve is not None:
                self.history[place] = replace(self.history[place], curve=None)

    def spent_on(self, phase: str) -> list[int]:
        """Gradient evaluations of each line of the history of that phase."""
        before = [0, *(record.gradients for record in self.history)]
        pairs = zip(self.history, before, strict=False)
        return [record.gradients - spent for record, spent in pairs if record.phase == phase]

    def _fit_after_rounds(self) -> Fit:
        more = "" if self._keep is None else "; pt.resume goes on from the rounds before once it is mended"
        stopped, began, before = False, time.perf_counter(), sum(self.engine.seconds.values())
        self._begun, self._before = began, before
        try:
            with self._held(), self._interrupts.heard(), naming(self._model, more=more):
                self._rounds()
        except Stopped:
            stopped = True
        finally:
            self.progress.finish()
        with self.timed("verdict"), naming(self._model, more=more):
            fit = self.engine.fit(tuple(self.history))
        tell_of_zeros(self._model.name, fit.diagnostics.rejected)
        seconds = dict(self.engine.seconds)
        seconds["other"] = seconds.get("other", 0.0) + time.perf_counter() - began - (sum(seconds.values()) - before)
        checks, continuation = fit.diagnostics.checks, self if self.engine.extended_by else None
        checks = when_interrupted(self._unfinished(), checks) if stopped else checks
        diagnostics = replace(fit.diagnostics, checks=checks)
        return replace(fit, diagnostics=diagnostics, seconds=seconds, continuation=continuation)

    def _held(self) -> AbstractContextManager[None]:
        return nullcontext() if self._keep is None else self._keep.held()

    def _rounds(self) -> None:
        """The loop."""
        if not self.prepared:
            self._prepare()
        if self._until is Stage.PREPARED:
            return
        self._compile()
        while self._all_rounds():
            self.frozen = self.burnt_in = False
            self._prepare()
            self._compile()

    def _all_rounds(self) -> bool:
        """The rounds of the engine as it is prepared, and what comes after them; whether to begin again."""
        while (run := self._next()) is not None:
            began = time.perf_counter()
            run()
            self._between_rounds()
            self._round_seconds = time.perf_counter() - began
        if not (self.frozen and self.engine.finish(self, self.kept_back)):
            return False
        again = self._may_begin_again and self.engine.begins_again(self)
        if not again:
            self._between_rounds()
        return again

    def _next(self) -> Callable[[], None] | None:
        """The next round; None where the run is over."""
        engine, schedule = self.engine, self.schedule
        if not self.frozen:
            return None if self._ripe else self._adaptive_round
        room = schedule.most - self.kept_back - engine.charged
        over = not schedule.freezes or room < SPARE * engine.round_cost
        if over or self._elapsed + SPARE * self._round_seconds > self.max_seconds:
            return None
        with self.timed("verdict"):
            done = schedule.until_done and engine.complete()
        return None if done else self._frozen_round

    def _prepare(self) -> None:
        self.engine.prepare(self)
        self.prepared, self.adapted, self._ripe = True, 0, False

    def _compile(self) -> None:
        self.progress.compile("round")
        # What judges the rounds takes most of a second to import, and XLA leaves Python free while it compiles.
        Thread(target=import_module, args=("arviz_stats.base",), daemon=True).start()
        self.engine.compile()

    def _adaptive_round(self) -> None:
        engine, schedule = self.engine, self.schedule
        with self.timed("adapt"):
            record = engine.round()
            self.adapted += 1
            last = self._last_adaptation()
            self.note(engine.adapt(record, self.adapted, last=last))
            restarts = engine.restarts(record, self)
        if restarts:
            self._prepare()
            self._compile()
        elif last or (engine.settled and engine.charged >= schedule.adapt_least):
            self._ripe = True
            if self._until is Stage.DONE:
                self.freeze()

    def _last_adaptation(self) -> bool:
        """Whether no adaptive round may follow."""
        schedule, spent = self.schedule, self.engine.charged
        no_room = not schedule.freezes and spent + SPARE * self.engine.round_cost > schedule.most
        no_room = no_room or self.late(ADAPT_SHARE if schedule.freezes else 1.0)
        return no_room or spent >= schedule.adapt_most or self.adapted == schedule.adaptations

    def _keep_back(self) -> None:
        self.kept_back = self.engine.kept_back(self.schedule.most - self.engine.charged)

    def _frozen_round(self) -> None:
        with self.timed("sample"):
            record = self.engine.round()
            if self.burnt_in:
                self.note(self.engine.keep(record))
            else:
                # The chains still stand as the last adaptive kernel left them.
                self.burnt_in = True
                self.engine.burnt_in()

    @property
    def _elapsed(self) -> float:
        """Wall seconds of the run so far."""
        return self._before + time.perf_counter() - self._begun

    def late(self, share: float) -> bool:
        """Whether this share of the seconds that the run may take is over."""
        return self._elapsed >= share * self.max_seconds

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time that passes to the seconds of a phase, but what others count meanwhile."""
        begin, before = time.perf_counter(), sum(self.engine.seconds.values())
        yield
        seconds = self.engine.seconds
        elsewhere = sum(seconds.values()) - before
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - begin - elsewhere

    def _between_rounds(self) -> None:
        self._interrupts.round_ended()
        if self._keep is not None:
            self._keep(state_of(self))
        self._interrupts.stop_if_asked()

    def _unfinished(self) -> Check:
        """The gate that says that the rounds are not all."""
        ways = ["fit.extend"] if self.engine.extended_by else []
        ways += ["pt.resume on its checkpoint"] if self._keep is not None else []
        unit = "gradient equivalents" if self.schedule.price else "gradient evaluations"
        return check_finished(round(self.engine.charged), ways, limit=self.schedule.most, unit=unit)


def new_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The file of a checkpoint that is to be made, where it can be made and would hide no other."""
    from pathtemp.io.checkpoint import new_place

    return new_place(path)


def carry_out(
    engine: Engine,
    plan: Any,
    model: Model,
    progress: Progress,
    place: Path | None,
    *,
    max_seconds: float | None = None,
) -> Fit:
    """The fit of a new run, with a checkpoint at ``place`` where there is one; ``plan`` says what was asked for."""
    keep, limit = None if place is None else _writer(place, plan, model), max_seconds or float("inf")
    schedule = engine.schedule(plan.budget)
    driver = Driver(engine, schedule, model=model, progress=progress, keep=keep, plan=plan, max_seconds=limit)
    return driver.carry_out()


def go_on(engine: Engine, record: Mapping[str, Any], model: Model, progress: Progress, place: Path) -> Fit:
    """The fit of a run that goes on from the ``record`` of its checkpoint at ``place``."""
    return restored(engine, record, model, progress, _writer(place, record["plan"], model)).carry_out()


def restored(
    engine: Engine, record: Mapping[str, Any], model: Model, progress: Progress, keep: Keep | None = None
) -> Driver:
    """The run of a record, where it stood."""
    plan = record["plan"]
    driver = Driver(engine, engine.schedule(plan.budget), model=model, progress=progress, keep=keep, plan=plan)
    restore(driver, record["state"])
    return driver


def _writer(place: Path, plan: Any, model: Model) -> Keep:
    # Imported here, so that a run without a checkpoint knows nothing of them.
    from pathtemp.io.writer import Writer

    return Writer(place, plan, model)
