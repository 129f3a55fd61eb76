"""The joint path and what was learned along it: (a, theta), log z, the marginal of a."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import shown
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.paths.links import A_MAX, A_MIN, BASE_END, TARGET_START
from pathtemp.plots.chosen import chosen
from pathtemp.plots.style import (
    BASE,
    BETWEEN,
    DASHES,
    ESTIMATE,
    TARGET,
    axes,
    central_range,
    empty,
    ink,
    of_fit,
    title,
    tone,
    values_of,
    veil,
)
from pathtemp.plots.variables import AlongPath, along_path, scalar
from pathtemp.result.summary import with_error
from pathtemp.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

BINS_AT_BASE = 3
"""Bins of the histogram of a on each stretch at which lam = 0; the others are as wide."""

MOST_POINTS = 4000
"""Points of the joint path that are drawn; more only make the figure heavy."""

KHAT = 0.7
"""Above this k-hat the marginal of a is too uneven to be trusted (the paper's section 2.1)."""

THIN = 0.03
"""A band thinner than this share of the range of the curve is shown in an inset."""

DIP = 0.2
"""Share of its range by which both ends of a curve are above its lowest point where it dips."""

Curve = Callable[[FloatArray], FloatArray]
"""A function of lam, evaluated at an array."""


@of_fit
def joint_path(fit: Fit, ax: Axes | None = None, *, var: str | None = None, label: str | None = None) -> Axes:
    """The draws in the plane of a and a variable: the path from the base (a = 0) to the target (a = 1) and back.

    Parameters
    ----------
    fit
        The fit.
    ax
        Where to draw; a new figure where None.
    var
        Which scalar, e.g. "mu" or "theta[3]"; the one that separates the modes best where None, or else the first.
        Where the fit has no draws of it along the path, delta = log target - log base is drawn instead.
    label
        What to call the variable on the axis; its name where None.
    """
    ax = axes(ax)
    title(ax, "Joint path")
    var = chosen(fit, 1)[0] if var is None else scalar(fit.posterior, var)[0]
    points, name = along_path(fit, var), label or printable(var)
    if points is None:
        points, name = _delta(fit), "log target − log base"
    if points.values.size == 0:
        return empty(ax, "no draws")
    step = max(1, -(-points.values.size // MOST_POINTS))
    a, lam, y = (x[::step] for x in points)
    _ends(ax, fit)
    between = (lam > 0) & (lam < 1)
    for where, colour in ((between, BETWEEN), (lam <= 0, BASE), (lam >= 1, TARGET)):
        ax.plot(a[where], y[where], ".", ms=3, mec="none", alpha=veil(0.6), color=tone(colour), rasterized=True)
    ax.set(xlim=(0, 2), ylim=central_range(y), xlabel="a   (0, 2: base, 1: target)")
    ax.set_ylabel(name, parse_math=False)
    return ax


def _delta(fit: Fit) -> AlongPath:
    """Delta along the path, where it is finite."""
    a, lam, delta = (fit.path[name].values.ravel() for name in ("a", "lam", "delta"))
    finite = np.isfinite(delta)
    return AlongPath(a[finite], lam[finite], delta[finite])


@of_fit
def log_z(fit: Fit, ax: Axes | None = None, *, exact: Curve | None = None) -> Axes:
    """The log normalising constant over lam with its band of two standard errors.

    Where the band is too thin to be seen beside the whole curve, an inset shows it about its own middle, or
    about ``exact``, the true curve, where that is known.
    """
    if not (exact is None or callable(exact)):
        raise InputError(f"exact: expected a function of lam, and it is {shown(exact)}")
    ax = axes(ax)
    curve = fit.log_z
    lam, mean, band = curve.lam, curve.mean, 2 * curve.stderr
    true = None if exact is None else values_of("exact", exact, lam)
    if not np.isfinite(mean[1:]).any():
        title(ax, "log z along the path", "not known", alarm=True)
        return empty(ax, "no chain made a round trip")
    ax.fill_between(lam, mean - band, mean + band, color=ESTIMATE, alpha=veil(0.35), linewidth=0, label="± 2 se")
    ax.plot(lam, mean, color=ESTIMATE, linewidth=1.4, label="estimate")
    if true is not None:
        ax.plot(lam, true, color=ink(), linewidth=1.0, linestyle=DASHES, label="exact")
    falls, thin = bool(mean[-1] <= mean[0]), bool(0 < np.max(band) < THIN * np.ptp(mean))
    ax.legend(**_room(lam, mean, falls=falls, inset=thin))
    value = with_error(*fit.log_constant).replace("-", "−")
    title(ax, "log z along the path", f"log z(1) = {value}")
    ax.set(xlim=(0, 1), xlabel="λ", ylabel="log z(λ) − log z(0)")
    if thin:
        middle = np.zeros_like(mean) if true is None else mean - true
        heading = "± 2 se" if true is None else "estimate − exact"
        _band_inset(_inset(ax, lam, mean, falls=falls), lam, middle, band, heading)
    return ax


def _bulges(lam: FloatArray, mean: FloatArray) -> bool:
    """Whether a curve lies above its chord, as log z of a geometric path, which is convex, never does."""
    return bool(np.mean(mean - np.interp(lam, lam[[0, -1]], mean[[0, -1]])) > 0)


def _room(lam: FloatArray, mean: FloatArray, *, falls: bool, inset: bool) -> dict[str, Any]:
    """Where a legend lies: across the chord from the curve, beside the inset where there is one."""
    if _bulges(lam, mean):
        side = 0.0 if falls else 1.0
        return {"loc": "lower left" if falls else "lower right", "bbox_to_anchor": (side, 0.5 if inset else 0.0)}
    if min(mean[0], mean[-1]) - np.min(mean) > DIP * np.ptp(mean):
        # Both ends are high, and the room is between them.
        return {"loc": "upper center", "bbox_to_anchor": ((0.34 if falls else 0.74) if inset else 0.5, 1.0)}
    side = 1.0 if falls else 0.0
    return {"loc": "upper right" if falls else "upper left", "bbox_to_anchor": (side, 0.58 if inset else 1.0)}


@of_fit
def marginal_a(fit: Fit, ax: Axes | None = None) -> Axes:
    """Visits along a over those of a uniform law, which is 1 where the pseudo-prior is right; and k-hat of 1/p(a)."""
    ax = axes(ax)
    khat = fit.diagnostics.khat
    note = "k-hat = " + f"{khat:.2f}".replace("-", "−") if np.isfinite(khat) else ""
    title(ax, "Marginal of a", note, alarm=khat > KHAT)
    a = fit.path["a"].values.ravel()
    if a.size == 0:
        return empty(ax, "no draws")
    base, target = _flat_ends(fit)
    counts, edges = np.histogram(a, bins=round(BINS_AT_BASE * 2 / base), range=(0, 2))
    height = counts * counts.size / a.size
    middle = np.abs(0.5 * (edges[1:] + edges[:-1]) - 1.0)
    at_base, at_target = middle > 1 - base, middle < 1 - target
    groups = ((~at_base & ~at_target, BETWEEN, "between"), (at_base, BASE, "base"), (at_target, TARGET, "target"))
    for where, colour, name in groups:
        left, width = edges[:-1][where], 2.0 / counts.size
        ax.bar(left, height[where], width, align="edge", color=tone(colour), alpha=veil(0.6), label=name)
    ax.axhline(1.0, color=ink(), linewidth=1.0, linestyle=DASHES, label="uniform")
    ax.legend(loc="upper center", ncols=4, columnspacing=1.0, handlelength=1.4)
    ax.set(xlim=(0, 2), ylim=(0, 1.25 * max(1.0, float(height.max()))))
    ax.set(xlabel="a   (0, 2: base, 1: target)", ylabel="visits over uniform visits")
    return ax


def _flat_ends(fit: Fit) -> tuple[float, float]:
    """Up to which a the link stays at lam = 0, and from which on at lam = 1."""
    return (BASE_END, TARGET_START) if isinstance(fit.settings, Settings) else (A_MIN, A_MAX)


def _ends(ax: Axes, fit: Fit) -> None:
    """Shade where the link is flat: lam = 0 at the outside, lam = 1 in the middle."""
    base, target = _flat_ends(fit)
    for low, high, colour in ((0, base, BASE), (2 - base, 2, BASE), (target, 2 - target, TARGET)):
        ax.axvspan(low, high, color=tone(colour), alpha=0.12, linewidth=0)


def _inset(ax: Axes, lam: FloatArray, mean: FloatArray, *, falls: bool) -> Axes:
    """Small axes across the chord from the curve."""
    bulges = _bulges(lam, mean)
    return ax.inset_axes((0.6 if falls != bulges else 0.14, 0.14 if bulges else 0.6, 0.36, 0.3))


def _band_inset(small: Axes, lam: FloatArray, middle: FloatArray, band: FloatArray, heading: str) -> None:
    small.fill_between(lam, middle - band, middle + band, color=ESTIMATE, alpha=veil(0.35), linewidth=0)
    small.plot(lam, middle, color=ESTIMATE, linewidth=1.0)
    small.axhline(0.0, color=ink(), linewidth=0.8, linestyle=DASHES)
    small.set_title(heading, loc="left", fontsize=7)
    small.set_xlim(0, 1)
    small.set_xticks([0, 1])
    small.tick_params(labelsize=7, length=2)
