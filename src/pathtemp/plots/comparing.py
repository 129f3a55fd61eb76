"""Models beside each other, by their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from pathtemp.api.arguments import a_kind_of
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.style import BETWEEN, TARGET, check_option, ink, pyplot, styled, title, tone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("log_bf", "log_bf_se", "probability", "lower", "upper")
"""What is drawn of the table of ``pt.compare``."""


def comparison(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The table of ``pt.compare``: log Bayes factors over the best model with two standard errors, and probabilities.

    Parameters
    ----------
    table
        What ``pt.compare(...)`` gives.
    ax
        Where to draw; a new figure where None.

    >>> import pandas as pd
    >>> import pathtemp as pt
    >>> rows = {"log_bf": [0.0, -2.1], "log_bf_se": [0.0, 0.1], "probability": [0.89, 0.11]}
    >>> rows |= {"lower": [0.87, 0.09], "upper": [0.91, 0.13]}
    >>> ax = pt.plots.comparison(pd.DataFrame(rows, index=["two modes", "one mode"]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['two modes', 'one mode']
    """
    a_kind_of("table", table, pd.DataFrame, "the table that pt.compare gives")
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(f"table: expected the table that pt.compare gives, and {', '.join(missing)} are not in it")
    check_option("ax", ax)
    with styled():
        if ax is None:
            size = (6.3, 1.2 + 0.45 * len(table))
            ax = pyplot().subplots(figsize=size, layout="constrained")[1]
        return _drawn(table, ax)


def _drawn(table: pd.DataFrame, ax: Axes) -> Axes:
    at = np.arange(len(table))
    value, error = table["log_bf"].to_numpy(float), 2 * table["log_bf_se"].to_numpy(float)
    best = value == value.max()
    ax.axvline(0.0, color=BETWEEN, linewidth=0.8)
    for where, colour in ((best, tone(TARGET)), (~best, ink())):
        ax.errorbar(value[where], at[where], xerr=error[where], fmt="o", color=colour, ms=5, capsize=3)
    for y, row in enumerate(table.itertuples()):
        digits = _digits(row.upper - row.lower)
        text = f"{row.probability:.{digits}f}  ({row.lower:.{digits}f} to {row.upper:.{digits}f})"
        ax.text(1.02, y, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.text(1.02, -0.75, "probability (95%)", transform=ax.get_yaxis_transform(), va="center", fontsize=8, alpha=0.75)
    ax.set_yticks(at, [printable(str(name)) for name in table.index], parse_math=False)
    ax.margins(x=0.1)
    ax.set(ylim=(len(table) - 0.4, -1.1), xlabel="log Bayes factor over the best, ± 2 se")
    title(ax, "Models compared")
    return ax


def _digits(width: float) -> int:
    """Decimals that tell the ends of an interval of probabilities apart, three at least and six at most.

    >>> _digits(0.03), _digits(0.0002), _digits(0.0)
    (3, 5, 3)
    """
    return int(np.clip(1 - np.floor(np.log10(width)), 3, 6)) if width > 0 else 3
