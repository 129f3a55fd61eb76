"""What a user may give as a model, in any of the four languages, as a model of ours."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, shown
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.model.kinds import is_distribution, kind_of, where_to
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
    if kind == "":
        raise InputError(_no_model(given))
    if kind != "stan" and data is not None:
        raise InputError("data: it goes with a Stan program; PyMC models hold theirs, NumPyro functions take arguments")
    if kind == "function":
        if any(map(is_distribution, args)):
            raise InputError("model: a log density goes to target=, and the distribution beside it to base=")
        return _from_function(given, args, kwargs or {}, base, known)
    if kind == "stan" and data is None and len(args) == 1:
        data, args = args[0], ()
    if kind == "stan" and data is None and _like_data(kwargs or {}, known):
        raise InputError(f"data: give {_shown_names(kwargs or {})} as data={{...}}, a dict by name, or a JSON file")
    check_nothing_else(args, kwargs or {}, known)
    if kind == "pymc":
        from pathtemp.frontends.pymc import from_pymc

        return from_pymc(given, base=base)
    from pathtemp.frontends.stan import from_stan

    return from_stan(given, data=data, base=base, seed=seed, progress=progress)


def _like_data(kwargs: Mapping[str, Any], known: Iterable[str]) -> bool:
    """Whether there are keyword arguments, none of which is another library's name of one of ours."""
    return bool(kwargs) and not any(_meant(name, set(known)) for name in kwargs)


def _shown_names(kwargs: Mapping[str, Any]) -> str:
    return printable(", ".join(list(kwargs)[:MOST_NAMES]))[:80]


def _no_model(given: Any) -> str:
    if hasattr(given, "read"):
        return "model: it is an open file; give its name, or its text"
    if is_distribution(given):
        return f"model: it is a distribution ({type(given).__name__}){where_to(given)}"
    return f"model: expected a PyMC model, a NumPyro function, a Stan program or a pt.Model, and it is {shown(given)}"


MOST_NAMES = 5
"""Names that a message lists."""

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "draws": (
        "num_samples",
        "n_samples",
        "iter",
        "n_iter",
        "num_steps",
        "samples",
        "iter_sampling",
        "num_draws",
        "n_draws",
    ),
    "chains": ("num_chains", "n_chains", "walkers", "num_walkers", "nwalkers"),
    "cores": ("parallel_chains", "n_jobs", "jobs", "threads", "threads_per_chain", "num_cores", "n_cores", "ncores"),
    "seed": ("random_seed", "rng_key", "key", "random_state", "rng"),
    "init": ("initvals", "inits", "init_params", "initial_values", "init_values"),
    "progress": ("progressbar", "progress_bar", "show_progress", "show_console", "verbose"),
    "model": ("stan_file", "program", "program_code", "stan_code", "model_code"),
    "base": ("prior", "reference", "initial_distribution"),
    "target": ("logp", "log_prob", "log_density", "logdensity_fn", "likelihood", "log_likelihood", "posterior"),
    "max_seconds": ("timeout", "max_time", "time_limit", "maxtime"),
    "checkpoint": ("filepath", "output_dir", "save_path"),
}
"""What other libraries call an argument, by what it is called here."""

NOT_NEEDED: dict[str, tuple[str, ...]] = {
    "a run finds its own warm-up; budget= is what all of it may spend": (
        *("tune", "warmup", "num_warmup", "n_warmup", "iter_warmup", "burn_in", "burnin"),
    ),
    "the acceptance is one of settings=pt.settings.DEFAULT.replace(acceptance=...)": (
        *("target_accept", "target_accept_prob", "adapt_delta"),
    ),
    "the path is learned, and has no ladder to be given": (
        *("lam", "temperatures", "betas", "ladder", "n_temps", "num_temperatures", "schedule"),
    ),
    "fit.to_arviz() is what ArviZ takes": ("return_inferencedata", "idata_kwargs", "inferencedata_kwargs"),
    "step sizes and moves are learned": (
        "step",
        "step_size",
        "nuts_sampler",
        "max_treedepth",
        "max_tree_depth",
        "kernel",
    ),
}
"""What other libraries ask for and is not asked for here, by what to say."""


