"""Accurate log z is neither needed nor enough for tempering (figure logz_vs_tempering).

Where log z is small, a poor fit still leaves mass everywhere. Where it is large, one per cent at a single point is a
spike in p(a), and k-hat says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import Experiment, Row, Table, Tables, column, panels, where
from pathtemp.estimators.khat import khat

SCALES = {"small": 3.0, "large": 10_000.0}
"""Sizes of log z: small, and that of the paper's topic model."""

DRAWS = 4000


def _log_z(lam: Any, scale: float) -> Any:
    return -scale * np.sqrt(lam)


def _log_c(lam: Any, name: str) -> Any:
    """A line where log z is small; the truth but for one per cent around one point where it is large."""
    scale = SCALES[name]
    if name == "small":
        return -scale * lam
    return _log_z(lam, scale) * (1.0 + 0.01 * np.exp(-0.5 * ((lam - 0.5) / 0.02) ** 2))


def _work(name: str, _quick: bool) -> list[Row]:
    """The curves, and the density of lam that they lead to: p(lam) = z / c."""
    lam = np.linspace(0.0, 1.0, 401)
    log_z, log_c = _log_z(lam, SCALES[name]), _log_c(lam, name)
    log_p = log_z - log_c
    density = np.exp(log_p - log_p.max())
    density /= np.trapezoid(density, lam)
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(lam))])
    draws = np.interp(np.random.default_rng(0).uniform(size=DRAWS), cumulative / cumulative[-1], lam)
    # k-hat of 1/p at draws of p, as the paper's engine has it; here p is exact.
    tail = khat(_log_c(draws, name) - _log_z(draws, SCALES[name])).value
    seen = float(np.mean(np.histogram(draws, 20, (0.0, 1.0))[0] > 0))
    error = float(np.max(np.abs(log_c - log_z)) / SCALES[name])
    facts = {"khat": tail, "seen": seen, "relative_error": error}
    columns = zip(lam, log_z, log_c, density, strict=True)
    return [{"scale": name, "lam": l, "log_z": z, "log_c": c, "density": p, **facts} for l, z, c, p in columns]


def _draw(tables: Tables) -> dict[str, Any]:
    figure, axes = panels(1, 4, width=2.5, height=2.3)
    for index, name in enumerate(SCALES):
        rows = where(tables["curves"], scale=name)
        lam = column(rows, "lam")
        left, right = axes[0, 2 * index : 2 * index + 2]
        left.plot(lam, column(rows, "log_z"), color="red", ls="--", label="log z")
        left.plot(lam, column(rows, "log_c"), color="#0072B2", label="log c")
        left.legend()
        left.set(xlabel="lam", title=f"log z {name}")
        right.plot(lam, column(rows, "density"), color="#0072B2")
        right.set(xlabel="lam", title=f"p(lam), {100 * rows[0]['seen']:.0f}% seen")
        right.text(0.05, 0.9, f"k-hat {rows[0]['khat']:.2f}", transform=right.transAxes)
    return {"curves": figure}


EXPERIMENT = Experiment(
    "accuracy of log z against success of tempering", {"curves": Table(lambda _quick: list(SCALES), _work)}, _draw
)
