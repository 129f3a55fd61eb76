"""Wrong arguments of what takes plain numbers or draws them: estimators, figures, settings."""

from __future__ import annotations

import pandas as pd  # type: ignore[import-untyped]
from argument_values import ALONG, AX, BUDGETS, COUNTS, DENSITY, EXACT, FIT, LABEL, NUMBERS, VAR, Row, Wrong, row
from wrong_inputs import INF, NAN

import pathtemp as pt
from pathtemp.settings import LadderSettings, PaperSettings, Settings

TWO = {"lam": [0.0, 1.0], "delta": [0.1, 0.3], "grid": [0.0, 0.5, 1.0]}
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
