"""The modes: where they are, with their shares, and the shares with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.api.arguments import a_kind_of
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import chosen, mode_labels
from pathtemp.plots.style import BETWEEN, TARGET, axes, central_range, empty, ink, of_fit, title, tone, veil
from pathtemp.plots.variables import bin_count, scalar
from pathtemp.result.summary import with_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

    from pathtemp.result.fit import Fit

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")
"""Of the largest modes (Okabe and Ito); the last for all others."""

MARKERS = ("o", "s", "^", "D", "v", "P", "x")
"""Beside the colours, for readers who see none."""

MOST_BARS = 20
MOST_POINTS = 2000
RARE = 50
"""Draws of a mode that are all drawn, however many those of the others are."""


@of_fit
def mode_shares(fit: Fit, ax: Axes | None = None) -> Axes:
    """Share of the target in each mode, with two standard errors from tours."""
    ax = axes(ax)
    modes = fit.modes
    title(ax, "Shares of the modes", f"{len(modes)} known, ± 2 se" if modes else "")
    if modes is None or len(modes) == 0:
        return empty(ax, "the run did not look for modes" if modes is None else "no isolated modes")
    shown = min(len(modes), MOST_BARS)
    share, error = np.asarray(modes.share[:shown], float), 2 * np.asarray(modes.share_se[:shown], float)
    at = np.arange(shown)
    ax.errorbar(at, share, np.nan_to_num(error), fmt="o", color=tone(TARGET), capsize=3, ms=5)
    top = 1.08 * float(np.max(share + np.nan_to_num(error)) or 1.0)
    ax.set(xlim=(-0.6, shown - 0.4), ylim=(0, top), xlabel="mode", ylabel="share")
    ax.set_xticks(at)
    return ax


@of_fit
def modes(fit: Fit, ax: Axes | None = None, *, var: tuple[str, ...] | None = None) -> Axes:
    """A map of the modes: the target draws in the plane of two variables, coloured by mode, with shares.

    With one variable it is a histogram, coloured by mode.

    Parameters
    ----------
    fit
        The fit.
    ax
        Where to draw; a new figure where None.
    var
        One or two scalars, e.g. ("mu[0]", "mu[1]"); the two that separate the modes best where None.

    >>> import pathtemp as pt
    >>> fit = pt.temper(pt.testing.cauchy_pair().model, seed=1, budget=60_000, progress=False)
    >>> ax = pt.plots.modes(fit)
    >>> ax.get_xlabel(), len(ax.get_legend().get_texts())
    ('theta[0]', 2)
    """
    if var is not None:
        a_kind_of("var", var, (tuple, list), "the names of one or two variables")
    names = chosen(fit, 2) if var is None else list(var)
    if len(names) not in (1, 2):
        raise InputError(f"var: a map of the modes takes one or two variables, and there are {len(names)}")
    ax = axes(ax)
    columns = [scalar(fit.posterior, name)[1].ravel() for name in names]
    labels = mode_labels(fit)
    title(ax, "Modes of the target", _how_many(fit, labels))
    kept = np.flatnonzero(np.all(np.isfinite(columns), axis=0))
    if kept.size == 0:
        return empty(ax, "no draws")
    if len(names) == 1:
        _stacked(ax, columns[0][kept], labels[kept])
    else:
        thin = _thinned(kept, labels)
        scatter(ax, columns[0][thin], columns[1][thin], labels[thin])
        _centres(ax, columns[0][kept], columns[1][kept], labels[kept])
    ax.set_xlabel(printable(names[0]), parse_math=False)
    ax.set_ylabel(printable(names[1]) if len(names) == 2 else "density", parse_math=False)
    _legend_of_shares(ax, fit)
    return ax


def scatter(ax: Axes, x: FloatArray, y: FloatArray, labels: IntArray) -> None:
    """Points coloured and marked by mode; the limits leave out far tails."""
    several = labels.max(initial=0) > 0
    for group, here in by_group(labels):
        colour, marker = (COLOURS[group], MARKERS[group]) if several else (BETWEEN, "o")
        ax.plot(
            x[here], y[here], linestyle="", ms=2, alpha=veil(0.5), color=tone(colour), marker=marker, label=_name(group)
        )
    if x.size:
        ax.set(xlim=central_range(x), ylim=central_range(y))


def _thinned(kept: IntArray, labels: IntArray) -> IntArray:
    """About ``MOST_POINTS`` of the draws with these indices, and all those of rare modes.

    >>> _thinned(np.arange(8000), np.repeat([0, 1], [7990, 10])).size
    2008
    """
    step = max(1, -(-kept.size // MOST_POINTS))
    few = np.bincount(labels[kept])[labels[kept]] <= RARE
    return kept[few | (np.arange(kept.size) % step == 0)]


def _how_many(fit: Fit, labels: IntArray) -> str:
    """Number of modes that are known, and of those that have draws where some have none."""
    if fit.modes is None:
        return "not looked for"
    known, drawn = len(fit.modes), np.unique(labels).size
    return f"{known} known" + (f", {drawn} with draws" if drawn < known else "")


def opaque(legend: Legend) -> None:
    """Markers of a legend in full colour: one alone is paler than the many points that it stands for."""
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)


def by_group(labels: IntArray) -> list[tuple[int, np.ndarray]]:
    """Number and members of each mode that has a colour of its own, and of all others together."""
    group = np.minimum(labels, len(COLOURS) - 1)
    return [(int(k), group == k) for k in np.unique(group)]


def _name(group: int) -> str:
    return f"{group}" if group < len(COLOURS) - 1 else "others"


def _stacked(ax: Axes, x: FloatArray, labels: IntArray) -> None:
    """One histogram, in which each mode has its colour."""
    several = labels.max(initial=0) > 0
    low, high = central_range(x)
    edges = np.linspace(low, high, bin_count(x, low, high) + 1)
    below = np.zeros(len(edges) - 1)
    for group, here in by_group(labels):
        height = np.histogram(x[here], edges)[0] / (x.size * np.diff(edges))
        colour = COLOURS[group] if several else BETWEEN
        ax.stairs(below + height, edges, baseline=below, fill=True, color=tone(colour), alpha=0.7, label=_name(group))
        below = below + height
    ax.set(xlim=(low, high), ylim=(0, None))


def _centres(ax: Axes, x: FloatArray, y: FloatArray, labels: IntArray) -> None:
    """The number of each mode at the middle of its draws."""
    if labels.max(initial=0) == 0:
        return
    box = {"boxstyle": "circle,pad=0.2", "facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.8}
    # A rare mode lies beyond the central 99% of the draws, and is shown all the same.
    middles = [(float(np.median(x[here])), float(np.median(y[here]))) for _, here in by_group(labels)]
    ax.set(xlim=_with(ax.get_xlim(), [at[0] for at in middles]), ylim=_with(ax.get_ylim(), [at[1] for at in middles]))
    for (group, _), at in list(zip(by_group(labels), middles, strict=True))[: len(COLOURS) - 1]:
        ax.annotate(str(group), at, ha="center", va="center", fontsize=9, weight="bold", color=ink(), bbox=box)


def _with(ends: tuple[float, float], values: list[float]) -> tuple[float, float]:
    """Limits that hold some values as well, with a margin beyond the new ones."""
    low, high = min([ends[0], *values]), max([ends[1], *values])
    pad = 0.08 * (high - low)
    return low - pad * (low < ends[0]), high + pad * (high > ends[1])


def _legend_of_shares(ax: Axes, fit: Fit) -> None:
    """Under the panel, the share of each mode with its standard error, where there are several."""
    modes = fit.modes
    handles, names = ax.get_legend_handles_labels()
    if modes is None or len(modes) < 2:
        return
    texts = [
        f"{name}: {with_error(float(modes.share[int(name)]), float(modes.share_se[int(name)]))}"
        if name.isdigit()
        else name
        for name in names
    ]
    opaque(
        ax.legend(
            *(handles, texts),
            loc="upper center",
            bbox_to_anchor=(0.45, -0.17),
            ncols=2,
            markerscale=2.5,
            columnspacing=1.0,
        )
    )
