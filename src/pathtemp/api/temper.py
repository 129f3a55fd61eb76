"""Continuous tempering (Algorithm 1): draws of a multimodal target and its log normalising constant."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import Array, FloatArray
from pathtemp.api.arguments import a_kind_of, finite_array, positive_number, whole_number
from pathtemp.api.cores import kept_to_cores
from pathtemp.api.environment import check_environment
from pathtemp.api.given import (
    check_asked,
    check_init,
    check_nothing_else,
    context_model,
    init_names,
    init_points,
    made_model,
)
from pathtemp.engines.default.effort import cheapest, settled_effort, work_of
from pathtemp.engines.default.engine import FEWEST_ROUNDS, MOST_GRADIENTS, TemperEngine
from pathtemp.engines.default.modes import LEAST_SEARCH
from pathtemp.engines.default.plan import TemperPlan
from pathtemp.engines.driver import carry_out, new_checkpoint
from pathtemp.engines.islands.archipelago import Archipelago, Begun
from pathtemp.engines.islands.board import Board
from pathtemp.engines.islands.cluster import OnCluster, check_workers, client_of
from pathtemp.engines.islands.workers import Here
from pathtemp.engines.progress import Progress, display
from pathtemp.errors import InputError
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.bases import Automatic
from pathtemp.model.inputs import check_density, check_model, starts
from pathtemp.model.kinds import kind_of
from pathtemp.model.meter import metered
from pathtemp.model.model import Model, the_model
from pathtemp.modes.reference import LEAST_GRADIENTS, with_reference
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts
from pathtemp.seeds import seed_word
from pathtemp.settings import DEFAULT, PaperSettings, Settings

MOST_NUMBERS = 5_000_000
"""Numbers in the target draws where the user does not say how many; the buffer holds four times as many (160 MB)."""


@kept_to_cores
def temper(
    model: Any = None,
    *args: Any,
    data: Any = None,
    target: Callable[[Any], Array] | None = None,
    base: Any = None,
    dim: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    budget: float | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    modes: Literal["auto", "off"] | ArrayLike = "auto",
    init: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    settings: Settings | PaperSettings = DEFAULT,
    islands: int = 1,
    client: Any = None,
    cluster: Literal["local"] | None = None,
    cores: int | None = None,
    progress: bool | Progress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Fit:
    """Sample a target that ordinary samplers get stuck in, by tempering it continuously from a base.

    Parameters
    ----------
    model
        A PyMC model, a NumPyro function, or a Stan program, by its file or its text; or what a front end has made of
        one (``pt.from_stan``, ``pt.from_pymc``, ``pt.from_numpyro``). Or give ``target`` and ``base``. Inside
        ``with model:`` of PyMC it may be left out.
    args, kwargs
        What a NumPyro function takes: ``pt.temper(regression, x, y=y)``. Where its arguments have the names of those
        below, use ``pt.from_numpyro``.
    data
        Of a Stan program: a dict or a JSON file.
    target
        Log density, not necessarily normalised, of what ``base`` is made of: an array, or a dict of arrays by name.
    base
        What the path starts from: ``pt.normal(...)``, a NumPyro or other distribution with ``log_prob`` and
        ``sample``, a dict of distributions by name, or ``pt.function_base(...)``. It should be wider than the target
        and cover its modes; the prior is a natural choice. With a model that is no ``pt.Model`` yet, what its front end
        takes as base.
    dim
        Without a base: the length of the flat vector that ``target`` takes. A wide base is then built from the modes
        that ascents around the origin find, with a warning how far they looked. The same is done for a model that
        came without a base.
    draws
        Target draws to keep for each chain; by default about 4000 over all chains.
    chains
        Chains side by side, of each island; overrides ``settings.chains``.
    budget
        Gradient equivalents to spend, over all chains and islands and everything included: gradients, and densities at
        their price, see ``settings.density_price``. By default a run stops once the draws are there and log z is
        precise, at one million gradients of an island at most.
    max_seconds
        Wall seconds that the run may take, compiling included. By default there is no such limit. The run ends with the
        last round that fits, and its draws then depend on how fast the machine is.
    seed
        The same seed gives the same draws.
    modes
        "auto" looks for separated modes, lists them in ``fit.modes`` with an estimate of what is unseen, and starts
        the path from a mixture of them and the base where that is measured to shorten it; "off" does not.
        Points (n, dim) on the unconstrained scale, near modes that you know of, are further starts of that search.
        The paper's engine never does.
    init
        The same by name: a dict of values by parameter, on the constrained scale, or a list of such.
    settings
        ``pt.settings.DEFAULT``, or ``pt.settings.PAPER`` for the paper's own engine.
    islands
        Runs that search for modes and adapt apart, each with a seed of its own. Their lists of modes are united before
        they sample, their tours are pooled, and the verdict asks whether they agree: the fit is that of all together.
    client, cluster
        A ``dask.distributed.Client`` on whose workers the islands run, or "local" for a cluster of this machine's
        cores; the fit is the same whatever the number of workers. The model goes there by cloudpickle, which runs
        code: use clusters of your own alone.
    cores
        Cores of this machine that the run may use at most; all by default. With ``cluster="local"`` the number of its
        workers. The draws do not depend on it.
    progress
        A progress bar, or an object with the methods of :class:`pathtemp.engines.progress.Progress`.
    checkpoint
        File, or folder, for the whole state of the run, written after every round; ``pt.resume`` goes on from it.
        Without one, too, Ctrl-C gives the fit of the rounds so far, with a verdict that says so. It is of one island.

    Returns
    -------
    The fit, with ``fit.posterior``, ``fit.log_z`` and ``fit.converged``; see :class:`pathtemp.result.fit.Fit`.

    >>> import jax.numpy as jnp, pathtemp as pt
    >>> def log_q(x):  # two modes at -4 and 4
    ...     return jnp.logaddexp(-0.5 * jnp.sum((x + 4) ** 2), -0.5 * jnp.sum((x - 4) ** 2))
    >>> fit = pt.temper(target=log_q, base=pt.normal(0.0, 5.0, shape=(1,)), seed=1, budget=90_000, progress=False)
    >>> value, se = fit.log_marginal_likelihood
    >>> bool(abs(value - jnp.log(2 * jnp.sqrt(2 * jnp.pi))) < 6 * se < 1)
    True
    """
    began, word = time.perf_counter(), seed_word(seed)
    budget, draws, chains = checked_how(settings, budget=budget, draws=draws, chains=chains)
    limit = checked_seconds(max_seconds)
    islands = whole_number("islands", islands, least=1)
    apart = islands > 1 or client is not None or cluster is not None
    if apart:
        _check_apart(settings, checkpoint, limit)
        check_workers(client, cluster, cores)
    shown = display(progress)
    check_search(modes, init, settings)
    _check_draws(draws, settings.chains if chains is None else chains, 1)
    # All that can be told without the model is told first: a Stan program takes a minute to compile.
    place = None if checkpoint is None else new_checkpoint(checkpoint)
    model = context_model() if target is None and dim is None and model is None else model
    share, search = None if budget is None else budget / islands, not (isinstance(modes, str) and modes == "off")
    settings = settings if chains is None else settings.replace(chains=chains)
    _check_dim(dim, model)
    if model is not None and not isinstance(model, Model) and target is None and dim is None:
        if isinstance(settings, Settings):
            _check_budget(1, 0, share, settings, search=search, islands=islands, settled=False)
        check_asked(model, "init", init_names(init))
        how: dict[str, Any] = {"seed": word, "progress": bool(progress), "known": TAKEN}
        model, base = made_model(model, args, kwargs, data=data, base=base, **how), None
    else:
        check_nothing_else(args, kwargs | ({} if data is None else {"data": data}), TAKEN)
    given = the_model("temper", model, target, base, dim)
    if target is not None:
        check_environment()
        check_density("target", given.log_target, given.dim)
    _check_likelihood(given)
    hints = _hints(modes, init, given)
    use_compilation_cache()
    if isinstance(settings, PaperSettings):
        return _by_the_paper(given, (seed, settings, draws, budget), shown, place, limit)
    _check_draws(draws, settings.chains, given.dim)
    asked = given.dim, LEAST_GRADIENTS * isinstance(given.log_base, Automatic), share
    _check_budget(*asked, settings, search=search, islands=islands, settled=False)
    whole, reference = with_reference(given, seed=word, budget=budget, price=settings.price)
    with metered() as meter:
        theta = starts(whole, count=settings.chains, seed=word)
        start = theta, check_model(whole, theta)
    # What the timings take is not counted: a run with what they gave makes none, and is to be the same.
    settings = settled_effort(settings, GeometricPath(whole.log_base, whole.log_target), theta)
    settings = settings if share is None else settings.within(share, given.dim)
    _check_budget(*asked, settings, search=search, islands=islands, settled=True)
    plan = TemperPlan(
        seed=seed,
        settings=settings,
        draws=_room(given, settings, share, islands) if draws is None else draws,
        # Without a budget the run goes on until the draws are there.
        must_draw=draws is not None or budget is None,
        budget=budget,
        search=search,
    )
    about, spent = ("", Counts()) if reference is None else (reference.about, reference.counts)
    spent = spent + Counts(meter.gradients, meter.densities)
    if apart:
        begun = Begun(plan, islands, hints, about, spent, seconds=time.perf_counter() - began)
        return _on_islands(whole, begun, shown, client_of(client, cluster, cores), cluster is not None)
    engine = TemperEngine(whole, plan, start, hints=hints, about=about)
    engine.chains.counts = spent
    engine.seconds["start"] = time.perf_counter() - began
    return carry_out(engine, plan, whole, shown, place, max_seconds=limit)


TAKEN = frozenset(inspect.signature(temper).parameters)
"""Names of its arguments, one of which may be meant by another."""


def _on_islands(model: Model, begun: Begun, shown: Progress, where: AbstractContextManager[Any], ends: bool) -> Fit:
    """The fit of islands, in this process or on the workers of a client, which may end with the run."""
    board = Board(shown, begun.islands)
    here = Here(model, board)
    with where as who:
        archipelago = Archipelago(model, begun, here if who is None else OnCluster(who, model, board), shown)
        fit = archipelago.carry_out()
    if ends:
        # Its workers are gone; a step gives the same wherever it is done.
        archipelago.workers = here
    return fit


def _check_dim(dim: int | None, model: object) -> None:
    """Raise where a dimension is given beside what has one."""
    if dim is not None and kind_of(model) in ("stan", "pymc"):
        raise InputError("dim: it goes with target= alone; a program or a model has parameters of its own")


def _check_apart(settings: Settings | PaperSettings, checkpoint: object, max_seconds: float | None) -> None:
    """Raise where islands are asked for together with what a run in one piece alone can do."""
    if isinstance(settings, PaperSettings):
        raise InputError(
            "islands: the paper's engine has none; leave islands=, client= and cluster= out, or take "
            "pt.settings.DEFAULT"
        )
    if checkpoint is not None:
        raise InputError("checkpoint: it is of one island in this process; leave it out, or islands= and client=")
    if max_seconds is not None:
        raise InputError("max_seconds: islands give the same on any machine, so that no clock ends them; give budget=")


def _by_the_paper(
    model: Model,
    asked: tuple[int, PaperSettings, int | None, float | None],
    progress: Progress,
    place: Path | None,
    max_seconds: float | None,
) -> Fit:
    """A run of the paper's engine with this seed, settings, draws and budget."""
    # Imported here, since it needs blackjax, which nothing else here does.
    from pathtemp.engines.paper.engine import PaperEngine
    from pathtemp.engines.paper.plan import PaperPlan

    plan = PaperPlan(*asked)
    word = seed_word(plan.seed)
    whole, _ = with_reference(model, seed=word)
    check_model(whole, starts(whole, count=max(plan.settings.chains, 64), seed=word))
    return carry_out(PaperEngine(whole, plan), plan, whole, progress, place, max_seconds=max_seconds)


