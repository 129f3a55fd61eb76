"""Histograms of chosen variables, side by side at both ends of the path."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pathtemp.plots.style import RC, of_fit, pyplot
from pathtemp.plots.variables import base_draws, target_draws
from pathtemp.result.draws import SAMPLE_DIMS
from pathtemp.result.summary import chosen

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
        Which variables, by name; all where None. The first 24 of their scalars are drawn.
    """
    from arviz_base import xarray_var_iter
    from arviz_base.labels import BaseLabeller

    scalars = xarray_var_iter(chosen(fit.posterior, var_names), skip_dims=set(SAMPLE_DIMS))
    labels = [BaseLabeller().make_label_flat(name, sel, isel) for name, sel, isel, _ in islice(scalars, MOST_ROWS)]
    plt = pyplot()
    with plt.rc_context(RC):
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
