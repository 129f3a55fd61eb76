"""The loop, driven over an engine that only counts: which round comes when, what is kept, and when a run is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from synthetic import fit_of, odd_model

from pathtemp.engines import driver
from pathtemp.engines.driver import Driver
from pathtemp.engines.progress import Silent
from pathtemp.engines.protocol import Engine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.io.persistent import persistent, restore, state_of
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, RoundRecord

ROUND = 100
FIT = fit_of(odd_model())


def curve(end: float) -> LogZ:
    return LogZ(np.array([0.0, 1.0]), np.array([0.0, end]), np.array([0.0, 0.1]))


@persistent("counts", "seconds", "done", "settled")
class Counting(Engine):
    """Every round costs the same, and all that is called is written down."""

    settled: bool = False

    def __init__(self, *, settles_at: int = 3, restarts_at: tuple[int, ...] = (), complete_after: int = 10**6) -> None:
        self._settles_at, self._restarts_at, self._complete_after = settles_at, restarts_at, complete_after
        self.counts, self.seconds = Counts(), {"adapt": 0.0, "sample": 0.0}
        self.done: list[str] = []
        self.settled = False

    @property
    def round_gradients(self) -> float:
        return ROUND

    def schedule(self, budget: float | None) -> Schedule:
        assert budget is not None
        return Schedule(most=budget, planned=budget, adapt_least=0.2 * budget, adapt_most=0.5 * budget)

    def prepare(self, host: Host) -> None:
        self.counts = self.counts + Counts(ROUND)
        self.done.append("prepare")
        host.note(Line("anneal", curve(0.0)))

    def compile(self) -> None: ...

    def round(self) -> int:
        self.counts = self.counts + Counts(ROUND)
        return self.counts.gradients

    def adapt(self, record: int, number: int, *, last: bool) -> Line:
        self.done.append(f"adapt {number}{' last' if last else ''}")
        self.settled = number >= self._settles_at
        return Line("adapt", curve(record))

    def restarts(self, record: int, host: Host) -> bool:
        return len([step for step in self.done if step.startswith("adapt")]) in self._restarts_at

    def freeze(self) -> None:
        self.done.append("freeze")

    def burnt_in(self) -> None:
        self.done.append("burn-in")

    def keep(self, record: int) -> Line:
        self.done.append("keep")
        return Line("sample", curve(record), tours=1)

    def complete(self) -> bool:
        return self.done.count("keep") >= self._complete_after

    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        return Fit(**{**vars(FIT), "history": history, "counts": self.counts})


def run(engine: Counting, schedule: Schedule, **how: Any) -> tuple[Fit, Driver]:
    made = Driver(engine, schedule, model=odd_model(), progress=Silent(), **how)
    return made.carry_out(), made


class Kept:
    """Copies of the state after every round."""

    def __init__(self) -> None:
        self.states: list[Mapping[str, Any]] = []

    def __call__(self, state: Mapping[str, Any]) -> None:
        self.states.append(deepcopy(state))

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()


def lines(fit: Fit) -> list[tuple[Any, ...]]:
    """The history but for the arrays of its curves."""
    return [(r.phase, r.gradients, r.tours, r.log_z, r.curve is None) for r in fit.history]


def test_the_stages_follow_each_other_and_the_budget_is_kept() -> None:
    engine = Counting()
    fit, _ = run(engine, engine.schedule(1_005))
    assert engine.done == ["prepare", "adapt 1", "adapt 2", "adapt 3", "freeze", "burn-in", *["keep"] * 4]
    assert [record.phase for record in fit.history] == ["anneal", *["adapt"] * 3, *["sample"] * 4]
    # A tenth of a round is spared, so that a further one would not fit.
    assert fit.counts.gradients == 900
    assert fit.history[-1].gradients == 900
    assert fit.history[-1].log_z == 900.0
    assert fit.history[-1].tours == 1


def test_the_kernel_is_frozen_neither_too_early_nor_too_late() -> None:
    early, late = Counting(settles_at=1), Counting(settles_at=10**6)
    run(early, early.schedule(3_000))
    assert early.done.index("freeze") == 6  # 600 of 3000 gradients, one preparation and five rounds
    run(late, late.schedule(1_000))
    assert late.done[late.done.index("freeze") - 1] == "adapt 4 last"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still but for what tests add to it."""
    now = [0.0]
    monkeypatch.setattr(driver.time, "perf_counter", lambda: now[0])
    return now


