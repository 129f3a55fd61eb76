"""Whole figures of four panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathtemp.api.arguments import shown
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.plots.chosen import chosen
from pathtemp.plots.path import Curve, joint_path, log_z, marginal_a
from pathtemp.plots.running import acceptance, hardness, history
from pathtemp.plots.style import ALARM, ink, of_fit, pyplot, values_of
from pathtemp.plots.variables import Density, base_draws, target_draws

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit


@of_fit
def plot(
    fit: Fit,
    *,
    var: str | None = None,
    label: str | None = None,
    target_density: Density | None = None,
    base_density: Density | None = None,
    exact: Curve | None = None,
) -> Figure:
    """The figure to look at first: target draws, base draws, the joint path, and log z with its band.

    Parameters
    ----------
    fit
        The fit.
    var
        Which scalar of the draws to show, e.g. "mu" or "theta[3]"; the one that separates the modes best where None, or
        else the first.
    label
        What to call it on the axes; its name where None.
    target_density, base_density
        Normalised densities of it to draw over the histograms.
    exact
        The true curve log z(lam) - log z(0), where it is known.
    """
    var = chosen(fit, 1)[0] if var is None else var
    figure, panels = _four(fit)
    target_draws(fit, panels[0, 0], var=var, density=target_density, label=label)
    base_draws(fit, panels[0, 1], var=var, density=base_density, label=label)
    joint_path(fit, panels[1, 0], var=var, label=label)
    log_z(fit, panels[1, 1], exact=exact)
    return figure


@of_fit
def diagnose(fit: Fit, *, exact: Curve | None = None) -> Figure:
    """The figure for when something is wrong: the marginal of a, log z by round, hardness and acceptance."""
    if not (exact is None or callable(exact)):
        raise InputError(f"exact: expected a function of lam, and it is {shown(exact)}")
    figure, panels = _four(fit)
    marginal_a(fit, panels[0, 0])
    history(fit, panels[0, 1], exact=None if exact is None else float(values_of("exact", exact, fit.log_z.lam)[-1]))
    hardness(fit, panels[1, 0])
    acceptance(fit, panels[1, 1])
    return figure


def _four(fit: Fit) -> tuple[Figure, np.ndarray]:
    """A two by two figure with the verdict over it."""
    figure, panels = pyplot().subplots(2, 2, figsize=(8.4, 6.2), layout="constrained")
    why = "interrupted" if fit.diagnostics.interrupted else ", ".join(fit.diagnostics.failed)
    verdict = "converged" if fit.converged else f"NOT converged ({why})"
    figure.suptitle(
        f"{printable(fit.name)}: {verdict}",
        x=0.01,
        ha="left",
        fontsize=11,
        color=ink() if fit.converged else ALARM,
        parse_math=False,
    )
    return figure, panels
