"""NumPyro models: the prior is the base, the likelihood is what is tempered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler, Variables
from pathtemp.api.arguments import shown
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.numpyro_data import data_groups, predictive_draws
from pathtemp.frontends.numpyro_part import (
    divides_by_a_mass,
    improper_sites,
    log_prior_of,
    with_dependents,
    without_lost_mass,
)
from pathtemp.frontends.program import Program, to_model
from pathtemp.model.kinds import where_to
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model, Pointwise, Predictive
from pathtemp.seeds import probe_key

BATCH = 1024
"""Draws whose deterministics are computed at once."""

MOST_REASON = 120
"""Characters of an error of the user's function that are repeated."""

Trace = dict[str, dict[str, Any]]


def from_numpyro(model: Callable[..., Any], *args: Any, base: Any = None, **kwargs: Any) -> Model:
    """A NumPyro model as it is, tempered from its prior to its posterior.

    The flat vector is NumPyro's own unconstrained scale. The base is the prior of the latent continuous sites; the
    target has the observed sites and the factors too, so that log z(1) - log z(0) is the log marginal likelihood. Every
    visit to the base draws the prior afresh. Discrete latent sites are summed out by enumeration, as ``MCMC`` does,
    in the prior as in the posterior. Where some priors are improper or masked, the others stay in the base, unless they
    depend on those, and ``pt.temper`` finds a law of the rest; log z is then no evidence. Draws have the latent and the
    deterministic sites; plates name the dims.

    Parameters
    ----------
    model
        A callable with NumPyro primitives.
    args, kwargs
        What the model takes: its data.
    base
        What to start from instead of the prior: a NumPyro model of the same arguments with the same latent sites (its
        joint density, sampled exactly where it observes nothing), a dict of distributions by name on the constrained
        scale, one distribution of the whole unconstrained vector, or "auto": ``pt.temper`` then builds a wide one from
        the modes that it finds, with a warning how far it looked.

    Raises
    ------
    InputError
        A discrete site cannot be enumerated, or a plate subsamples its data; the message says which site and what to
        do.
    MissingExtraError
        NumPyro is not installed, or a site must be enumerated and funsor is not.

    >>> import numpyro, numpyro.distributions as dist
    >>> def coin(heads, flips):
    ...     p = numpyro.sample("p", dist.Beta(2.0, 2.0))
    ...     numpyro.sample("heads", dist.Binomial(flips, p), obs=heads)
    >>> from_numpyro(coin, 7, flips=10).dim
    1
    """
    try:
        import numpyro
    except ImportError:
        raise MissingExtraError("NumPyro", "numpyro") from None
    if not callable(model):
        raise InputError(
            "from_numpyro: model must be a function with NumPyro primitives, and is a "
            f"{type(model).__name__}{where_to(model)}"
        )
    _check_function(model)
    is_program = callable(base) and not isinstance(base, numpyro.distributions.Distribution)
    try:
        return to_model(_program(model, args, kwargs), _program(base, args, kwargs) if is_program else base)
    except (
        jax.errors.ConcretizationTypeError,
        jax.errors.NonConcreteBooleanIndexError,
        jax.errors.TracerArrayConversionError,
    ) as error:
        raise InputError(
            f"from_numpyro: {_called(model)} takes a site out of JAX, by `if`, float() or NumPy; use jax.numpy and "
            "jnp.where, or numpyro.contrib.control_flow.cond"
        ) from error


def _check_function(model: Any) -> None:
    """Raise where a function hides its sites, or gives the same draw every time."""
    from numpyro import handlers

    layer = model
    while layer is not None:
        if hasattr(layer, "lower") and hasattr(layer, "trace"):
            raise InputError(
                f"from_numpyro: {_called(layer)} is compiled by jax.jit, which hides its sites; give the plain function"
            )
        if isinstance(layer, handlers.seed):
            raise InputError(
                f"from_numpyro: {_called(model)} is inside handlers.seed, so that every draw of its prior is the same; "
                "give it without"
            )
        layer = getattr(layer, "fn", None)


