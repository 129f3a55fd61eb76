"""Three ways to integrate the same draws of NUTS, and the bias of each: what averaging ties by equal a does to log z.

The pseudo-prior is the exact log z from the start, so that nothing but the rule differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from experiments.beta_binomial import problem
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from pathtemp._types import FloatArray
from pathtemp.engines.paper.engine import compile_adaptation
from pathtemp.engines.paper.trace import PaperTrace, integrate, path_nodes, tie
from pathtemp.estimators import path_sampling
from pathtemp.paths.pseudoprior import Kernels
from pathtemp.settings import PAPER
from pathtemp.testing.beta_binomial import CASES

ENDS = np.array([0.0, 1.0])
"""Positions in a at which log z is wanted: the base and the target."""

RULES: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "equal a averaged, trapezoid": lambda a, u: float(path_sampling(a, u, ENDS).mean[-1]),
    "cells averaged, trapezoid": lambda a, u: float(path_sampling(*tie(a, u, PAPER.grid), ENDS).mean[-1]),
    "cells averaged, by width": lambda a, u: float(integrate(a, u, PAPER.grid)[-1]),
}
"""From folded a and U to log z(1): the rule that the paper prints, one step from it, and that of the engine here."""


def _cells(quick: bool) -> list[str]:
    return [f"{case}/{seed}" for case in CASES for seed in range(1 if quick else 10)]


def _work(cell: str, quick: bool) -> list[Row]:
    """Error of log z(1) by each rule, from the draws of 20 adaptations."""
    case, seed = cell.split("/")
    truth = problem(case)
    assert truth.log_z is not None
    _, grid = path_nodes(PAPER.grid)
    log_c = Kernels.fit(grid, truth.log_z(grid), kernels=PAPER.kernels)
    adaptation, _ = compile_adaptation(truth.model, PAPER)
    keys = jax.random.split(jax.random.key(int(seed)), 2 if quick else 20)
    trace = PaperTrace.join([PaperTrace.of(adaptation(key, log_c)) for key in keys])
    a, u = trace.folded.ravel(), trace.u.ravel()
    repeats = float(np.mean(np.diff(trace.a, axis=1) == 0))
    return [
        {"case": case, "seed": int(seed), "rule": name, "error": rule(a, u) - truth.log_z_end, "repeats": repeats}
        for name, rule in RULES.items()
    ]


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["rules"]
    figure, axes = panels(1, len(CASES), width=4.0, height=2.4, sharey=True)
    for ax, case in zip(axes[0], distinct(rows, "case"), strict=True):
        for index, rule in enumerate(RULES):
            error = column(where(rows, case=case, rule=rule), "error")
            ax.plot(error, np.full(len(error), -index), ".", color="#0072B2")
            ax.plot(error.mean(), -index, "|", ms=14, color="#D55E00")
        ax.axvline(0.0, color="#8C8C8C", ls="--")
        ax.set(title=case, xlabel="error of log z(1)", yticks=[0, -1, -2], yticklabels=list(RULES))
    return {"rules": figure}


EXPERIMENT = Experiment("the bias of averaging gradients at equal a", {"rules": Table(_cells, _work)}, _draw)
