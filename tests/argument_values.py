"""Rows of wrong values: what a row is, and the values that many arguments share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wrong_inputs import INF, NAN

from pathtemp.settings import LADDER, Settings

BUDGETS = ("30000", "many", NAN, INF, 0, -1, True, [1e5], 1j)
COUNTS = (1.5, 0, -2, "4", True, NAN, [4])
COMMON: dict[str, tuple[Any, ...]] = {
    "budget": BUDGETS,
    "chains": COUNTS,
    "seed": (1.5, "a", NAN, [1]),
    "settings": ("paper", {}, 3, LADDER),
    "progress": (5, "yes", object(), Settings),
    "checkpoint": (3, "nul\0", "lone \ud800", "no/such/folder/run.nc"),
}
Wrong = dict[str, tuple[Any, ...]]
FILES, NAMES = (3, None, "nul\0"), (3, ["x"])
SEEDS, SHARES = COMMON["seed"], (0, 1, 2.0, -1, NAN, "x", None, True)
NUMBERS: tuple[Any, ...] = ("x", None, [[1.0], [2.0, 3.0]], {})
FIT: Wrong = {"fit": (3, None, "fit.nc")}
AX: Wrong = {"ax": (3, "x", [])}
VAR: Wrong = {"var": (3, "nope", ["theta"])}
LABEL: Wrong = {"label": NAMES}
EXACT: Wrong = {"exact": (3, "x")}
DENSITY: Wrong = {"density": (3, "x")}
ALONG: Wrong = {
    "lam": (*NUMBERS, [NAN, 1.0]),
    "delta": (*NUMBERS, [1.0, 2.0, 3.0]),
    "grid": (*NUMBERS, [NAN]),
    "weights": ("x", {}, [1.0], [-1.0, 1.0], [NAN, 1.0]),
}


class Row:
    """A call that would go through, and wrong values of each of its arguments."""

    def __init__(self, call: Callable[..., Any], wrong: Wrong, **right: Any) -> None:
        self.call, self.wrong, self.right = call, wrong, right


def row(call: Callable[..., Any], wrong: Wrong | None = None, **right: Any) -> Row:
    return Row(call, wrong or {}, **right)
