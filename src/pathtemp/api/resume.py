"""``pt.resume``: a run goes on from its checkpoint as if it had never stopped."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array
from pathtemp.api import divide
from pathtemp.api.arguments import a_kind_of, whole_number
from pathtemp.api.arguments import shown as in_short
from pathtemp.api.cores import kept_to_cores
from pathtemp.api.given import as_model, check_given
from pathtemp.api.path_sample import check_path
from pathtemp.engines.default.engine import TemperEngine
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.driver import Driver, go_on, restored
from pathtemp.engines.paper.plan import PaperPlan
from pathtemp.engines.path.function import FunctionEngine
from pathtemp.engines.path.plans import MarginPlan, PathPlan
from pathtemp.engines.progress import Progress, Silent, display
from pathtemp.engines.protocol import Engine
from pathtemp.errors import InputError
from pathtemp.io.checkpoint import place_of, read_last, unpacked
from pathtemp.io.found_base import with_kept_base
from pathtemp.io.printable import printable
from pathtemp.io.rebuild import COMMAND_LINE, rebuilt
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.bases import as_base, is_automatic
from pathtemp.model.model import Model, the_model
from pathtemp.paths.function import LogPath
from pathtemp.paths.margin import Margin
from pathtemp.result.fit import Fit, library_versions


@kept_to_cores
def resume(
    path: str | os.PathLike[str],
    model: Any = None,
    *,
    target: Callable[[Any], Array] | None = None,
    base: Any = None,
    dim: int | None = None,
    margin: Margin | None = None,
    target_marginal: Callable[..., Any] | None = None,
    log_q: LogPath | None = None,
    args: tuple[Any, ...] = (),
    cores: int | None = None,
    progress: bool | Progress = True,
) -> Fit:
    """Go on with a run from the checkpoint that it wrote after its last round.

    The run may be one of ``pt.temper``, ``pt.divide_and_conquer`` or ``pt.path_sample``: the file says which.

    The fit is that of a run that never stopped, bit by bit, with the same versions of the libraries. A file that is
    damaged is told from a good one, and the run goes on from one round earlier.

    Parameters
    ----------
    path
        The checkpoint: a file, or the folder it is in.
    model, target, base, dim
        What the run was of, as it was given to the function that began it; another one is refused. The file holds a
        Stan program with its data and base, so that none of these is needed; it holds no model that was made in Python,
        nor a base beyond ``pt.normal`` and plain NumPyro distributions.
    margin, target_marginal
        Of ``pt.divide_and_conquer``, where they were a ``pt.Margin`` or a function; names are in the file.
    log_q, args
        Of ``pt.path_sample``.
    cores, progress
        As for ``pt.temper``.

    Examples
    --------
    >>> import tempfile, jax.numpy as jnp, pathtemp as pt
    >>> def log_q(x):
    ...     return -0.5 * jnp.sum((x - 1.0) ** 2 / 0.25)
    >>> base = pt.normal(0.0, 3.0, shape=(1,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit = pt.temper(target=log_q, base=base, chains=8, budget=12000, progress=False, checkpoint=folder)
    ...     again = pt.resume(folder, target=log_q, base=base, progress=False)
    >>> bool((fit.posterior["theta"] == again.posterior["theta"]).all())
    True
    """
    shown = display(progress)
    _check_types(model, target, base, dim, margin, target_marginal, log_q, args)
    record = read_last(path)
    plan, place = record["plan"], place_of(path)
    use_compilation_cache()
    _check_given(plan, margin=margin, target_marginal=target_marginal, log_q=log_q, args=args)
    if isinstance(plan, PathPlan):
        along = _path_engine(plan, log_q, args)
        engine: Engine = along
        whole = along.model
    else:
        if model is None and target is None and base is None:
            model = rebuilt(record["model"], progress=bool(progress))
        elif model is not None and target is None and base is None:
            model = as_model(model, seed=plan.seed, progress=bool(progress))
        whole = the_model("resume", model, target, base, dim)
        _check_dim(record["model"], whole)
        if not isinstance(plan, MarginPlan):
            whole = with_kept_base(whole, record["model"])
        engine = _engine(plan, whole, margin, target_marginal)
    _warn_of_versions(record["model"]["versions"], library_versions())
    return go_on(engine, record, whole, shown, place)


def brought_back(content: bytes, model: Any) -> Driver:
    """The run of a fit that was loaded or unpickled, with its model given again; None where the content holds it."""
    record = unpacked(content)
    plan = record["plan"]
    if isinstance(plan, PathPlan) or (isinstance(plan, MarginPlan) and not plan.by_name):
        raise InputError(
            "extend: of a run along a function only the fit in memory goes on; use checkpoint= and pt.resume"
        )
    use_compilation_cache()
    recipe = record["model"].get("recipe")
    if model is None and (recipe is None or recipe["of"] == COMMAND_LINE):
        name = printable(str(record["model"]["name"]))
        raise InputError(
            f"extend: {name} was made in Python, of which a file holds nothing; give it: extend(model, ...)"
        )
    given = rebuilt(record["model"], progress=False) if model is None else as_model(model)
    _check_dim(record["model"], given)
    whole = given if isinstance(plan, MarginPlan) else with_kept_base(given, record["model"])
    return restored(_engine(plan, whole, None, None), record, whole, Silent())


def _path_engine(plan: PathPlan, log_q: LogPath | None, args: tuple[Any, ...]) -> FunctionEngine:
    """The engine of a run of :func:`pathtemp.path_sample`."""
    if log_q is None:
        raise InputError("resume: the checkpoint is of pt.path_sample and holds no function; give log_q=, and args=")
    check_path(log_q, plan.dim, plan.interval, args, plan.target_marginal)
    arrays = tuple(jax.tree.map(jnp.asarray, args))
    return FunctionEngine(log_q, arrays, plan, starts=np.empty((0, plan.dim)))


def _engine(
    plan: TemperPlan | PaperPlan | MarginPlan,
    model: Model,
    margin: Margin | None,
    target_marginal: Callable[..., Any] | None,
) -> Engine:
    """The engine of any other run, before its state is filled in."""
    if isinstance(plan, PaperPlan):
        # Imported here, since it needs blackjax, which nothing else here does.
        from pathtemp.engines.paper.engine import PaperEngine

        return PaperEngine(model, plan)
    if isinstance(plan, TemperPlan):
        empty = np.zeros((plan.settings.chains, model.dim)), np.zeros((plan.settings.chains, 2))
        return TemperEngine(model, plan, empty)
    if (margin is None) != plan.by_name:
        what = f"of {plan.margin!r}, by its name; leave margin= out" if plan.by_name else "of a pt.Margin; give margin="
        raise InputError(f"margin: the checkpoint is {what}")
    if (target_marginal is not None) != (plan.target_marginal == "given"):
        raise InputError(
            "target_marginal: give the function that the run had, and nothing where it had a name; this checkpoint's "
            f"is {plan.target_marginal!r}"
        )
    target: divide.Target = plan.target_marginal if target_marginal is None else target_marginal
    starts = divide.starts_of(model, plan.settings, plan.seed)
    return divide.margin_engine(model, plan, plan.margin if margin is None else margin, target, starts)(starts)


def _check_types(
    model: Any, target: Any, base: Any, dim: Any, margin: Any, target_marginal: Any, log_q: Any, args: Any
) -> None:
    """Raise where an argument can be of no run at all."""
    if model is not None:
        check_given(model)
    for name, function in (("target", target), ("target_marginal", target_marginal), ("log_q", log_q)):
        if not (function is None or callable(function)):
            raise InputError(f"{name}: expected a function, and it is {in_short(function)}")
    if not (base is None or is_automatic(base)):
        as_base(base)
    if dim is not None:
        whole_number("dim", dim, least=1)
    if margin is not None:
        a_kind_of("margin", margin, Margin, "a pt.Margin; names are in the file")
    a_kind_of("args", args, tuple, "a tuple of arrays, such as (y,)")


def _check_given(plan: Any, **given: Any) -> None:
    """Refuse what belongs to another kind of run."""
    takes = {MarginPlan: ("margin", "target_marginal"), PathPlan: ("log_q", "args")}.get(type(plan), ())
    for name, value in given.items():
        if name not in takes and value is not None and value != ():
            begun_by = {MarginPlan: "divide_and_conquer", PathPlan: "path_sample"}.get(type(plan), "temper")
            raise InputError(f"{name}: the checkpoint is of pt.{begun_by}, which has none; leave it out")


def _check_dim(kept: dict[str, Any], model: Model) -> None:
    if kept["dim"] != model.dim:
        raise InputError(
            f"model: the checkpoint is of {kept['name']!r} with {kept['dim']} unconstrained parameters, and this one "
            f"has {model.dim}; give the model that the run was of"
        )


def _warn_of_versions(then: dict[str, str], now: dict[str, str]) -> None:
    changed = [f"{name} {then[name]} -> {now.get(name)}" for name in then if then[name] != now.get(name)]
    if changed:
        warnings.warn(
            f"resume: the checkpoint was made with other versions ({', '.join(changed)}); what follows may differ in "
            "its last digits from a run that never stopped",
            stacklevel=3,
        )
