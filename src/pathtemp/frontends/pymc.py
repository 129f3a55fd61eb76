"""PyMC models: the prior is the base, the likelihood is what is tempered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler, Variables
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.program import Program, to_model
from pathtemp.model.kinds import where_to
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model, Pointwise, Predictive
from pathtemp.seeds import probe_key

if TYPE_CHECKING:
    import pymc as pm

BATCH = 1024
"""Draws whose deterministics are computed at once."""


def from_pymc(model: pm.Model, *, base: Any = None) -> Model:
    """A PyMC model as it is, tempered from its prior to its posterior.

    The flat vector is PyMC's own unconstrained scale. The base is the prior of the free variables; the target has the
    observed variables and the potentials too, so that log z(1) - log z(0) is the log marginal likelihood. Every visit
    to the base draws the prior afresh, as ``pm.draw`` would: in JAX for the common distributions, otherwise by PyTensor
    on the host, which is as exact and slower. Where a transform restricts a prior (an order on components), prior and
    evidence are those given the restriction. Where some priors are improper (``pm.Flat``, ``pm.HalfFlat``), the others
    stay in the base, unless they depend on those, and ``pt.temper`` finds a law of the rest; log z is then no evidence.
    Draws have the free variables and the deterministics, with the names, dims and coords of ``pm.sample``.

    Parameters
    ----------
    model
        A ``pymc.Model`` with continuous free variables, without minibatches.
    base
        What to start from instead of the prior: a ``pymc.Model`` with the same free variables (its joint density,
        sampled exactly where it has no data), a dict of distributions by name on the constrained scale, one
        distribution of the whole unconstrained vector, or "auto": ``pt.temper`` then builds a wide one from the modes
        that it finds, with a warning how far it looked.

    Raises
    ------
    InputError
        A free variable is discrete, the model subsamples its data, or a part of it has no JAX form; the message says
        which variable and why.
    MissingExtraError
        PyMC is not installed.
    """
    try:
        import pymc
    except ImportError:
        raise MissingExtraError("PyMC", "pymc") from None
    if not isinstance(model, pymc.Model):
        raise InputError(f"from_pymc: model must be a pymc.Model, and is a {type(model).__name__}{where_to(model)}")
    return to_model(_program(model), _program(base) if isinstance(base, pymc.Model) else base)


def _program(model: pm.Model) -> Program:
    from pathtemp.frontends.pymc_data import data_groups, dims_of, predictive_draws
    from pathtemp.frontends.pymc_graph import jaxify
    from pathtemp.frontends.pymc_prior import log_mass_of_order, with_dependents

    _check(model)
    free = [rv.name for rv in model.free_RVs]
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    outputs = [
        var for var in model.unobserved_value_vars if var.name in {*free, *(d.name for d in model.deterministics)}
    ]
    layout = _layout(model, [var.name for var in outputs])
    everything = _compiled(model, values, outputs, layout)

    def named(x: Array) -> dict[str, Array]:
        return dict(zip([var.name for var in outputs], everything(*layout.unravel(x).values()), strict=True))

    def constrain(x: Array) -> dict[str, Array]:
        variables = named(x)
        return {name: variables[name] for name in free}

    def constrain_draws(flat: FloatArray) -> dict[str, FloatArray]:
        batch = max(1, min(BATCH, len(flat)))
        draws = jax.jit(lambda x: jax.lax.map(named, x, batch_size=batch))(jnp.asarray(flat))
        return {var.name: np.asarray(draws[var.name]) for var in outputs}

    # Only a base other than the prior needs these two.
    jacobian = functools.cache(lambda: jaxify(values, [_log_jacobian(model)]))
    inverse = functools.cache(lambda: jaxify(*_unconstrained(model)))

    def log_jacobian(x: Array) -> Array:
        return jacobian()(*layout.unravel(x).values())[0]

    def unconstrain(variables: Variables) -> Array:
        flat = inverse()(*(jnp.asarray(variables[name]) for name in free))
        return layout.ravel(dict(zip(layout.shapes, flat, strict=True)))

    improper, observed = _improper(model), [rv.name for rv in model.observed_RVs]
    rest = with_dependents(model, improper)
    kept = [rv for rv in model.free_RVs if rv.name not in rest]
    return Program(
        name=model.name or "model",
        layout=layout,
        log_prior=_density(model, model.logp(vars=kept), layout),
        log_joint=_density(model, model.logp(), layout),
        constrain=constrain,
        unconstrain=unconstrain,
        log_jacobian=log_jacobian,
        constrain_draws=constrain_draws,
        forward=_forward(model, layout, rest) if kept else None,
        improper=f"the priors of {improper} are improper and cannot be sampled" if improper else "",
        is_prior=not (model.potentials or any(_has_values(model, rv) for rv in model.observed_RVs)),
        pointwise=_pointwise(model) if model.observed_RVs else None,
        data=data_groups(model),
        log_mass=log_mass_of_order(kept, model, layout.shapes),
        predictive=Predictive(predictive_draws(model), *dims_of(model, observed)) if observed else None,
        rest=rest,
    )


def _check(model: pm.Model) -> None:
    from pathtemp.frontends.pymc_graph import generators

    if not model.free_RVs:
        raise InputError("from_pymc: the model has no free variables, so there is nothing to sample")
    discrete = [rv.name for rv in model.free_RVs if rv.dtype.startswith(("int", "uint", "bool"))]
    if discrete:
        raise InputError(
            f"from_pymc: {discrete} are discrete and cannot be tempered; sum them out, with pm.Mixture or "
            "pymc_extras.marginalize"
        )
    for rv in model.observed_RVs:
        if any("Simulator" in kind.__name__ for kind in type(rv.owner.op).__mro__):
            raise InputError(
                f"from_pymc: {rv.name!r} is a Simulator, which compares draws with data and has no density to temper"
            )
        if generators([model.rvs_to_values[rv]]):
            raise InputError(
                f"from_pymc: {rv.name!r} observes a minibatch, whose likelihood changes at random; pass all the data"
            )


def _has_values(model: pm.Model, rv: Any) -> bool:
    """Whether an observed variable has data of at least one element."""
    value = model.rvs_to_values[rv]
    data = value.get_value(borrow=True) if hasattr(value, "get_value") else getattr(value, "data", None)
    return data is None or np.size(data) > 0


def _improper(model: pm.Model) -> list[str]:
    """Names of the free variables whose priors are flat."""
    from pymc.distributions.continuous import FlatRV, HalfFlatRV

    return [rv.name for rv in model.free_RVs if isinstance(rv.owner.op, FlatRV | HalfFlatRV)]


def _layout(model: pm.Model, names: Sequence[str]) -> Layout:
    """Unconstrained shapes, and the dims and coords of the variables that draws will have."""
    try:
        known = model.eval_rv_shapes()
    except AssertionError:  # PyMC 5.28, once pm.sample_posterior_predictive has seen the model's data
        known = {name: np.shape(x) for name, x in model.initial_point().items()}
    shapes = {rv.name: tuple(int(n) for n in known[model.rvs_to_values[rv].name]) for rv in model.free_RVs}
    from pathtemp.frontends.pymc_data import dims_of

    dims, coords = dims_of(model, names)
    return Layout(shapes, dims=dims, coords=coords)


def _pointwise(model: pm.Model) -> Pointwise:
    """The likelihood of each observation at constrained draws, as ``pm.compute_log_likelihood`` has it."""
    from pytensor.graph.replace import clone_replace

    from pathtemp.frontends.pymc_data import dims_of
    from pathtemp.frontends.pymc_graph import freeze, jaxify

    names, observed = [rv.name for rv in model.free_RVs], [rv.name for rv in model.observed_RVs]
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    inputs, unconstrained = _unconstrained(model)
    terms = model.logp(vars=model.observed_RVs, sum=False)
    of_draws = clone_replace(terms, replace=dict(zip(values, unconstrained, strict=True)), rebuild_strict=False)
    graphs = freeze(of_draws)  # the data as they are now

    def evaluate(draws: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        function = jaxify(inputs, graphs)
        rows = tuple(jnp.asarray(draws[name]) for name in names)
        terms = jax.jit(lambda rows: jax.lax.map(lambda row: function(*row), rows, batch_size=BATCH))(rows)
        return {name: np.asarray(x) for name, x in zip(observed, terms, strict=True)}

    dims, coords = dims_of(model, observed)
    axes = {name: graph.ndim for name, graph in zip(observed, graphs, strict=True)}  # without those of one observation
    return Pointwise(evaluate, {name: d[: axes[name]] for name, d in dims.items()}, coords)


def _forward(model: pm.Model, layout: Layout, rest: Container[str]) -> Sampler | None:
    """One prior draw on the unconstrained scale, zeros for the rest; None where a distribution has no random draws."""
    from pathtemp.frontends.pymc_prior import forward_graph, host_forward, jax_forward

    free = forward_graph(model, {name: shape for name, shape in layout.shapes.items() if name in rest})
    try:
        draw = jax_forward(free)
        jax.eval_shape(draw, probe_key())
    except Exception:  # whatever keeps the graph out of JAX; PyTensor itself can run it
        try:
            draw = host_forward(free, list(layout.shapes.values()))
        except NotImplementedError:
            return None

    def forward(key: Key) -> Array:
        return layout.ravel(dict(zip(layout.shapes, draw(key), strict=True)))

    return forward


def _density(model: pm.Model, log_density: Any, layout: Layout) -> LogDensity:
    """Log density of the flat vector, with PyMC's own gradient.

    PyTensor simplifies a gradient before it is computed, so that it stays finite in tails where one by automatic
    differentiation of the density is NaN, as in those of a censored normal.
    """
    import pytensor

    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    try:
        gradient = pytensor.grad(log_density, values, disconnected_inputs="ignore")
        function = _traced(values, [log_density, *gradient], layout)
    except Exception:  # whatever keeps the gradient out of JAX; the density may yet be differentiated there
        plain = _compiled(model, values, [log_density], layout)
        return lambda x: plain(*layout.unravel(x).values())[0]

    outside = _outside_circle(model, layout)

    @jax.custom_jvp
    def value(x: Array) -> Array:
        return jnp.where(outside(x), -jnp.inf, function(*layout.unravel(x).values())[0])

    @value.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        out, *slopes = function(*layout.unravel(primals[0]).values())
        slope = layout.ravel(dict(zip(layout.shapes, slopes, strict=True)))
        return jnp.where(outside(primals[0]), -jnp.inf, out), jnp.dot(slope, tangents[0])

    return value


def _outside_circle(model: pm.Model, layout: Layout) -> Callable[[Array], Array]:
    """Whether an angle has left (-pi, pi): PyMC's circular scale repeats itself, and one turn of it is a density."""
    from pymc.distributions.transforms import CircularTransform

    angles = {rv.name for rv in model.free_RVs if isinstance(model.rvs_to_transforms[rv], CircularTransform)}
    circular = jnp.concatenate([jnp.full(int(np.prod(s)), name in angles) for name, s in layout.shapes.items()])
    return lambda x: jnp.any(circular & (jnp.abs(x) > jnp.pi))


