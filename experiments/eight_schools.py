"""Eight schools by implicit divide and conquer: tail quantiles and moments of tau beside NUTS (section 4.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.funnels_beside_nuts import LABELS, LEFT, METHODS, MOMENTS, RIGHT, estimates, truth
from experiments.common import Experiment, Row, Table, Tables, column, panels, where


def _cells(quick: bool) -> list[str]:
    return [f"{method}/{seed}" for method in METHODS for seed in range(1 if quick else 20)]


def _work(cell: str, _quick: bool) -> list[Row]:
    """Quantiles and moments of tau, estimated and exact."""
    method, seed = cell.split("/")
    quantiles, moments, gradients = estimates(method, int(seed))
    exact = truth()
    about: Row = {"method": method, "seed": int(seed), "gradients": gradients}
    levels = [("quantile", p) for p in (*LEFT, *RIGHT)] + [("moment", float(k)) for k in MOMENTS]
    found, right = np.concatenate([quantiles, moments]), np.concatenate(exact)
    return [
        about | {"kind": kind, "at": at, "estimate": float(x), "exact": float(y)}
        for (kind, at), x, y in zip(levels, found, right, strict=True)
    ]


def _rmse(rows: list[Row]) -> float:
    """Root mean square relative error."""
    return float(np.sqrt(np.mean((column(rows, "estimate") / column(rows, "exact") - 1.0) ** 2)))


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["tau"]
    figure, axes = panels(1, 3, width=3.2, height=2.8)
    for method in METHODS:
        of_method = where(rows, method=method)
        for ax, levels in zip(axes[0], (LEFT, RIGHT), strict=False):
            error = [_rmse(where(of_method, kind="quantile", at=p)) for p in levels]
            ax.loglog([min(p, 1 - p) for p in levels], error, "o-", ms=3, label=LABELS[method])
        error = [_rmse(where(of_method, kind="moment", at=float(k))) for k in MOMENTS]
        axes[0, 2].semilogy(MOMENTS, error, "o-", ms=3, label=LABELS[method])
    axes[0, 0].set(title="left tail of tau", xlabel="probability below", ylabel="relative error")
    axes[0, 1].set(title="right tail of tau", xlabel="probability above")
    axes[0, 2].set(title="moments of tau", xlabel="order", xticks=MOMENTS)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7, frameon=False
    )
    return {"tau": figure}


EXPERIMENT = Experiment("eight schools: tails and moments of tau", {"tau": Table(_cells, _work)}, _draw)
