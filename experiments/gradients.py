"""How few gradients the default engine needs for what the paper's engine comes to: log z(1), and shares of modes."""

from __future__ import annotations

from typing import Any

import numpy as np

import pathtemp as pt
from benchmarks.measure import flat_draws, shares
from experiments import logit_probit, mixture, mixture_1d
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS, LABELS, tempered
from pathtemp.testing import Problem, cauchy_pair

ADAPTATIONS = {"two normals": 10, "Cauchy pair": 6, "logit to probit": 6, "ten normals": 10}
"""Of the paper's engine, as in the figure of each problem."""

BUDGETS = {name: (9_000, 15_000, 30_000, 60_000) for name in ADAPTATIONS} | {"ten normals": (30_000, 60_000, 90_000)}
"""Of the default engine; in 100 dimensions a round costs more, and fewer gradients are refused."""


def problem(name: str) -> Problem:
    """The problem of a figure; ten normals are those in 100 dimensions."""
    if name == "two normals":
        return mixture_1d.problem()
    if name == "Cauchy pair":
        return cauchy_pair()
    return logit_probit.problem() if name == "logit to probit" else mixture.problem(100)


def _cells(quick: bool) -> list[str]:
    if quick:
        return ["two normals/path_sampling/all/0", "two normals/default/30000/0"]
    sizes = [(name, "path_sampling", "all") for name in ADAPTATIONS]
    sizes += [(name, "default", str(budget)) for name, budgets in BUDGETS.items() for budget in budgets]
    return [f"{name}/{method}/{size}/{seed}" for name, method, size in sizes for seed in range(4)]


def _work(cell: str, quick: bool) -> list[Row]:
    name, method, size, seed = cell.split("/")
    truth = problem(name)
    if method == "default":
        fit = pt.temper(truth.model, seed=int(seed), budget=int(size), progress=False)
    else:
        adaptations = 2 if quick else ADAPTATIONS[name]
        fit = tempered(method, truth.model, seed=int(seed), adaptations=adaptations, quick=quick)
    error = float("nan")
    if truth.shares is not None:
        error = float(np.mean(np.abs(shares(truth, flat_draws(fit)) - truth.shares)))
    return [
        {
            "problem": name,
            "method": method,
            "size": size,
            "seed": int(seed),
            "gradients": fit.counts.gradients,
            "log_z_error": fit.log_marginal_likelihood.value - truth.log_z_end,
            "share_error": error,
            "converged": int(fit.converged),
        }
    ]


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["needed"]
    names = distinct(rows, "problem")
    figure, axes = panels(1, len(names), width=2.6, height=2.6)
    for ax, name in zip(axes[0], names, strict=True):
        for method in ("path_sampling", "default"):
            cells = where(rows, problem=name, method=method)
            sizes = [where(cells, size=size) for size in distinct(cells, "size")]
            error = [np.sqrt(np.mean(column(cell, "log_z_error") ** 2)) for cell in sizes]
            spent = [np.mean(column(cell, "gradients")) for cell in sizes]
            ax.loglog(spent, error, "o-", ms=4, color=COLOURS[method], label=LABELS[method])
        ax.set(title=name, xlabel="gradient evaluations")
    axes[0, 0].set_ylabel("RMS error of log z(1)")
    axes[0, 0].legend(fontsize=6)
    return {"needed": figure}


EXPERIMENT = Experiment("gradients that an accuracy needs", {"needed": Table(_cells, _work)}, _draw)
