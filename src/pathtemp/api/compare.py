"""Comparing models by their evidence: Bayes factors and posterior model probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import softmax

from pathtemp._types import FloatArray
from pathtemp.api.arguments import a_kind_of, positive_number, shown, whole_number
from pathtemp.api.given import as_model, check_nothing_else
from pathtemp.api.temper import TAKEN, check_search, checked_how, checked_seconds, temper
from pathtemp.engines.islands.cluster import check_workers
from pathtemp.engines.progress import display
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.model.kinds import kind_of
from pathtemp.model.model import Model
from pathtemp.result.fit import Fit
from pathtemp.seeds import Stream, rng, seed_word
from pathtemp.settings import DEFAULT

LEVEL = 0.95
"""Coverage of the intervals of posterior model probabilities."""

VAGUE = 1e-3
"""Share of the base that must lie where a posterior does, or the prior is called vague."""


REFUSED = frozenset({"model", "args", "kwargs", "data", "target", "base", "dim", "init", "checkpoint"})
"""Arguments of ``pt.temper`` that are of one model, and so of none that are compared."""


class BayesFactor(NamedTuple):
    """Logarithm of the evidence of one model over that of another, and its standard error, in nats."""

    log_bf: float
    se: float


def bayes_factor(fit_a: Fit, fit_b: Fit) -> BayesFactor:
    """Log Bayes factor of model a over model b; positive favours a.

    Both fits must be of the same data. Runs with seeds of their own are independent, so that their standard errors add
    in squares; a warning says where they share one.
    """
    fits = {"fit_a": fit_a, "fit_b": fit_b}
    _check_fits(fits)
    value, se = _evidence("bayes_factor", fits)
    _warn("bayes_factor", fits)
    return BayesFactor(float(value[0] - value[1]), float(np.hypot(*se)))


def compare(
    fits: Mapping[str, Any] | Sequence[Any],
    *,
    weights: Mapping[str, float] | None = None,
    data: Any = None,
    client: Any = None,
    **how: Any,
) -> pd.DataFrame:
    """Compare models of the same data, best first.

    Parameters
    ----------
    fits
        Fits by the name of their model, or a list of them, which then go by the models' own names. Models among them
        are tempered first: PyMC models, Stan programs, or what a front end has made of one.
    weights
        Prior probability of each model, up to a factor; equal where None.
    data
        Of the Stan programs among them: a dict or a JSON file.
    client
        A ``dask.distributed.Client``, on whose workers models are tempered, each on one; in this process where None.
    how
        For ``pt.temper`` of each model: ``budget``, ``islands``, ``settings`` and so on. Seeds follow on ``seed``.

    Returns
    -------
    pandas.DataFrame
        One row a model: ``log_evidence`` and ``se``; ``log_bf`` over the model of largest evidence and
        ``log_bf_se``; the posterior ``probability`` and its 95% interval, ``lower`` to ``upper``, for the
        errors of the evidence.
    """
    _check_given(fits, client, how)
    if isinstance(fits, Mapping):
        _log_weights(list(fits), weights)  # raises before a model is made of a program, or tempered
    given = _by_name(_with_models(fits, data))
    log_weights = _log_weights(list(given), weights)
    fits = _all_tempered(given, client, how)
    value, se = _evidence("compare", fits)
    score = value + log_weights
    _warn("compare", fits)
    best = int(np.argmax(value))
    lower, upper = probability_interval(score, se)
    table = pd.DataFrame(
        {
            "log_evidence": value,
            "se": se,
            "log_bf": value - value[best],
            "log_bf_se": np.where(np.arange(len(se)) == best, 0.0, np.hypot(se, se[best])),
            "probability": softmax(score),
            "lower": lower,
            "upper": upper,
        },
        index=pd.Index(list(fits), name="model"),
    )
    return table.sort_values("probability", ascending=False, kind="stable")


def _check_given(fits: Any, client: Any, how: Mapping[str, Any]) -> None:
    """Raise where what is to be compared, or how models are to be tempered, can be told wrong as it is."""
    a_kind_of("fits", fits, (Mapping, list, tuple), "a dict of fits by name, or a list of them")
    if len(fits) < 2:
        raise InputError(f"compare: give at least two fits, by name; there is {len(fits)}")
    named = list(fits.items()) if isinstance(fits, Mapping) else [("fits", one) for one in fits]
    for name, one in named:
        if not (isinstance(one, Fit | Model) or kind_of(one)):
            raise InputError(
                f"{printable(str(name))}: it must be a fit, as pt.temper gives, or a model, and is {shown(one)}"
            )
    if all(isinstance(one, Fit) for _, one in named):
        for name in ("client", *how):
            if name != "client" or client is not None:
                raise InputError(f"{name}: it is for models, and these are fits; leave it out")
        return
    check_nothing_else((), {name: value for name, value in how.items() if name not in TAKEN}, TAKEN)
    for name in REFUSED & set(how):
        raise InputError(f"{name}: it is of one model, and cannot be given for several; leave it out")
    check_workers(client, None)
    _check_how(how)


def _check_how(how: Mapping[str, Any]) -> None:
    """Raise where ``pt.temper`` would with these arguments, whatever the model."""
    settings = how.get("settings", DEFAULT)
    checked_how(settings, **{name: how.get(name) for name in ("budget", "draws", "chains")})
    check_search(how.get("modes", "auto"), None, settings)
    checked_seconds(how.get("max_seconds"))
    whole_number("islands", how.get("islands", 1), least=1)
    seed_word(how.get("seed", 0))
    display(how.get("progress", False))


def _with_models(fits: Any, data: Any) -> Any:
    """The same, with models of ours in the place of those that a front end takes."""

    def made(name: Any, given: Any) -> Any:
        stan = kind_of(given) == "stan"
        as_it_is = isinstance(given, Fit | Model) or not kind_of(given)
        argument = printable(str(name))
        return given if as_it_is else as_model(given, argument=argument, data=data if stan else None)

    listed = fits if isinstance(fits, list | tuple) else []
    programs = fits.values() if isinstance(fits, Mapping) else listed
    if data is not None and not any(kind_of(one) == "stan" for one in programs):
        raise InputError("data: it is for Stan programs, and there is none here; leave it out")
    if isinstance(fits, Mapping):
        return {name: made(name, given) for name, given in fits.items()}
    return [made("fits", given) for given in listed] if listed else fits


def _by_name(fits: Any) -> dict[str, Any]:
    """What is to be compared, by name."""
    if isinstance(fits, list | tuple):
        names = [fit.name if isinstance(fit, Fit | Model) else "fits" for fit in fits]
        if len(set(names)) < len(names):
            raise InputError(f"fits: models of a list go by their names, and these are {names}; give a dict")
        return dict(zip(names, fits, strict=True))
    a_kind_of("fits", fits, Mapping, "a dict of fits by name, or a list of them")
    return dict(fits)


def _all_tempered(given: dict[str, Any], client: Any, how: dict[str, Any]) -> dict[str, Fit]:
    """The fits as they are, and those of the models, made here or on the workers of a client."""
    models = {name: one for name, one in given.items() if isinstance(one, Model)}
    if not models:
        return given
    if client is None:
        first = seed_word(how.get("seed", 0))
        fits = {name: temper(one, **how | {"seed": first + k}) for k, (name, one) in enumerate(models.items())}
        return given | fits
    # Imported here, so that comparing without a cluster needs no Dask.
    from pathtemp.api.on_workers import tempered

    return given | tempered(models, client, how)


def _check_fits(fits: Mapping[str, Any]) -> None:
    for name, fit in fits.items():
        a_kind_of(printable(str(name)), fit, Fit, "a fit, as pt.temper gives")


def probability_interval(score: FloatArray, se: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interval of each model's posterior probability when the scores have independent normal errors.

    ``score`` is log evidence plus log prior, shape (n,). Quantiles over 20,000 normal errors, the same each
    time; first order in the errors would cover too little where they reach a nat.

    >>> lower, upper = probability_interval(np.array([0.0, 1.0]), np.array([0.3, 0.4]))
    >>> [round(float(x), 1) for x in (lower[0], upper[0], lower[1], upper[1])]
    [0.1, 0.5, 0.5, 0.9]
    """
    errors = rng(Stream.ERRORS).standard_normal((20_000, len(score)))
    tail = 0.5 * (1 - LEVEL)
    lower, upper = np.quantile(softmax(score + se * errors, axis=1), [tail, 1 - tail], axis=0)
    return lower, upper


