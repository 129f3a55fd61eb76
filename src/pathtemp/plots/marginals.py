"""Histograms of chosen variables, side by side at both ends of the path."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pathtemp.errors import InputError
from pathtemp.plots.chosen import chosen, scalars
from pathtemp.plots.style import of_fit, pyplot, styled
from pathtemp.plots.variables import base_draws, target_draws
from pathtemp.result.summary import chosen as named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit

MOST_ROWS = 24
"""Scalars that are drawn; of more, the first."""


@of_fit
def marginals(fit: Fit, *, var_names: str | Sequence[str] | None = None) -> Figure:
    """Draws of the target beside draws of the base, a row for each scalar.

    Parameters
    ----------
    fit
        The fit.
    var_names
        Which variables, by name; where None the parameters, those first that separate the modes best. The first 24 of
        their scalars are drawn.
    """
    if var_names is None:
        labels = chosen(fit, MOST_ROWS)
    else:
        labels = [label for label, _ in islice(scalars(named(fit.posterior, var_names)), MOST_ROWS)]
        if not labels:
            raise InputError("var_names: the list is empty; name one variable or more")
    plt = pyplot()
    with styled():
        figure, panels = plt.subplots(
            len(labels), 2, figsize=(8.4, 2.4 * len(labels)), layout="constrained", squeeze=False
        )
        for (left, right), label in zip(panels, labels, strict=True):
            target_draws(fit, left, var=label)
            if label.partition("[")[0] in fit.base:
                base_draws(fit, right, var=label)
            else:
                right.set_axis_off()  # a generated quantity, which the base has none of
    return figure
