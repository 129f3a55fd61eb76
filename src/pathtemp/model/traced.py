"""What the trace of a log density tells: whether it has side effects, and whether it is the same every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from pathtemp.errors import InputError
from pathtemp.kernels.waiting import traced_inside


def traced_shape(name: str, log_density: Callable[..., Any], *arguments: Any) -> Any:
    """The shape that a log density returns, as :func:`jax.eval_shape` has it.

    Raises
    ------
    InputError
        Where it is traced to another function the second time, as every program traces it anew; or where it has side
        effects that happen in some order, which many points at once cannot have.

    >>> traced_shape("target", lambda x: x @ x, np.ones(3)).shape
    ()
    """
    (one, shape), (two, _) = (
        # A function of its own each time, since JAX knows those again that it has traced.
        jax.make_jaxpr(lambda *x: log_density(*x), return_shape=True)(*arguments)
        for _ in range(2)
    )
    if any("IO" in type(effect).__name__ for effect in one.effects):
        raise InputError(
            f"{name}: the log density has side effects (io_callback), which cannot happen at many points at once; use "
            "jax.pure_callback for what it returns, or jax.debug.callback"
        )
    if not all(np.array_equal(x, y, equal_nan=_is_float(x)) for x, y in _pairs(one, two)):
        raise InputError(
            f"{name}: the log density is another each time that JAX traces it; it must be a function of the parameters "
            "alone: draw random numbers before, and let it change nothing that it depends on"
        )
    return shape


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _pairs(one: Any, two: Any) -> Iterator[tuple[Any, Any]]:
    """What two traces hold, side by side: names and numbers of equations, and constants."""
    words_of_one, words_of_two = list(_words(one.jaxpr)), list(_words(two.jaxpr))
    yield len(words_of_one), len(words_of_two)
    yield from zip(words_of_one, words_of_two, strict=False)
    yield len(one.consts), len(two.consts)
    yield from ((x, y) for x, y in zip(one.consts, two.consts, strict=False) if x is not y and not _is_key(x))


def _is_key(x: Any) -> bool:
    return isinstance(x, jax.Array) and bool(jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key))


def _words(jaxpr: Any) -> Iterator[Any]:
    """Names of the primitives of a trace, and the numbers that are written into it."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        yield from (x.val for x in equation.invars if hasattr(x, "val"))
        for inner in traced_inside(equation):
            yield from _words(inner)
