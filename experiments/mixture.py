"""Ten normals in 10 to 100 dimensions against the two benchmarks of the paper (figure GMM_example_2)."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from benchmarks.measure import flat_draws, shares
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS, LABELS, tempered
from pathtemp._types import FloatArray
from pathtemp.engines.paper.trace import path_nodes
from pathtemp.testing import Problem, paper_mixture

METHODS = ("path_sampling", "rao_blackwell", "log_linear", "default")
POINTS = 31


@cache
def problem(dim: int) -> Problem:
    """The paper's scale, variance = least distance / 10, from a truly over-dispersed base."""
    return paper_mixture(dim)


def _fit(method: str, dim: int, seed: int, adaptations: int, quick: bool) -> Any:
    # The log-linear benchmark is supplied with the truth, as in the paper; the target is normalised, so it is zero.
    log_zeta = problem(dim).log_z_end
    return tempered(method, problem(dim).model, seed=seed, adaptations=adaptations, quick=quick, log_zeta=log_zeta)


@cache
def _compile(method: str, dim: int, quick: bool) -> None:
    """A short run, so that no CPU seconds of a later one are those of the compiler."""
    _fit(method, dim, 1000, 1, quick)


def _row(method: str, dim: int, seed: int, adaptations: int, quick: bool) -> Row:
    """Mean absolute error of the shares of the ten modes, NaN where no draw is at the target, and what it cost."""
    _compile(method, dim, quick)
    truth, busy = problem(dim), time.process_time()
    fit = _fit(method, dim, seed, adaptations, quick)
    share = shares(truth, flat_draws(fit))
    assert truth.shares is not None
    return {
        "method": method,
        "dim": dim,
        "seed": seed,
        "adaptation": adaptations,
        "share_error": float(np.mean(np.abs(share - truth.shares))) if np.any(share > 0) else np.nan,
        "modes": int(np.sum(share > 0)),
        "log_z_error": fit.log_marginal_likelihood.value - truth.log_z_end,
        "gradients": fit.counts.gradients,
        "cpu": time.process_time() - busy,
        "converged": int(fit.converged),
    }


def _cells(quick: bool, *, by: str) -> list[str]:
    dims, adaptations = ((10,), (1, 3)) if quick else ((10, 25, 50, 75, 100), (1, 2, 3, 5, 10))
    pairs = [(dims[-1], n) for n in adaptations] if by == "adaptation" else [(d, 2 if quick else 5) for d in dims]
    cells = [(m, d, n, s) for m in METHODS for d, n in pairs for s in range(1 if quick else 5)]
    # The default engine has no adaptations: one run a seed.
    return [f"{m}/{d}/{n}/{s}" for m, d, n, s in cells if m != "default" or n == pairs[-1][1]]


def _work(cell: str, quick: bool) -> list[Row]:
    method, dim, adaptations, seed = cell.split("/")
    return [_row(method, int(dim), int(seed), int(adaptations), quick)]


def _curve(cell: str, quick: bool) -> list[Row]:
    method, dim = cell.split("/")
    fit = _fit(method, int(dim), 0, 2 if quick else 5, quick)
    a, lam = path_nodes(POINTS - 1)
    return [{"method": method, "dim": int(dim), "a": x, "log_z": z} for x, z in zip(a, fit.log_z(lam), strict=True)]


def _mean(x: FloatArray) -> float:
    """Mean of what is known."""
    return float(np.nanmean(x)) if np.isfinite(x).any() else np.nan


def _draw(tables: Tables) -> dict[str, Any]:
    figure, axes = panels(1, 3, width=3.4, height=2.8)
    for ax, name, x in zip(axes[0], ("adaptations", "dimensions"), ("adaptation", "dim"), strict=False):
        rows = tables[name]
        for method in distinct(rows, "method"):
            of_method = where(rows, method=method)
            at = sorted(distinct(of_method, x))
            cells = [where(of_method, **{x: value}) for value in at]
            error = [_mean(column(cell, "share_error")) for cell in cells]
            ax.plot(at, error, ".-", color=COLOURS[method], label=LABELS[method])
            if name == "adaptations":
                for value, y, cell in zip(at, error, cells, strict=True):
                    ax.annotate(f"{np.mean(column(cell, 'cpu')):.0f} s", (value, y), fontsize=6)
        ax.set(xlabel=x, ylabel="mean absolute error of the shares", yscale="log")
    for method in distinct(tables["curve"], "method"):
        rows = where(tables["curve"], method=method)
        # The default engine finds a base of its own, and so goes another way to the same log z(1).
        label = LABELS[method] + (", its own base" if method == "default" else "")
        axes[0, 2].plot(column(rows, "a"), column(rows, "log_z"), color=COLOURS[method], label=label)
    axes[0, 2].set(xlabel="a", title="log z")
    axes[0, 2].legend(fontsize=6)
    axes[0, 0].legend(fontsize=6)
    return {"shares": figure}


EXPERIMENT = Experiment(
    "ten normals in 10 to 100 dimensions: shares of the modes",
    {
        "adaptations": Table(lambda quick: _cells(quick, by="adaptation"), _work),
        "dimensions": Table(lambda quick: _cells(quick, by="dim"), _work),
        "curve": Table(lambda quick: [f"{m}/{10 if quick else 100}" for m in ("path_sampling", "default")], _curve),
    },
    _draw,
)
