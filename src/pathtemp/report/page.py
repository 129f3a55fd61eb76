"""The whole page, and its small version for notebooks."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from typing import TYPE_CHECKING

from pathtemp.io.atomic import new_file, write_new
from pathtemp.report import sections
from pathtemp.report.figures import figures
from pathtemp.report.markup import h, rows, text
from pathtemp.report.rounds import rounds

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit


def page(fit: Fit) -> str:
    """One HTML document without anything outside it; every name in it is text."""
    style, script = (files("pathtemp.report").joinpath(name).read_text("utf-8") for name in ("style.css", "rounds.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # No script but ours runs, and nothing is fetched, whatever came into the page.
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = f"{fit.name}: {'converged' if fit.converged else 'not converged'}"
    body = [
        h("h1", f"Report on {fit.name}"),
        sections.verdict(fit),
        h("section", h("h2", "Results"), sections.facts(fit), id="results"),
        sections.modes(fit),
        figures(fit),
        rounds(fit),
        sections.posterior(fit),
        sections.checks(fit),
        sections.origin(fit),
        h("footer", f"Written by pathtemp {fit.versions.get('pathtemp', '')}."),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{h('meta', http_equiv='Content-Security-Policy', content=policy)}\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{text(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{style}</style>\n</head>\n<body>\n'
        + "\n".join(body)
        + f"\n<script>{script}</script>\n</body>\n</html>\n"
    )


def write_report(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write the page to ``path``, whole or not at all."""
    place = new_file("report", path)
    write_new("report", place, page(fit).encode())


def small(fit: Fit) -> str:
    """What a notebook shows of a fit: the verdict, what to do, and the numbers; no script and no figures."""
    colour = "#00674c" if fit.converged else "#a33d00"
    advice = [h("ul", *(h("li", message) for message in fit.warnings))] if fit.warnings else []
    facts = rows([("model", fit.name), *fit.summary(rows=0).facts])
    sentence = h("p", h("b", sections.verdict_sentence(fit)), style=f"color: {colour}")
    return h("div", sentence, *advice, h("details", h("summary", "numbers"), facts), class_="pathtemp-fit")