def checked_how(settings: Any, *, budget: Any, draws: Any, chains: Any) -> tuple[float | None, int | None, int | None]:
    """Budget, draws and chains as plain numbers; raises where they, or the settings, are of a wrong type or size."""
    a_kind_of("settings", settings, (Settings, PaperSettings), "pt.settings.DEFAULT, pt.settings.PAPER or a copy")
    counts = [
        None if value is None else whole_number(name, value, least=1)
        for name, value in (("draws", draws), ("chains", chains))
    ]
    spend = None if budget is None else positive_number("budget", budget, "number of gradient equivalents")
    return spend, counts[0], counts[1]


def _check_draws(draws: int | None, chains: int, dim: int) -> None:
    """Raise where the draws that are asked for, with the room that thinning takes, are more than the memory."""
    if draws is None or not hasattr(os, "sysconf"):
        return
    needed, there = 4 * 8 * draws * chains * dim, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise InputError(
            f"draws: {draws} of each of {chains} chains take {needed / 1e9:.3g} GB, and this machine has "
            f"{there / 1e9:.3g}; give fewer"
        )


def checked_seconds(max_seconds: Any) -> float | None:
    """A limit on the wall seconds of a run as a plain number, None for none; raises where it cannot be one."""
    return None if max_seconds is None else positive_number("max_seconds", max_seconds, "number of seconds")


