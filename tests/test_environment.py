"""Processes in which nothing can be compiled say so, and those that look odd work."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import pathtemp as pt
from pathtemp.api import environment
from pathtemp.kernels.compilation import use_compilation_cache

BASE = pt.normal(0.0, 2.0, shape=(1,))


def test_without_jit_there_is_a_sentence() -> None:
    with jax.disable_jit(), pytest.raises(pt.InputError, match=r"^JAX_DISABLE_JIT: .*unset the variable"):
        pt.temper(target=lambda x: -jnp.sum(x**2), base=BASE, progress=False)


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
