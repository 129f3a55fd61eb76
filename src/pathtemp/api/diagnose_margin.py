"""A check of somebody's posterior draws: do they have the marginal that they should? (end of section 2.3)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.api.arguments import a_kind_of, kind_name, text
from pathtemp.api.divide import BUDGET, divide_and_conquer
from pathtemp.errors import InputError
from pathtemp.result.margin_fit import MarginFit
from pathtemp.settings import DEFAULT, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)
"""Probabilities at which the distribution functions are compared."""

LARGEST_Z = 4.0
"""Difference in standard errors from which it is no accident."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginDiagnosis:
    """What :func:`diagnose_margin` found.

    Parameters
    ----------
    table
        By probability p: the quantile by path sampling with its standard error, the share of the draws below it, the
        standard error of that share, and their difference in standard errors.
    fit
        The fit along the margin.
    draws
        The draws that were checked, shape (chain, draw).
    """

    table: pd.DataFrame
    fit: MarginFit
    draws: FloatArray

    @property
    def agrees(self) -> bool:
        """Whether the draws have the marginal that they should, and the fit along it converged."""
        return bool(self.fit.converged and (self.table["z"].abs() <= LARGEST_Z).all())

    @property
    def message(self) -> str:
        """One sentence."""
        marginal = self.fit.marginal
        assert marginal is not None
        if not self.fit.converged:
            return f"The fit along {marginal.name} has not converged, so that it cannot judge: {self.fit.warnings[0]}"
        worst = self.table["z"].abs().idxmax()
        row = self.table.loc[worst]
        if abs(row["z"]) <= LARGEST_Z:
            return f"The draws of {marginal.name} have the marginal that path sampling finds."
        return (
            f"The draws of {marginal.name} do not have its marginal: {100 * row['share']:.3g}% of them lie below "
            f"{row['quantile']:.4g}, and {100 * worst:.3g}% should ({abs(row['z']):.1f} standard errors); use the "
            "posterior draws of divide_and_conquer, or reparametrise."
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The density by path sampling over the histogram of the draws."""
        from pathtemp.plots.margin import compare

        assert self.fit.marginal is not None
        return compare(self.fit.marginal, self.draws.ravel(), ax, label="draws")

    def __repr__(self) -> str:
        return f"{self.message}\n{self.table.to_string(float_format=lambda x: f'{x:.4g}')}"


def diagnose_margin(
    idata: Any,
    model: Any,
    margin: str,
    *,
    data: Any = None,
    budget: float = BUDGET,
    seed: int = 0,
    settings: Settings = DEFAULT,
    fit: MarginFit | None = None,
) -> MarginDiagnosis:
    """Compare the marginal of existing posterior draws, such as those of NUTS, with that by path sampling.

    Parameters
    ----------
    idata
        What ArviZ has: a DataTree or InferenceData with a posterior group, or the posterior Dataset itself.
    model, data
        The model the draws are of: a PyMC model, a Stan program with its data, or what a front end has made of one.
    margin
        Name of the parameter, as for :func:`pathtemp.divide_and_conquer`.
    budget, seed, settings
        For the run along the margin.
    fit
        Such a run made before, in place of a new one.
    """
    text("margin", margin)
    draws = _draws(idata, margin)
    if fit is not None:
        a_kind_of("fit", fit, MarginFit, "a fit of pt.divide_and_conquer")
    if fit is None:
        how: dict[str, Any] = {"data": data, "budget": budget, "seed": seed, "settings": settings}
        fit = divide_and_conquer(model, margin=margin, progress=False, **how)
    assert fit.marginal is not None
    level = np.array(LEVELS)
    quantile = fit.marginal.quantile(level)
    below = draws[None] < quantile.value[:, None, None]
    share = below.mean(axis=(1, 2))
    independent = np.array([_effective(x) for x in below.astype(float)])
    # The error that the share would have if the draws were right, and that of the quantile by path sampling.
    own = np.sqrt(level * (1 - level) / independent)
    theirs = fit.marginal.cdf(quantile.value).se
    error = np.hypot(own, theirs)
    table = pd.DataFrame(
        {
            "quantile": quantile.value,
            "se": quantile.se,
            "share": share,
            "share_se": error,
            "z": (share - level) / error,
        },
        index=pd.Index(level, name="p"),
    )
    return MarginDiagnosis(table, fit, draws)


def _draws(idata: Any, margin: str) -> FloatArray:
    """Values (chain, draw) of one scalar of a posterior."""
    posterior = idata if isinstance(idata, xr.Dataset) else getattr(idata, "posterior", None)
    if posterior is None:
        raise InputError(f"idata: expected an ArviZ posterior, got {kind_name(idata)} without one")
    dataset = posterior if isinstance(posterior, xr.Dataset) else posterior.to_dataset()
    head, _, rest = margin.partition("[")
    if head not in dataset:
        raise InputError(f"margin: the draws have no {head!r}; they have {', '.join(map(repr, dataset.data_vars))}")
    values = dataset[head].transpose("chain", "draw", ...)
    for axis, part in zip(values.dims[2:], rest.rstrip("]").split(",") if rest else (), strict=False):
        labels = [str(label) for label in values[axis].values] if axis in values.coords else []
        place = labels.index(part.strip()) if part.strip() in labels else None
        if place is None and not part.strip().lstrip("-").isdigit():
            raise InputError(f"margin: the draws of {head!r} have no {part.strip()!r}")
        values = values.isel({axis: int(part) if place is None else place})
    if values.ndim != 2:
        raise InputError(f"margin: {margin!r} is not one number a draw; name one element, such as {head}[0]")
    return np.asarray(values, np.float64)


def _effective(indicator: FloatArray) -> float:
    """Effective number of draws of a share, all of them where they do not vary."""
    from arviz_stats.base import array_stats

    if indicator.std() == 0 or indicator.shape[1] < 4:
        return float(indicator.size)
    return float(min(array_stats.ess(indicator, chain_axis=0, draw_axis=1, method="mean"), indicator.size))
