"""The joint path and what was learned along it: (a, theta), log z, the marginal of a."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import shown
from pathtemp.errors import InputError
from pathtemp.paths.links import A_MAX, A_MIN, BASE_END, TARGET_START
from pathtemp.plots.style import BASE, BETWEEN, ESTIMATE, EXACT, TARGET, axes, central_range, empty, of_fit, title
from pathtemp.result.summary import with_error
from pathtemp.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

MOST_POINTS = 4000
"""Points of the joint path that are drawn; more only make the figure heavy."""

KHAT = 0.7
"""Above this k-hat the marginal of a is too uneven to be trusted (the paper's section 2.1)."""

THIN = 0.03
"""A band thinner than this share of the range of the curve is shown in an inset."""

Curve = Callable[[FloatArray], FloatArray]
"""A function of lam, evaluated at an array."""


@of_fit
def joint_path(fit: Fit, ax: Axes | None = None, *, label: str | None = None) -> Axes:
    """The draws in the plane of a and theta: the path from the base (a = 0) to the target (a = 1) and back.

    Theta is the first unconstrained coordinate where the engine kept it, else delta = log target - log base.
    ``label`` is what to call theta on the axis.
    """
    ax = axes(ax)
    title(ax, "Joint path")
    known = "theta0" in fit.path
    theta = label or "first unconstrained coordinate"
    a, lam = fit.path["a"].values.ravel(), fit.path["lam"].values.ravel()
    y = fit.path["theta0" if known else "delta"].values.ravel()
    kept = np.flatnonzero(np.isfinite(y))
    if kept.size == 0:
        return empty(ax, "no draws")
    kept = kept[:: max(1, -(-kept.size // MOST_POINTS))]
    a, lam, y = a[kept], lam[kept], y[kept]
    _ends(ax, fit)
    between = (lam > 0) & (lam < 1)
    for where, colour in ((between, BETWEEN), (lam <= 0, BASE), (lam >= 1, TARGET)):
        ax.plot(a[where], y[where], ".", ms=3, mec="none", alpha=0.6, color=colour, rasterized=True)
    ax.set(xlim=(0, 2), ylim=central_range(y), xlabel="a   (0, 2: base, 1: target)")
    ax.set_ylabel(theta if known else "log target − log base", parse_math=False)
    return ax


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
    if not np.isfinite(mean[1:]).any():
        title(ax, "Log normalising constant", "not known", alarm=True)
        return empty(ax, "no chain made a round trip")
    ax.fill_between(lam, mean - band, mean + band, color=ESTIMATE, alpha=0.35, linewidth=0, label="± 2 se")
    ax.plot(lam, mean, color=ESTIMATE, linewidth=1.4, label="estimate")
    if exact is not None:
        ax.plot(lam, exact(lam), color=EXACT, linewidth=1.0, linestyle=(0, (4, 3)), label="exact")
    falls = bool(mean[-1] <= mean[0])
    ax.legend(loc="lower left" if falls else "lower right")
    value = with_error(*fit.log_constant).replace("-", "−")
    title(ax, "Log normalising constant", f"log z(1) = {value}")
    ax.set(xlim=(0, 1), xlabel="λ", ylabel="log z(λ) − log z(0)")
    if 0 < np.max(band) < THIN * np.ptp(mean):
        middle = np.zeros_like(mean) if exact is None else mean - exact(lam)
        heading = "± 2 se" if exact is None else "estimate − exact"
        _band_inset(ax, lam, middle, band, falls=falls, heading=heading)
    return ax


@of_fit
def marginal_a(fit: Fit, ax: Axes | None = None) -> Axes:
    """Histogram of a, which is flat where the pseudo-prior is right, with Pareto k-hat of 1/p(a)."""
    ax = axes(ax)
    khat = fit.diagnostics.khat
    title(ax, "Marginal of a", f"k-hat = {khat:.2f}", alarm=khat > KHAT)
    a = fit.path["a"].values.ravel()
    if a.size == 0:
        return empty(ax, "no draws")
    counts, edges = np.histogram(a, bins=40, range=(0, 2))
    _ends(ax, fit)
    ax.stairs(counts / (a.size * np.diff(edges)), edges, fill=True, color=BETWEEN, alpha=0.7, label="draws")
    ax.axhline(0.5, color=EXACT, linewidth=1.0, linestyle=(0, (4, 3)), label="uniform")
    ax.legend(loc="lower center", ncols=2)
    ax.set(xlim=(0, 2), ylim=(0, None), xlabel="a   (0, 2: base, 1: target)", ylabel="p(a)")
    return ax


def _ends(ax: Axes, fit: Fit) -> None:
    """Shade where the link is flat: lam = 0 at the outside, lam = 1 in the middle."""
    base, target = (BASE_END, TARGET_START) if isinstance(fit.settings, Settings) else (A_MIN, A_MAX)
    for low, high, colour in ((0, base, BASE), (2 - base, 2, BASE), (target, 2 - target, TARGET)):
        ax.axvspan(low, high, color=colour, alpha=0.12, linewidth=0)


def _band_inset(ax: Axes, lam: FloatArray, middle: FloatArray, band: FloatArray, *, falls: bool, heading: str) -> None:
    # log z of a geometric path is convex: the room is above the chord, on the high side of a slope.
    small = ax.inset_axes((0.55 if falls else 0.16, 0.56, 0.42, 0.36))
    small.fill_between(lam, middle - band, middle + band, color=ESTIMATE, alpha=0.35, linewidth=0)
    small.plot(lam, middle, color=ESTIMATE, linewidth=1.0)
    small.axhline(0.0, color=EXACT, linewidth=0.8, linestyle=(0, (4, 3)))
    small.set_title(heading, loc="left", fontsize=7)
    small.set_xlim(0, 1)
    small.set_xticks([0, 1])
    small.tick_params(labelsize=7, length=2)
