"""How the run went: log z by round, and what the path was like along lam."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import finite_array, shown, whole_number
from pathtemp.errors import InputError
from pathtemp.plots.arc import along
from pathtemp.plots.style import (
    ALARM,
    BASE,
    BETWEEN,
    DASHES,
    ESTIMATE,
    TARGET,
    axes,
    empty,
    ink,
    of_fit,
    title,
    tone,
    veil,
)
from pathtemp.result import hardness as hard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

PHASES = {"anneal": (BASE, "s"), "pin": (BETWEEN, "D"), "adapt": (ALARM, "^"), "sample": (TARGET, "o")}
"""Colour and marker of each phase."""

MOST_ITERATIONS = 400
"""Iterations of the tours that are drawn."""

FAR_ABOVE = 10.0
"""Bars this many times as long as the shortest are cut at the edge of the panel."""

DECADES = 100.0
"""Hardness that varies by more than this factor is drawn on a log scale."""


@of_fit
def history(fit: Fit, ax: Axes | None = None, *, exact: float | None = None) -> Axes:
    """The end of the log z curve after each round, with two standard errors, over the gradients spent so far.

    The range holds the rounds after adaptation with their errors, but for errors ten times the smallest. What lies
    outside, a round or the end of a bar, is marked at the edge by a hollow triangle.
    """
    if exact is not None and finite_array("exact", exact).ndim:
        raise InputError(f"exact: expected one number, and it is {shown(exact)}")
    ax = axes(ax)
    # A look for modes makes no estimate.
    records = [r for r in fit.history if np.isfinite(r.log_z) and r.phase != "modes"]
    title(ax, "log z by round", f"{len(records)} rounds, ± 2 se")
    if not records:
        return empty(ax, "no estimate in any round")
    x = np.array([r.gradients for r in records], float)
    y = np.array([r.log_z for r in records])
    error = 2 * np.nan_to_num(np.array([r.log_z_se for r in records]), nan=0.0, posinf=0.0)
    frozen = np.array([r.phase == "sample" for r in records])
    low, high = _settled_range(y, error, frozen, exact)
    for phase in dict.fromkeys(r.phase for r in records):
        colour, marker = PHASES.get(phase, (BETWEEN, "x"))
        here = np.array([r.phase == phase for r in records]) & (y >= low) & (y <= high)
        if here.any():
            ax.errorbar(
                x[here], y[here], error[here], fmt=marker, ms=4, color=tone(colour), elinewidth=1.0, label=phase
            )
    _mark_outside(ax, x, y, error, (low, high))
    if exact is not None:
        ax.axhline(exact, color=ink(), linewidth=1.0, linestyle=DASHES, label="exact")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=5, columnspacing=0.9, handletextpad=0.2)
    ax.set(xlim=(0, 1.03 * x.max()), ylim=(low, high), xlabel="gradient evaluations", ylabel="log z(1) − log z(0)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.locator_params(axis="x", nbins=5)
    return ax


def _mark_outside(ax: Axes, x: FloatArray, y: FloatArray, error: FloatArray, ends: tuple[float, float]) -> None:
    """Hollow triangles at the edges where rounds, or their bars, go on beyond them."""
    low, high = ends
    step, named = 0.02 * (high - low), False
    for beyond, edge, arrow in ((y - error < low, low + step, "v"), (y + error > high, high - step, "^")):
        if beyond.any():
            name = None if named else "goes on outside"
            at = np.full(int(beyond.sum()), edge)
            ax.plot(x[beyond], at, arrow, ms=5, color=ink(), mfc="none", linestyle="", label=name, clip_on=False)
            named = True


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
        for at, colour, end in ((line <= 0, BASE, "at the base"), (line >= 1, TARGET, "at the target")):
            name = end if number == 0 else None
            ax.plot(np.flatnonzero(at), number + 0.86 * line[at], ".", ms=3, mec="none", color=tone(colour), label=name)
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=2, markerscale=2.5, handletextpad=0.2)
    ax.set(xlim=(0, shown), xlabel="iteration", ylabel="λ from 0 to 1, by chain")
    ax.set_yticks(np.arange(len(lam)) + 0.43, [f"chain {number}" for number in range(len(lam))])
    return ax


@of_fit
def hardness(fit: Fit, ax: Axes | None = None) -> Axes:
    """Thermodynamic length per unit of lam: where on the path it is hard.

    Lam is spaced by the length of the path, so that each part of it has the room that it takes to cross.
    """
    ax = axes(ax)
    length = fit.diagnostics.length
    title(ax, "Where the path is hard", f"length {length:.3g}" if np.isfinite(length) else "")
    rate = hard.hardness(fit.diagnostics)
    if not np.any(np.isfinite(rate)):
        return empty(ax, "not measured")
    scale = along(fit)
    edges = scale(hard.bin_edges(np.asarray(fit.diagnostics.lam, float)))
    positive = rate[np.isfinite(rate) & (rate > 0)]
    logarithmic = positive.size > 0 and positive.max() > DECADES * positive.min()
    floor = 0.5 * positive.min() if logarithmic else 0.0
    ax.stairs(np.nan_to_num(rate), edges, baseline=floor, fill=True, color=ESTIMATE, alpha=veil(0.45))
    ax.stairs(np.nan_to_num(rate), edges, baseline=floor, color=ESTIMATE, linewidth=0.8)
    if logarithmic:
        ax.set_yscale("log")
    ax.set(ylim=(floor, None), ylabel="length per unit of λ")
    scale.label(ax)
    return ax


@of_fit
def acceptance(fit: Fit, ax: Axes | None = None) -> Axes:
    """Mean acceptance of the theta moves along the path, on the scale of :func:`hardness`."""
    ax = axes(ax)
    title(ax, "Acceptance along the path")
    lam, rate = np.asarray(fit.diagnostics.lam, float), np.asarray(fit.diagnostics.acceptance, float)
    if not np.any(np.isfinite(rate)):
        return empty(ax, "not measured")
    scale = along(fit)
    ax.plot(scale(lam), rate, "o-", color=tone(TARGET), markersize=3.5, linewidth=1.2, label="measured")
    wanted = getattr(fit.settings, "acceptance", None)
    if wanted is not None:
        ax.axhline(wanted, color=ink(), linewidth=1.0, linestyle=DASHES, label="aimed at")
        ax.legend(loc="lower left")
    ax.set(ylim=(0, 1.02), ylabel="acceptance")
    scale.label(ax)
    return ax


def _settled_range(y: FloatArray, error: FloatArray, frozen: np.ndarray, exact: float | None) -> tuple[float, float]:
    """Range that holds the frozen rounds, or else the second half, with errors that are not far above the smallest."""
    kept = frozen if frozen.any() else np.arange(len(y)) >= len(y) // 2
    known = error[kept & (error > 0)]
    if known.size:
        kept = kept & (error <= FAR_ABOVE * known.min())
    values = [*(y - error)[kept], *(y + error)[kept], *([] if exact is None else [exact])]
    low, high = min(values), max(values)
    pad = 0.08 * (high - low) or max(0.1, 0.01 * abs(high))
    return float(low - pad), float(high + pad)
