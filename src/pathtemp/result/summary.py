"""A fit in words: the verdict first, then the numbers behind it, then a table of the posterior."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import xarray as xr

from pathtemp.api.arguments import shown
from pathtemp.api.environment import check_docstrings
from pathtemp.errors import InputError
from pathtemp.io.printable import printable, printable_lines
from pathtemp.result.draws import SAMPLE_DIMS, shown_name, stored_name
from pathtemp.result.hardness import hardness
from pathtemp.result.run import NOWHERE, Diagnostics

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

FEWEST_DRAWS = 4
"""ArviZ needs four draws a chain for R-hat and the effective sample size."""

LOG_EVIDENCE = "log marginal likelihood"
LOG_CONSTANT = "log constant of the kernel"
"""What log z(1) - log z(0) is called where it is no evidence."""

OF_MODES = ("modes", "start of the path")
"""Lines of a summary on the modes."""

MOST_NAMES = 8
"""Variables that a message names."""

MOST_DECIMALS = 6
"""Numbers that would need more are printed as powers of ten."""


@dataclass(frozen=True, repr=False)
class Summary:
    """What ``fit.summary()`` prints.

    Parameters
    ----------
    verdict
        One line: converged or not.
    reasons
        Why not, one sentence each, with what to do; empty when converged.
    facts
        Label and value of each line of numbers.
    table
        ArviZ summary of the posterior draws, unrounded; empty where there are too few draws.
    elements
        Number of scalars in the posterior, of which the table may show the first.
    modes
        Table of the modes as text; empty where there is one or none.

    >>> print(Summary("Converged.", (), (("log z", "-8.05 ± 0.01"),), pd.DataFrame(), 0))
    Converged.
      log z  -8.05 ± 0.01
    """

    verdict: str
    reasons: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    table: pd.DataFrame
    elements: int
    modes: str = ""

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.facts), default=0)
        lines = [self.verdict, *(f"  - {reason}" for reason in self.reasons)]
        lines += [f"  {label:<{width}}  {value}" for label, value in self.facts]
        if self.modes:
            lines += ["", self.modes]
        if len(self.table):
            lines += ["", _format(self.table)]
        if 0 < len(self.table) < self.elements:
            lines.append(f"... and {self.elements - len(self.table):,} more: summary(rows=None) shows them all")
        # Names and messages of a file may hold anything.
        return printable_lines("\n".join(lines))

    __repr__ = __str__


def summarise(fit: Fit, *, rows: int | None = 20, var_names: Sequence[str] | None = None) -> Summary:
    """Summary of a fit; ``rows`` bounds the table, None for all; ``var_names`` chooses its variables."""
    posterior = chosen(fit.posterior, var_names)
    diagnostics, evidence, sizes = fit.diagnostics, fit.log_constant, fit.posterior.sizes
    seconds = ", ".join(f"{part} {spent:.1f}" for part, spent in fit.seconds.items())
    log_z = f"{with_error(evidence.value, evidence.se)}   ({_note(fit)})"
    facts: tuple[tuple[str, str], ...] = (
        (_name_of_log_z(fit), log_z),
        ("round trips", f"{diagnostics.tours:,} base -> target -> base"),
        ("k-hat of 1/p(a)", known_number(diagnostics.khat, ".2f")),
        ("R-hat, worst", known_number(diagnostics.rhat, ".3f")),
        (
            "ESS, worst",
            f"{known_number(diagnostics.ess_bulk, ',.0f')} bulk, {known_number(diagnostics.ess_tail, ',.0f')} tail",
        ),
        ("length of the path", f"{known_number(diagnostics.length, '.3g')}{_hardest(diagnostics)}"),
        ("evaluations", f"{fit.counts.gradients:,} gradients, {fit.counts.densities:,} densities{_effort(fit)}"),
        ("seconds", f"{sum(fit.seconds.values()):.1f}" + (f"   ({seconds})" if seconds else "")),
        (
            "draws of the target",
            f"{sizes['chain'] * sizes['draw']:,}   (chains x draws: {sizes['chain']:,} x {sizes['draw']:,})",
        ),
    )
    if fit.about_base:
        facts = (*facts, ("base", printable(fit.about_base)))
    if diagnostics.rejections:
        facts = (*facts, ("points without density", _rejections(diagnostics)))
    modes = fit.modes
    if modes is not None:
        facts = (*facts, (OF_MODES[0], modes.headline), (OF_MODES[1], modes.why))
    listed = str(modes) if modes is not None and len(modes) > 1 else ""
    table = posterior_table(posterior, rows=rows)
    return Summary(_verdict(fit), tuple(fit.warnings), facts, table, _elements(posterior), listed)


def chosen(posterior: xr.Dataset, var_names: Sequence[str] | None) -> xr.Dataset:
    """The variables with these names, in their order; all where None."""
    if var_names is None:
        return posterior
    if not isinstance(var_names, str | Sequence):
        raise InputError(f"var_names: expected the names of variables, and it is {shown(var_names)}")
    names = [var_names] if isinstance(var_names, str) else list(var_names)
    if not names:
        raise InputError("var_names: the list is empty; name one variable at least, or leave it out")
    stored = [stored_name(posterior, str(name)) for name in names]
    for name, place in zip(names, stored, strict=True):
        if place not in posterior.data_vars:
            known = [shown_name(posterior, str(there)) for there in posterior.data_vars]
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; is {near[0]!r} meant?" if near else f"; there are {', '.join(known[:MOST_NAMES])}"
            raise InputError(f"var_names: there is no {name!r}{hint}")
    return posterior[stored]


def _name_of_log_z(fit: Fit) -> str:
    """What log z(1) - log z(0) is."""
    return LOG_EVIDENCE if fit.is_evidence else LOG_CONSTANT


def _note(fit: Fit) -> str:
    """What to know of log z."""
    if np.isnan(fit.log_constant.value):
        return "no chain made a round trip" if fit.diagnostics.tours == 0 else "no round has ended after adaptation"
    if not fit.converged:
        return "log z(1) - log z(0); not converged, so the error may be far too small"
    return "log z(1) - log z(0)"


def with_error(value: float, se: float) -> str:
    """A number and its standard error, both to two digits of the error.

    >>> with_error(-8.052885, 0.0123), with_error(-6980.2, 3.1), with_error(1.5, float("nan"))
    ('-8.053 ± 0.012', '-6980.2 ± 3.1', '1.5 ± nan')
    >>> with_error(float("nan"), float("inf"))
    'unknown'
    """
    if np.isnan(value):
        return "unknown"
    if not (np.isfinite(se) and se > 0):
        return f"{value:.6g} ± {se:.2g}"
    decimals = int(np.clip(1 - np.floor(np.log10(se)), 0, 12))
    return f"{value:.{decimals}f} ± {se:.{decimals}f}"


def posterior_table(posterior: xr.Dataset, *, rows: int | None = None) -> pd.DataFrame:
    """ArviZ summary of the first ``rows`` scalars of a Dataset over (chain, draw, ...), unrounded.

    Only the rows shown are computed, so that a posterior of many thousand parameters prints at once.
    """
    # Imported here because it takes most of a second, which `import pathtemp` should not.
    from arviz_base import xarray_var_iter
    from arviz_base.labels import BaseLabeller
    from arviz_stats import summary

    if rows == 0 or posterior.sizes.get("draw", 0) < FEWEST_DRAWS:
        return pd.DataFrame()
    check_docstrings()
    labeller = BaseLabeller()
    scalars = list(islice(xarray_var_iter(posterior, skip_dims=set(SAMPLE_DIMS)), rows))
    # Summarised under numbers, because ArviZ does not take every name (slashes).
    numbered = xr.Dataset({str(i): (SAMPLE_DIMS, x) for i, (_, _, _, x) in enumerate(scalars)})
    # A variable that never changes has no R-hat: it is NaN, which the table shows.
    with np.errstate(invalid="ignore", divide="ignore"):
        table: pd.DataFrame = summary(numbered, round_to="none")
    names = (labeller.make_label_flat(shown_name(posterior, name), sel, isel) for name, sel, isel, _ in scalars)
    table.index = pd.Index([printable(name) for name in names])
    return table


def _verdict(fit: Fit) -> str:
    checks = fit.diagnostics.checks
    if fit.converged:
        return f"{printable(fit.name)}: converged, all {len(checks)} checks passed"
    failed = fit.diagnostics.failed
    if fit.diagnostics.interrupted:
        return f"{printable(fit.name)}: NOT converged, as it was interrupted"
    count = f"{len(failed)} of {len(checks)} checks failed"
    return f"{printable(fit.name)}: NOT converged, {count} ({', '.join(failed)})"


def _elements(posterior: xr.Dataset) -> int:
    return sum(x.isel(chain=slice(1), draw=slice(1)).size for x in posterior.data_vars.values())


def _count(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else f"{value}"


def known_number(value: float, form: str) -> str:
    """A number; "unknown" where there is none, as before the first round after adaptation."""
    return "unknown" if np.isnan(value) else f"{value:{form}}"


def _effort(fit: Fit) -> str:
    """A word on the effort where it was not the full one, and what a density costs in a budget."""
    price = getattr(fit.settings, "density_price", None)
    words = ["light effort"] if getattr(fit.settings, "effort", "") == "light" else []
    words += [] if price is None else [f"a density costs {price:g} gradients"]
    return f"   ({', '.join(words)})" if words else ""


def _rejections(diagnostics: Diagnostics) -> str:
    """How many evaluations gave no density, and of which kind."""
    rejected = diagnostics.rejected
    of = f" of {rejected.evaluations:,}" if rejected.evaluations else ""
    parts = [f"{diagnostics.rejections:,}{of}"]
    parts += [f"NaN at {rejected.nan:,} of them, {rejected.where_nan}"] if rejected.nan else []
    parts += [f"-inf at {rejected.zero:,}, {rejected.where_zero}"] if rejected.zero_lam != NOWHERE else []
    parts += [f"NaN gradients at {rejected.gradient:,}"] if rejected.gradient else []
    return "; ".join(parts)


def _hardest(diagnostics: Diagnostics) -> str:
    """Where on the path most length lies per unit of lam."""
    rate = hardness(diagnostics)
    if not np.any(np.isfinite(rate)):
        return ""
    return f", hardest at lam = {diagnostics.lam[int(np.nanargmax(rate))]:.2g}"


def _format(table: pd.DataFrame) -> str:
    return str(as_text(table).to_string())


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Each number as text: location and scale to three digits of the standard deviation, errors to two."""
    text = pd.DataFrame(index=table.index)
    decimals = [2 - _magnitude(sd) for sd in table["sd"]]
    for column in table.columns:
        values = table[column]
        if column.startswith("ess"):
            text[column] = [_count(x) for x in values]
        elif column.startswith("mcse"):
            text[column] = [f"{x:.2g}" for x in values]
        elif column == "r_hat":
            text[column] = [f"{x:.3f}" for x in values]
        else:
            pairs = zip(values, decimals, strict=True)
            text[column] = [f"{x:.{max(d, 0)}f}" if d <= MOST_DECIMALS else f"{x:.3e}" for x, d in pairs]
    return text


def _magnitude(x: float) -> int:
    """Power of ten of ``x``; 0 where there is none."""
    return int(np.floor(np.log10(x))) if np.isfinite(x) and x > 0 else 0