class Slow(Counting):
    """Every round takes a second."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__(settles_at=10**6)
        self._clock = clock

    def round(self) -> int:
        self._clock[0] += 1.0
        return super().round()


def test_seconds_end_adaptation_and_the_run(clock: list[float]) -> None:
    engine = Slow(clock)
    _, made = run(engine, engine.schedule(10**6), max_seconds=10.0)
    assert engine.done.index("freeze") == 6  # one preparation, and five rounds of a second
    # A tenth of a round is spared, so that a tenth second would not be enough for a further one.
    assert (engine.done.count("keep"), clock[0]) == (3, 9.0)
    # What is asked for later is not bounded by it.
    made.extend(draws=None, budget=2 * ROUND)
    assert engine.done.count("keep") == 4


def test_seconds_before_a_run_was_resumed_count(clock: list[float]) -> None:
    keep, engine = Kept(), Slow(clock)
    run(engine, engine.schedule(10**6), max_seconds=10.0, keep=keep)
    for state in keep.states[2], keep.states[6]:
        again = Slow(clock)
        resumed = Driver(again, again.schedule(10**6), model=odd_model(), progress=Silent())
        restore(resumed, state)
        resumed.carry_out()
        assert again.done == engine.done


def test_time_that_is_counted_elsewhere_is_not_counted_twice(clock: list[float]) -> None:
    engine = Counting()
    made = Driver(engine, engine.schedule(1_000), model=odd_model(), progress=Silent())
    with made.timed("search"):
        clock[0] += 1.0
        with made.timed("compile"):
            clock[0] += 2.0
    assert (engine.seconds["search"], engine.seconds["compile"]) == (1.0, 2.0)


def test_adaptations_may_be_all_there_is() -> None:
    engine = Counting(settles_at=10**6)
    fit, _ = run(engine, Schedule(most=float("inf"), adaptations=4, freezes=False))
    assert engine.done == ["prepare", "adapt 1", "adapt 2", "adapt 3", "adapt 4 last", "freeze"]
    assert len(fit.history) == 5


def test_a_run_is_prepared_again_where_its_engine_asks_for_it() -> None:
    engine = Counting(restarts_at=(2,))
    run(engine, engine.schedule(2_000))
    assert engine.done[:7] == ["prepare", "adapt 1", "adapt 2", "prepare", "adapt 1", "adapt 2", "adapt 3"]


class Late(Counting):
    """What comes after the first frozen rounds asks for all of it again."""

    def finish(self, host: Host, room: float) -> bool:
        self.done.append("finish")
        return True

    def begins_again(self, host: Host) -> bool:
        return self.done.count("finish") == 1

    def complete(self) -> bool:
        return self.done[::-1][: self.done[::-1].index("prepare")].count("keep") == 2


def test_a_run_begins_again_for_what_came_after_its_rounds() -> None:
    kept = Kept()
    engine = Late()
    fit, made = run(engine, Schedule(most=1e6, adapt_least=0, adapt_most=1e6, until_done=True), keep=kept)
    turn = ["prepare", "adapt 1", "adapt 2", "adapt 3", "freeze", "burn-in"]
    assert engine.done == 2 * [*turn, "keep", "keep", "finish"]
    # The last state before the second turn leads to it again, and an extension does not.
    other = Late()
    again = Driver(other, other.schedule(1.0), model=odd_model(), progress=Silent())
    before = next(state for state in kept.states if state["engine"]["done"].count("keep") == 2)
    restore(again, before)
    assert lines(again.carry_out()) == lines(fit)
    made.extend(draws=None, budget=350)
    assert engine.done.count("prepare") == 2


def test_a_run_until_done_ends_when_everything_is_there() -> None:
    engine = Counting(complete_after=2)
    run(engine, Schedule(most=1e6, adapt_most=1e6, until_done=True))
    assert engine.done.count("keep") == 2


def lines_run(call: Callable[[], object]) -> int:
    """Lines of the driver that a call runs."""
    count, traced = 0, sys.gettrace()

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += frame.f_code.co_filename == driver.__file__
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(traced)
    return count


def test_a_record_costs_the_same_in_any_round() -> None:
    """But where the curves that are kept become fewer, every 64 * 2^k records."""
    engine = Counting()
    made = Driver(engine, engine.schedule(1_000), model=odd_model(), progress=Silent())
    work = [lines_run(lambda: made.note(Line("sample", curve(1.0)))) for _ in range(500)]
    # One line more drops the curve of the record before.
    assert max(work[390:410]) <= max(work[5:15]) + 1
    assert [place for place, record in enumerate(made.history) if record.curve is not None] == [*range(0, 499, 8), 499]


def test_any_round_can_be_gone_on_from() -> None:
    kept = Kept()
    engine = Counting(restarts_at=(2,))
    fit, made = run(engine, engine.schedule(2_000), keep=kept)
    assert len(kept.states) == len(engine.done) - 3  # not after preparing, and freezing is the end of a round
    for state in kept.states:
        other = Counting(restarts_at=(2,))
        again = Driver(other, other.schedule(1.0), model=odd_model(), progress=Silent())
        restore(again, state)
        assert lines(again.carry_out()) == lines(fit)
        assert state_of(again)["engine"]["done"] == state_of(made)["engine"]["done"]


def test_extending_goes_on_from_where_it_stopped() -> None:
    engine = Counting()
    fit, _ = run(engine, engine.schedule(1_005))
    assert fit.continuation is not None
    longer = fit.continuation.extend(draws=None, budget=350)
    assert longer.counts.gradients == fit.counts.gradients + 300
    assert lines(longer)[: len(fit.history)] == lines(fit)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"draws": None, "budget": None}, "extend: give budget="),
        ({"draws": 3, "budget": None}, "extend: give budget="),
        ({"draws": None, "budget": 100}, "extend: budget must be 110 gradient equivalents at least"),
        ({"draws": None, "budget": float("nan")}, "extend: budget must be 110"),
    ],
)
def test_extensions_that_cannot_work_are_refused(how: dict[str, Any], message: str) -> None:
    engine = Counting()
    _, made = run(engine, engine.schedule(1_005))
    with pytest.raises(InputError, match=message):
        made.extend(**how)


def test_curves_of_the_history_are_thinned_and_the_last_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MOST_CURVES", 8)
    engine = Counting()
    fit, _ = run(engine, engine.schedule(10_000))
    held = [place for place, record in enumerate(fit.history) if record.curve is not None]
    assert len(fit.history) == 98
    assert held == [*range(0, 97, 16), 97]
    assert all(np.isfinite(record.log_z) for record in fit.history)
