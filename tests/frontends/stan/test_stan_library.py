"""Programs that someone else compiled: a shared library, or a bridgestan.StanModel; with and without a compiler."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from stan_programs import load, opened

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.bridge import StanDensity
from pathtemp.frontends.stan.library import Instance
from pathtemp.frontends.stan.opening import compile_programs

pytestmark = pytest.mark.usefixtures("compiled")
FLAT = pt.normal(0.0, 1.0, shape=(1,))


@pytest.fixture
def library() -> Path:
    (program,) = compile_programs([opened("cauchy")], progress=False)
    assert program.library is not None
    return program.library


def test_a_shared_library_with_its_data(library: Path) -> None:
    model = from_stan(library, data={"y": 10.0, "pathtemp_which": 1}, base=FLAT)
    x = np.array([2.5])
    assert float(model.log_target(x)) == float(load("cauchy").log_target(x))
    assert model.draws(np.array([x]))["theta"].tolist() == [2.5]
    with pytest.raises(InputError, match=r"data: .*does not exist"):
        from_stan(library, data={}, base=FLAT)


def test_something_that_looks_like_a_bridgestan_model(library: Path) -> None:
    instance = Instance(library, '{"y": 10.0, "pathtemp_which": 1}')
    theirs = SimpleNamespace(stanlib=object(), lib_path=str(library), model=instance.pointer)
    model = from_stan(theirs, base=FLAT)
    value, gradient = jax.value_and_grad(model.log_target)(np.array([2.5]))
    expected = jax.value_and_grad(load("cauchy").log_target)(np.array([2.5]))
    assert (float(value), float(gradient[0])) == (float(expected[0]), float(expected[1][0]))


class Counting:
    """In place of a program: the density -x^2 / 2, which takes a while and counts the threads that are in it."""

    pointer = 0
    divides = False

    def __init__(self, threadsafe: bool) -> None:
        self.threadsafe, self.inside, self.most = threadsafe, 0, 0
        self._counting = threading.Lock()
        self._gradient = GRADIENT(self.gradient)

    def names(self) -> list[str]:
        return ["x"]

    def address(self, name: str) -> int | None:
        return ctypes.cast(self._gradient, ctypes.c_void_p).value if name == "bs_log_density_gradient" else 0

    def gradient(self, _: int, propto: bool, jacobian: bool, theta: Any, value: Any, slope: Any, error: int) -> int:
        with self._counting:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.002)
        value[0], slope[0] = -0.5 * theta[0] ** 2, -theta[0]
        with self._counting:
            self.inside -= 1
        return 0


NUMBER = ctypes.POINTER(ctypes.c_double)
GRADIENT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, NUMBER, NUMBER, NUMBER, ctypes.c_void_p
)


@pytest.mark.parametrize("threadsafe", [False, True])
def test_only_a_library_with_threads_is_called_by_several_at_once(threadsafe: bool) -> None:
    program = Counting(threadsafe)
    density = StanDensity(program, label="counting")  # type: ignore[arg-type]
    compiled = jax.jit(jax.vmap(jax.value_and_grad(density)))

    def evaluate_all(x: np.ndarray) -> Any:
        return jax.block_until_ready(compiled(x))

    points = np.arange(20.0)[:, None]
    for _ in range(2):  # the first call measures what an evaluation costs; the second may share the work
        with ThreadPoolExecutor(2) as pool:
            batches = [points, points + 1]
            for x, (value, gradient) in zip(batches, pool.map(evaluate_all, batches), strict=True):
                np.testing.assert_array_equal(value, -0.5 * x[:, 0] ** 2)
                np.testing.assert_array_equal(gradient, -x)
    if not threadsafe:
        assert program.most == 1
    elif (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) > 1:
        assert program.most > 1


def test_without_a_compiler_a_library_is_called_through_python(
    library: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with caplog.at_level(logging.WARNING, logger="pathtemp.stan"):
        model = from_stan(library, data={"y": 9.0, "pathtemp_which": 1}, base=FLAT)
    assert "no C++ compiler" in caplog.text
    monkeypatch.undo()
    fast = load("cauchy", data={"y": 9.0})
    x = np.random.default_rng(0).normal(size=(2, 3, 1))
    value, gradient = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(model.log_target))))(x)
    expected = jax.vmap(jax.vmap(jax.value_and_grad(fast.log_target)))(x)
    np.testing.assert_array_equal(value, expected[0])
    np.testing.assert_array_equal(gradient, expected[1])
    assert float(model.log_target(x[0, 0])) == float(value[0, 0])
    assert float(model.log_target(np.array([np.nan]))) == -np.inf
