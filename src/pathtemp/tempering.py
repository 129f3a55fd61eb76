"""Continuous tempering (Algorithm 1): draws of a multimodal target and its log normalising constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pathtemp._types import Array
from pathtemp.adapt import AdaptiveRun
from pathtemp.compilation import use_compilation_cache
from pathtemp.engine import Engine
from pathtemp.errors import InputError
from pathtemp.fit import Fit
from pathtemp.inputs import check_model, starts
from pathtemp.model import Model
from pathtemp.model import model as join
from pathtemp.modes.run import ModesRun, Start
from pathtemp.progress import Progress, RichProgress, Silent
from pathtemp.seeds import seed_word
from pathtemp.settings import DEFAULT, PaperSettings, Settings

MOST_GRADIENTS = 1_000_000
"""Gradient evaluations after which a run without a given budget stops."""

MOST_NUMBERS = 20_000_000
"""Numbers in the target draws that are kept where the user does not say how many draws (160 MB)."""

TARGET_DRAWS = 4096
"""Target draws over all chains, where the user does not say."""


def temper(
    model: Model | None = None,
    *,
    target: Callable[[Any], Array] | None = None,
    base: Any = None,
    draws: int | None = None,
    chains: int | None = None,
    budget: float | None = None,
    seed: int = 0,
    modes: Literal["auto", "off"] = "auto",
    settings: Settings | PaperSettings = DEFAULT,
    progress: bool | Progress = True,
) -> Fit:
    """Sample a target that ordinary samplers get stuck in, by tempering it continuously from a base.

    Parameters
    ----------
    model
        A model from a front end (``pt.from_stan``, ``pt.from_pymc``, ``pt.from_numpyro``), or give ``target`` and
        ``base``.
    target
        Log density, not necessarily normalised, of what ``base`` is made of: an array, or a dict of arrays by name.
    base
        What the path starts from: ``pt.normal(...)``, a NumPyro or other distribution with ``log_prob`` and
        ``sample``, a dict of distributions by name, or ``pt.function_base(...)``. It should be wider than the target
        and cover its modes; the prior is a natural choice.
    draws
        Target draws to keep for each chain; by default about 4000 over all chains.
    chains
        Chains side by side; overrides ``settings.chains``.
    budget
        Gradient evaluations to spend, over all chains and everything included. By default a run stops once the
        draws are there and log z is precise, at one million evaluations at most.
    seed
        The same seed gives the same draws.
    modes
        "auto" looks for separated modes, lists them in ``fit.modes`` with an estimate of what is unseen, and starts
        the path from a mixture of them and the base where that is measured to shorten it; "off" does not.
        The paper's engine never does.
    settings
        ``pt.settings.DEFAULT``, or ``pt.settings.PAPER`` for the paper's own engine.
    progress
        A progress bar, or an object with the methods of :class:`pathtemp.progress.Progress`.

    Returns
    -------
    The fit, with ``fit.posterior``, ``fit.log_z`` and ``fit.converged``; see :class:`pathtemp.fit.Fit`.

    >>> import jax.numpy as jnp, pathtemp as pt
    >>> def log_q(x):  # two modes at -4 and 4
    ...     return jnp.logaddexp(-0.5 * jnp.sum((x + 4) ** 2), -0.5 * jnp.sum((x - 4) ** 2))
    >>> fit = pt.temper(target=log_q, base=pt.normal(0.0, 5.0, shape=(1,)), seed=1, budget=30_000, progress=False)
    >>> bool(abs(fit.log_marginal_likelihood.value - jnp.log(2 * jnp.sqrt(2 * jnp.pi))) < 0.2)
    True
    """
    word = seed_word(seed)
    whole = _model(model, target, base)
    if modes not in ("auto", "off"):
        raise InputError(f'modes: it must be "auto" or "off", and is {modes!r}')
    display = _display(progress)
    use_compilation_cache()
    if isinstance(settings, PaperSettings):
        from pathtemp.paper import run_paper

        changed = settings if chains is None else settings.replace(chains=chains)
        theta = starts(whole, count=max(changed.chains, 64), seed=word)
        check_model(whole, theta)
        try:
            run = run_paper(whole, seed=word, draws=draws, settings=changed, progress=display.round)
        finally:
            display.finish()
        return Fit.from_run(run, whole, seed=seed, settings=changed)
    settings = settings if chains is None else settings.replace(chains=chains)
    return _temper(
        whole, draws=draws, budget=budget, seed=seed, look=modes == "auto", settings=settings, display=display
    )


def _temper(
    model: Model,
    *,
    draws: int | None,
    budget: float | None,
    seed: int,
    look: bool,
    settings: Settings,
    display: Progress,
) -> Fit:
    """The default engine; ``look`` for separated modes, or not."""
    if budget is not None and not budget > 0:
        raise InputError(f"budget: it must be a positive number of gradient evaluations, and is {budget}")
    if draws is not None and draws < 1:
        raise InputError(f"draws: at least one per chain is needed, and it is {draws}")
    kept = _room(model, settings, budget) if draws is None else draws
    most = MOST_GRADIENTS if budget is None else budget
    word = seed_word(seed)
    theta = starts(model, count=settings.chains, seed=word)
    energies = check_model(model, theta)
    # Without a budget the run goes on until the draws are there.
    must_draw = draws is not None or budget is None

    def make_engine(model: Model, start: Start) -> Engine:
        return Engine(model, seed=word, draws=kept, must_draw=must_draw, settings=settings, start=start)

    run: AdaptiveRun | ModesRun
    if look:
        run = ModesRun(model, (theta, energies), make_engine, display, seed=word, budget=budget)
    else:
        run = AdaptiveRun(make_engine(model, (theta, energies)), display)
    round_gradients = run.engine.round_gradients
    if most < 4 * round_gradients:
        raise InputError(
            f"budget: {most:.0f} gradient evaluations are too few for {settings.chains} chains; "
            f"give {4 * round_gradients:.0f} at least, or fewer chains"
        )
    display.start(int(most))
    try:
        run.warm_up(most if budget is not None else min(most, 100 * round_gradients))
        run.sample(most, until_done=budget is None)
    finally:
        display.finish()
    return Fit.from_run(run.result(), model, seed=seed, settings=settings, continuation=run)


def _room(model: Model, settings: Settings, budget: float | None) -> int:
    """Target draws to keep for each chain where the user does not say: all a given budget can make, within memory."""
    enough = -(-TARGET_DRAWS // settings.chains)
    if budget is None:
        return enough
    iterations = budget / settings.chains / (0.5 * (settings.leapfrogs_in(model.dim) + 1))
    most = MOST_NUMBERS // (settings.chains * max(model.dim, 1))
    return max(1, min(max(enough, int(0.25 * iterations)), most))


def _model(model: Model | None, target: Callable[[Any], Array] | None, base: Any) -> Model:
    if model is not None:
        if target is not None or base is not None:
            raise InputError("temper: give either a model, or target= and base=, not both")
        if not isinstance(model, Model):
            raise InputError(
                f"model: expected a model from a front end, got a {type(model).__name__}; "
                "a log density goes to target=, with base="
            )
        return model
    if target is None or base is None:
        raise InputError("temper: give a model, or both target= and base=")
    return join(target, base)


def _display(progress: bool | Progress) -> Progress:
    if isinstance(progress, bool):
        return RichProgress() if progress else Silent()
    return progress