def _vague(fit: Fit) -> str:
    """The variable whose prior is vaguest, where fewer than 1 in 1000 of its draws lie where 95% of the posterior do.

    Nothing where no prior is so vague, or where there are fewer than 1000 base draws to tell.
    """
    if fit.base.sizes["chain"] * fit.base.sizes["draw"] < 1 / VAGUE:
        return ""
    tail, sample = 0.5 * (1 - LEVEL), ("chain", "draw")
    shares = {}
    for name in {*fit.posterior.data_vars} & {*fit.base.data_vars}:
        lower, upper = (
            fit.posterior[name].quantile(q, sample, skipna=False).drop_vars("quantile") for q in (tail, 1 - tail)
        )
        inside = (fit.base[name] >= lower) & (fit.base[name] <= upper)
        # A variable that does not vary, such as the diagonal of a correlation matrix, says nothing.
        shares[str(name)] = float(inside.mean(sample).where(upper > lower, 1.0).min())
    vaguest = min(sorted(shares), key=shares.__getitem__, default="")
    return vaguest if shares and shares[vaguest] < VAGUE else ""


def _evidence(caller: str, fits: Mapping[str, Fit]) -> tuple[FloatArray, FloatArray]:
    """Log evidence and standard error of each fit."""
    pairs = {name: fit.log_constant for name, fit in fits.items()}
    for name, pair in pairs.items():
        if not np.isfinite(pair.value):
            raise InputError(
                f"{caller}: the log evidence of {name!r} is not known, as where no chain made a round trip; run it for "
                "longer, and see the warnings of the fit"
            )
    return np.array([pair.value for pair in pairs.values()]), np.array([pair.se for pair in pairs.values()])


