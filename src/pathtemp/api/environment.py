"""Ways of starting Python in which nothing can be compiled: a sentence in place of an error or a hang."""

from __future__ import annotations

import os
import sys

from pathtemp.errors import InputError

FLAGS = {
    "jax_enable_x64": (True, "pathtemp computes in float64, which this setting of JAX forbids"),
    "jax_debug_nans": (False, "at the edge of a density NaN is met on purpose, and counted"),
    "jax_debug_infs": (False, "at the edge of a density infinite numbers are met on purpose, and counted"),
    "jax_numpy_dtype_promotion": ("standard", "pathtemp adds integers to floats, which this setting of JAX forbids"),
}
"""Settings of JAX with which nothing would run: what each must be, and why."""

_forked_from_jax = False
"""Whether this process is the copy of one in which JAX had its threads, which the copy has not."""


def _note_fork() -> None:
    global _forked_from_jax
    bridge = sys.modules.get("jax._src.xla_bridge")
    running = getattr(bridge, "backends_are_initialized", lambda: True)
    _forked_from_jax = bridge is not None and bool(running())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def check_docstrings() -> None:
    """Raise where Python has none, without which ArviZ cannot compute anything.

    >>> check_docstrings()
    """
    if sys.flags.optimize > 1:
        raise InputError("python -OO: ArviZ needs the docstrings that this option removes; use -O, or none")


def check_environment() -> None:
    """Raise where no run can be made in this process."""
    import jax

    check_docstrings()
    if _forked_from_jax:
        raise InputError(
            "fork: this process was forked from one that had used JAX, and would hang; start it with "
            'multiprocessing.get_context("spawn"), or use JAX in the children alone'
        )
    for flag, (usual, words) in FLAGS.items():
        if getattr(jax.config, flag, usual) not in (usual, None):
            raise InputError(f"{flag.upper()}: {words}; set it back to {usual!r}")
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        raise InputError(
            "JAX_DISABLE_JIT: pathtemp compiles all it does, which this setting of JAX forbids; unset the variable"
        )
