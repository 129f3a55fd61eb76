"""Output panels per adaptation of a one-dimensional target: joint draws, log z, p(a) with k-hat, target draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import tempered
from pathtemp.engines.paper.trace import path_nodes
from pathtemp.testing import Problem

SHOWN = 600
"""Draws kept of an adaptation."""

POINTS = 31
DEFAULT_COLUMN = 0
"""Number that stands for the default engine among the adaptations."""


def panels_of(about: str, make: Callable[[], Problem], adaptations: tuple[int, ...], span: float) -> Experiment:
    """Panels of the paper's engine after some adaptations, and of the default engine.

    ``span`` is the largest |theta| shown.
    """

    def cells(quick: bool) -> list[str]:
        chosen = (*adaptations[:2], adaptations[-1] // 2) if quick else adaptations
        return [f"path_sampling/{index}" for index in chosen] + ["default/0"]

    @cache
    def fit(cell: str, quick: bool) -> Any:
        method, index = cell.split("/")
        return tempered(method, make().model, seed=1, adaptations=int(index), quick=quick), int(index)

    def draws(cell: str, quick: bool) -> list[Row]:
        found, index = fit(cell, quick)
        names = ("a", "lam", "theta0")
        flat = [found.path[name].values.ravel() for name in names]
        thin = np.linspace(0, len(flat[0]) - 1, min(SHOWN, len(flat[0]))).astype(int)
        return [
            {"adaptation": index, **dict(zip(names, x, strict=True))}
            for x in zip(*(values[thin] for values in flat), strict=True)
        ]

    def curves(cell: str, quick: bool) -> list[Row]:
        found, index = fit(cell, quick)
        at, lam = path_nodes(POINTS - 1)
        exact = make().log_z
        assert exact is not None
        return [
            {
                "adaptation": index,
                "a": a,
                "log_z": z,
                "exact": truth,
                "khat": found.diagnostics.khat,
                "gradients": found.counts.gradients,
                "converged": int(found.converged),
            }
            for a, z, truth in zip(at, found.log_z(lam), exact(lam), strict=True)
        ]

    def draw(tables: Tables) -> dict[str, Any]:
        numbers = distinct(tables["curves"], "adaptation")
        figure, axes = panels(4, len(numbers), width=2.1, height=1.8)
        target = make()
        for line, index in zip(axes.T, numbers, strict=True):
            _column(line, where(tables["draws"], adaptation=index), where(tables["curves"], adaptation=index), span)
            exact = target.sample_target(np.random.default_rng(0), 20_000)[:, 0]
            bins = np.linspace(-span, span, 61)
            line[3].hist(exact, bins, density=True, histtype="step", color="#D55E00")
        return {"panels": figure}

    return Experiment(about, {"draws": Table(cells, draws), "curves": Table(cells, curves)}, draw)


def _column(line: Any, draws: list[Row], curve: list[Row], span: float) -> None:
    index, khat = curve[0]["adaptation"], curve[0]["khat"]
    a, lam, theta = (column(draws, name) for name in ("a", "lam", "theta0"))
    line[0].plot(a, theta, ".", ms=1.5, color="#0072B2")
    line[0].set(title="default" if index == DEFAULT_COLUMN else f"adaptation {index:.0f}", ylim=(-span, span))
    line[0].set_xlim(0, 2)
    line[1].plot(column(curve, "a"), column(curve, "exact"), color="red", ls="--")
    line[1].plot(column(curve, "a"), column(curve, "log_z"), color="#0072B2")
    line[2].hist(a, np.linspace(0.0, 2.0, 41), density=True, color="#8C8C8C")
    line[2].text(0.03, 0.06, f"k-hat {khat:.2f}", transform=line[2].transAxes, fontsize=8)
    at_target = theta[lam >= 1]
    if at_target.size:
        line[3].hist(at_target, np.linspace(-span, span, 61), density=True, color="#0072B2", alpha=0.6)
    for ax, text in zip(line, ("theta, a", "log z", "p(a)", "target"), strict=True):
        ax.set_xlabel(text, fontsize=7)
