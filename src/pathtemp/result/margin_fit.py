"""The fit of a margin: its marginal density, and draws of the whole posterior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pathtemp.io.escape import escape_names, unescape_names
from pathtemp.io.printable import printable
from pathtemp.result.fit import Fit, LogEvidence, check_more
from pathtemp.result.marginal import Marginal
from pathtemp.result.summary import LOG_CONSTANT, LOG_EVIDENCE, Summary, known_number, with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN, MARGIN_DRAWS = "margin", "margin_draws"
"""Groups of a file that hold the marginal and the draws along it."""

QUANTILES = (0.001, 0.025, 0.5, 0.975, 0.999)
"""Quantiles that a summary shows."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginFit(Fit):
    """What :func:`pathtemp.divide_and_conquer` gives back.

    Beside what every :class:`~pathtemp.result.fit.Fit` has: ``log_z`` is here the log density of the margin on its
    unconstrained scale, up to a constant, and ``posterior`` are draws of the target, thinned from those along it.

    Parameters
    ----------
    marginal
        The marginal density: ``pdf``, ``log_pdf``, ``cdf``, ``quantile``, ``moment``, ``expectation``, each with a
        standard error.
    draws
        All draws along the margin, constrained, with ``log_weight``, the log importance weight to the target.
    evidence
        Log of the integral of the target, and its standard error.
    """

    marginal: Marginal | None = None
    draws: xr.Dataset | None = None
    evidence: LogEvidence | None = None

    @property
    def log_constant(self) -> LogEvidence:
        """Log of the integral of the target over all parameters, with its standard error."""
        return self.evidence if self.evidence is not None else LogEvidence(float("nan"), float("nan"))

    def extend(self, model: Any = None, *, draws: int | None = None, budget: float | None = None) -> MarginFit:
        """Go on where the run stopped, for ``budget`` more gradient equivalents; all frozen rounds count.

        Returns a new fit; this one stays as it is, but cannot be extended again.
        """
        check_more(draws, budget)
        fit = self._going_on(model).extend(draws=draws, budget=budget)
        assert isinstance(fit, MarginFit)
        return fit

    def to_datatree(self, *, log_likelihood: bool | None = None) -> xr.DataTree:
        """As for every fit, with two more groups: ``margin``, the marginal, and ``margin_draws``, all draws of it."""
        tree = super().to_datatree(log_likelihood=log_likelihood)
        for name, data in self.margin_groups().items():
            tree[name] = xr.DataTree(data)
        return tree

    def margin_groups(self) -> dict[str, xr.Dataset]:
        """The marginal, and all draws of it, as groups of a tree or a file."""
        assert self.marginal is not None
        assert self.draws is not None
        marginal, evidence = self.marginal, self.log_constant
        table = xr.Dataset(
            {
                "u": ("node", marginal.u),
                "log_p": ("node", marginal.log_p),
                "without": (("group", "node"), marginal.without),
                "grid": ("point", marginal.grid),
                "values": ("point", marginal.values),
                "evidence": ("part", np.array([evidence.value, evidence.se])),
            },
            attrs={"name": marginal.name, "restricted": int(marginal.restricted)},
        )
        return {MARGIN: table, MARGIN_DRAWS: escape_names(self.draws)}

    @property
    def is_evidence(self) -> bool:
        """Whether :attr:`log_constant` is a log marginal likelihood: the prior is known to be normalised."""
        return self.exact_base and super().is_evidence

    def summary(self, *, rows: int | None = 20, var_names: Sequence[str] | None = None) -> Summary:
        """The verdict first, then the marginal, the diagnostics and a posterior table; see :meth:`Fit.summary`."""
        whole = super().summary(rows=rows, var_names=var_names)
        assert self.marginal is not None
        low, high = self.marginal.interval
        quantiles = self.marginal.quantile(np.array(QUANTILES))
        shown = ((f"quantile {p:g}", with_error(*pair)) for p, *pair in zip(QUANTILES, *quantiles, strict=True))
        evidence = self.log_constant
        facts = (
            ("margin", f"{printable(self.marginal.name)}, sampled from {low:.4g} to {high:.4g}"),
            *shown,
            ("log integral of the target", with_error(evidence.value, evidence.se)),
            ("round trips", f"{self.diagnostics.tours:,} from end to end of the margin and back"),
            ("k-hat of successive p", known_number(self.diagnostics.khat, ".2f")),
            *(fact for fact in whole.facts if fact[0] not in REPLACED),
        )
        return Summary(whole.verdict, whole.reasons, facts, whole.table, whole.elements)

    def plot(self, *, var_names: str | Sequence[str] | None = None, **options: Any) -> Figure:
        """The marginal, the walk along it and how the run went, see :func:`pathtemp.plots.margin.plot`.

        With ``var_names``, histograms of these variables, as for every fit.
        """
        from pathtemp.plots.margin import plot

        return plot(self, **options) if var_names is None else super().plot(var_names=var_names, **options)


def with_margin(fit: Fit, groups: Mapping[str, xr.Dataset]) -> MarginFit:
    """The fit of a margin from a fit and the groups that :meth:`MarginFit.margin_groups` gives, read from a file."""
    table = groups[MARGIN]
    arrays = {name: table[name].values for name in ("u", "log_p", "without", "grid", "values")}
    marginal = Marginal(str(table.attrs["name"]), **arrays, restricted=bool(table.attrs["restricted"]))
    value, se = (float(x) for x in table["evidence"].values)
    known = {field.name: getattr(fit, field.name) for field in fields(Fit)}
    return MarginFit(
        **known, marginal=marginal, draws=unescape_names(groups[MARGIN_DRAWS]), evidence=LogEvidence(value, se)
    )


REPLACED = (
    LOG_EVIDENCE,
    LOG_CONSTANT,
    "round trips",
    "k-hat of 1/p(a)",
    "length of the path",
)
"""Lines of the summary of a tempering that say nothing of a margin."""
