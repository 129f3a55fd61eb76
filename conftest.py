"""What every test may rely on. ``PATHTEMP_TEST_SEED`` shifts every seed of the suite.

The offset is added to every seed that a test, a doctest or a page of the documentation gives to NumPy, to JAX or to a
run. A result that rests on draws has to hold for any offset. Seeds inside the library, which make data sets and probes,
stay as they are.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from _pytest.doctest import DoctestItem

from pathtemp import seeds
from pathtemp.engines.default import effort
from pathtemp.kernels import compilation
from pathtemp.model import price

RUNS = re.compile(r"\b(\w*temper(ing)?|divide_and_conquer|path_sample|resume|run_paper|run_chain|nuts|from_numpyro)\(")
"""Calls that run an engine: a doctest with one compiles for seconds, and is slow."""

LEAST_WORK = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    # XLA stops at a flag that it does not know, as this one from JAX 0.11.2 on.
    *(("--xla_cpu_use_fusion_emitters=false",) if jax.__version_info__ < (0, 11) else ()),
)
"""What XLA leaves out, since the suite spends most of its time compiling; XLA_FLAGS of the environment come last."""

# Read when JAX first computes, which importing does not.
os.environ["XLA_FLAGS"] = " ".join((*LEAST_WORK, os.environ.get("XLA_FLAGS", ""))).strip()
# An option of the library would come after them, and win.
del compilation.QUICK["xla_backend_optimization_level"]
# No test hangs on the clock: what a run does must not depend on how busy the machine is.
effort.DEAR, effort.CHEAP, price.DEAR = float("inf"), 0.0, float("inf")

OFFSET = int(os.environ.get("PATHTEMP_TEST_SEED", "0"))
TESTS = str(Path(__file__).parent / "tests")

# A shell that starts a job in the background has it ignore Ctrl-C, and so would all that the job starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the doctests that run an engine; the tests of each way in run one besides."""
    for item in items:
        if isinstance(item, DoctestItem) and any(RUNS.search(example.source) for example in item.dtest.examples):
            item.add_marker(pytest.mark.slow)


def shifted(seed: Any) -> Any:
    """An int, or the first of a list of ints, moved by the offset; whatever else stays as it is."""
    if isinstance(seed, list) and seed and isinstance(seed[0], int):
        return [abs(seed[0] + OFFSET), *seed[1:]]
    return abs(seed + OFFSET) if isinstance(seed, int | np.integer) and not isinstance(seed, bool) else seed


def shift_in_tests(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose first argument is a seed that is shifted where a test or a document calls it."""

    def with_shift(seed: Any = None, *rest: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        by_test = caller.startswith((TESTS, "<doctest")) or caller.endswith(".md")
        return function(shifted(seed) if by_test else seed, *rest, **options)

    return with_shift


def shift_seeds() -> None:
    """Shift the places at which streams of random numbers begin."""
    np.random.default_rng = shift_in_tests(np.random.default_rng)  # type: ignore[assignment]
    jax.random.key = shift_in_tests(jax.random.key)
    jax.random.PRNGKey = shift_in_tests(jax.random.PRNGKey)
    word = seeds.seed_word

    def shifted_word(seed: Any) -> int:
        word(seed)
        return word(shifted(seed))

    for module in [module for name, module in sys.modules.items() if name.startswith("pathtemp")]:
        if getattr(module, "seed_word", None) is word:
            module.seed_word = shifted_word  # type: ignore[attr-defined]


if OFFSET:
    shift_seeds()

compilation.use_compilation_cache()

MOST_MEMORY = 1.8e9
"""Bytes from which compiled programs are dropped between files of tests: two workers are to get by with 4 GB."""


def memory() -> int:
    """Bytes that this process holds, on Linux; elsewhere memory is not bounded."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Iterator[None]:
    """Drop compiled programs after a file of tests once there are many; the cache on disk has them still."""
    yield
    if memory() > MOST_MEMORY:
        compilation._programs.clear()
        jax.clear_caches()
        gc.collect()
        # What was freed goes back to the system only when it is told to, by glibc.
        getattr(ctypes.CDLL(None), "malloc_trim", id)(0)
