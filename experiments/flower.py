"""The flower: draws of 6 petals, and R-hat of x and y of 40 petals against time (two figures)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import pathtemp as pt
from benchmarks.measure import flat_draws
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS, LABELS, tempered
from pathtemp._types import FloatArray
from pathtemp.testing import Problem
from pathtemp.testing import flower as make
from pathtemp.verdict.draws import rhat_ess

METHODS = ("nuts", "path_sampling", "default")
SHOWN = 500
BASE_SCALE = 10.0
CUTOFF = 1.05


@cache
def problem(petals: int) -> Problem:
    """The ring-shaped flower, whose exponent is squared, as in the paper's figures and unlike its formula."""
    return make(petals, base_scale=BASE_SCALE)


def _draws(cell: str, quick: bool) -> list[Row]:
    """Draws of the target by each method, six petals."""
    model = problem(6).model
    if cell == "nuts":
        fit = pt.baselines.nuts(model, draws=300 if quick else 1000, warm_up=200 if quick else 1000, seed=1)
        points: FloatArray = fit.flat.reshape(-1, 2)
    else:
        points = flat_draws(tempered(cell, model, seed=1, adaptations=3 if quick else 10, quick=quick))
    thin = np.linspace(0, len(points) - 1, min(SHOWN, len(points))).astype(int)
    return [{"method": cell, "x": x, "y": y} for x, y in points[thin]]


def _mixing_cells(quick: bool) -> list[str]:
    sizes = {
        "nuts": ("",),
        "path_sampling": ("2",) if quick else ("2", "4", "10"),
        "default": ("20000",) if quick else ("20000", "50000", "100000", "200000", "400000"),
    }
    seeds = range(1 if quick else 5)
    return [f"{method}/{size}/{seed}" for method in METHODS for size in sizes[method] for seed in seeds]


def _mixing(cell: str, quick: bool) -> list[Row]:
    """R-hat of x and y, petals seen, and what they cost."""
    method, size, text = cell.split("/")
    seed, model = int(text), problem(40).model
    about: Row = {"method": method, "seed": seed}
    if method == "nuts":
        return [about | row for row in _nuts(model, seed, quick)]
    if method == "default":
        fit = pt.temper(model, seed=seed, budget=int(size), progress=False)
    else:
        fit = tempered(method, model, seed=seed, adaptations=int(size), quick=quick)
    chains, draws = fit.posterior.sizes["chain"], fit.posterior.sizes["draw"]
    flat = flat_draws(fit).reshape(chains, draws, 2)
    seconds = sum(fit.seconds.values()) - fit.seconds.get("compile", 0.0)
    return [about | _facts(flat, fit.counts.gradients, seconds)]


def _nuts(model: Any, seed: int, quick: bool) -> list[Row]:
    """Ever longer parts of one run; time goes as gradients do."""
    fit = pt.baselines.nuts(model, draws=500 if quick else 20_000, warm_up=200 if quick else 1000, seed=seed)
    warm = fit.gradients - int(fit.spent.sum())
    rows = []
    for share in (0.1, 0.25, 0.5, 1.0):
        part = max(4, int(share * fit.flat.shape[1]))
        spent = warm + int(fit.spent[:, :part].sum())
        rows.append(_facts(fit.flat[:, :part], spent, fit.seconds["sample"] * spent / fit.gradients))
    return rows


def _facts(flat: FloatArray, gradients: int, seconds: float) -> Row:
    labels = problem(40).labels
    assert labels is not None
    points = flat.reshape(-1, 2)
    return {
        "gradients": gradients,
        "seconds": float(seconds),
        "rhat_x": rhat_ess(flat[..., :1])[0],
        "rhat_y": rhat_ess(flat[..., 1:])[0],
        "petals": len(np.unique(labels(points))) if len(points) else 0,
        "draws": len(points),
    }


def _draw(tables: Tables) -> dict[str, Any]:
    figure, axes = panels(1, len(METHODS), width=2.8, height=2.8)
    x = np.linspace(-20.0, 20.0, 161)
    r, phi = np.hypot(*np.meshgrid(x, x)), np.arctan2(*np.meshgrid(x, x)[::-1])
    density = np.exp(-0.5 * (r - 10.0 - 6.0 * np.cos(6.0 * phi)) ** 2)
    for ax, method in zip(axes[0], METHODS, strict=True):
        points = where(tables["draws"], method=method)
        ax.contour(x, x, density, levels=[0.1, 0.6], colors="#0072B2", linewidths=0.6)
        ax.plot(column(points, "x"), column(points, "y"), "r.", ms=2)
        ax.set_title(LABELS[method])
    return {"draws": figure, "mixing": _mixing_figure(tables["mixing"])}


def _mixing_figure(rows: list[Row]) -> Any:
    figure, axes = panels(2, 2, width=3.4, height=2.4)
    for line, cost in zip(axes, ("seconds", "gradients"), strict=True):
        for ax, name in zip(line, ("rhat_x", "rhat_y"), strict=True):
            for method in distinct(rows, "method"):
                cell = where(rows, method=method)
                finite = np.isfinite(column(cell, name))
                spent, value = column(cell, cost)[finite], column(cell, name)[finite]
                ax.loglog(spent, value - 1.0, ".", color=COLOURS[method], label=LABELS[method])
            ax.axhline(CUTOFF - 1.0, color="#8C8C8C", ls="--")
            ax.set(xlabel=cost, ylabel=f"R-hat of {name[-1]}, minus 1")
    axes[0, 0].legend(fontsize=6, loc="lower left")
    return figure


EXPERIMENT = Experiment(
    "the flower: draws of 6 petals, and mixing over 40",
    {"draws": Table(lambda _quick: list(METHODS), _draws), "mixing": Table(_mixing_cells, _mixing)},
    _draw,
)
