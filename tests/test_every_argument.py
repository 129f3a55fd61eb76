"""Every argument of every public function, of a wrong type or size, is one sentence; one without a row here fails."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd  # type: ignore[import-untyped]
import pytest
from synthetic import cauchy_fit, fit_of
from test_arguments import BASE, BUDGETS, COMMON, COUNTS, INF, MARGIN, MODEL, NAN, along, good, marginal, no_compiling

import pathtemp as pt
from pathtemp.modes.table import Modes
from pathtemp.result.curve import LogZ
from pathtemp.result.marginal import Marginal
from pathtemp.settings import LADDER, LadderSettings, PaperSettings, Settings

mpl.use("Agg")
assert no_compiling  # what is refused is refused before anything is compiled, here as well

Wrong = dict[str, tuple[Any, ...]]
FILES, NAMES = (3, None, "nul\0"), (3, ["x"])
SEEDS, SHARES = COMMON["seed"], (0, 1, 2.0, -1, NAN, "x", None, True)
NUMBERS: tuple[Any, ...] = ("x", None, [[1.0], [2.0, 3.0]], {})
FIT: Wrong = {"fit": (3, None, "fit.nc")}
AX: Wrong = {"ax": (3, "x", [])}
VAR: Wrong = {"var": (3, "nope", ["theta"])}
LABEL: Wrong = {"label": NAMES}
EXACT: Wrong = {"exact": (3, "x")}
DENSITY: Wrong = {"density": (3, "x")}
ALONG: Wrong = {
    "lam": (*NUMBERS, [NAN, 1.0]),
    "delta": (*NUMBERS, [1.0, 2.0, 3.0]),
    "grid": (*NUMBERS, [NAN]),
    "weights": ("x", {}, [1.0], [-1.0, 1.0], [NAN, 1.0]),
}


class Row:
    """A call that would go through, and wrong values of each of its arguments."""

    def __init__(self, call: Callable[..., Any], wrong: Wrong, **right: Any) -> None:
        self.call, self.wrong, self.right = call, wrong, right


def row(call: Callable[..., Any], wrong: Wrong | None = None, **right: Any) -> Row:
    return Row(call, wrong or {}, **right)


def numpyro_model() -> None:
    numpyro.sample("x", dist.Normal(0.0, 1.0))


@cache
def pymc_model() -> Any:
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("x", 0.0, 1.0)
    return model


TWO = {"lam": [0.0, 1.0], "delta": [0.1, 0.3], "grid": [0.0, 0.5, 1.0]}
MAX_DEPTH = COUNTS

CORES = COUNTS

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

GROUPS: Wrong = {"groups": ("x", {}, [1], [0.5, NAN])}
AT: Wrong = {"at": ("x", {}, [NAN])}
ESTIMATORS: dict[str, Row] = {
    "annealed_importance": row(
        pt.estimators.annealed_importance, {"increments": (*NUMBERS, [NAN]), **AT}, increments=[[0.1], [0.2]]
    ),
    "bridge": row(
        pt.estimators.bridge,
        {"log_ratio_0": (*NUMBERS, []), "log_ratio_1": (*NUMBERS, [], [NAN])},
        log_ratio_0=[1.0],
        log_ratio_1=[1.0],
    ),
    "importance": row(pt.estimators.importance, {"log_ratio": (*NUMBERS, [], [NAN])}),
    "isotonic": row(pt.estimators.isotonic, ALONG, **TWO),
    "khat": row(
        pt.estimators.khat,
        {"log_ratio": (*NUMBERS, []), "flat": ("x", {}, [True]), "r_eff": (0, -1, "x", NAN, None)},
        log_ratio=[0.1, 0.2, 0.3],
    ),
    "khat_threshold": row(pt.estimators.khat_threshold, {"draws": COUNTS}),
    "ladder_importance": row(
        pt.estimators.ladder_importance, {"log_ratios": (3, "x", None, []), **AT}, log_ratios=[[0.1], [0.2]]
    ),
    "marginal": row(
        pt.estimators.marginal,
        {"a": NUMBERS, "u": (*NUMBERS, [1.0]), "dlogc_da": (*NUMBERS, [1.0]), "at": NUMBERS, **GROUPS},
        a=[0.5, 0.6],
        u=[1.0, 2.0],
        dlogc_da=[1.0, 2.0],
        at=[0.5, 0.6],
    ),
    "mbar": row(pt.estimators.mbar, {**ALONG, "points": COUNTS, "tolerance": (0, -1, "x", NAN)}, **TWO),
    "mbar_se": row(
        pt.estimators.mbar_se,
        {**ALONG, **GROUPS, "points": COUNTS, "tolerance": (0, -1, "x", NAN)},
        groups=[0, 1],
        **TWO,
    ),
    "multistate_bridge": row(
        pt.estimators.multistate_bridge,
        {"log_q": (*NUMBERS, [1.0]), "counts": (*NUMBERS, [-1, 3], [1, 2, 3]), **AT},
        log_q=[[0.1, 0.2], [0.3, 0.4]],
        counts=[1, 1],
    ),
    "path_sampling": row(
        pt.estimators.path_sampling,
        {"a": NUMBERS, "u": (*NUMBERS, [1.0]), **AT, **GROUPS},
        a=[0.5, 0.6],
        u=[1.0, 2.0],
    ),
    "pinned": row(pt.estimators.pinned, ALONG, **TWO),
    "rao_blackwell": row(
        pt.estimators.rao_blackwell,
        {"log_q": (*NUMBERS, [1.0]), "log_c": (*NUMBERS, [1.0, 2.0, 3.0], [NAN, 1.0]), **AT, **GROUPS},
        log_q=[[0.1, 0.2], [0.3, 0.4]],
        log_c=[0.0, 0.0],
    ),
    "taylor": row(pt.estimators.taylor, {"u": NUMBERS, "step": ("x", NAN, None, INF)}, u=[1.0, 2.0], step=0.1),
    "thermodynamic": row(
        pt.estimators.thermodynamic,
        {"ladder": (*NUMBERS, [1.0, 0.0]), "u": (3, "x", None, [], [[1.0]])},
        ladder=[0.0, 1.0],
        u=[[1.0], [2.0]],
    ),
}

COMPARED = pd.DataFrame(
    {"log_bf": [0.0], "log_bf_se": [0.0], "probability": [1.0], "lower": [1.0], "upper": [1.0]}, index=["one"]
)
PLOTS: dict[str, Wrong] = {
    "acceptance": {**FIT, **AX},
    "base_draws": {**FIT, **AX, **VAR, **DENSITY, **LABEL},
    "comparison": {"table": (3, None, "x"), **AX},
    "diagnose": {**FIT, **EXACT},
    "hardness": {**FIT, **AX},
    "history": {**FIT, **AX, "exact": ("x", NAN, [1.0])},
    "joint_path": {**FIT, **AX, **VAR, **LABEL},
    "log_z": {**FIT, **AX, **EXACT},
    "marginal_a": {**FIT, **AX},
    "marginals": {**FIT, "var_names": ("nope", [3], 3)},
    "mode_shares": {**FIT, **AX},
    "modes": {**FIT, **AX, **VAR},
    "pairs": {**FIT, **VAR},
    "plot": {**FIT, **VAR, **LABEL, "target_density": (3, "x"), "base_density": (3, "x"), **EXACT},
    "tails": {**FIT, **AX, **VAR, **LABEL},
    "target_draws": {**FIT, **AX, **VAR, **DENSITY, **LABEL},
    "tours": {**FIT, **AX, "chains": (0, "x", 1.5)},
    "trace": {**FIT, **VAR},
}

WHOLE = COUNTS
SETTINGS: dict[str, Row] = {
    "Settings": row(
        Settings,
        {
            **{name: COUNTS for name in ("chains", "iterations", "leapfrogs", "orbit", "anneal_moves", "batch")},
            **{name: (0, 1, "x", NAN) for name in ("acceptance", "anneal_ess", "adapt_least", "adapt_share")},
            "log_z_se": BUDGETS,
            "rhat": ("x", NAN, 0, -1),
            "marginal": ("x", 3, None),
            "effort": ("x", 3, None),
            "density_price": (*BUDGETS, 2),
        },
    ),
    "PaperSettings": row(
        PaperSettings,
        {
            **{name: COUNTS for name in ("chains", "draws", "adaptations", "kernels", "grid", "max_depth")},
            "khat": ("x", NAN, 0),
            "stop": (3, "x", None),
        },
    ),
    "LadderSettings": row(
        LadderSettings,
        {
            **{name: COUNTS for name in ("chains", "draws", "moves", "adaptations", "leapfrogs")},
            "ladder": (3, "x", (0.0,), (0.0, 0.5), (0.0, 0.7, 0.3, 1.0)),
            "acceptance": (0, 1, "x", NAN),
        },
    ),
    "Interval": row(pt.transforms.Interval, {"low": ("x", NAN, None, 2.0), "high": ("x", NAN, None, -1.0)}),
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


def _right(name: str, call: Callable[..., Any], argument: str, right: dict[str, Any]) -> dict[str, Any]:
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


def rows() -> Iterator[tuple[str, str, Callable[..., Any], Any, dict[str, Any]]]:
    plots = {name: row(getattr(pt.plots, name), wrong) for name, wrong in PLOTS.items()}
    for table in (TABLE, METHODS, BASELINES, ESTIMATORS, plots, SETTINGS):
        for name, each in table.items():
            for argument, values in each.wrong.items():
                for value in values:
                    yield name, argument, each.call, value, each.right


ALL = list(rows())


@pytest.mark.parametrize(
    ("name", "argument", "call", "value", "right"),
    ALL,
    ids=[f"{name}-{argument}-{number}" for number, (name, argument, *_) in enumerate(ALL)],
)
def test_a_wrong_argument_is_one_sentence(
    name: str, argument: str, call: Callable[..., Any], value: Any, right: dict[str, Any], tmp_path: Path
) -> None:
    given = _right(name, call, argument, right)
    if name in PLOTS and argument not in ("fit", "table"):
        given |= {"table": COMPARED} if call is pt.plots.comparison else {"fit": cauchy_fit()}
    with pytest.raises(pt.InputError) as refused:
        call(**{**given, argument: value})
    plt.close("all")
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) <= 300, message
    assert re.match(rf"({argument}|{OTHER_NAMES.get((name, argument), argument)})\b", message), message


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


def test_every_argument_has_a_row() -> None:
    lacking = []
    for name, function, known in public():
        wrong = known.wrong if isinstance(known, Row) else known
        lacking += [(name, x) for x in parameters(function) - set(wrong) if (name, x) not in FREE]
        assert set(wrong) <= parameters(function), name
    assert not lacking
