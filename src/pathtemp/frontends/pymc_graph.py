"""From PyTensor graphs to JAX functions."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from pathtemp._types import Array
from pathtemp.frontends.pymc_special import LOW_ORDERS, SPECIAL, spline


def import_bridge() -> None:
    """Register PyMC's own operations with JAX.

    ``pymc.sampling.jax`` asks XLA for a hundred host devices when it is imported; what was set before is put back.
    """
    flags = os.environ.get("XLA_FLAGS")
    try:
        import pymc.sampling.jax  # noqa: F401
    finally:
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags


def generators(outputs: Sequence[Any]) -> list[Any]:
    """Random generators that a graph reads."""
    from pytensor.tensor.random.type import RandomType

    return [var for var in _shared(outputs) if isinstance(var.type, RandomType)]


def freeze(outputs: Sequence[Any]) -> list[Any]:
    """The same graphs with data and dimension lengths as constants, so that every shape is static."""
    import pytensor.tensor as pt
    from pytensor.graph.replace import clone_replace
    from pytensor.tensor.random.type import RandomType

    data = [var for var in _shared(outputs) if not isinstance(var.type, RandomType)]
    constants = {var: pt.constant(var.get_value(borrow=True)) for var in data}
    return list(clone_replace(list(outputs), replace=constants, rebuild_strict=False))


def jaxify(
    inputs: Sequence[Any], outputs: Sequence[Any], *, prepare: Callable[[Any], None] | None = None
) -> Callable[..., tuple[Array, ...]]:
    """A JAX function of ``inputs`` that returns ``outputs``.

    Parameters for which a density is not defined give -inf, as in PyMC's own compiled densities.

    Parameters
    ----------
    inputs, outputs
        Variables of a PyTensor graph; shared data become constants.
    prepare
        Changes the function graph in place after it was simplified and before it becomes JAX.
    """
    from pytensor.compile.mode import get_mode
    from pytensor.graph.fg import FunctionGraph

    import_bridge()
    from pytensor.link.jax.dispatch import jax_funcify

    # Constants must be arrays even where this runs while another function is traced.
    with warnings.catch_warnings(), jax.ensure_compile_time_eval():
        # Asserts that JAX cannot raise are skipped, with one warning each.
        warnings.simplefilter("ignore", UserWarning)
        graph = FunctionGraph(inputs=list(inputs), outputs=freeze(outputs), clone=True)
        mode = get_mode("JAX").including("local_check_parameter_to_ninf_switch").excluding("fusion")
        mode.optimizer.rewrite(graph)
        graph = FunctionGraph(inputs=graph.inputs, outputs=_in_float64(graph.outputs), clone=False)
        _call_special(graph)
        if prepare is not None:
            prepare(graph)
        function: Callable[..., tuple[Array, ...]] = jax_funcify(graph)
    return function


def call_jax(function: Callable[..., Any], node: Any) -> list[Any]:
    """Outputs of a new node with the inputs and output types of ``node``, computed by a JAX function."""
    call = _jax_call()(function, tuple(out.type for out in node.outputs))
    outputs: list[Any] = call.make_node(*node.inputs).outputs
    return outputs


@functools.cache
def _jax_call() -> type:
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.link.jax.dispatch import jax_funcify

    class JaxCall(Op):  # type: ignore[misc]
        """A JAX function inside a PyTensor graph; it exists only on the way to JAX."""

        __props__ = ("function", "types")

        def __init__(self, function: Callable[..., Any], types: tuple[Any, ...]) -> None:
            self.function = function
            self.types = types

        def make_node(self, *inputs: Any) -> Any:
            return Apply(self, list(inputs), [kind() for kind in self.types])

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            raise NotImplementedError("JaxCall is computed by JAX")

    jax_funcify.register(JaxCall)(lambda op, **_: op.function)
    return JaxCall


def _call_special(graph: Any) -> None:
    """Compute the special functions of :mod:`pathtemp.frontends.pymc_special` by those."""
    from pymc.distributions.dist_math import SplineWrapper
    from pytensor.graph.basic import Constant
    from pytensor.tensor.elemwise import Elemwise

    for node in graph.toposort():
        if isinstance(node.op, SplineWrapper):
            graph.replace_all([(node.outputs[0], call_jax(spline(node.op.spline), node)[0])])
            continue
        name = type(node.op.scalar_op).__name__ if isinstance(node.op, Elemwise) else ""
        if name not in SPECIAL:
            continue
        order = node.inputs[0]
        known = isinstance(order, Constant) and bool(np.isin(order.data, (-1, 0, 1)).all())
        if name in LOW_ORDERS and not known:
            continue
        graph.replace_all(list(zip(node.outputs, call_jax(SPECIAL[name], node), strict=True)))


def _in_float64(outputs: Sequence[Any]) -> list[Any]:
    """The same graphs with constants in float64.

    PyTensor keeps a constant that float32 holds exactly as float32, which is right under its promotion of types
    and loses half the digits under JAX's.
    """
    import pytensor.tensor as pt
    from pytensor.graph.basic import Constant
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs

    constants = [var for var in graph_inputs(list(outputs)) if isinstance(var, Constant)]
    single = [var for var in constants if getattr(var.type, "dtype", None) == "float32"]
    doubles = {var: pt.constant(var.data, dtype="float64") for var in single}
    return list(clone_replace(list(outputs), replace=doubles, rebuild_strict=False))


def _shared(outputs: Sequence[Any]) -> list[Any]:
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.traversal import graph_inputs

    return list(dict.fromkeys(var for var in graph_inputs(list(outputs)) if isinstance(var, SharedVariable)))
