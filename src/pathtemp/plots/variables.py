"""Histograms of one scalar of the draws at either end of the path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import chosen, scalars
from pathtemp.plots.style import BASE, TARGET, axes, central_range, empty, ink, of_fit, title, tone, values_of, veil

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
        Which scalar, e.g. "mu" or "theta[3]"; the one that separates the modes best where None, or else the first.
    density
        A density to draw over it, normalised.
    label
        What to call the variable on the axis; its name where None.
    """
    var = chosen(fit, 1)[0] if var is None else var
    return _histogram(fit.posterior, axes(ax), tone(TARGET), "Target draws (λ = 1)", var, density, label)


@of_fit
def base_draws(
    fit: Fit,
    ax: Axes | None = None,
    *,
    var: str | None = None,
    density: Density | None = None,
    label: str | None = None,
) -> Axes:
    """Histogram of the draws of the base as given; see :func:`target_draws`.

    Where the path starts from a mixture of modes instead, the draws at the start of the path are drawn over it.
    """
    var = chosen(fit, 1)[0] if var is None else var
    mixture = fit.modes is not None and fit.modes.mixture
    named = "base as given" if mixture else "draws"
    ax = _histogram(fit.base, axes(ax), BASE, "Base draws (λ = 0)", var, density, label, named)
    if not mixture:
        return ax
    title(ax, "Base, and start of the path")
    known = along_path(fit, var)
    start = np.empty(0) if known is None else known.values[known.lam <= 0.0]
    values = scalar(fit.base, var)[1]
    if start.size == 0 or values[np.isfinite(values)].size == 0:
        return ax
    height, edges = _heights(start, *ax.get_xlim())
    ax.stairs(height, edges, color=ink(), linewidth=1.0, label="mixture that the path starts from")
    # Room over the histograms for the legend, which would lie on a mode.
    ax.set_ylim(0, 1.35 * max(ax.get_ylim()[1], float(height.max())))
    ax.legend(loc="upper left")
    return ax


class AlongPath(NamedTuple):
    """One scalar at points of the joint path, where it is finite; shapes (n,)."""

    a: FloatArray
    lam: FloatArray
    values: FloatArray


def along_path(fit: Fit, var: str) -> AlongPath | None:
    """The scalar called ``var`` along the path; None where the fit has no draws of it there."""
    for label, values in scalars(fit.path_draws):
        if label == var:
            points = AlongPath(fit.path["point_a"].values, fit.path["point_lam"].values, values.ravel())
            return AlongPath(*(x[np.isfinite(points.values)] for x in points))
    return None


@of_fit
def tails(fit: Fit, ax: Axes | None = None, *, var: str | None = None, label: str | None = None) -> Axes:
    """The marginal with its tails on a log scale: the share of draws beyond each value, on either side of the median.

    Target and base lie over each other: where the target's tail ends far inside the base's, the base covers it. The
    axis is at most three times as wide as the target; how far a heavier base goes on is said.
    """
    ax = axes(ax)
    title(ax, "Tails")
    var = chosen(fit, 1)[0] if var is None else var
    found = {"base": _sorted(fit.base, var), "target": _sorted(fit.posterior, var)}
    found = {heading: values for heading, values in found.items() if values.size}
    if not found:
        return empty(ax, "no draws")
    for heading, values in found.items():
        share = (np.arange(values.size) + 0.5) / values.size
        colour = BASE if heading == "base" else tone(TARGET)
        ax.plot(values, np.minimum(share, 1.0 - share), color=colour, linewidth=1.4, label=heading)
    every = np.concatenate(list(found.values()))
    if every.min() > 0 and every.max() > WIDE * np.median(every):
        ax.set_xscale("log")
    if len(found) == 2:
        _room_for_target(ax, found["target"], found["base"])
    ax.set(yscale="log", ylabel="share of draws beyond")
    ax.set_xlabel(label or printable(var), parse_math=False)
    # There is no corner that no tail comes to.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return ax


def _sorted(dataset: xr.Dataset, var: str) -> FloatArray:
    draws = scalar(dataset, var)[1]
    return np.sort(draws[np.isfinite(draws)])


def _room_for_target(ax: Axes, target: FloatArray, base: FloatArray) -> None:
    """Cut the axis one width of the target beyond it on either side, where the base goes on further."""
    logarithmic = ax.get_xscale() == "log"
    t, b = (np.log(target), np.log(base)) if logarithmic else (target, base)
    width = t[-1] - t[0]
    low, high = t[0] - width, t[-1] + width
    if width <= 0 or (b[0] >= low and b[-1] <= high):
        return
    low, high = max(low, min(b[0], t[0])), min(high, max(b[-1], t[-1]))
    ax.set_xlim(*(np.exp([low, high]) if logarithmic else (low, high)))
    title(ax, "Tails", f"base from {base[0]:.2g} to {base[-1]:.2g}".replace("-", "−"))


def scalar(dataset: xr.Dataset, var: str | None = None) -> tuple[str, FloatArray]:
    """Label and (chain, draw) values of one scalar of a Dataset: the first, or that called ``var``."""
    labels = []
    for label, values in scalars(dataset):
        if var is None or var == label:
            return label, values
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


def _heights(values: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Density of the draws in bins on [low, high], and the edges of these."""
    # Bins end with the draws where these end first, so that none crosses the edge of a support.
    first, last = max(low, float(values.min())), min(high, float(values.max()))
    first, last = (first, last) if first < last else (low, high)
    counts, edges = np.histogram(values, bins=bin_count(values, first, last), range=(first, last))
    # Divided by all draws, not those shown, so that a density with tails outside lies over it.
    return counts / (values.size * np.diff(edges)), edges


def _histogram(
    dataset: xr.Dataset,
    ax: Axes,
    colour: str,
    heading: str,
    var: str | None,
    density: Density | None,
    label: str | None,
    named: str = "draws",
) -> Axes:
    name, draws = scalar(dataset, var)
    values = draws[np.isfinite(draws)]
    title(ax, heading)
    if values.size == 0:
        return empty(ax, "no draws")
    low, high = central_range(values)
    height, edges = _heights(values, low, high)
    ax.stairs(height, edges, fill=True, color=colour, alpha=veil(0.45), label=named)
    ax.stairs(height, edges, color=colour, linewidth=0.8)
    if density is not None:
        grid = np.linspace(low, high, 2001)
        ax.plot(grid, values_of("density", density, grid), color=ink(), linewidth=1.0, label="exact")
        ax.legend(loc="best")
    ax.set(xlim=(low, high), ylim=(0, None), ylabel="density")
    ax.set_xlabel(label or printable(name), parse_math=False)
    return ax
