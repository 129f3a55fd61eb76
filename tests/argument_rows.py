"""Every argument of every public function with values of a wrong type or size; one without a row here fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
from argument_numbers import COMPARED, ESTIMATORS, PLOTS, SETTINGS
from argument_values import BUDGETS, COMMON, COUNTS, FILES, NAMES, SEEDS, SHARES, Row, Wrong, row
from synthetic import cauchy_fit, fit_of
from wrong_inputs import BASE, INF, MODEL, NAN, along, good, marginal

import pathtemp as pt
from pathtemp.api.arguments import shown
from pathtemp.modes.table import Modes
from pathtemp.result.curve import LogZ
from pathtemp.result.marginal import Marginal
from pathtemp.settings import LADDER, LadderSettings, PaperSettings, Settings

CORES = COUNTS
MARGIN: dict[str, Any] = {"function": good, "inverse": along, "replaces": "tau", "name": "m"}


def numpyro_model() -> None:
    numpyro.sample("x", dist.Normal(0.0, 1.0))


@cache
def pymc_model() -> Any:
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("x", 0.0, 1.0)
    return model


TABLE: dict[str, Row] = {
    "temper": row(
        pt.temper,
        {
            **COMMON,
            "model": (3, good, {"a": 1}, np.zeros(3), pt.Model),
            "data": ({}, 3),
            "target": (3, "x"),
            "base": ("auto", 3, good),
            "dim": COUNTS,
            "draws": COUNTS,
            "modes": ("x", 5, [["a"]], [[1.0]]),
            "init": (3, "x", [], [3], {"mu": 0.0}),
            "islands": COUNTS,
            "max_seconds": BUDGETS,
            "cores": CORES,
            "client": (3, "x", True),
            "cluster": (3, "x", True),
        },
        target=good,
        progress=False,
    ),
    "divide_and_conquer": row(
        pt.divide_and_conquer,
        {
            **COMMON,
            "model": (3, good, None),
            "data": ({}, 3),
            "base": ("auto", 3, good),
            "target": (3, good),
            "cores": CORES,
            "margin": (3, [], [3], None),
            "target_marginal": (3, "x", None),
            "interval": ((2.0, 1.0), "ab", (0.1, NAN), 3),
        },
        model=MODEL,
        margin="tau",
        progress=False,
    ),
    "path_sample": row(
        pt.path_sample,
        {
            **COMMON,
            "log_q": (3, None),
            "cores": CORES,
            "dim": COUNTS,
            "interval": ((2.0, 1.0), "ab", (0.0, INF), 3),
            "args": ([1.0], 3),
            "starts": ("x", [[1.0]], [[NAN, 1.0]], 3),
            "target_marginal": (3, "x", None),
            "name": NAMES,
        },
        log_q=along,
        dim=2,
        progress=False,
    ),
    "resume": row(
        pt.resume,
        {
            "path": (*FILES, "none.nc"),
            "cores": CORES,
            "model": (3, good),
            "target": (3, "x"),
            "base": (3, good),
            "dim": COUNTS,
            "margin": (3, [3]),
            "target_marginal": (3, "x"),
            "log_q": (3, "x"),
            "args": ([1.0], 3),
            "progress": COMMON["progress"],
        },
        path="none.nc",
    ),
    "load": row(pt.load, {"path": (*FILES, "none.nc"), "model": (3, good)}, path="none.nc"),
    "normal": row(
        pt.normal,
        {"loc": (NAN, "x", None), "scale": (-1.0, 0.0, NAN, INF, "x", None), "shape": (1.5, "x", (1.5,), -1)},
    ),
    "function_base": row(
        pt.function_base,
        {
            "log_prob": (3, None),
            "sample": (3, "x"),
            "dim": COUNTS,
            "shapes": (3, {"a": "x"}, {"a": (1.5,)}),
            "transforms": (3, {"x": 3}, {"nope": pt.transforms.Positive()}),
        },
        log_prob=good,
        dim=2,
    ),
    "bayes_factor": row(pt.bayes_factor, {"fit_a": (3, "x"), "fit_b": (3, None)}, fit_a=None, fit_b=None),
    "bridge": row(
        pt.bridge, {"model_a": ("m.stan", 3), "model_b": (3, None), "name": NAMES}, model_a=MODEL, model_b=MODEL
    ),
    "compare": row(
        pt.compare,
        {
            "fits": (3, {}, [], {"a": 3}),
            "weights": (3, {"a": 1.0}, {"a": "x", "b": 1.0}, {"a": NAN, "b": 1.0}),
            "data": ({}, 3),
            "client": (3, "x", True),
        },
    ),
    "diagnose_margin": row(
        pt.diagnose_margin,
        {
            "idata": (3, None, "x"),
            "model": (3, None, good),
            "data": ({}, 3),
            "margin": (3, None, "nope"),
            "budget": BUDGETS,
            "seed": SEEDS,
            "settings": ("paper", 3, LADDER),
            "fit": (3, "x"),
        },
        model=MODEL,
        margin="tau",
    ),
    "from_stan": row(
        pt.from_stan,
        {
            "program": (None, 3, good),
            "base_program": (3, good),
            "data": (3, "none.json", [1]),
            "base": (3, 2.5),
            "include_paths": (3, [3]),
            "seed": SEEDS,
            "name": NAMES,
            "progress": (5, "yes"),
        },
        program="parameters { real x; } model { x ~ normal(0, 1); }",
    ),
    "from_pymc": row(pt.from_pymc, {"model": (3, good, "m.stan"), "base": (3, "x")}),
    "from_numpyro": row(pt.from_numpyro, {"model": (3, MODEL, "m.stan"), "base": (3, "x")}, model=numpyro_model),
    "Margin": row(pt.Margin, {name: (3,) for name in MARGIN}, **MARGIN),
    "Model": row(
        pt.Model,
        {"log_base": (3, None, "x"), "log_target": (3, None), "layout": (5, None, {})},
        log_base=good,
        log_target=good,
        layout=MODEL.layout,
    ),
}

METHODS: dict[str, Row] = {
    "Fit.extend": row(
        lambda **k: cauchy_fit().extend(**k), {"model": (3, good), "draws": COUNTS, "budget": BUDGETS}, budget=1e5
    ),
    "Fit.plot": row(lambda **k: cauchy_fit().plot(**k), {"var_names": ("nope", ["mu"], [3], 3)}),
    "Fit.predict": row(lambda **k: cauchy_fit().predict(**k), {"seed": SEEDS}),
    "Fit.report": row(lambda **k: cauchy_fit().report(**k), {"path": (*FILES, "no/such/folder/r.html")}),
    "Fit.save": row(lambda **k: cauchy_fit().save(**k), {"path": FILES}),
    "Fit.stan_variable": row(lambda **k: cauchy_fit().stan_variable(**k), {"name": (3, None, "nope")}),
    "Fit.summary": row(
        lambda **k: cauchy_fit().summary(**k), {"rows": (-1, 2.5, "x", True), "var_names": ("mu", ["thet"], [3], 3)}
    ),
    "Fit.to_arviz": row(lambda **k: cauchy_fit().to_arviz(**k), {"log_likelihood": ("yes", 3)}),
    "Fit.to_datatree": row(lambda **k: cauchy_fit().to_datatree(**k), {"log_likelihood": ("yes", 3)}),
    "Modes.power": row(
        lambda **k: Modes.power(object.__new__(Modes), **k),
        {"width": (*BUDGETS, None), "share": SHARES},
        width=1.0,
        share=0.1,
    ),
    "Marginal.cdf": row(lambda **k: marginal().cdf(**k), {"x": ("x", NAN, None)}),
    "Marginal.pdf": row(lambda **k: marginal().pdf(**k), {"x": ("x", NAN, None)}),
    "Marginal.log_pdf": row(lambda **k: marginal().log_pdf(**k), {"x": ("x", NAN, None)}),
    "Marginal.expectation": row(lambda **k: marginal().expectation(**k), {"function": (3, None, lambda x: 1.0)}),
    "Marginal.moment": row(lambda **k: marginal().moment(**k), {"k": (1.5, -1, "x", None)}),
    "Marginal.quantile": row(lambda **k: marginal().quantile(**k), {"p": (0, 1, 2.0, NAN, "x")}),
    "Marginal.scaled": row(lambda **k: marginal().scaled(**k), {"factor": (0, "x", NAN, INF, None)}),
    "LogZ.__call__": row(lambda **k: cauchy_fit().log_z(**k), {"lam": (2.0, -0.1, NAN, "x", None)}),
    "LogZ.se": row(lambda **k: cauchy_fit().log_z.se(**k), {"lam": (2.0, -0.1, NAN, "x", None)}),
}

BASELINES: dict[str, Row] = {
    "discrete_tempering": row(
        pt.baselines.discrete_tempering,
        {"model": (3, None), "update": ("x", 3), "seed": SEEDS, "settings": ("x", Settings())},
        model=MODEL,
    ),
    "empirical_tempering": row(
        pt.baselines.empirical_tempering, {"model": (3, None), "seed": SEEDS, "settings": (3, LADDER)}, model=MODEL
    ),
    "log_linear_tempering": row(
        pt.baselines.log_linear_tempering,
        {"model": (3, None), "log_zeta": ("x", NAN, INF, [1.0]), "seed": SEEDS, "settings": (3, LADDER)},
        model=MODEL,
    ),
    "nuts": row(
        pt.baselines.nuts,
        {"model": (3, None), "draws": COUNTS, "warm_up": COUNTS, "chains": COUNTS, "max_depth": COUNTS, "seed": SEEDS},
        model=MODEL,
    ),
}

FREE = {
    ("temper", "args"): "of the user's own NumPyro function",
    ("temper", "kwargs"): "of the user's own NumPyro function",
    ("divide_and_conquer", "args"): "of the user's own NumPyro function",
    ("divide_and_conquer", "kwargs"): "of the user's own NumPyro function",
    ("from_numpyro", "args"): "of the user's own NumPyro function",
    ("from_numpyro", "kwargs"): "of the user's own NumPyro function",
    ("compare", "how"): "of pt.temper, which checks them",
    ("Fit.plot", "options"): "of pt.plots.plot, which checks them",
    **{
        ("Model", name): "made by front ends, not by users"
        for name in inspect.signature(pt.Model).parameters
        if name not in ("log_base", "log_target", "layout")
    },
}
"""Arguments without a row, and why."""

OTHER_NAMES = {
    ("resume", "path"): "resume|checkpoint",
    ("load", "path"): "load",
    ("Fit.save", "path"): "save",
    ("Fit.report", "path"): "report",
    ("Interval", "high"): "low",
    ("compare", "fits"): "compare",
    ("compare", "weights"): "compare: weights",
    ("from_pymc", "model"): "from_pymc: model",
    ("from_numpyro", "model"): "from_numpyro: model",
    ("Fit.stan_variable", "name"): "stan_variable: there is no",
}
"""What a sentence begins with where that is not the name of the argument."""

RESULTS = {"Base", "Fit", "MarginFit", "InputError", "MissingExtraError", "SamplingError"}
"""Classes that pathtemp makes, not the user."""


def _right(name: str, argument: str, right: dict[str, Any]) -> dict[str, Any]:
    """What goes with a wrong value: what there is of the other arguments."""
    others = {key: value for key, value in right.items() if key != argument}
    if name == "temper" and argument not in ("model", "data", "base", "dim", "init"):
        return others | {"base": BASE}
    if name == "temper" and argument in ("model", "data", "init"):
        return {"progress": False} | ({} if argument == "model" else {"model": MODEL})
    if name == "function_base" and argument == "shapes":
        others.pop("dim")
    if name == "function_base" and argument == "transforms":
        return {"log_prob": good, "shapes": {"x": ()}}
    if name == "from_pymc" and argument == "base":
        return {"model": pymc_model()}
    if name == "bayes_factor":
        return others | {"fit_a": cauchy_fit(), "fit_b": cauchy_fit()} | {argument: None}
    if name == "compare" and argument != "fits":
        return {"fits": {"a": cauchy_fit(), "b": cauchy_fit()}}
    if name == "diagnose_margin" and argument != "idata":
        return others | {"idata": fit_of(MODEL).posterior}
    return others


def rows() -> Iterator[tuple[str, Callable[[], Any], str]]:
    """For each wrong value what is typed, the call, and what the sentence begins with, as a pattern."""
    plots = {name: row(getattr(pt.plots, name), wrong) for name, wrong in PLOTS.items()}
    for table in (TABLE, METHODS, BASELINES, ESTIMATORS, plots, SETTINGS):
        for name, each in table.items():
            for argument, values in each.wrong.items():
                begins = rf"({argument}|{OTHER_NAMES.get((name, argument), argument)})\b"
                for value in values:
                    yield f"{name}({argument}={shown(value)})", partial(_call, name, each, argument, value), begins


def _call(name: str, each: Row, argument: str, value: Any) -> Any:
    given = _right(name, argument, each.right)
    if name in PLOTS and argument not in ("fit", "table"):
        given |= {"table": COMPARED} if each.call is pt.plots.comparison else {"fit": cauchy_fit()}
    return each.call(**{**given, argument: value})


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def public() -> Iterator[tuple[str, Callable[..., Any], Row | Wrong]]:
    """Everything that a user calls, and its row."""
    for name in set(pt.__all__) - RESULTS:
        if callable(function := getattr(pt, name)):
            yield name, function, TABLE.get(name, {})
    for module, table in ((pt.baselines, BASELINES), (pt.estimators, ESTIMATORS), (pt.plots, PLOTS)):
        for name in module.__all__:
            if not inspect.isclass(function := getattr(module, name)):
                yield name, function, table.get(name, {})  # type: ignore[attr-defined]
    for kind in (pt.Fit, pt.MarginFit, Modes, Marginal, LogZ):
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") or name == "__call__":
                home = "Fit" if kind is pt.MarginFit else kind.__name__
                yield f"{home}.{name}", function, METHODS.get(f"{home}.{name}", {})
    for kind in (Settings, PaperSettings, LadderSettings, pt.transforms.Interval):
        yield kind.__name__, kind, SETTINGS[kind.__name__]
