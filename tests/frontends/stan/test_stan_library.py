"""Programs that someone else compiled: a shared library, or a bridgestan.StanModel; with and without a compiler."""

from __future__ import annotations

import logging
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


def test_a_library_without_threads_is_called_by_one_thread_at_a_time(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Instance.__init__

    def single(self: Instance, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        self.threadsafe = False

    monkeypatch.setattr(Instance, "__init__", single)
    model = from_stan(library, data={"y": 9.5, "pathtemp_which": 1}, base=FLAT)
    x = np.random.default_rng(0).normal(size=(4000, 1))
    both = jax.jit(lambda z: [jax.vmap(jax.value_and_grad(model.log_target))(z + k) for k in range(4)])
    for shift, (value, _) in enumerate(both(x)):
        one = jax.jit(lambda z: jax.lax.map(model.log_target, z))(x + shift)
        np.testing.assert_array_equal(value, one)


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
