"""The methods that are compared, each as one call that gives a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import pathtemp as pt
from pathtemp._types import FloatArray
from pathtemp.engines.paper.trace import path_nodes
from pathtemp.model.model import Model
from pathtemp.settings import LADDER, PAPER
from pathtemp.testing import Problem

LABELS = {
    "path_sampling": "path sampling (the paper)",
    "empirical": "empirical p(a)",
    "discrete": "discrete, importance",
    "rao_blackwell": "discrete, Rao-Blackwell",
    "log_linear": "log-linear",
    "nuts": "NUTS",
    "default": "default engine",
}
COLOURS = dict(zip(LABELS, ("#0072B2", "#E69F00", "#8C8C8C", "#CC79A7", "#56B4E9", "#D55E00", "#009E73"), strict=True))


def tempered(
    method: str, model: Model, *, seed: int, adaptations: int, quick: bool, log_zeta: float | None = None
) -> pt.Fit:
    """A fit by one of the methods at the paper's size, all adaptations whatever the diagnostics say.

    The default engine has no adaptations to count: it stops by itself.
    """
    if method == "default":
        return pt.temper(model, seed=seed, progress=False, budget=120_000 if quick else None)
    if method in ("discrete", "rao_blackwell"):
        # The paper's ladder is run by one chain: 150 draws of lam with 100 HMC updates each.
        ladder = LADDER.replace(chains=1, adaptations=adaptations, **({"draws": 60, "moves": 20} if quick else {}))
        update: Any = "importance" if method == "discrete" else "rao_blackwell"
        return pt.baselines.discrete_tempering(model, update=update, seed=seed, settings=ladder)
    paper = PAPER.replace(stop=False, adaptations=adaptations, draws=800 if quick else PAPER.draws)
    if method == "empirical":
        return pt.baselines.empirical_tempering(model, seed=seed, settings=paper)
    if method == "log_linear":
        return pt.baselines.log_linear_tempering(model, log_zeta=log_zeta, seed=seed, settings=paper)
    assert method == "path_sampling", method
    return pt.temper(model, seed=seed, settings=paper, progress=False)


def rounds(fit: pt.Fit) -> list[tuple[int, Any]]:
    """(number, record) of the rounds that estimate a curve; a search for modes estimates none."""
    records = [record for record in fit.history if record.curve is not None and record.phase != "modes"]
    return list(enumerate(records, start=1))


def curve_error(curve: Any, problem: Problem) -> float:
    """Root mean square error of log z over 101 positions equispaced in a, as the smoothing grid has them."""
    assert problem.log_z is not None
    _, lam = path_nodes(100)
    return float(np.sqrt(np.mean((curve(lam) - problem.log_z(lam)) ** 2)))


def ladder_error(curve: Any, problem: Problem) -> float:
    """Root mean square error of log z at lam = .1, .2, ..., 1, the rungs of the paper's ladder."""
    assert problem.log_z is not None
    lam: FloatArray = np.linspace(0.1, 1.0, 10)
    return float(np.sqrt(np.mean((curve(lam) - problem.log_z(lam)) ** 2)))
