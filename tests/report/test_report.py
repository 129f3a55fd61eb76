"""The page says the verdict first, holds everything, needs nothing else, and lets no name become markup."""

from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from synthetic import FAILED, cauchy_fit, fit_of, odd_model

import pathtemp as pt
from pathtemp.modes.table import Modes
from pathtemp.report.markup import aligned
from pathtemp.report.page import page, small

EVIL = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "../../etc/passwd")


class Elements(HTMLParser):
    """Every element with its attributes, and all text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._within = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def evil() -> pt.Fit:
    fit = fit_of(odd_model(EVIL))
    return replace(fit, name="<b>mine</b>\x1b[31m", versions={"<i>": "<u>1</u>"})


@pytest.fixture(scope="module")
def plain() -> str:
    """The page of an ordinary fit: its figures take seconds to draw."""
    return page(cauchy_fit())


def test_the_verdict_comes_first(tmp_path: Path, plain: str) -> None:
    failed = cauchy_fit(checks=FAILED)
    failed.report(tmp_path / "r.html")
    for fit, html, says in (
        (cauchy_fit(), plain, "Converged: all 2 checks passed."),
        (failed, (tmp_path / "r.html").read_text(), "Not converged: 1 of 2"),
    ):
        read = Elements(html)
        first = read.text.index(says)
        assert first < read.text.index("Results")
        for warning in fit.warnings:
            assert first < read.text.index(warning) < read.text.index("Results")


def test_everything_is_there(plain: str) -> None:
    read = Elements(plain)
    for word in (
        "log marginal likelihood",
        "round by round",
        "What",
        "Settings",
        "anneal_ess",
        "jax",
        "compile",
        "seed",
    ):
        assert word.lower() in read.text.lower(), word
    images = [attributes["src"] for tag, attributes in read.elements if tag == "img"]
    assert len(images) == 3
    assert all((source or "").startswith("data:image/svg+xml;base64,") for source in images)


def test_nothing_outside_is_asked_for(plain: str) -> None:
    for tag, attributes in Elements(plain).elements:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
    assert not re.search(r"@import|url\(", plain)


def test_names_stay_text(evil: pt.Fit, plain: str) -> None:
    html = page(evil)
    read = Elements(html)
    assert sorted({tag for tag, _ in read.elements}) == sorted({tag for tag, _ in Elements(plain).elements})
    assert sum(tag == "script" for tag, _ in read.elements) == 2
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    for name in EVIL:
        assert name in read.text
    assert "<b>mine</b>" in read.text
    assert "\x1b" not in html


def test_a_notebook_shows_a_small_version(evil: pt.Fit) -> None:
    read = Elements(evil._repr_html_())
    assert "Converged" in read.text
    assert "<b>mine</b>" in read.text
    assert not [tag for tag, _ in read.elements if tag in ("script", "img")]
    assert "coverage" not in small(cauchy_fit())
    assert "hardly visited" in small(cauchy_fit(checks=FAILED))


def test_without_matplotlib_there_is_a_page_without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    read = Elements(page(cauchy_fit()))
    assert "There are none" in read.text
    assert "pathtemp[plots]" in read.text


def test_it_is_written_whole_or_not(tmp_path: Path) -> None:
    with pytest.raises(pt.InputError, match="there is no folder"):
        cauchy_fit().report(tmp_path / "no" / "r.html")
    with pytest.raises(pt.InputError, match="is a folder"):
        cauchy_fit().report(tmp_path)


def test_bare_fits_have_a_page() -> None:
    fit = fit_of(odd_model(), draws=1)
    assert "too few draws" in page(fit)
    assert "round by round" not in page(replace(fit, history=()))


def test_parameters_come_first_and_the_rest_is_folded(plain: str) -> None:
    fit = cauchy_fit()
    theta = fit.posterior["theta"]
    more = fit.posterior.assign(log_lik=theta * 0.001, twice=2 * theta.isel(theta_dim_0=0))
    html = page(replace(fit, posterior=more))
    table, folded = html.index(">theta[0]<"), html.index("<details>")
    assert table < folded < html.index(">twice<") < html.index(">log_lik[0]<")
    assert "2 more: transformed parameters and generated quantities" in html
    assert "<details>" not in plain


def test_modes_are_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.zeros(0)
    why = "the base as given: its path is short, 2.2"
    modes = Modes({}, none, none, none, none.astype(int), (), none.astype(int), 16, 0.0, False, why)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    text = Elements(page(replace(cauchy_fit(), modes=modes))).text
    assert "The path starts from the base as given: its path is short, 2.2." in text
    assert text.count(modes.headline) == text.count(modes.why) == 1


def test_points_of_a_column_line_up() -> None:
    assert aligned(["-1.250", "30.5", "7"])[1:] == [
        '30.5<span class="unseen">00</span>',
        '7<span class="unseen">.000</span>',
    ]


def test_figures_are_light_whatever_the_style_of_the_user() -> None:
    import matplotlib.pyplot as plt

    with plt.style.context("dark_background"):
        html = page(cauchy_fit())
    for image in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html):
        paper = re.search(r'id="patch_1".*?fill: (#\w+)', base64.b64decode(image).decode(), re.DOTALL)
        assert paper
        assert paper[1] == "#ffffff"
