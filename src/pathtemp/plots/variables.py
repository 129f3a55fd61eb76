"""Histograms of one scalar of the draws at either end of the path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.style import BASE, EXACT, TARGET, axes, central_range, empty, of_fit, title
from pathtemp.result.draws import SAMPLE_DIMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

WIDE = 1000.0
"""Positive draws that reach this many times their median are drawn over a log scale."""

Density = Callable[[FloatArray], FloatArray]
"""A normalised density of one variable, evaluated at an array of points."""


@of_fit
def target_draws(
    fit: Fit,
    ax: Axes | None = None,
    *,
    var: str | None = None,
    density: Density | None = None,
    label: str | None = None,
) -> Axes:
    """Histogram of the draws at lam = 1.

    Parameters
    ----------
    fit
        The fit.
    ax
        Where to draw; a new figure where None.
    var
        Which scalar, e.g. "mu" or "theta[3]"; the first where None.
    density
        A density to draw over it, normalised.
    label
        What to call the variable on the axis; its name where None.
    """
    return _histogram(fit.posterior, axes(ax), TARGET, "Target draws (λ = 1)", var, density, label)


@of_fit
def base_draws(
    fit: Fit,
    ax: Axes | None = None,
    *,
    var: str | None = None,
    density: Density | None = None,
    label: str | None = None,
) -> Axes:
    """Histogram of the draws at lam = 0; see :func:`target_draws`."""
    return _histogram(fit.base, axes(ax), BASE, "Base draws (λ = 0)", var, density, label)


@of_fit
def tails(fit: Fit, ax: Axes | None = None, *, var: str | None = None, label: str | None = None) -> Axes:
    """The marginal with its tails on a log scale: the share of draws beyond each value, on either side of the median.

    Target and base lie over each other: where the target's tail ends far inside the base's, the base covers it.
    """
    ax = axes(ax)
    title(ax, "Tails")
    drawn: list[FloatArray] = []
    name = ""
    for dataset, colour, heading in ((fit.base, BASE, "base"), (fit.posterior, TARGET, "target")):
        name, draws = scalar(dataset, var)
        values = np.sort(draws[np.isfinite(draws)])
        if values.size == 0:
            continue
        share = (np.arange(values.size) + 0.5) / values.size
        ax.plot(values, np.minimum(share, 1.0 - share), color=colour, linewidth=1.4, label=heading)
        drawn.append(values)
    if not drawn:
        return empty(ax, "no draws")
    every = np.concatenate(drawn)
    if every.min() > 0 and every.max() > WIDE * np.median(every):
        ax.set_xscale("log")
    ax.set(yscale="log", ylabel="share of draws beyond")
    ax.set_xlabel(label or printable(name), parse_math=False)
    ax.legend(loc="best")
    return ax


def scalar(dataset: xr.Dataset, var: str | None = None) -> tuple[str, FloatArray]:
    """Label and (chain, draw) values of one scalar of a Dataset: the first, or that called ``var``."""
    from arviz_base import xarray_var_iter
    from arviz_base.labels import BaseLabeller

    labeller = BaseLabeller()
    labels = []
    for name, sel, isel, values in xarray_var_iter(dataset, skip_dims=set(SAMPLE_DIMS)):
        label = labeller.make_label_flat(name, sel, isel)
        if var is None or var == label:
            return label, np.asarray(values, float)
        labels.append(label)
    some = ", ".join(islice(labels, 8)) + (", ..." if len(labels) > 8 else "")
    raise InputError(f"var: there is no {var!r} among the draws; choose one of {some}")


def bin_count(values: FloatArray, low: float, high: float) -> int:
    """Number of histogram bins on [low, high] that suits draws with several narrow modes.

    Scott's rule with the spread of the tightest quarter of the draws, which does not grow with the distance
    between modes.

    >>> bin_count(np.linspace(-3.0, 3.0, 1000), -3.0, 3.0)
    20
    """
    ordered = np.sort(values)
    quarter = max(1, ordered.size // 4)
    tightest = float(np.min(ordered[quarter:] - ordered[:-quarter])) if ordered.size > quarter else 0.0
    # The tightest quarter of a normal is .637 standard deviations wide.
    width = 3.49 * (tightest / 0.637) * ordered.size ** (-1 / 3)
    return int(np.clip((high - low) / width if width > 0 else 20, 20, 160))


def _histogram(
    dataset: xr.Dataset,
    ax: Axes,
    colour: str,
    heading: str,
    var: str | None,
    density: Density | None,
    label: str | None,
) -> Axes:
    name, draws = scalar(dataset, var)
    values = draws[np.isfinite(draws)]
    title(ax, heading)
    if values.size == 0:
        return empty(ax, "no draws")
    low, high = central_range(values)
    # Bins end with the draws where these end first, so that none crosses the edge of a support.
    first, last = max(low, float(values.min())), min(high, float(values.max()))
    first, last = (first, last) if first < last else (low, high)
    counts, edges = np.histogram(values, bins=bin_count(values, first, last), range=(first, last))
    # Divided by all draws, not those shown, so that a density with tails outside lies over it.
    height = counts / (values.size * np.diff(edges))
    ax.stairs(height, edges, fill=True, color=colour, alpha=0.45, label="draws")
    ax.stairs(height, edges, color=colour, linewidth=0.8)
    if density is not None:
        grid = np.linspace(low, high, 2001)
        ax.plot(grid, density(grid), color=EXACT, linewidth=1.0, label="exact")
        ax.legend(loc="best")
    ax.set(xlim=(low, high), ylim=(0, None), ylabel="density")
    ax.set_xlabel(label or printable(name), parse_math=False)
    return ax
