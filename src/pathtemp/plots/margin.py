"""Figures of a margin: its density with a band, the walk along it, and how the run went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import scalars
from pathtemp.plots.running import acceptance
from pathtemp.plots.style import (
    ALARM,
    BETWEEN,
    DASHES,
    ESTIMATE,
    TARGET,
    axes,
    ink,
    of_fit,
    pyplot,
    styled,
    title,
    tone,
    veil,
)
from pathtemp.plots.variables import Density

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pathtemp.result.margin_fit import MarginFit
    from pathtemp.result.marginal import Marginal

POINTS = 401
"""Points at which a density is drawn."""

WALKS = 4
"""Chains whose walk is drawn."""


@of_fit
def plot(fit: MarginFit, *, exact: Density | None = None) -> Figure:
    """The figure of a margin to look at first.

    Parameters
    ----------
    fit
        The fit.
    exact
        The true density of the margin, where it is known.
    """
    figure: Figure
    figure, panels = pyplot().subplots(2, 2, figsize=(8.4, 6.2))
    # Where no tick label stands at the right end, the axes would reach the edge of the figure.
    figure.set_layout_engine("constrained", rect=(0.0, 0.0, 0.985, 1.0))
    verdict = "converged" if fit.converged else "NOT converged"
    colour = ink() if fit.converged else ALARM
    heading = f"{printable(fit.name)}, along {printable(_marginal(fit).name)}: {verdict}"
    figure.suptitle(heading, x=0.01, ha="left", fontsize=11, color=colour, parse_math=False)
    density(fit, panels[0, 0], exact=exact)
    log_density(fit, panels[0, 1])
    chains_along(fit, panels[1, 0])
    acceptance(fit, panels[1, 1])
    panels[1, 1].set_xlabel(_scale(fit), parse_math=False)
    return figure


@of_fit
def density(fit: MarginFit, ax: Axes | None = None, *, exact: Density | None = None) -> Axes:
    """The marginal density with its band of two standard errors, over a histogram of the target draws."""
    ax = axes(ax)
    marginal = _marginal(fit)
    x = quantile_range(marginal, 0.001, 0.995)
    _histogram(ax, fit, marginal, float(x[0]), float(x[-1]))
    draw_density(ax, marginal, x)
    if exact is not None:
        ax.plot(x, exact(x), color=ink(), linewidth=1.0, linestyle=DASHES, label="exact")
    ax.legend(loc="best")
    title(ax, "Marginal density", "± 2 se")
    ax.set(xlim=(x[0], x[-1]), ylim=(0, None), ylabel="density")
    ax.set_xlabel(printable(marginal.name), parse_math=False)
    return ax


@of_fit
def log_density(fit: MarginFit, ax: Axes | None = None) -> Axes:
    """The log density on the unconstrained scale, which is the log z of the path, with its band."""
    ax = axes(ax)
    curve = fit.log_z
    band = 2 * curve.stderr
    ax.fill_between(curve.lam, curve.mean - band, curve.mean + band, color=ESTIMATE, alpha=veil(0.35), linewidth=0)
    ax.plot(curve.lam, curve.mean, color=ESTIMATE, linewidth=1.4)
    title(ax, "Log density, unconstrained", "± 2 se")
    ax.set(xlim=(curve.lam[0], curve.lam[-1]), ylabel="log p, up to a constant")
    ax.set_xlabel(_scale(fit), parse_math=False)
    return ax


@of_fit
def chains_along(fit: MarginFit, ax: Axes | None = None) -> Axes:
    """The margin of a few chains by iteration: a good one goes from end to end."""
    ax = axes(ax)
    lam = fit.path["lam"].values
    low, high = fit.log_z.lam[0], fit.log_z.lam[-1]
    shown = lam[:: max(1, len(lam) // WALKS)][:WALKS]
    for number, chain in enumerate(shown):
        ax.plot(number + 0.86 * (chain - low) / (high - low), color=BETWEEN, linewidth=0.7)
    title(ax, "Chains along the margin", f"{fit.diagnostics.tours:,} round trips")
    ax.set(xlim=(0, lam.shape[1]), xlabel="iteration", ylabel="from end to end, by chain")
    ax.set_yticks(np.arange(len(shown)) + 0.43, [f"chain {number}" for number in range(len(shown))])
    return ax


def compare(marginal: Marginal, draws: FloatArray, ax: Axes | None = None, *, label: str = "NUTS draws") -> Axes:
    """The marginal beside the histogram of somebody else's draws, on a log scale where the margin is positive."""
    with styled():
        return _beside(marginal, draws, axes(ax), label)


def _beside(marginal: Marginal, draws: FloatArray, ax: Axes, label: str) -> Axes:
    x = quantile_range(marginal, 1e-4, 0.999)
    positive = marginal.interval[0] > 0
    low, high = x[0], x[-1]
    edges = np.geomspace(low, high, 41) if positive else np.linspace(low, high, 41)
    counts = np.histogram(draws, edges)[0]
    ax.stairs(counts / (draws.size * np.diff(edges)), edges, fill=True, color=BETWEEN, alpha=veil(0.6), label=label)
    draw_density(ax, marginal, np.geomspace(low, high, POINTS) if positive else x)
    if positive:
        ax.set_xscale("log")
    ax.legend(loc="best")
    ax.set(xlim=(low, high), ylim=(0, None), ylabel="density")
    ax.set_xlabel(printable(marginal.name), parse_math=False)
    return ax


def draw_density(ax: Axes, marginal: Marginal, x: FloatArray) -> None:
    """The density and its band."""
    value, se = marginal.pdf(x)
    ax.fill_between(x, value - 2 * se, value + 2 * se, color=tone(TARGET), alpha=veil(0.35), linewidth=0)
    ax.plot(x, value, color=tone(TARGET), linewidth=1.4, label="path sampling")


def quantile_range(marginal: Marginal, low: float, high: float) -> FloatArray:
    """Points between two quantiles."""
    first, last = marginal.quantile(np.array([low, high])).value
    return np.linspace(float(first), float(last), POINTS)


def _histogram(ax: Axes, fit: MarginFit, marginal: Marginal, low: float, high: float) -> None:
    """The target draws of the margin, where it is one of the variables."""
    drawn = dict(scalars(fit.posterior)).get(marginal.name)
    if drawn is None or drawn.size == 0:
        return
    counts, edges = np.histogram(drawn, 30, (low, high))
    height = counts / (drawn.size * np.diff(edges))
    ax.stairs(height, edges, fill=True, color=BETWEEN, alpha=veil(0.35), label="target draws")


def _scale(fit: MarginFit) -> str:
    """What the axis along the margin is called."""
    return f"{printable(_marginal(fit).name)}, unconstrained"


def _marginal(fit: MarginFit) -> Marginal:
    assert fit.marginal is not None
    return fit.marginal
