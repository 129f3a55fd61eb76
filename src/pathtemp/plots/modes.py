"""The modes: their shares with error bars, and the draws of pairs of variables coloured by mode."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray, IntArray
from pathtemp.api.arguments import a_kind_of
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.style import BETWEEN, RC, TARGET, axes, central_range, empty, of_fit, pyplot, title
from pathtemp.plots.variables import scalar
from pathtemp.result.draws import SAMPLE_DIMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")
"""Of the largest modes (Okabe and Ito); the last for all others."""

MARKERS = ("o", "s", "^", "D", "v", "P", "x")
"""Beside the colours, for readers who see none."""

MOST_BARS = 20
MOST_PAIRS = 4
"""Variables of a pair plot where the user names none."""

MOST_POINTS = 2000


@of_fit
def mode_shares(fit: Fit, ax: Axes | None = None) -> Axes:
    """Share of the target in each mode, with two standard errors from tours."""
    ax = axes(ax)
    modes = fit.modes
    title(ax, "Shares of the modes", "" if modes is None else f"{len(modes)} known")
    if modes is None or len(modes) == 0:
        return empty(ax, "the run did not look for modes" if modes is None else "no isolated modes")
    shown = min(len(modes), MOST_BARS)
    share, error = np.asarray(modes.share[:shown], float), 2 * np.asarray(modes.share_se[:shown], float)
    at = np.arange(shown)
    ax.errorbar(at, share, np.nan_to_num(error), fmt="o", color=TARGET, capsize=3, ms=5, label="± 2 se")
    ax.legend(loc="upper right")
    ax.set(ylim=(0, 1.08 * float(np.max(share + np.nan_to_num(error)) or 1.0)), xlabel="mode", ylabel="share")
    ax.set_xticks(at)
    return ax


@of_fit
def pairs(fit: Fit, *, var: tuple[str, ...] | None = None) -> Figure:
    """Scatter of the target draws for every pair of variables, coloured by the mode they are nearest to.

    Parameters
    ----------
    fit
        The fit.
    var
        Scalars of the posterior, e.g. ("mu", "theta[3]"); the first four where None.
    """
    if var is not None:
        a_kind_of("var", var, (tuple, list), "the names of two variables or more")
    names = list(islice(scalar_names(fit.posterior), MOST_PAIRS)) if var is None else list(var)
    if len(names) < 2:
        raise InputError("var: a pair plot needs two variables or more; for one, use plots.target_draws")
    columns = [scalar(fit.posterior, name)[1].ravel() for name in names]
    labels = mode_labels(fit)
    kept = np.flatnonzero(np.all(np.isfinite(columns), axis=0))
    kept = kept[:: max(1, -(-kept.size // MOST_POINTS))]
    plt, count = pyplot(), len(names) - 1
    with plt.rc_context(RC):
        size = max(2.1 * count + 1.0, 3.8)
        figure, panels = plt.subplots(count, count, figsize=(size, size), squeeze=False, layout="constrained")
        for i in range(count):
            for j in range(count):
                ax = panels[i, j]
                if j > i:
                    ax.set_visible(False)
                    continue
                _scatter(ax, columns[j][kept], columns[i + 1][kept], labels[kept])
                if i == count - 1:
                    ax.set_xlabel(printable(names[j]), parse_math=False)
                if j == 0:
                    ax.set_ylabel(printable(names[i + 1]), parse_math=False)
        if labels.max(initial=0) > 0:
            handles, texts = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, texts, loc="upper right", title="mode", markerscale=2.5)
    return figure


def scalar_names(dataset: xr.Dataset) -> list[str]:
    """Labels of all scalars of a Dataset over (chain, draw, ...)."""
    from arviz_base import xarray_var_iter
    from arviz_base.labels import BaseLabeller

    scalars = xarray_var_iter(dataset, skip_dims=set(SAMPLE_DIMS))
    return [BaseLabeller().make_label_flat(name, sel, isel) for name, sel, isel, _ in scalars]


@of_fit
def mode_labels(fit: Fit) -> IntArray:
    """Number of the mode whose centre is nearest to each target draw, in units of the standard deviations within it.

    All zero where the run knows fewer than two modes. Draws come in the order of (chain, draw).
    """
    draws = fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"]
    modes = fit.modes
    if modes is None or len(modes) < 2:
        return np.zeros(draws, np.int64)
    theta = _columns({name: fit.posterior[name].values.reshape(draws, -1) for name in modes.centre})
    centres = _columns({name: np.asarray(x, float).reshape(len(modes), -1) for name, x in modes.centre.items()})
    scale = np.maximum(np.nanstd(theta, axis=0), 1e-300)
    labels = _nearest(theta / scale, centres / scale)
    # The spread of all draws hides modes that are near each other; that around the centres does not.
    residual = theta - centres[labels]
    scale = np.maximum(np.sqrt(np.nanmedian(residual**2, axis=0)), 1e-3 * scale)
    return _nearest(theta / scale, centres / scale)


def _columns(parts: dict[str, FloatArray]) -> FloatArray:
    return np.concatenate([np.nan_to_num(np.asarray(x, float)) for x in parts.values()], axis=1)


def _nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    distance = np.stack([np.sum((points - centre) ** 2, axis=1) for centre in centres])
    return np.asarray(np.argmin(distance, axis=0), np.int64)


def _scatter(ax: Axes, x: FloatArray, y: FloatArray, labels: IntArray) -> None:
    several = labels.max(initial=0) > 0
    last = len(COLOURS) - 1
    for group in np.unique(np.minimum(labels, last)):
        here = np.minimum(labels, last) == group
        colour, marker = (COLOURS[group], MARKERS[group]) if several else (BETWEEN, "o")
        name = f"{group}" if group < last else "others"
        ax.plot(x[here], y[here], linestyle="", ms=2, alpha=0.5, color=colour, marker=marker, label=name)
    if x.size:
        ax.set(xlim=central_range(x), ylim=central_range(y))