def _check_budget(
    dim: int, base: int, budget: float | None, settings: Settings, *, search: bool, islands: int, settled: bool
) -> None:
    """Raise where the budget of an island is too small for a few rounds in ``dim`` dimensions and what comes before.

    What an automatic base takes is ``base``. While the price of a density is not ``settled``, a budget is let through
    where it may be enough.
    """
    before = LEAST_SEARCH * search + base

    def fewest_for(settings: Settings) -> float:
        if budget is None:
            return FEWEST_ROUNDS * settings.round_gradients_in(dim) + before
        return FEWEST_ROUNDS * settings.within(budget, dim).round_cost_in(dim) + before

    most, fewest = MOST_GRADIENTS if budget is None else budget, fewest_for(settings)
    if most < (fewest if settled else fewest_for(cheapest(settings))):
        of, fewer = (f" of each of {islands} islands", " or islands") if islands > 1 else ("", "")
        unit = "gradient evaluations" if budget is None else "gradient equivalents"
        raise InputError(
            f"budget: {most * islands:.0f} {unit} are too few for {settings.chains} chains{of}; "
            f"give {np.ceil(fewest * islands):.0f} at least, or fewer chains{fewer}"
        )


def _check_likelihood(model: Model) -> None:
    """Raise where a model observes nothing: its front end gives it one density for both ends."""
    if model.log_base is model.log_target:
        raise InputError(
            f"model: {model.name} observes no data, so that its posterior is its prior; give it data, or a base= other "
            "than the prior to temper from"
        )


