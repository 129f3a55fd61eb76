"""Implicit divide-and-conquer (Algorithm 2): a margin that ordinary samplers cannot explore, sampled evenly."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.api.arguments import a_kind_of, interval_of, positive_number, shown
from pathtemp.api.cores import kept_to_cores
from pathtemp.api.given import as_model, check_asked, check_nothing_else, context_model, made_model
from pathtemp.engines.driver import carry_out, new_checkpoint
from pathtemp.engines.path.chains import check_budget
from pathtemp.engines.path.margin import MarginEngine
from pathtemp.engines.path.plans import MarginPlan
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.progress import Progress, display
from pathtemp.errors import InputError
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.evaluate import BLOCK, energies_of, exact_draws
from pathtemp.model.inputs import check_density, check_repeatable, check_size, naming, starts
from pathtemp.model.kinds import kind_of
from pathtemp.model.meter import metered
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.model.price import density_price, told_if_slow, told_of_waiting
from pathtemp.modes.local import gradients_at
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.margin import Margin, MarginPath, margin_path
from pathtemp.result.margin_fit import MarginFit
from pathtemp.result.run import Counts
from pathtemp.seeds import Draws, seed_word
from pathtemp.settings import DEFAULT, PaperSettings, Settings

if TYPE_CHECKING:
    from pathtemp.engines.paper.margin import PaperMarginEngine

BUDGET = 400_000.0
"""Gradient equivalents where the user does not say."""

PRIOR_DRAWS = 2000
"""Draws of the base from which the density of the margin under it is made."""

Target = str | Callable[[FloatArray], FloatArray]
"""What may be a target marginal: a name, or a log density of the margin."""


@overload
def divide_and_conquer(
    model: Any = None,
    *args: Any,
    margin: str | Margin,
    target: Callable[[Any], Array] | None = ...,
    data: Any = ...,
    base: Any = ...,
    target_marginal: Target = ...,
    interval: tuple[float, float] | None = ...,
    budget: float | None = ...,
    chains: int | None = ...,
    seed: int = ...,
    settings: Settings | PaperSettings = ...,
    cores: int | None = ...,
    progress: bool | Progress = ...,
    checkpoint: str | os.PathLike[str] | None = ...,
    **kwargs: Any,
) -> MarginFit: ...


@overload
def divide_and_conquer(
    model: Any = None,
    *args: Any,
    margin: list[str] | list[Margin] | list[str | Margin],
    target: Callable[[Any], Array] | None = ...,
    data: Any = ...,
    base: Any = ...,
    target_marginal: Target = ...,
    interval: tuple[float, float] | None = ...,
    budget: float | None = ...,
    chains: int | None = ...,
    seed: int = ...,
    settings: Settings | PaperSettings = ...,
    cores: int | None = ...,
    progress: bool | Progress = ...,
    checkpoint: str | os.PathLike[str] | None = ...,
    **kwargs: Any,
) -> dict[str, MarginFit]: ...


@kept_to_cores
def divide_and_conquer(
    model: Any = None,
    *args: Any,
    margin: str | Margin | list[str] | list[Margin] | list[str | Margin] | None = None,
    target: Callable[[Any], Array] | None = None,
    data: Any = None,
    base: Any = None,
    target_marginal: Target = "optimal",
    interval: tuple[float, float] | None = None,
    budget: float | None = None,
    chains: int | None = None,
    seed: int = 0,
    settings: Settings | PaperSettings = DEFAULT,
    cores: int | None = None,
    progress: bool | Progress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> MarginFit | dict[str, MarginFit]:
    """Sample along one parameter, such as the scale of a funnel, as evenly as along a path, and so find its marginal.

    Parameters
    ----------
    model, args, kwargs, data, base
        As for :func:`pathtemp.temper`: a PyMC model, a NumPyro function with what it takes, a Stan program with its
        data, or what a front end has made of one. The base serves only to start the chains.
    target
        In the place of a model, a log density in JAX of the dict of values that ``base``, a dict of distributions, has.
    margin
        A parameter by name, ``"tau"``, an element, ``"theta[3]"`` (counted from 1 in Stan, from 0
        elsewhere) or ``"theta[label]"``, or a
        ``pt.Margin`` with a function of the parameters and its inverse. Of a list each is run in turn, from the
        posterior draws of the one before, and a dict of fits comes back.
    target_marginal
        How densely to sample along the margin: ``"optimal"``, denser where the gradient varies (half uniform);
        ``"uniform"`` on the unconstrained scale; ``"prior"``, as the base has it; or a log density of the margin on its
        constrained scale.
    interval
        Where to sample, on the constrained scale; the marginal is then that inside it. By default it is found, and
        widened until hardly any mass lies beyond it.
    budget
        Gradient equivalents to spend, over all chains and everything included: gradients, and densities at their price,
        see ``settings.density_price``; of a list, for each margin. By default 400,000; the paper's engine, of which a
        density counts as a gradient, then spends what its adaptations take.
    chains
        Chains side by side; overrides ``settings.chains``.
    seed
        The same seed gives the same draws.
    settings
        ``pt.settings.DEFAULT``, or ``pt.settings.PAPER`` for the paper's own engine: joint NUTS, path sampling by cells
        and kernels; it stops by k-hat.
    cores
        Cores of this machine that the run may use at most; all by default.
    progress
        A progress bar, or an object with the methods of :class:`pathtemp.engines.progress.Progress`.
    checkpoint
        File, or folder, for the whole state of the run, written after every round; ``pt.resume(path, model)`` goes on
        from it. For one margin at a time.

    Returns
    -------
    A fit with ``fit.marginal``, ``fit.posterior`` and ``fit.converged``; see
    :class:`pathtemp.result.margin_fit.MarginFit`.

    >>> import pathtemp as pt
    >>> model = pt.testing.funnel().model  # y ~ normal(0, 3), x ~ normal(0, exp(y / 2))
    >>> fit = pt.divide_and_conquer(model, margin="y", budget=120_000, seed=1, progress=False)
    >>> sd, tail = fit.marginal.sd(), fit.marginal.cdf(-6.0)  # exact: 3, and .0228
    >>> bool(abs(sd.value - 3.0) < 6 * sd.se < 0.5), bool(abs(tail.value - 0.0228) < 6 * tail.se < 0.02)
    (True, True)
    """
    a_kind_of("settings", settings, (Settings, PaperSettings), "pt.settings.DEFAULT, pt.settings.PAPER or a copy")
    budget = None if budget is None else positive_number("budget", budget, "number of gradient equivalents")
    changed: Settings | PaperSettings = settings if chains is None else settings.replace(chains=chains)
    if changed.chains < 2:
        raise InputError("chains: two at least are needed along a margin, as its errors come from comparing chains")
    interval = None if interval is None else interval_of("interval", interval)
    margins = _margins(margin)
    if checkpoint is not None and len(margins) > 1:
        raise InputError("checkpoint: it is of one margin; run the margins one by one, each with a file of its own")
    if not (callable(target_marginal) or target_marginal in ("optimal", "uniform", "prior")):
        expected = "expected 'optimal', 'uniform', 'prior' or a function"
        raise InputError(f"target_marginal: {expected}, and it is {shown(target_marginal)}")
    along = target_marginal if isinstance(target_marginal, str) else "given"
    told = display(progress)
    place = None if checkpoint is None else new_checkpoint(checkpoint)
    check_asked(model, "margin", [_name(one).partition("[")[0] for one in margins if isinstance(one, str)])
    how = {"data": data, "base": base, "seed": seed_word(seed), "progress": bool(progress), "known": TAKEN}
    model = _model(model, args, kwargs, how) if target is None else _joined(model, target, base)
    if isinstance(changed, Settings):
        budget = BUDGET if budget is None else budget
        check_budget(budget, model.dim - 1, changed, settled=False)
    use_compilation_cache()
    with metered() as meter:
        first = starts_of(model, changed, seed_word(seed))
    if isinstance(changed, Settings) and budget is not None:
        changed = _priced(changed, model, first)
        check_budget(budget, model.dim - 1, changed, settled=True)
    plans = [
        MarginPlan(seed_word(seed), changed, _name(one), isinstance(one, str), along, interval, budget)
        for one in margins
    ]
    both = zip(plans, margins, strict=True)
    engines = [margin_engine(model, plan, one, target_marginal, first) for plan, one in both]
    fits: dict[str, MarginFit] = {}
    for plan, make in zip(plans, engines, strict=True):
        engine = make(first)
        if isinstance(engine, MarginEngine) and not fits:
            engine.chains.counts = Counts(meter.gradients, meter.densities)
        fit = carry_out(engine, plan, model, told, place)
        assert isinstance(fit, MarginFit)
        fits[plan.margin] = fit
        if any(check.name == "finished" for check in fit.diagnostics.checks):
            break
        posterior = engine.posterior().reshape(-1, model.dim)
        if len(posterior):
            first = posterior[np.arange(len(first)) % len(posterior)]
    return fits if isinstance(margin, list | tuple) else next(iter(fits.values()))


def _priced(settings: Settings, model: Model, theta: FloatArray) -> Settings:
    """The settings with the price of a density of the target, timed at points (n, dim) unless they have it."""
    if settings.density_price is not None or settings.effort != "auto":
        return settings.replace(density_price=settings.price)
    block, target = np.resize(theta, (BLOCK, model.dim)), GeometricPath(model.log_target, model.log_target)
    return settings.replace(
        density_price=density_price(lambda: energies_of(target, block), lambda: gradients_at(model.log_target, block))
    )


def _margins(given: Any) -> list[str | Margin]:
    """The margins as a list, each of them once."""
    margins: list[str | Margin] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(one, str | Margin):
            raise InputError(
                f"margin: it must be the name of a parameter, a pt.Margin, or a list of these, and is {shown(one)}"
            )
        margins.append(one)
    if not margins:
        raise InputError("margin: the list is empty; name one parameter at least")
    if len({_name(one) for one in margins}) < len(margins):
        raise InputError(f"margin: a name is there twice among {', '.join(map(_name, margins))}; name each once")
    return margins


OF_TEMPER = frozenset({"draws", "modes", "init", "islands", "client", "cluster", "max_seconds", "dim"})
"""What ``pt.temper`` takes and a run along a margin does not."""

TAKEN = frozenset(inspect.signature(divide_and_conquer).parameters)
"""Names of its arguments, one of which may be meant by another."""


def _model(given: Any, args: tuple[Any, ...], kwargs: dict[str, Any], how: dict[str, Any]) -> Model:
    """The model of ours: a NumPyro function takes further arguments, and nothing else does."""
    if kind_of(given) == "function":
        return made_model(given, args, kwargs, **how)
    given = context_model() if given is None else given
    if given is None:
        raise InputError("model: give one, or target= with base=, a log density and a dict of distributions")
    for name in OF_TEMPER & set(kwargs):
        raise InputError(f"{name}: it is an argument of pt.temper, and a run along a margin has none; leave it out")
    check_nothing_else(args, kwargs, TAKEN)
    return as_model(given, **how)


def _joined(model: Any, target: Any, base: Any) -> Model:
    """The model of a log density and its base."""
    if model is not None:
        raise InputError("target: give a model, or target= with base=, not both")
    if base is None:
        raise InputError("base: give one beside target=, a dict of distributions, which names the parameters")
    return join(target, base)


def margin_engine(
    model: Model, plan: MarginPlan, margin: str | Margin, target_marginal: Target, points: FloatArray
) -> Callable[[FloatArray], MarginEngine | PaperMarginEngine]:
    """What makes the engine of a plan from starts (n, dim); ``points`` (n, dim) try the margin out now."""
    path = margin_path(model, margin, points)
    target = _target(model, path, target_marginal, plan.seed)
    interval = None if plan.interval is None else unconstrained(path, plan.interval)
    kind: type[MarginEngine] | type[PaperMarginEngine] = MarginEngine
    if isinstance(plan.settings, PaperSettings):
        # Imported here, since it needs blackjax, which nothing else here does.
        from pathtemp.engines.paper.margin import PaperMarginEngine as kind
    return lambda starts: kind(model, path, plan, target=target, interval=interval, starts=starts)


def starts_of(model: Model, settings: Settings | PaperSettings, seed: int) -> FloatArray:
    """Draws of the base where the target has density, as many as there are chains, or more."""
    with naming(model):
        return _starts(model, max(settings.chains, 64), seed)


def _name(margin: object) -> str:
    return margin.name if isinstance(margin, Margin) else str(margin)


def _starts(model: Model, count: int, seed: int) -> FloatArray:
    """Draws of the base where the target has density, as many as there are chains."""
    check_density("target", model.log_target, model.dim)
    if model.dim < 2:
        raise InputError("model: it has one parameter alone, which has no margin; sample it with pt.temper")
    theta = starts(model, count=count, seed=seed)
    # The base may be one that pt.temper would have to find; it is not asked for its density.
    path = GeometricPath(model.log_target, model.log_target)
    with told_of_waiting("target"):
        energies = energies_of(path, theta)[:, 1]
    check_size("target", energies)
    again = told_if_slow("target", lambda: energies_of(path, theta[:BLOCK]))[:, 1]
    check_repeatable("target", energies[:BLOCK], again)
    usable = np.isfinite(energies)
    if not usable.any():
        raise InputError(f"model: the target is -inf or NaN at all {count} starts; choose a base that covers it")
    return np.asarray(theta[np.flatnonzero(usable)[np.arange(count) % int(usable.sum())]])


def _target(model: Model, path: MarginPath, target: Target, seed: int) -> TargetMarginal:
    """The target marginal on the unconstrained scale."""
    if callable(target):
        log_density = target

        def given(lam: FloatArray) -> FloatArray:
            x = path.values(lam)
            value = np.asarray(log_density(x), float)
            if value.shape != lam.shape:
                raise InputError(f"target_marginal: it must return one number for each of {len(lam)} values")
            with np.errstate(divide="ignore"):
                jacobian = np.log(np.abs(np.gradient(x, lam)))
            return np.where(np.isfinite(value), value, -1e30) + jacobian

        return TargetMarginal("given", given)
    if target == "prior":
        if model.sample_base is None:
            raise InputError("target_marginal: 'prior' needs a base that can be sampled; choose 'optimal' or 'uniform'")
        from scipy.stats import gaussian_kde

        flat = exact_draws(model.sample_base, seed=seed, stream=Draws.BASE, count=PRIOR_DRAWS)
        lam = np.asarray(jax.vmap(lambda x: path.coordinates.split(x)[1])(jnp.asarray(flat)))
        kernel = gaussian_kde(lam[np.isfinite(lam)])
        return TargetMarginal("given", lambda at: np.asarray(kernel.logpdf(at)))
    return TargetMarginal(target)


def unconstrained(path: MarginPath, interval: tuple[float, float]) -> tuple[float, float]:
    """An interval of the margin on its unconstrained scale.

    >>> from pathtemp.testing import eight_schools
    >>> path = margin_path(eight_schools().model, "tau", np.zeros((2, 10)))
    >>> [round(x, 6) for x in unconstrained(path, (0.1, 100.0))] == [round(float(np.log(x)), 6) for x in (0.1, 100.0)]
    True
    """
    interval = interval_of("interval", interval)
    lam = np.concatenate([-np.geomspace(1e-3, 700.0, 400)[::-1], [0.0], np.geomspace(1e-3, 700.0, 400)])
    x = path.values(lam)
    sign = 1.0 if x[-1] > x[0] else -1.0
    low, high = sorted(x[np.isfinite(x)][[0, -1]])
    if interval[0] < low or interval[1] > high:
        raise InputError(f"interval: {path.name!r} lies between {low:.4g} and {high:.4g}, and it is {interval!r}")
    ends = [_solve(path, sign, value) for value in interval]
    return min(ends), max(ends)


def _solve(path: MarginPath, sign: float, value: float) -> float:
    """The lam at which the margin is ``value``, by bisection on a grid that narrows."""
    low, high = -700.0, 700.0
    for _ in range(12):
        lam = np.linspace(low, high, 65)
        above = sign * path.values(lam) >= sign * value
        first = int(np.argmax(above)) if above.any() else len(lam) - 1
        low, high = lam[max(first - 1, 0)], lam[first]
    return float(0.5 * (low + high))
