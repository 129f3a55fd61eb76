"""The link function lam = f(a) (figure 1): flat at both ends, symmetric; and the log z that it leaves to learn."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.common import Experiment, Row, Table, Tables, column, panels
from pathtemp.paths.links import A_MAX, A_MIN, CubicLink


def _work(_cell: str, _quick: bool) -> list[Row]:
    a = np.linspace(0.0, 2.0, 201)
    link = CubicLink()
    lam, slope = np.asarray(link(jnp.asarray(a))), np.asarray(link.derivative(jnp.asarray(a)))
    return [{"a": x, "lam": y, "slope": d} for x, y, d in zip(a, lam, slope, strict=True)]


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["curve"]
    figure, axes = panels(1, 2, width=3.4, height=2.6)
    for ax, name, text in zip(axes[0], ("lam", "slope"), ("lam = f(a)", "f'(a)"), strict=True):
        ax.plot(column(rows, "a"), column(rows, name), color="#0072B2")
        for low, high in ((0.0, A_MIN), (A_MAX, 2.0 - A_MAX), (2.0 - A_MIN, 2.0)):
            ax.axvspan(low, high, color="#EEEEEE", zorder=0)
        ax.set(xlabel="a", title=text)
    return {"curve": figure}


EXPERIMENT = Experiment("the link function", {"curve": Table(lambda _quick: ["cubic"], _work)}, _draw)