def check_search(modes: Any, init: Any, settings: Settings | PaperSettings) -> None:
    """Raise where ``modes`` or ``init`` can go with no model."""
    if isinstance(modes, str):
        if modes not in ("auto", "off"):
            raise InputError(f'modes: it must be "auto", "off" or points (n, dim), and is {modes!r}')
    elif finite_array("modes", modes).ndim != 2:
        raise InputError(f"modes: expected finite points of shape (n, dim), got shape {np.shape(modes)}")
    if init is None:
        return
    check_init(init)
    if isinstance(settings, PaperSettings):
        raise InputError("init: the paper's engine starts from draws of the base; leave it out")
    if isinstance(modes, str) and modes == "off":
        raise InputError('init: it is where modes are looked for, and modes="off" looks for none; leave one out')


def _hints(modes: Literal["auto", "off"] | ArrayLike, init: Any, model: Model) -> FloatArray | None:
    """Points (n, dim) from which modes are looked for besides; None not to look."""
    if isinstance(modes, str):
        points = np.empty((0, model.dim)) if modes == "auto" else None
    else:
        points = finite_array("modes", modes)
        if points.shape[1] != model.dim:
            raise InputError(f"modes: expected finite points of shape (n, {model.dim}), got shape {points.shape}")
    if points is None or init is None:
        return points
    return np.concatenate([points, init_points(init, model)])


def _room(model: Model, settings: Settings, budget: float | None, islands: int) -> int:
    """Target draws to keep for each chain where the user does not say: within memory, and what a budget can make."""
    enough = -(-work_of(settings).draws // (settings.chains * islands))
    if budget is None:
        return enough
    iterations = settings.iterations * budget / settings.round_cost_in(model.dim)
    most = MOST_NUMBERS // (settings.chains * max(model.dim, 1))
    return max(1, min(max(enough, int(0.25 * iterations)), 4 * enough, most))
