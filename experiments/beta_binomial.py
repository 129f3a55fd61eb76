"""Beta-binomial, easy and hard: four ways to learn log z, and the default engine (figures illus, easy, hard, L2)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import beta

import pathtemp as pt
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS, LABELS, curve_error, ladder_error, rounds, tempered
from pathtemp.engines.paper.trace import path_nodes
from pathtemp.testing import Problem
from pathtemp.testing.beta_binomial import CASES
from pathtemp.testing.beta_binomial import beta_binomial as make

METHODS = ("path_sampling", "empirical", "discrete", "rao_blackwell", "default")
POINTS = 21
"""Positions at which the curves are kept."""

SHOWN = 150
"""Joint draws in a panel, as in the paper."""


@cache
def problem(case: str) -> Problem:
    """The easy or the hard problem."""
    return make("easy") if case == "easy" else make("hard")


@cache
def _fit(case: str, method: str, seed: int, adaptations: int, quick: bool) -> pt.Fit:
    """One run; several tables look at the same ones."""
    return tempered(method, problem(case).model, seed=seed, adaptations=adaptations, quick=quick)


def _adaptations(quick: bool) -> int:
    return 4 if quick else 20


def _pictured(quick: bool) -> tuple[int, ...]:
    return (1, 2, 4) if quick else (3, 6, 10)


def _error_cells(quick: bool) -> list[str]:
    return [f"{case}/{method}/{seed}" for case in CASES for method in METHODS for seed in range(1 if quick else 5)]


def _errors(cell: str, quick: bool) -> list[Row]:
    case, method, seed = cell.split("/")
    truth = problem(case)
    fit = _fit(case, method, int(seed), _adaptations(quick), quick)
    return [
        {
            "case": case,
            "method": method,
            "seed": int(seed),
            "adaptation": index,
            "gradients": record.gradients,
            "error": curve_error(record.curve, truth),
            "error_on_ladder": ladder_error(record.curve, truth),
            "error_at_1": record.log_z - truth.log_z_end,
            "khat": record.khat,
            "converged": int(fit.converged),
        }
        for index, record in rounds(fit)
    ]


def _curves(cell: str, quick: bool) -> list[Row]:
    case, method = cell.split("/")
    fit = _fit(case, method, 0, _adaptations(quick), quick)
    _, lam = path_nodes(POINTS - 1)
    return [
        {"case": case, "method": method, "adaptation": index, "lam": l, "log_z": z}
        for index, record in rounds(fit)
        for l, z in zip(lam, record.curve(lam), strict=True)
    ]


def _draws(cell: str, quick: bool) -> list[Row]:
    method, adaptations = cell.split("/")
    fit = _fit("hard", method, 0, int(adaptations), quick)
    lam, x = (fit.path[name].values.ravel()[:SHOWN] for name in ("lam", "theta0"))
    return [
        {"method": method, "adaptation": int(adaptations), "lam": l, "p": p} for l, p in zip(lam, expit(x), strict=True)
    ]


def _draw(tables: Tables) -> dict[str, Any]:
    return {
        "illustration": _illustration(),
        "easy": _easy(tables["curves"]),
        "hard": _hard(tables["curves"], tables["draws"]),
        "errors": _error_figure(tables["errors"]),
    }


def _illustration() -> Any:
    """Exact log z, base and target, and the joint law when lam is uniform."""
    figure, axes = panels(2, 3)
    for (case, (al, be, y, n)), row in zip(CASES.items(), axes, strict=True):
        curve = problem(case).log_z
        assert curve is not None
        lam, p = np.linspace(0.0, 1.0, 201), np.linspace(0.001, 0.999, 600)
        row[0].plot(lam, curve(lam), color="#D55E00")
        row[0].set(title=f"{case}: log z", xlabel="lam")
        row[1].plot(p, beta(al, be).pdf(p), color="#E69F00", label="base")
        row[1].plot(p, beta(al + y, be + n - y).pdf(p), color="#0072B2", label="target")
        row[1].set(title="base and target", xlabel="theta")
        row[1].legend()
        rng = np.random.default_rng(0)
        l = rng.uniform(size=1500)
        row[2].plot(rng.beta(al + l * y, be + l * (n - y)), l, ".", ms=1, color="#444444")
        row[2].set(title="joint draws", xlabel="theta", ylabel="lam", xlim=(0, 1))
    return figure


def _curve_row(axes: Any, rows: list[Row], case: str) -> None:
    """Log z after each adaptation, later ones darker, and the truth."""
    exact = problem(case).log_z
    assert exact is not None
    for ax, method in zip(axes, METHODS, strict=True):
        of_method = where(rows, case=case, method=method)
        numbers = distinct(of_method, "adaptation")
        for rank, index in enumerate(numbers):
            curve = where(of_method, adaptation=index)
            shade = 0.15 + 0.85 * (rank + 1) / len(numbers)
            ax.plot(column(curve, "lam"), column(curve, "log_z"), color=COLOURS[method], alpha=shade, lw=0.8)
        lam = np.linspace(0.0, 1.0, 401)
        ax.plot(lam, exact(lam), color="red", lw=1.2, ls="--")
        ax.set_title(LABELS[method], fontsize=8)
        low, high = float(np.min(exact(lam))), float(np.max(exact(lam)))
        ax.set_ylim(low - 1.0 * (high - low), high + 0.5 * (high - low))


def _easy(rows: list[Row]) -> Any:
    figure, axes = panels(1, len(METHODS), width=2.2)
    _curve_row(axes[0], rows, "easy")
    return figure


def _hard(curves: list[Row], draws: list[Row]) -> Any:
    pictured = distinct(draws, "adaptation")
    figure, axes = panels(1 + len(pictured), len(METHODS), width=2.2, height=1.9)
    _curve_row(axes[0], curves, "hard")
    for row, index in zip(axes[1:], pictured, strict=True):
        for ax, method in zip(row, METHODS, strict=True):
            points = where(draws, method=method, adaptation=index)
            ax.plot(column(points, "p"), column(points, "lam"), ".", ms=2, color=COLOURS[method])
            ax.set(xlim=(0, 1), ylim=(-0.05, 1.05))
        row[0].set_ylabel(f"adaptation {index:.0f}: lam")
    return figure


def _error_figure(rows: list[Row]) -> Any:
    """Median over seeds of the L2 error, against adaptations and against gradients."""
    figure, axes = panels(len(CASES), 2, width=3.6, height=2.6)
    for line, case in zip(axes, CASES, strict=True):
        for method in METHODS:
            of_method = where(rows, case=case, method=method)
            style = {"color": COLOURS[method], "label": LABELS[method], "marker": ".", "ms": 4}
            numbers = distinct(of_method, "adaptation")
            cells = [where(of_method, adaptation=index) for index in numbers]
            error = [np.median(column(cell, "error")) for cell in cells]
            spent = [np.median(column(cell, "gradients")) for cell in cells]
            if method != "default":
                line[0].semilogy(numbers, error, **style)
            line[1].loglog(spent, error, **style)
        line[0].set(xlabel="adaptation", ylabel="L2 error of log z", title=case)
        line[1].set(xlabel="gradient evaluations", title=case)
    axes[0, 1].legend(fontsize=6)
    return figure


EXPERIMENT = Experiment(
    "beta-binomial, easy and hard: four ways to learn log z, and the default engine",
    {
        "errors": Table(_error_cells, _errors),
        "curves": Table(lambda _quick: [f"{case}/{method}" for case in CASES for method in METHODS], _curves),
        "draws": Table(lambda quick: [f"{m}/{n}" for n in _pictured(quick) for m in METHODS], _draws),
    },
    _draw,
)
