"""How the run went: log z by round, and what the path was like along lam."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp.api.arguments import finite_array, whole_number
from pathtemp.plots.style import ALARM, BASE, BETWEEN, ESTIMATE, EXACT, TARGET, axes, empty, of_fit, title
from pathtemp.result import hardness as hard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

PHASES = {"anneal": (BASE, "s"), "pin": (BETWEEN, "D"), "adapt": (ALARM, "^"), "sample": (TARGET, "o")}
"""Colour and marker of each phase."""

MOST_ITERATIONS = 400
"""Iterations of the tours that are drawn."""

DECADES = 100.0
"""Hardness that varies by more than this factor is drawn on a log scale."""


@of_fit
def history(fit: Fit, ax: Axes | None = None, *, exact: float | None = None) -> Axes:
    """The end of the log z curve after each round, with two standard errors, over the gradients spent so far.

    The range is that of the second half of the rounds; rounds outside it are marked at the edge.
    """
    if exact is not None:
        finite_array("exact", exact)
    ax = axes(ax)
    # A look for modes makes no estimate.
    records = [r for r in fit.history if np.isfinite(r.log_z) and r.phase != "modes"]
    title(ax, "Log z by round", f"{len(records)} rounds")
    if not records:
        return empty(ax, "no estimate in any round")
    x = np.array([r.gradients for r in records], float)
    y = np.array([r.log_z for r in records])
    error = 2 * np.nan_to_num(np.array([r.log_z_se for r in records]), nan=0.0, posinf=0.0)
    low, high = _late_range(y, error, exact)
    for phase in dict.fromkeys(r.phase for r in records):
        colour, marker = PHASES.get(phase, (BETWEEN, "x"))
        here = np.array([r.phase == phase for r in records])
        inside = here & (y >= low) & (y <= high)
        ax.errorbar(x[inside], y[inside], error[inside], fmt=marker, ms=4, color=colour, elinewidth=1.0, label=phase)
        step = 0.03 * (high - low)
        below, above = (here & (y < low), low + step, "v"), (here & (y > high), high - step, "^")
        for outside, edge, arrow in (below, above):
            ax.plot(x[outside], np.full(outside.sum(), edge), arrow, color=colour, mfc="none")
    if exact is not None:
        ax.axhline(exact, color=EXACT, linewidth=1.0, linestyle=(0, (4, 3)), label="exact")
    ax.legend(loc="best", ncols=2)
    ax.set(xlim=(0, None), ylim=(low, high), xlabel="gradient evaluations", ylabel="log z(1) − log z(0)")
    ax.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
    return ax


@of_fit
def tours(fit: Fit, ax: Axes | None = None, *, chains: int = 4) -> Axes:
    """Where the first ``chains`` chains stood on the path, iteration by iteration: each goes to and fro.

    Round trips base -> target -> base are what standard errors rest on; a chain that stays is stuck.
    """
    whole_number("chains", chains, least=1)
    ax = axes(ax)
    title(ax, "Tours", f"{fit.diagnostics.tours:,} round trips over all chains")
    lam = fit.path["lam"].values[:chains]
    if lam.size == 0:
        return empty(ax, "no draws")
    shown = min(lam.shape[1], MOST_ITERATIONS)
    for number, line in enumerate(lam[:, :shown]):
        ax.plot(number + 0.86 * line, color=BETWEEN, linewidth=0.7)
        for at, colour in ((line <= 0, BASE), (line >= 1, TARGET)):
            ax.plot(np.flatnonzero(at), number + 0.86 * line[at], ".", ms=3, mec="none", color=colour)
    ax.set(xlim=(0, shown), xlabel="iteration", ylabel="λ from 0 to 1, by chain")
    ax.set_yticks(np.arange(len(lam)) + 0.43, [f"chain {number}" for number in range(len(lam))])
    return ax


@of_fit
def hardness(fit: Fit, ax: Axes | None = None) -> Axes:
    """Thermodynamic length per unit of lam: where on the path it is hard."""
    ax = axes(ax)
    title(ax, "Where the path is hard", f"length {fit.diagnostics.length:.3g}")
    rate = hard.hardness(fit.diagnostics)
    if not np.any(np.isfinite(rate)):
        return empty(ax, "not measured")
    edges = hard.bin_edges(np.asarray(fit.diagnostics.lam, float))
    positive = rate[np.isfinite(rate) & (rate > 0)]
    logarithmic = positive.size > 0 and positive.max() > DECADES * positive.min()
    floor = 0.5 * positive.min() if logarithmic else 0.0
    ax.stairs(np.nan_to_num(rate), edges, baseline=floor, fill=True, color=ESTIMATE, alpha=0.45)
    ax.stairs(np.nan_to_num(rate), edges, baseline=floor, color=ESTIMATE, linewidth=0.8)
    if logarithmic:
        ax.set_yscale("log")
    ax.set(xlim=(0, 1), ylim=(floor, None), xlabel="λ", ylabel="length per unit of λ")
    return ax


@of_fit
def acceptance(fit: Fit, ax: Axes | None = None) -> Axes:
    """Mean acceptance of the theta moves along the path."""
    ax = axes(ax)
    title(ax, "Acceptance along the path")
    lam, rate = np.asarray(fit.diagnostics.lam, float), np.asarray(fit.diagnostics.acceptance, float)
    if not np.any(np.isfinite(rate)):
        return empty(ax, "not measured")
    ax.plot(lam, rate, "o-", color=TARGET, markersize=3.5, linewidth=1.2, label="measured")
    wanted = getattr(fit.settings, "acceptance", None)
    if wanted is not None:
        ax.axhline(wanted, color=EXACT, linewidth=1.0, linestyle=(0, (4, 3)), label="aimed at")
        ax.legend(loc="lower left")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="λ", ylabel="acceptance")
    return ax


def _late_range(y: np.ndarray, error: np.ndarray, exact: float | None) -> tuple[float, float]:
    """Range that holds the second half of the rounds with their errors, and the exact value."""
    late = slice(len(y) // 2, None)
    known = [] if exact is None else [exact]
    low, high = min([*(y - error)[late], *known]), max([*(y + error)[late], *known])
    pad = 0.15 * (high - low) or max(0.1, 0.01 * abs(high))
    return float(low - pad), float(high + pad)
