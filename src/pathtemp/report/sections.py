"""The parts of the page that are words and tables."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.report.markup import Markup, aligned, h, minus, rows
from pathtemp.result.parameters import derived_names, parameter_names
from pathtemp.result.run import Check
from pathtemp.result.summary import OF_MODES, as_text, posterior_table, with_error
from pathtemp.verdict.registry import gates

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

LESSER = ("ess_tail", "mcse_mean", "mcse_sd")
"""Columns of the posterior that a narrow screen leaves out."""

LARGE = 1e4
"""From here on numbers are written out, without decimals."""

MOST_ROWS = 50
"""Scalars of the posterior, and modes, that the page lists."""


def verdict_sentence(fit: Fit) -> str:
    """What a reader should take away, in one sentence."""
    checks, trips = fit.diagnostics.checks, fit.diagnostics.tours
    log_z = with_error(*fit.log_constant).replace("-", "−")
    if fit.converged:
        ends = "from end to end of the margin and back" if hasattr(fit, "marginal") else "between base and target"
        return (
            f"Converged: all {len(checks)} checks passed. The draws can be used, and log z = {log_z} "
            f"(± one standard error), from {trips:,} round trips {ends}."
        )
    failed = f"{len(fit.diagnostics.failed)} of {len(checks)} checks failed"
    why = "the run was interrupted" if fit.diagnostics.interrupted else failed
    return (
        f"Not converged: {why}. The draws and log z = {log_z} may be wrong by more "
        "than their errors say; what to do is said below."
    )


def verdict(fit: Fit) -> Markup:
    """The verdict, and where it is bad, what to do."""
    advice = [h("ul", *(h("li", message) for message in fit.warnings), class_="advice")] if fit.warnings else []
    return h(
        "section",
        h("p", verdict_sentence(fit), class_="sentence"),
        *advice,
        class_=f"verdict {'good' if fit.converged else 'bad'}",
        id="verdict",
    )


def facts(fit: Fit) -> Markup:
    """The numbers of the summary, but for those of the modes, which have a section of their own."""
    numbers = [fact for fact in fit.summary(rows=0).facts if fact[0] not in OF_MODES]
    return rows([(name, minus(value).replace("->", "→")) for name, value in numbers])


def modes(fit: Fit) -> Markup:
    """The modes with their shares; nothing where they were not looked for."""
    table = fit.modes
    if table is None:
        return Markup("")
    digits = _digits(table.share_se)
    lines: list[tuple[str, ...]] = [
        (
            str(k),
            f"{float(table.share[k]):.{digits}f} ± {float(table.share_se[k]):.{digits}f}"
            if table.visits[k]
            else "no visit",
            f"{int(table.visits[k]):,}",
            minus(f"{float(table.log_density[k]):.2f}"),
            str(table.found_by[k]),
        )
        for k in range(min(len(table), MOST_ROWS))
    ]
    head = ("mode", "share", "round trips", "log density", "found by")
    about = "Share of the target, round trips that came by, and the log density at the top of each mode."
    listed = [rows(lines, head=head, class_="numbers"), h("p", about, class_="note")] if lines else []
    return h(
        "section", h("h2", "Modes"), h("p", f"{table.headline}. The path starts from {table.why}."), *listed, id="modes"
    )


def _digits(errors: FloatArray) -> int:
    """Decimals that show two digits of the smallest error, two at least and six at most."""
    known = errors[np.isfinite(errors) & (errors > 0)]
    return int(np.clip(1 - np.floor(np.log10(known.min())), 2, 6)) if known.size else 2


def posterior(fit: Fit) -> Markup:
    """Table of the parameters, and one of what follows from them, folded."""
    parameters, derived = parameter_names(fit), derived_names(fit)
    first = _table(fit, parameters or derived)
    if first is None:
        return h("section", h("h2", "Posterior"), h("p", "There are too few draws of the target for a table."))
    parts = [h("h2", "Posterior"), first]
    second = _table(fit, derived) if parameters and derived else None
    if second is not None:
        named = f"{len(derived)} more: transformed parameters and generated quantities"
        parts.append(h("details", h("summary", named), second))
    return h("section", *parts, id="posterior")


def _table(fit: Fit, names: list[str]) -> Markup | None:
    """The first scalars of some variables; None where there are too few draws."""
    table = posterior_table(fit.posterior[names], rows=MOST_ROWS)
    if len(table) == 0:
        return None
    text = as_text(table)
    columns = [aligned([x.replace("-", "−") for x in text[column]]) for column in text.columns]
    lines = [(str(name), *values) for name, *values in zip(text.index, *columns, strict=True)]
    more = sum(int(np.prod(fit.posterior[name].shape[2:])) for name in names) - len(lines)
    note = [h("p", f"… and {more:,} more in fit.posterior.", class_="note")] if more > 0 else []
    head = ("", *(str(column) for column in table.columns))
    hidden = [name for name in LESSER if name in head]
    wider = [h("p", f"A wider screen also shows {', '.join(hidden)}.", class_="note narrow")] if hidden else []
    return h("div", rows(lines, head=head, class_="numbers", lesser=hidden), *wider, *note)


def checks(fit: Fit) -> Markup:
    """Every check: what it asks, what was measured, and what to do where it failed."""
    lines = [_check(check) for check in sorted(fit.diagnostics.checks, key=lambda check: check.passed)]
    head = h("tr", *(h("th", x, scope="col") for x in ("check", "what it asks", "measured", "limit", "")))
    table = h("table", h("thead", head), h("tbody", *lines), class_="checks")
    return h("section", h("h2", "Checks behind the verdict"), table, id="checks")


def _check(check: Check) -> Markup:
    known = gates().get(check.name)
    asks = [h("span", check.name if known is None else known.question)]
    if check.message:
        asks.append(h("p", check.message, class_="todo"))
    return h(
        "tr",
        h("th", check.name, scope="row"),
        h("td", *asks),
        h("td", _number(check.value)),
        h("td", _number(check.threshold)),
        h("td", "passed" if check.passed else "failed"),
        class_="passed" if check.passed else "failed",
    )


def _number(value: float) -> str:
    if LARGE <= abs(value) < 1e9:
        return minus(f"{value:,.0f}")
    # A log mass of nothing, or what could not be measured.
    return (
        f"{value:,.4g}" if np.isfinite(value) else str(value).replace("-", "−").replace("inf", "∞").replace("nan", "–")
    )


def origin(fit: Fit) -> Markup:
    """Settings, timings and versions: what it takes to make the run again."""
    given = [(f.name, getattr(fit.settings, f.name)) for f in fields(fit.settings)]
    settings = [(name, "automatic" if value is None else str(value)) for name, value in given]
    seconds = [(part, f"{spent:.2f} s") for part, spent in fit.seconds.items()]
    counts = [
        ("gradient evaluations", f"{fit.counts.gradients:,}"),
        ("density evaluations", f"{fit.counts.densities:,}"),
    ]
    return h(
        "section",
        h("h2", "How it was made"),
        h(
            "div",
            h("div", h("h3", "Settings"), rows([("seed", str(fit.seed)), *settings])),
            h("div", h("h3", "Time and work"), rows([*seconds, *counts])),
            h("div", h("h3", "Versions"), rows([*fit.versions.items(), ("made at", fit.created_at)])),
            class_="columns",
        ),
        id="origin",
    )
