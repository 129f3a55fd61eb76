"""What a user may give as a model, in any of the four languages, as a model of ours."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, shown
from pathtemp.errors import InputError
from pathtemp.model.kinds import kind_of, where_to
from pathtemp.model.model import Model


def made_model(
    given: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    data: Any = None,
    base: Any = None,
    seed: int = 0,
    progress: bool = True,
    known: Iterable[str] = (),
) -> Model:
    """The model that the front end makes of what it takes: a PyMC model, a NumPyro function, a Stan program.

    Parameters
    ----------
    given
        Anything that is no model of ours.
    args, kwargs
        What a NumPyro function takes.
    data
        Of a Stan program.
    base, seed, progress
        As the front ends have them.
    known
        Names of the arguments of the caller, one of which may be meant by another.
    """
    kind = kind_of(given)
    if kind != "stan" and data is not None:
        raise InputError("data: it goes with a Stan program; PyMC models hold theirs, NumPyro functions take arguments")
    if kind == "function":
        return _from_function(given, args, kwargs or {}, base)
    check_nothing_else(args, kwargs or {}, known)
    if kind == "pymc":
        from pathtemp.frontends.pymc import from_pymc

        return from_pymc(given, base=base)
    if kind == "stan":
        from pathtemp.frontends.stan import from_stan

        return from_stan(given, data=data, base=base, seed=seed, progress=progress)
    raise InputError(
        f"model: expected a PyMC model, a NumPyro function, a Stan program or a pt.Model, and it is {shown(given)}"
    )


def check_nothing_else(args: Sequence[Any], kwargs: Mapping[str, Any], known: Iterable[str] = ()) -> None:
    """Raise where arguments were given that only a NumPyro function takes."""
    if args:
        raise InputError("model: only a NumPyro function takes further arguments; name all others, as in budget=30_000")
    for name in kwargs:
        near = difflib.get_close_matches(name, list(known), n=1)
        hint = f"; is {near[0]}= meant?" if near else ""
        raise InputError(f"{name}: there is no such argument{hint}")


def _from_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], base: Any) -> Model:
    from pathtemp.frontends.numpyro import from_numpyro

    name = getattr(function, "__name__", type(function).__name__)
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"model: as a NumPyro model, {name} was given other arguments than it takes ({error}); a log density goes "
            "to target=, with base="
        ) from None
    except ValueError:  # a callable without a signature; calling it will tell
        pass
    return from_numpyro(function, *args, base=base, **kwargs)


def model_only(given: Any) -> Model:
    """A model of ours; where it is another, a sentence that says which function makes one of it."""
    if isinstance(given, Model):
        return given
    raise InputError(f"model: expected a model from a front end, got a {type(given).__name__}{where_to(given)}")


def init_points(init: Any, model: Model) -> FloatArray:
    """Points (n, dim) on the unconstrained scale of one dict of constrained values by name, or of a list of them."""
    dicts = [init] if isinstance(init, Mapping) else init
    if not isinstance(dicts, list | tuple) or not dicts or not all(isinstance(x, Mapping) for x in dicts):
        raise InputError(f"init: expected a dict of values by parameter, or a list of such, and it is {shown(init)}")
    return np.stack([_point(values, model) for values in dicts])


def _point(values: Mapping[str, Any], model: Model) -> FloatArray:
    names = list(model.layout.shapes)
    if set(values) != set(names):
        other = sorted(map(str, set(values) ^ set(names)))
        raise InputError(f"init: give a value for each of {', '.join(names)}, and no other; look at {other[0]!r}")
    arrays = {name: jnp.asarray(finite_array(f"init of {name}", values[name])) for name in names}
    try:
        flat = np.asarray((model.unconstrain or model.layout.unconstrain)(arrays), dtype=float)
    except InputError:
        raise
    except Exception as error:  # whatever a front end says of values of a wrong shape
        reason = str(error).strip().partition("\n")[0][:80]
        raise InputError(f"init: the values do not have the shapes of the parameters ({reason})") from None
    if flat.shape != (model.dim,) or not np.isfinite(flat).all():
        raise InputError("init: a value lies outside the range, or has another shape than, its parameter")
    return flat
