"""Figures of a margin: its density with a band, the walk along it, and how the run went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.io.printable import printable
from pathtemp.plots.running import acceptance
from pathtemp.plots.style import ALARM, BETWEEN, ESTIMATE, EXACT, RC, TARGET, axes, of_fit, pyplot, title
from pathtemp.plots.variables import Density

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pathtemp.result.margin_fit import MarginFit
    from pathtemp.result.marginal import Marginal

POINTS = 401
"""Points at which a density is drawn."""


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
    plt = pyplot()
    with plt.rc_context(RC):
        figure, panels = plt.subplots(2, 2, figsize=(8.4, 6.2), layout="constrained")
        verdict = "converged" if fit.converged else "NOT converged"
        colour = "black" if fit.converged else ALARM
        heading = f"{printable(fit.name)}, along {printable(_marginal(fit).name)}: {verdict}"
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11, color=colour, parse_math=False)
        density(fit, panels[0, 0], exact=exact)
        log_density(fit, panels[0, 1])
        walk(fit, panels[1, 0])
        acceptance(fit, panels[1, 1])
        low, high = fit.log_z.lam[0], fit.log_z.lam[-1]
        panels[1, 1].set(xlim=(low, high), xlabel="unconstrained scale of the margin")
    return figure


@of_fit
def density(fit: MarginFit, ax: Axes | None = None, *, exact: Density | None = None) -> Axes:
    """The marginal density with its band of two standard errors, over the histogram of the thinned draws."""
    ax = axes(ax)
    marginal = _marginal(fit)
    x = quantile_range(marginal, 0.001, 0.995)
    draw_density(ax, marginal, x)
    if exact is not None:
        ax.plot(x, exact(x), color=EXACT, linewidth=1.0, linestyle=(0, (4, 3)), label="exact")
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
    ax.fill_between(curve.lam, curve.mean - band, curve.mean + band, color=ESTIMATE, alpha=0.35, linewidth=0)
    ax.plot(curve.lam, curve.mean, color=ESTIMATE, linewidth=1.4)
    title(ax, "Log density, unconstrained", "± 2 se")
    ax.set(xlim=(curve.lam[0], curve.lam[-1]), xlabel="unconstrained scale of the margin", ylabel="log p")
    return ax


@of_fit
def walk(fit: MarginFit, ax: Axes | None = None) -> Axes:
    """The margin of a few chains by iteration: a good walk goes from end to end."""
    ax = axes(ax)
    lam = fit.path["lam"].values
    for chain in lam[:: max(1, len(lam) // 4)][:4]:
        ax.plot(chain, linewidth=0.6, alpha=0.8)
    title(ax, "PathChains along the margin", f"{fit.diagnostics.tours:,} trips")
    ax.set(xlim=(0, lam.shape[1]), xlabel="iteration", ylabel="unconstrained scale of the margin")
    return ax


def compare(marginal: Marginal, draws: FloatArray, ax: Axes | None = None, *, label: str = "NUTS draws") -> Axes:
    """The marginal beside the histogram of somebody else's draws, on a log scale where the margin is positive."""
    ax = axes(ax)
    x = quantile_range(marginal, 1e-4, 0.999)
    positive = marginal.interval[0] > 0
    low, high = x[0], x[-1]
    edges = np.geomspace(low, high, 41) if positive else np.linspace(low, high, 41)
    counts = np.histogram(draws, edges)[0]
    ax.stairs(counts / (draws.size * np.diff(edges)), edges, fill=True, color=BETWEEN, alpha=0.6, label=label)
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
    ax.fill_between(x, value - 2 * se, value + 2 * se, color=TARGET, alpha=0.35, linewidth=0)
    ax.plot(x, value, color=TARGET, linewidth=1.4, label="path sampling")


def quantile_range(marginal: Marginal, low: float, high: float) -> FloatArray:
    """Points between two quantiles."""
    first, last = marginal.quantile(np.array([low, high])).value
    return np.linspace(float(first), float(last), POINTS)


def _marginal(fit: MarginFit) -> Marginal:
    assert fit.marginal is not None
    return fit.marginal
