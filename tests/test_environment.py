"""Processes in which nothing can be compiled say so, and those that look odd work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp.api import environment
from pathtemp.api.cores import kept_to_cores
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.kernels.waiting import aside
from pathtemp.settings import Settings

BASE = pt.normal(0.0, 2.0, shape=(1,))


def test_without_jit_there_is_a_sentence() -> None:
    with jax.disable_jit(), pytest.raises(pt.InputError, match=r"^JAX_DISABLE_JIT: .*unset the variable"):
        pt.temper(target=lambda x: -jnp.sum(x**2), base=BASE, progress=False)


@pytest.mark.parametrize(("flag", "value"), [("jax_debug_nans", True), ("jax_enable_x64", False)])
def test_flags_of_jax_with_which_nothing_runs_are_named(flag: str, value: bool) -> None:
    with state(flag, value), pytest.raises(pt.InputError, match=rf"^{flag.upper()}: .*set it back to {not value}"):
        pt.temper(target=lambda x: -jnp.sum(x**2), base=BASE, progress=False)


def test_a_guard_on_transfers_stops_no_run() -> None:
    """What every function that runs an engine does, runs without it; so do the bases."""

    def moves() -> float:
        return float((jnp.asarray(np.zeros(2)) + np.ones(2)).sum())

    with jax.transfer_guard("disallow"):
        with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed"):
            moves()
        assert kept_to_cores(moves)() == 2.0
        assert aside(moves) == 2.0
        assert repr(pt.normal(0.0, 2.0, shape=(3,))) == "normal(0.0, 2.0, shape=(3,))"


@pytest.mark.slow
def test_a_run_under_a_guard_on_transfers_is_the_same_run() -> None:
    how: dict[str, Any] = {"settings": Settings(chains=8, iterations=8), "budget": 18000, "modes": "off"}

    def made() -> pt.Fit:
        return pt.temper(target=lambda x: -jnp.sum(x**2), base=BASE, progress=False, **how).extend(budget=9000)

    with jax.transfer_guard("disallow"):
        guarded = made()
    assert guarded.posterior.equals(made().posterior)


@contextmanager
def state(flag: str, value: bool) -> Iterator[None]:
    jax.config.update(flag, value)
    try:
        yield
    finally:
        jax.config.update(flag, not value)


@pytest.mark.slow
def test_two_threads_run_at_once_as_one_after_the_other() -> None:
    """Neither is the main thread, in which alone signals can be heard."""
    how: dict[str, Any] = {"settings": Settings(chains=8, iterations=8), "budget": 18000, "modes": "off"}

    def made(seed: int) -> pt.Fit:
        return pt.temper(target=lambda x: -jnp.sum(x**2), base=BASE, seed=seed, progress=False, **how)

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(made, (1, 2)))
    for seed, fit in zip((1, 2), together, strict=True):
        assert fit.posterior.equals(made(seed).posterior)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-O", "-c"])
def test_a_new_process_runs(option: str, tmp_path: Path) -> None:
    """With assertions removed, and by spawn from one that has used JAX; without HOME, and with no folder for caches."""
    (tmp_path / "child.py").write_text(CHILD)
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    bare |= {"TMPDIR": "/nonexistent"} if option == "-O" else {}
    command = [sys.executable, *(["-O"] if option == "-O" else []), str(tmp_path / "child.py")]
    answer = subprocess.run(command, capture_output=True, text=True, env=bare, stdin=subprocess.DEVNULL)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["True", "True"]


CHILD = """
import multiprocessing
import jax.numpy as jnp
import pathtemp as pt
from pathtemp.settings import Settings

def target(x):
    return -jnp.sum(x**2)

def run(seed):
    small = {"settings": Settings(chains=8, iterations=8), "budget": 18000, "modes": "off", "progress": False}
    return bool(pt.temper(target=target, base=pt.normal(0.0, 2.0, shape=(1,)), seed=seed, **small).posterior.draw.size)

if __name__ == "__main__":
    print(run(1))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(run, (2,)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_copy_of_a_process_that_used_jax_says_so() -> None:
    """The copy does nothing but try, and tells how it went by its status."""
    jnp.zeros(1).block_until_ready()
    with pytest.warns(RuntimeWarning, match="fork"):
        child = os.fork()
    if child == 0:
        try:
            use_compilation_cache()
        except pt.InputError as error:
            os._exit(7 if "spawn" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not environment._forked_from_jax


def test_a_copy_of_a_process_without_jax_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_forked_from_jax", False)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", None)
    environment._note_fork()
    assert not environment._forked_from_jax


def test_without_docstrings_there_is_a_sentence() -> None:
    code = "from pathtemp.cli import main; raise SystemExit(main(['run', 'pathtemp.testing:mixture_1d']))"
    answer = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True)
    assert (
        answer.stderr == "pathtemp: python -OO: ArviZ needs the docstrings that this option removes; use -O, or none\n"
    )
    assert answer.returncode == 1
