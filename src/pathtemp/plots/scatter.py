"""Pairs of variables, coloured by mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp.api.arguments import a_kind_of
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import chosen, mode_labels
from pathtemp.plots.mode_panels import MOST_POINTS, opaque, scatter
from pathtemp.plots.style import of_fit, pyplot
from pathtemp.plots.variables import scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit

MOST_PAIRS = 4
"""Variables of a pair plot where the user names none."""


@of_fit
def pairs(fit: Fit, *, var: tuple[str, ...] | None = None) -> Figure:
    """Scatter of the target draws for every pair of variables, coloured by the mode they are nearest to.

    Parameters
    ----------
    fit
        The fit.
    var
        Scalars of the posterior, e.g. ("mu", "theta[3]"); the four that separate the modes best where None.
    """
    if var is not None:
        a_kind_of("var", var, (tuple, list), "the names of two variables or more")
    names = chosen(fit, MOST_PAIRS) if var is None else list(var)
    if len(names) < 2:
        raise InputError("var: a pair plot needs two variables or more; for one, use plots.target_draws")
    columns = [scalar(fit.posterior, name)[1].ravel() for name in names]
    labels = mode_labels(fit)
    kept = np.flatnonzero(np.all(np.isfinite(columns), axis=0))
    kept = kept[:: max(1, -(-kept.size // MOST_POINTS))]
    count = len(names) - 1
    size = max(2.1 * count + 1.0, 3.8)
    figure: Figure
    figure, panels = pyplot().subplots(count, count, figsize=(size, size), squeeze=False, layout="constrained")
    for i in range(count):
        for j in range(count):
            ax = panels[i, j]
            if j > i:
                ax.set_visible(False)
                continue
            scatter(ax, columns[j][kept], columns[i + 1][kept], labels[kept])
            if i == count - 1:
                ax.set_xlabel(printable(names[j]), parse_math=False)
            if j == 0:
                ax.set_ylabel(printable(names[i + 1]), parse_math=False)
    if labels.max(initial=0) > 0:
        handles, texts = panels[0, 0].get_legend_handles_labels()
        # With one panel there is no free corner, and the legend goes beside it.
        opaque(
            figure.legend(
                handles, texts, loc="upper right" if count > 1 else "outside right upper", title="mode", markerscale=2.5
            )
        )
    return figure
