"""``cores=``: all threads of a run keep to so many cores, all get theirs back, and the draws stay the same."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import tempered
import xarray as xr

import pathtemp as pt
from pathtemp.api import cores
from pathtemp.api.cores import limited_to

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no sched_setaffinity")


def masks() -> list[set[int]]:
    """The cores of each thread of this process."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        try:
            found.append(os.sched_getaffinity(int(thread)))
        except ProcessLookupError:  # it ended meanwhile
            continue
    return found


@linux
def test_every_thread_keeps_to_one_core_and_gets_its_own_back() -> None:
    whole = os.sched_getaffinity(0)
    wait = threading.Event()
    before, inside = threading.Thread(target=wait.wait), threading.Thread(target=wait.wait)
    before.start()
    try:
        with limited_to(1):
            inside.start()
            assert {len(mask) for mask in masks()} == {1}
        assert os.sched_getaffinity(0) == whole
        assert all(mask == whole for mask in (os.sched_getaffinity(t.native_id or 0) for t in (before, inside)))
    finally:
        wait.set()
        before.join()
        inside.join()


@linux
def test_cores_come_back_after_an_error_and_more_than_there_are_is_all() -> None:
    whole = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), limited_to(1):
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == whole
    with limited_to(10_000):
        assert os.sched_getaffinity(0) == whole


@linux
def test_a_run_keeps_to_its_cores_and_draws_the_same() -> None:
    seen: set[int] = set()

    class Watching:
        def start(self, budget: int) -> None: ...
        def compile(self, name: str) -> None: ...
        def anneal(self, lam: float, gradients: int) -> None: ...
        def finish(self) -> None: ...

        def round(self, record: Any) -> None:
            seen.update(len(mask) for mask in masks())

    model = tempered.problem("mixture_1d").model
    fit = pt.temper(model, seed=0, budget=tempered.BUDGET, cores=1, progress=Watching())
    assert seen == {1}
    xr.testing.assert_identical(fit.posterior, tempered.fit().posterior)


def test_a_system_that_cannot_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(cores, "TASKS", tmp_path / "none")
    with pytest.raises(pt.InputError, match=r"^cores: this system does not let"), limited_to(2):
        pass
