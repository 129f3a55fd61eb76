"""Exact draws of a PyMC prior as a JAX function of a key.

The forward graph of the free variables becomes JAX, each random variable drawn from a JAX key. Where a
distribution has no sampler in :mod:`pathtemp.frontends.pymc_samplers`, or the graph has no JAX form, the whole
forward graph runs on the host through PyTensor, seeded from the key: as exact, only slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key
from pathtemp.frontends.pymc_graph import call_jax, freeze, generators, jaxify
from pathtemp.frontends.pymc_samplers import SAMPLERS

Draws = tuple[Array, ...]


def with_dependents(model: Any, names: Collection[str]) -> frozenset[str]:
    """The free variables of these names, and those whose distributions depend on them."""
    from pytensor.graph.traversal import ancestors

    rest = {rv for rv in model.free_RVs if rv.name in names}
    return frozenset(rv.name for rv in model.free_RVs if not rest.isdisjoint(ancestors([rv])))


def forward_graph(model: Any, rest: Mapping[str, tuple[int, ...]]) -> list[Any]:
    """Free variables drawn in order, on the unconstrained scale; zeros for the rest, which is given with its shapes.

    A variable that is exchangeable along the axis which its transform orders is sorted: that is an exact draw
    given the order. Any other draw outside the support of a transform becomes NaN.
    """
    import pytensor.tensor as pt
    from pytensor.graph.replace import clone_replace

    ordered: dict[Any, Any] = {}
    free = []
    for rv in model.free_RVs:
        if rv.name in rest:
            free.append(pt.zeros(rest[rv.name]))
            continue
        draw = clone_replace(rv, replace=ordered, rebuild_strict=False) if ordered else rv
        transform = model.rvs_to_transforms[rv]
        inputs = draw.owner.inputs
        if _is_sorted(model, rv):
            draw = pt.sort(draw, axis=-1)
            draw = draw if transform.ascending else draw[..., ::-1]
            ordered[rv] = draw
        free.append(draw if transform is None else transform.forward(draw, *inputs))
    return free


def log_mass_of_order(variables: Sequence[Any], model: Any, shapes: Mapping[str, tuple[int, ...]]) -> float:
    """Log of the share of a prior that has the order of the variables that are sorted: 1 in k! for k of them."""
    sizes = [shapes[rv.name] for rv in variables if _is_sorted(model, rv)]
    return -float(sum(math.prod(shape[:-1]) * math.lgamma(shape[-1] + 1) for shape in sizes))


def _is_sorted(model: Any, rv: Any) -> bool:
    """Whether a draw of a variable is sorted to be one given its order."""
    from pymc.distributions.transforms import Ordered

    return isinstance(model.rvs_to_transforms[rv], Ordered) and _exchangeable(rv)


def _exchangeable(rv: Any) -> bool:
    """Whether the elements along the last axis are independent and alike."""
    from pytensor.graph.basic import Constant
    from pytensor.tensor.random.op import RandomVariable

    op = rv.owner.op
    if not isinstance(op, RandomVariable) or op.ndim_supp:
        return False
    for parameter in op.dist_params(rv.owner):
        if isinstance(parameter, Constant):
            values = np.atleast_1d(parameter.data)
            alike = bool(np.all(values == values[..., :1]))
        else:
            alike = parameter.ndim == 0 or bool(parameter.type.broadcastable[-1])
        if not alike:
            return False
    return True


def jax_forward(outputs: Sequence[Any]) -> Callable[[Key], Draws]:
    """Forward draws in JAX; raises NotImplementedError where some part has no JAX form."""
    rngs = generators(outputs)
    function = jaxify(rngs, outputs, prepare=_key_draws)

    def draw(key: Key) -> Draws:
        return tuple(function(*jax.random.split(key, max(len(rngs), 1))[: len(rngs)]))

    return draw


def host_forward(outputs: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Callable[[Key], Draws]:
    """Forward draws by PyTensor on the host, from generators seeded by the key.

    Raises NotImplementedError where a distribution has no random draws.
    """
    import pytensor
    from pytensor.graph.replace import clone_replace

    rngs = generators(outputs)
    inputs = [rng.type() for rng in rngs]
    graph = clone_replace(freeze(outputs), replace=dict(zip(rngs, inputs, strict=True)))
    # Python thunks: compiling through C or Numba takes longer than the draws it would save.
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
    mutable = [pytensor.In(rng, mutable=True) for rng in inputs]
    function = pytensor.function(mutable, graph, mode=mode, on_unused_input="ignore")
    result = tuple(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes)

    def one(words: np.ndarray[Any, Any]) -> list[FloatArray]:
        low, high = (int(word) for word in words[-2:])
        keys = (np.array([(high << 32) | low, stream], np.uint64) for stream in range(len(inputs)))
        return [
            np.asarray(x, np.float64) for x in function(*(np.random.Generator(np.random.Philox(key=k)) for k in keys))
        ]

    one(np.zeros(2, np.uint32))  # raises now where a distribution has no random draws

    def many(words: Any) -> Any:
        words = np.asarray(words)
        draws = [one(row) for row in words.reshape(-1, words.shape[-1])]
        return tuple(np.stack(x).reshape(words.shape[:-1] + x[0].shape) for x in zip(*draws, strict=True))

    def draw(key: Key) -> Draws:
        return tuple(jax.pure_callback(many, result, jax.random.key_data(key), vmap_method="expand_dims"))

    return draw


def _keyed(node: Any) -> Callable[..., tuple[Key, Array]]:
    """The draw of a random variable's node from a key in place of its generator."""
    from pytensor.graph.basic import Constant

    op, out = node.op, node.outputs[1].type
    if type(op).__module__.partition(".")[0] not in ("pytensor", "pymc") or type(op).__name__ not in SAMPLERS:
        raise NotImplementedError(f"{type(op).__name__} has no sampler in JAX")
    sampler = SAMPLERS[type(op).__name__]
    static = out.shape[: op.batch_ndim(node)]
    if None in static and isinstance(node.inputs[1], Constant):
        size = node.inputs[1].data
        static = None if size is None else tuple(int(n) for n in size)

    def draw(key: Key, size: Any, *parameters: Array) -> tuple[Key, Array]:
        shape = tuple(int(n) for n in size) if static is not None and None in static else static
        # A function of the key alone: a graph may hold the same draw twice.
        next_key, own_key = jax.random.split(key)
        return next_key, sampler(op, own_key, shape, *map(jnp.asarray, parameters)).astype(out.dtype)

    return draw


def _key_draws(graph: Any) -> None:
    """Turn every random variable of a graph, those inside loops too, into a draw from a key."""
    from pytensor.scan.op import Scan
    from pytensor.tensor.random.op import RandomVariable

    for node in list(graph.toposort()):
        if isinstance(node.op, RandomVariable):
            new = call_jax(_keyed(node), node)
        elif isinstance(node.op, Scan) and _has_draws(node.op.fgraph):
            inner = node.op.fgraph
            inner = inner.unfreeze() if hasattr(inner, "unfreeze") else inner.clone()
            _key_draws(inner)
            loop = Scan(inner.inputs, inner.outputs, node.op.info, mode=node.op.mode)
            new = loop.make_node(*node.inputs).outputs
        else:
            continue
        graph.replace_all(list(zip(node.outputs, new, strict=True)))


def _has_draws(graph: Any) -> bool:
    from pytensor.scan.op import Scan
    from pytensor.tensor.random.op import RandomVariable

    return any(
        isinstance(node.op, RandomVariable) or (isinstance(node.op, Scan) and _has_draws(node.op.fgraph))
        for node in graph.apply_nodes
    )
