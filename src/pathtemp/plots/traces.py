"""Draws of the target as they came, chain after chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import a_kind_of
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import chosen
from pathtemp.plots.style import BETWEEN, TARGET, central_range, empty, ink, of_fit, pyplot, title, tone, veil
from pathtemp.plots.variables import bin_count, scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit

MOST_ROWS = 4
"""Variables where the user names none."""

MOST_POINTS = 4000
"""Draws of a trace; more only make the figure heavy."""


@of_fit
def trace(fit: Fit, *, var: tuple[str, ...] | None = None) -> Figure:
    """Each variable in a row: on the left its law by chain and in all, on the right the draws one after the other.

    A chain of ``fit.posterior`` is a group of chains that were joined, so neighbours in it need not follow each other
    in time. Where one colour holds a level that the others do not have, the groups disagree.

    Parameters
    ----------
    fit
        The fit.
    var
        Scalars of the posterior, e.g. ("mu", "theta[3]"); the four that separate the modes best where None.

    >>> import pathtemp as pt
    >>> fit = pt.temper(pt.testing.cauchy_pair().model, seed=1, budget=60_000, progress=False)
    >>> figure = pt.plots.trace(fit, var=("theta[0]",))
    >>> [ax.get_xlabel() for ax in figure.axes]
    ['theta[0]', 'draw, chain after chain']
    """
    if var is not None:
        a_kind_of("var", var, (tuple, list), "the names of variables")
    names = chosen(fit, MOST_ROWS) if var is None else list(var)
    if not names:
        raise InputError("var: name one variable or more")
    figure: Figure
    figure, panels = pyplot().subplots(
        len(names), 2, figsize=(8.4, 0.5 + 1.7 * len(names)), squeeze=False, layout="constrained", width_ratios=(1, 2)
    )
    for name, (left, right) in zip(names, panels, strict=True):
        draws = scalar(fit.posterior, name)[1]
        _law(left, draws)
        _draws(right, draws)
        left.set_xlabel(printable(name), parse_math=False)
        right.set_ylabel(printable(name), parse_math=False)
    title(panels[0, 0], "All chains, and each")
    title(panels[0, 1], "Draws of the target", f"{len(draws)} chains of {draws.shape[1]:,}")
    panels[-1, 1].set_xlabel("draw, chain after chain")
    return figure


def _law(ax: Axes, draws: FloatArray) -> None:
    """A histogram of all draws, and the outline of that of each chain."""
    values = draws[np.isfinite(draws)]
    if values.size == 0:
        empty(ax, "no draws")
        return
    low, high = central_range(values)
    edges = np.linspace(low, high, min(40, bin_count(values, low, high)) + 1)
    width = np.diff(edges)
    ax.stairs(
        np.histogram(values, edges)[0] / (values.size * width), edges, fill=True, color=tone(TARGET), alpha=veil(0.35)
    )
    for chain in draws:
        own = chain[np.isfinite(chain)]
        if own.size:
            ax.stairs(np.histogram(own, edges)[0] / (own.size * width), edges, color=ink(), linewidth=0.5, alpha=0.5)
    ax.set(xlim=(low, high), ylim=(0, None), yticks=[])


def _draws(ax: Axes, draws: FloatArray) -> None:
    """The draws of all chains in one line, in two colours by turns."""
    values = draws[np.isfinite(draws)]
    if values.size == 0:
        empty(ax, "no draws")
        return
    chains, count = draws.shape
    step = max(1, -(-draws.size // MOST_POINTS))
    for number, chain in enumerate(draws):
        at = number * count + np.arange(0, count, step)
        colour = (tone(TARGET), BETWEEN)[number % 2]
        ax.plot(at, chain[::step], ".", ms=2.5, mec="none", color=colour, alpha=0.8, rasterized=True)
    ax.set(xlim=(0, chains * count), ylim=central_range(values))