def _meant(name: str, known: set[str]) -> str:
    """A hint what an unknown argument may stand for."""
    for ours, theirs in ELSEWHERE.items():
        if name in theirs and ours in known:
            return f"; {ours}= is what it is called here"
    for why, theirs in NOT_NEEDED.items():
        if name in theirs:
            return f"; {why}"
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    return f"; is {near[0]}= meant?" if near else ""


def check_nothing_else(args: Sequence[Any], kwargs: Mapping[str, Any], known: Iterable[str] = ()) -> None:
    """Raise where arguments were given that only a NumPyro function takes."""
    if args:
        raise InputError("model: only a NumPyro function takes further arguments; name all others, as in budget=30_000")
    for name in kwargs:
        raise InputError(f"{printable(name)}: there is no such argument{_meant(name, set(known))}")


def check_names(kwargs: Mapping[str, Any], own: set[str], known: Iterable[str]) -> None:
    """Raise where a function was given, under the name of another library, an argument that is one of ours."""
    for name in kwargs:
        meant = "" if name in own else _meant(name, set(known))
        if meant:
            raise InputError(f"{printable(name)}: there is no such argument{meant}")


def context_model() -> Any:
    """The PyMC model in whose context, ``with model:``, the caller is; None where there is none."""
    pymc = sys.modules.get("pymc")
    if pymc is None:
        return None
    try:
        return pymc.modelcontext(None)
    except TypeError:  # as PyMC says that there is none
        return None


def _from_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], base: Any, known: Iterable[str]
) -> Model:
    from pathtemp.frontends.numpyro import from_numpyro

    name = getattr(function, "__name__", type(function).__name__)
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        check_names(kwargs, set(inspect.signature(function).parameters), known)
        raise InputError(
            f"model: as a NumPyro model, {name} was given other arguments than it takes ({error}); a log density goes "
            "to target=, with base="
        ) from None
    except ValueError:  # a callable without a signature; calling it will tell
        pass
    return from_numpyro(function, *args, base=base, **kwargs)


def as_model(given: Any, *, argument: str = "model", **how: Any) -> Model:
    """A model of ours: as it is, or as its front end makes it of what it takes without further arguments.

    Parameters
    ----------
    given
        What the user gave.
    argument
        What the caller calls it.
    how
        ``data``, ``base``, ``seed``, ``progress`` and ``known`` of :func:`made_model`.
    """
    check_given(given, argument=argument)
    if not isinstance(given, Model):
        return made_model(given, **how)
    for name in ("data", "base"):
        if how.get(name) is not None:
            raise InputError(f"{name}: the {argument} is made already, with its {name}; leave it out")
    return given


def check_given(given: Any, *, argument: str = "model") -> None:
    """Raise where :func:`as_model` can make no model of what the user gave."""
    takes = kind_of(given) == "function" and _wants_arguments(given)
    if takes or kind_of(given) == "":
        raise InputError(f"{argument}: expected a model, and it is {shown(given)}{where_to(given)}")


def _wants_arguments(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a callable without a signature; calling it will tell
        pass
    return False


def check_asked(given: Any, argument: str, names: Sequence[str]) -> None:
    """Raise where a Stan program, which is slow to compile, has not the variables that an argument names."""
    if kind_of(given) == "stan":
        from pathtemp.frontends.stan.parameters import check_asked

        check_asked(given, argument, names)


def init_points(init: Any, model: Model) -> FloatArray:
    """Points (n, dim) on the unconstrained scale of one dict of constrained values by name, or of a list of them."""
    return np.stack([_point(values, model) for values in _dicts(init)])


def check_init(init: Any) -> None:
    """Raise where ``init`` is no dict, or list of dicts, of finite numbers."""
    for values in _dicts(init):
        for name, value in values.items():
            finite_array(f"init of {printable(str(name))}", value)


def init_names(init: Any) -> list[str]:
    """Parameters of which values are given; none where no values are."""
    return [] if init is None else list(dict.fromkeys(str(name) for values in _dicts(init) for name in values))


def _dicts(init: Any) -> Sequence[Mapping[str, Any]]:
    dicts = [init] if isinstance(init, Mapping) else init
    if not isinstance(dicts, list | tuple) or not dicts or not all(isinstance(x, Mapping) for x in dicts):
        raise InputError(f"init: expected a dict of values by parameter, or a list of such, and it is {shown(init)}")
    return dicts


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