def _log_weights(names: list[str], weights: Mapping[str, float] | None) -> FloatArray:
    if weights is None:
        return np.zeros(len(names))
    a_kind_of("weights", weights, Mapping, "a dict of numbers by the names of the fits")
    if set(weights) != set(names):
        raise InputError(f"compare: weights names {sorted(weights)}, and fits {sorted(names)}; they must agree")
    values = np.array([positive_number(f"weights of {name!r}", weights[name]) for name in names])
    return np.asarray(np.log(values / values.sum()))


def _warn(caller: str, fits: Mapping[str, Fit]) -> None:
    """Say, once each, what the numbers cannot be trusted for."""
    for name, fit in fits.items():
        if not fit.is_evidence:
            warnings.warn(f"{caller}: {name} may not be compared: {fit.why_no_evidence}", stacklevel=3)
    vague = {name: variable for name, fit in fits.items() if (variable := _vague(fit))}
    if vague:
        which = ", ".join(f"{variable!r} of {name}" for name, variable in vague.items())
        warnings.warn(
            f"{caller}: hardly any draw of the base lies where the posterior of {which} does, and where the base is "
            "the prior, a vague prior lowers the evidence by its width (0.69 nats if twice as wide) whatever the "
            "data say; use priors that you believe in",
            stacklevel=3,
        )
    if len({fit.seed for fit in fits.values()}) < len(fits):
        shared = ", ".join(f"{name} (seed {fit.seed})" for name, fit in fits.items())
        warnings.warn(
            f"{caller}: some of {shared} share a seed and with it their random numbers, so that their errors need not "
            "be independent, as the standard error takes them to be; give each run a seed= of its own",
            stacklevel=3,
        )
    unfinished = [name for name, fit in fits.items() if not fit.converged]
    if unfinished:
        warnings.warn(
            f"{caller}: not converged: {', '.join(unfinished)}; evidence and standard error may be wrong, "
            "see the warnings of the fit",
            stacklevel=3,
        )
