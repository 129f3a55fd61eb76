"""Whoever waits for a program is heard, whether it calls Python or not, and is told where a density takes long."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.kernels import waiting
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.waiting import aside, calls_outside, patiently
from pathtemp.model import price


class Never:
    """The result of a program that does not end."""

    def is_ready(self) -> bool:
        return False


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C from a thread, a little later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers: list[threading.Timer] = []

    def press() -> None:
        timers.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield press
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


def called(host: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of JAX that calls Python."""
    return lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float64), x, vmap_method="sequential")


def test_a_program_of_xla_alone_is_waited_for_with_an_ear(
    ctrl_c: Callable[[], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registered: list[Any] = []
    monkeypatch.setattr(waiting.atexit, "register", lambda *how: registered.append(how))
    monkeypatch.setattr(waiting.jax, "Array", Never)
    waiting._let_the_next_one_end_the_process.cache_clear()
    for _ in range(2):
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            patiently(Never)
    assert registered == [(signal.signal, signal.SIGINT, signal.SIG_DFL)]
    assert "goes on until it is done" in caplog.text
    waiting._let_the_next_one_end_the_process.cache_clear()


def test_a_density_that_calls_python_ends_with_its_program(ctrl_c: Callable[[], None], caplog: Any) -> None:
    """Before any round too: nothing but the wait for the program has to hear it."""
    begun: list[int] = []

    def host(x: Any) -> np.ndarray:
        begun.append(1)
        time.sleep(0.05)
        return np.sum(x)

    points = np.ones((1000, 3))
    program, _ = compiled_once(lambda: jax.vmap(called(host)), (), (points,))
    ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        program(points)
    ended = len(begun)
    time.sleep(0.2)
    assert len(begun) == ended < 1000
    assert not caplog.records


def test_a_program_that_leaves_xla_is_known_by_its_text() -> None:
    inner = called(np.sum)

    def within(x: Any) -> Any:
        return jax.lax.scan(lambda s, y: (s + jax.lax.cond(y > 0, inner, jnp.sum, y), None), 0.0, x)[0]

    assert calls_outside(jax.make_jaxpr(jax.jit(within))(np.ones(3)).jaxpr)
    assert not calls_outside(jax.make_jaxpr(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x)))))(np.ones(3)).jaxpr)


def test_what_a_program_raises_comes_out_of_its_thread() -> None:
    def fail(x: Any) -> Any:
        raise ValueError(f"not {x}")

    with pytest.raises(ValueError, match="not 3"):
        aside(fail, 3)


def test_a_program_that_calls_no_python_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST", 0.0)
    assert not waiting._end_by_callbacks(Future())


def test_a_slow_density_is_told_with_what_a_run_would_take(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price.time, "perf_counter", iter([0.0, 64.0, 0.0, 0.5]).__next__)
    for count in (64, 2):  # a second each; a quarter of a second each, of which little need be the density's
        price.told_if_slow("target", lambda: np.zeros(3), count=count)
    assert [record.getMessage() for record in caplog.records] == [price.slow_words("target", 1.0)]
    assert "about 1 seconds" in caplog.text
    assert "2.8 hours" in caplog.text


def test_who_waits_for_the_first_evaluations_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with price.told_of_waiting("quick"):
        pass
    monkeypatch.setattr(price, "SILENCE", 0.01)
    with caplog.at_level(logging.WARNING, "pathtemp"), price.told_of_waiting("target"):
        while not caplog.records:
            time.sleep(0.01)
    assert [record.getMessage().startswith("target: the first evaluations") for record in caplog.records] == [True]


SLOW = """
import os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import pathtemp as pt

calls = [0]

def host(x):
    calls[0] += 1
    if calls[0] == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05 if calls[0] < 200 else 0.0)
    return np.float64(-0.5 * np.sum(x**2)), -np.asarray(x)

def both(x):
    shapes = jax.ShapeDtypeStruct((), x.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(host, shapes, x, vmap_method="sequential")

@jax.custom_jvp
def target(x):
    return both(x)[0]

@target.defjvp
def slope(at, along):
    value, gradient = both(at[0])
    return value, gradient @ along[0]

try:
    how = {"settings": pt.settings.DEFAULT.replace(chains=8, iterations=8), "budget": 18000, "modes": "off"}
    fit = pt.temper(target=target, base=pt.normal(0.0, 2.0, shape=(1,)), **how, progress=False)
    print("fit", [check.name for check in fit.diagnostics.checks][0], calls[0])
except KeyboardInterrupt:
    print("interrupted", calls[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("at", "outcome"), [(10, "interrupted 10"), (150, "interrupted 150"), (9000, "fit finished")])
def test_a_slow_run_hears_ctrl_c_at_any_stage(at: int, outcome: str, tmp_path: Path) -> None:
    """In the checks, in the annealing pass, and in a round, after which there is a fit."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, str(tmp_path / "slow.py"), str(at)]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.stdout.startswith(outcome), answer
    assert answer.returncode == 0
    assert "target: one evaluation of the log density takes about 0.05" in answer.stderr or at == 10
    assert "Traceback" not in answer.stderr
