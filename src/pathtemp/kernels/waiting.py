"""Waiting for a program that runs, with an ear for Ctrl-C: XLA itself hears nothing until it is done."""

from __future__ import annotations

import atexit
import ctypes
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import jax

from pathtemp.errors import ProgramFailed
from pathtemp.io.printable import printable

log = logging.getLogger("pathtemp")

SHORTEST, LONGEST, SHARE = 5e-5, 0.05, 0.02
"""Seconds between two looks at least and at most, and as a share of those waited so far."""

OUTSIDE = frozenset({"pure_callback", "io_callback", "debug_callback", "ffi_call"})
"""Primitives that leave XLA: a program with one of them keeps the thread that called it until it is done."""

MOST_REASON = 200
"""Characters of what a program says that failed."""

LOOKS = 10
"""Looks without a callback after which a program is taken to call none."""

CALLBACKS = "jax._src.callback"
"""The module of JAX through which a program calls Python."""

# JAX shows where in a user's function Ctrl-C came, with all that called it; that is no failure of the function.
logging.getLogger(CALLBACKS).addFilter(lambda record: not (record.exc_info and record.exc_info[0] is KeyboardInterrupt))


def calls_outside(jaxpr: Any) -> bool:
    """Whether a traced function leaves XLA, itself or in what it calls.

    >>> calls_outside(jax.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr)
    False
    """
    return any(
        equation.primitive.name in OUTSIDE or any(calls_outside(inner) for inner in traced_inside(equation))
        for equation in jaxpr.eqns
    )


def traced_inside(equation: Any) -> Iterator[Any]:
    """The traced functions that an equation of a trace holds: the body of a loop, the branches of a condition."""
    for value in equation.params.values():
        for part in value if isinstance(value, list | tuple) else [value]:
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                yield inner


@contextmanager
def _told_of_failures() -> Iterator[None]:
    """Let the failure of a program be one sentence."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason given"]
        raise ProgramFailed(printable(lines[-1])[:MOST_REASON]) from error


def patiently(program: Callable[..., Any], *arguments: Any) -> Any:
    """What a compiled program gives, once it is there; Ctrl-C is heard meanwhile.

    >>> patiently(lambda x: (x, 2 * x), 3)
    (3, 6)
    """
    begin = time.perf_counter()
    with _told_of_failures():
        result = program(*arguments)
    arrays = [leaf for leaf in jax.tree.leaves(result) if isinstance(leaf, jax.Array)]
    try:
        while not all(x.is_ready() for x in arrays):  # type: ignore[attr-defined]
            waited = time.perf_counter() - begin
            time.sleep(min(LONGEST, SHORTEST + SHARE * waited))
    except KeyboardInterrupt:
        _let_the_next_one_end_the_process()
        raise
    with _told_of_failures():
        return jax.block_until_ready(result)


def aside(program: Callable[..., Any], *arguments: Any) -> Any:
    """The same for a program that leaves XLA, in a thread of its own.

    >>> aside(lambda x: (x, 2 * x), 3)
    (3, 6)
    """
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            with jax.transfer_guard("allow"):  # as the thread has it that waits
                outcome.set_result(jax.block_until_ready(program(*arguments)))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="pathtemp-program", daemon=True).start()
    try:
        with _told_of_failures():
            return outcome.result()
    except KeyboardInterrupt:
        if not _end_by_callbacks(outcome):
            _let_the_next_one_end_the_process()
        raise


def _end_by_callbacks(outcome: Future[Any]) -> bool:
    """Let what a program calls in Python end by Ctrl-C as well, and with it the program; whether it did."""
    looks = 0
    while not outcome.done() and looks < LOOKS:
        # A callback ends when it comes back from whatever it waits for, so that it is not given up.
        looks = 0 if _interrupt_callbacks() else looks + 1
        wait([outcome], timeout=LONGEST)
    return outcome.done()


def _interrupt_callbacks() -> bool:
    """Raise KeyboardInterrupt in every thread in which a program has called Python; whether there is any."""
    inside = [
        thread
        for thread, frame in sys._current_frames().items()
        if thread != threading.get_ident() and _comes_from_a_program(frame)
    ]
    for thread in inside:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
    return bool(inside)


def _comes_from_a_program(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == CALLBACKS:
            return True
        frame = frame.f_back
    return False


@cache
def _let_the_next_one_end_the_process() -> None:
    """Nothing stops what XLA has begun, and a process waits for it when it ends, deaf unless this is done."""
    log.warning("what is being computed goes on until it is done; where the process waits for it, Ctrl-C ends both")
    if threading.current_thread() is threading.main_thread():
        # What was registered last is called first, before JAX waits.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)
