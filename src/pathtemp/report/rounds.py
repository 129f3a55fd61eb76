"""The rounds of a run as data for the slider."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pathtemp.report.markup import Markup, h, minus
from pathtemp.result.run import RoundRecord
from pathtemp.result.summary import with_error

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

MOST_ROUNDS = 150
MOST_POINTS = 60

OF_ROUNDS = "early rounds adapt, those marked “sample” make the estimates"
OF_MARGIN = "these rounds adapt, and what the later ones found is in the figure above"


def rounds(fit: Fit) -> Markup:
    """A slider over the rounds, under the curve of log z that it moves."""
    # A look for modes changes no curve.
    records = [r for r in fit.history if r.phase != "modes" and r.curve is not None and np.isfinite(r.curve.mean).all()]
    if len(records) < 2:
        return Markup("")
    kept = np.unique(np.linspace(0, len(records) - 1, min(len(records), MOST_ROUNDS)).round().astype(int))
    data = [_round(int(i) + 1, len(records), records[i]) for i in kept]
    last = len(data) - 1
    tempered = not hasattr(fit, "marginal")
    axis = "λ   (0: base, 1: target)" if tempered else "the margin, on its unconstrained scale"
    return h(
        "section",
        h("h2", "How log z was learned, round by round"),
        h("p", f"Move the slider: {OF_ROUNDS if tempered else OF_MARGIN}.", class_="note"),
        h(
            "p",
            h("input", type="range", id="round", min=0, max=last, value=last, aria_label="round"),
            h("output", str(data[last]["label"]), id="round-label", for_="round"),
            class_="slider",
        ),
        h("div", id="round-curve", class_="curve"),
        # Inside a script element only "<" could end it early.
        Markup(f'<script type="application/json" id="rounds-data">{_json({"x": axis, "rounds": data})}</script>'),
        id="rounds",
    )


def _json(data: Any) -> str:
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _round(number: int, count: int, record: RoundRecord) -> dict[str, Any]:
    curve = record.curve
    assert curve is not None
    kept = np.unique(np.linspace(0, len(curve.lam) - 1, min(len(curve.lam), MOST_POINTS)).round().astype(int))
    se = np.where(np.isfinite(curve.stderr), curve.stderr, 0.0)
    parts = [f"{number} of {count}: {record.phase}", f"{record.gradients:,} gradients so far"]
    parts.append(f"{record.tours:,} round trips in this round")
    if math.isfinite(record.log_z):
        known = math.isfinite(record.log_z_se)
        value = with_error(record.log_z, record.log_z_se) if known else f"{record.log_z:.4g}"
        parts.append(f"log z {value}")
    if math.isfinite(record.khat):
        parts.append(f"k-hat {record.khat:.2f}")
    return {
        "label": minus(", ".join(parts)),
        "lam": [round(float(x), 6) for x in curve.lam[kept]],
        "mean": [float(x) for x in curve.mean[kept]],
        "se": [float(x) for x in se[kept]],
    }