def _log_jacobian(model: pm.Model) -> Any:
    import pytensor.tensor as pt

    terms = [
        pt.sum(transform.log_jac_det(model.rvs_to_values[rv], *rv.owner.inputs))
        for rv, transform in model.rvs_to_transforms.items()
        if transform is not None and rv in model.free_RVs
    ]
    return pt.sum(pt.stack(model.replace_rvs_by_values(terms))) if terms else pt.zeros(())


def _unconstrained(model: pm.Model) -> tuple[list[Any], list[Any]]:
    """Placeholders for the constrained free variables, and the unconstrained ones as graphs of them."""
    from pytensor.graph.replace import clone_replace

    placeholders = {rv: rv.type() for rv in model.free_RVs}
    free = [
        rv if transform is None else transform.forward(rv, *rv.owner.inputs)
        for rv, transform in ((rv, model.rvs_to_transforms[rv]) for rv in model.free_RVs)
    ]
    return list(placeholders.values()), clone_replace(free, replace=placeholders, rebuild_strict=False)


def _compiled(
    model: pm.Model, inputs: Sequence[Any], outputs: Sequence[Any], layout: Layout
) -> Callable[..., tuple[Array, ...]]:
    """JAX function of the outputs; where there is none, one sentence with the variable and the reason."""
    try:
        return _traced(inputs, outputs, layout)
    except Exception as error:
        for name, graph in _parts(model):
            try:
                _traced(inputs, [graph], layout)
            except Exception as reason:
                raise InputError(f"from_pymc: {name!r} has no JAX form: {_first_line(reason)}") from reason
        raise InputError(f"from_pymc: the model has no JAX form: {_first_line(error)}") from error


def _traced(inputs: Sequence[Any], outputs: Sequence[Any], layout: Layout) -> Callable[..., tuple[Array, ...]]:
    """JAX function of the outputs, traced once so that what JAX cannot do is known now."""
    from pathtemp.frontends.pymc_graph import jaxify

    function = jaxify(inputs, outputs)
    jax.eval_shape(function, *layout.unravel(jnp.zeros(layout.dim)).values())
    return function


def _parts(model: pm.Model) -> list[tuple[str, Any]]:
    """The log density of each variable and potential by itself, then the deterministics."""
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    deterministics = model.replace_rvs_by_values(model.deterministics)
    return [
        *((var.name, model.logp(vars=[var])) for var in variables),
        *zip([var.name for var in model.deterministics], deterministics, strict=True),
    ]


MOST_SAID = 120
"""Characters that are shown of what another library says."""


def _first_line(error: Exception) -> str:
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}..."