def _called(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


def _program(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    from numpyro import handlers
    from numpyro.infer.util import constrain_fn, unconstrain_fn

    trace = _prior_trace(model, args, kwargs)
    latent = {k: s for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    discrete = [name for name, site in latent.items() if site["fn"].support.is_discrete]
    continuous = [name for name in latent if name not in discrete]
    _check(trace, continuous, discrete)

    def seeded(*args: Any, **kwargs: Any) -> Any:
        # A handler holds its key: one for all calls would carry a key out of one JAX trace into the next.
        return handlers.seed(model, 0)(*args, **kwargs)

    layout = _layout(trace, continuous)
    jacobians = tuple(f"_{name}_log_det" for name in continuous)

    def is_likelihood(site: dict[str, Any]) -> bool:
        # The Jacobians are factors too, and a loop may prefix the names of its sites.
        return site["type"] == "sample" and site["is_observed"] and not site["name"].endswith(jacobians)

    prior = handlers.block(seeded, hide_fn=is_likelihood)

    def named(x: Array) -> dict[str, Array]:
        out: dict[str, Array] = constrain_fn(seeded, args, kwargs, layout.unravel(x), return_deterministic=True)
        return out

    def constrain(x: Array) -> dict[str, Array]:
        variables = named(x)
        return {name: variables[name] for name in continuous}

    def constrain_draws(flat: FloatArray) -> dict[str, FloatArray]:
        batch = max(1, min(BATCH, len(flat)))
        draws = jax.jit(lambda x: jax.lax.map(named, x, batch_size=batch))(jnp.asarray(flat))
        return {name: np.asarray(draws[name]) for name in trace if name in draws}

    def unconstrain(variables: Variables) -> Array:
        return layout.ravel(unconstrain_fn(seeded, args, kwargs, dict(variables)))

    def log_jacobian(x: Array) -> Array:
        free, sites = layout.unravel(x), _trace(handlers.substitute(seeded, data=constrain(x)), args, kwargs)
        terms = (_transform(sites[name]).log_abs_det_jacobian(free[name], sites[name]["value"]) for name in continuous)
        return sum((jnp.sum(term) for term in terms), jnp.zeros(()))

    # Data of no elements say nothing; a factor has no value, and says something.
    observed = {name: trace[name]["value"] for name in _observed(trace) if not _is_empty(trace[name])}
    improper = improper_sites(latent)
    none: frozenset[str] = frozenset()
    rest = with_dependents(model, args, kwargs, [*improper, *discrete], continuous) if improper else none

    def log_kept(x: Array) -> Array:
        free, sites = layout.unravel(x), _trace(handlers.substitute(seeded, data=constrain(x)), args, kwargs)
        return log_prior_of({name: sites[name] for name in continuous if name not in rest}, free)

    return Program(
        name=_called(model),
        layout=layout,
        log_prior=log_kept if rest else _density(prior, trace, args, kwargs, layout, bool(discrete)),
        log_joint=_density(seeded, trace, args, kwargs, layout, bool(discrete)),
        constrain=constrain,
        unconstrain=unconstrain,
        log_jacobian=log_jacobian,
        constrain_draws=constrain_draws,
        forward=_forward(model, args, kwargs, layout, latent, rest),
        improper="; ".join(improper.values()),
        is_prior=not observed,
        pointwise=_pointwise(seeded, trace, args, kwargs, discrete) if observed else None,
        data=data_groups(model, args, kwargs, observed, dims=_plates(trace, observed)),
        predictive=Predictive(predictive_draws(model, args, kwargs, list(observed)), _plates(trace, observed))
        if observed
        else None,
        rest=rest,
    )


def _trace(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    from numpyro import handlers

    trace: Trace = handlers.trace(model).get_trace(*args, **kwargs)
    return trace


def _prior_trace(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    """One run of the model from its prior; sites that cannot be sampled start anywhere."""
    from numpyro import handlers
    from numpyro.infer.initialization import init_to_sample

    try:
        return _trace(handlers.substitute(handlers.seed(model, 0), substitute_fn=init_to_sample), args, kwargs)
    except (InputError, NotImplementedError):
        raise
    except Exception as error:  # whatever goes wrong inside the user's function
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:MOST_REASON]
        raise InputError(f"from_numpyro: {_called(model)} fails with the arguments given ({reason})") from error


def _transform(site: dict[str, Any]) -> Any:
    """From the real space onto the support of a site."""
    from numpyro.distributions import biject_to

    return biject_to(site["fn"].support)


def _check(trace: Trace, continuous: list[str], discrete: list[str]) -> None:
    for name, site in trace.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise InputError(
                f"from_numpyro: plate {name!r} subsamples {site['args'][1]} of {site['args'][0]}, so its likelihood "
                "changes at random; use all the data"
            )
    for name in discrete:
        if not trace[name]["fn"].has_enumerate_support:
            raise InputError(
                f"from_numpyro: site {name!r} is a {type(trace[name]['fn']).__name__}, which is discrete and cannot be "
                "enumerated; sum it out in the model"
            )
    if not continuous:
        raise InputError("from_numpyro: the model has no continuous latent sites, so there is nothing to sample")
    for name in _observed(trace):
        if np.ma.is_masked(trace[name]["value"]):
            raise InputError(
                f"data: site {name!r} observes a masked array, whose masked values NumPyro takes for data; leave them "
                "out, or mask the site with numpyro.handlers.mask"
            )
        if isinstance(trace[name]["value"], list | tuple) or hasattr(trace[name]["value"], "to_numpy"):
            kind = type(trace[name]["value"]).__name__
            raise InputError(f"data: site {name!r} observes a {kind}; NumPyro takes arrays: give jnp.asarray of it")
        _check_value(name, trace[name])
    if discrete:
        _check_plates(trace)
        try:
            import numpyro.contrib.funsor  # noqa: F401
        except ImportError:
            raise MissingExtraError("funsor", "numpyro") from None


def _check_value(name: str, site: dict[str, Any]) -> None:
    """Raise where what a site observes is made of no numbers, or has not the shape of its distribution."""
    value = site["value"]
    dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    if not (jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)):
        raise InputError(f"data: site {name!r} observes {shown(value)}; NumPyro takes arrays of numbers")
    if site["fn"].event_dim or _is_empty(site) or not np.size(value):
        return
    batch = tuple(site["fn"].batch_shape)
    try:
        np.broadcast_shapes(batch, np.shape(value))
    except ValueError:
        raise InputError(
            f"data: site {name!r} observes values of shape {np.shape(value)}, and its distribution has shape {batch}"
        ) from None


def _is_empty(site: dict[str, Any]) -> bool:
    """Whether a site observes an array without elements; a factor, which has no value of its own, is none."""
    from numpyro.distributions import Unit

    law = site["fn"]
    while hasattr(law, "base_dist"):
        law = law.base_dist
    return not isinstance(law, Unit) and np.size(site["value"]) == 0


def _check_plates(trace: Trace) -> None:
    """Enumeration takes what is independent from the plates."""
    for name, site in trace.items():
        if site["type"] != "sample":
            continue
        batch = site["fn"].batch_shape
        plates = {frame.dim for frame in site["cond_indep_stack"]}
        if site.get("_control_flow_done", False):
            plates.add(-len(batch))  # the time axis of numpyro.contrib.control_flow.scan
        if any(size > 1 and dim - len(batch) not in plates for dim, size in enumerate(batch)):
            raise InputError(
                f"from_numpyro: site {name!r} has batch shape {batch} outside a plate, and discrete sites can be "
                "summed out only over plates; put it under numpyro.plate"
            )


def _layout(trace: Trace, continuous: list[str]) -> Layout:
    shapes = {name: jnp.shape(_transform(trace[name]).inv(trace[name]["value"])) for name in continuous}
    deterministic = [name for name, site in trace.items() if site["type"] == "deterministic"]
    events = {name: trace[name].get("infer", {}).get("event_dims", ()) for name in (*continuous, *deterministic)}
    dims = {name: (*plates, *events[name]) for name, plates in _plates(trace, events).items()}
    return Layout(shapes, dims={name: named for name, named in dims.items() if named})


def _plates(trace: Trace, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Leading dims of the sites whose axes are those of their plates."""
    frames = {name: sorted(trace[name]["cond_indep_stack"], key=lambda frame: int(frame.dim)) for name in names}
    return {
        name: tuple(frame.name for frame in own)
        for name, own in frames.items()
        if tuple(frame.size for frame in own) == _batch_shape(trace[name])[: len(own)]
    }


def _batch_shape(site: dict[str, Any]) -> tuple[int, ...]:
    # The value of a factor is empty.
    return tuple(site["fn"].batch_shape) if site["type"] == "sample" else jnp.shape(site["value"])


def _pointwise(
    model: Callable[..., Any], trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any], discrete: list[str]
) -> Pointwise:
    """The likelihood of each observation at constrained draws, by NumPyro's own function."""
    from numpyro.infer import log_likelihood

    def evaluate(draws: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        if discrete:
            raise InputError(
                f"log_likelihood: sites {discrete} were summed out over all observations together, so single ones have "
                "no likelihood; write the sum into the model, with dist.MixtureSameFamily"
            )
        terms = log_likelihood(model, {name: jnp.asarray(x) for name, x in draws.items()}, *args, **kwargs)
        return {name: np.asarray(x) for name, x in terms.items()}

    return Pointwise(evaluate, _plates(trace, _observed(trace)))


def _observed(trace: Trace) -> list[str]:
    return [name for name, site in trace.items() if site["type"] == "sample" and site["is_observed"]]


def _density(
    model: Callable[..., Any],
    trace: Trace,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    layout: Layout,
    enumerate_sites: bool,
) -> LogDensity:
    """Log density of the flat vector, with Jacobians, discrete sites summed out."""
    from numpyro.infer.util import potential_energy

    if enumerate_sites:
        from numpyro.contrib.funsor import config_enumerate, enum

        frames = [frame.dim for s in trace.values() if s["type"] == "sample" for frame in s["cond_indep_stack"]]
        model = enum(config_enumerate(model), min(frames, default=0) - 1)

    def log_density(x: Array) -> Array:
        return -jnp.asarray(potential_energy(model, args, kwargs, layout.unravel(x), enum=enumerate_sites))

    return without_lost_mass(log_density) if divides_by_a_mass(trace) else log_density


def _forward(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    layout: Layout,
    latent: Trace,
    rest: frozenset[str],
) -> Sampler | None:
    """One prior draw on the unconstrained scale, zeros for the rest; None where there are no draws of its density.

    That is where a distribution has no sampler, or its density is scaled.
    """
    from numpyro import handlers

    fixed = {name: latent[name]["value"] for name in rest}

    def forward(key: Key) -> Array:
        sites = _trace(handlers.substitute(handlers.seed(model, key), data=fixed), args, kwargs)
        free = {name: _transform(sites[name]).inv(sites[name]["value"]) for name in layout.shapes if name not in rest}
        return layout.ravel({name: free.get(name, jnp.zeros(shape)) for name, shape in layout.shapes.items()})

    if any(site["scale"] is not None for name, site in latent.items() if name not in rest):
        return None
    try:
        jax.eval_shape(forward, probe_key())
    except NotImplementedError:
        return None
    return forward
