"""The code of the site runs, page by page, and the site lists every page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from tempered import assert_mean, first_that

from pathtemp import plots
from pathtemp.testing.calibration import assert_close

mpl.use("Agg")
ROOT = Path(__file__).parents[1]


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, seed: int = 1) -> dict[str, Any]:
    """The python blocks of a page, one after the other, in an empty folder; what they leave behind.

    ``seed`` takes the place of the page's own, which is one throughout.
    """
    folder = folder / str(seed)
    folder.mkdir()
    monkeypatch.chdir(folder)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(re.sub(r"seed=1\b", f"seed={seed}", block), page, "exec"), names)
    plt.close("all")
    return names


def until_converged(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, fit: str = "fit") -> dict[str, Any]:
    """The same of the first seed whose ``fit`` has converged."""
    return first_that(lambda names: names[fit].converged, lambda k: run(page, folder, monkeypatch, seed=k + 1))


@pytest.mark.slow
def test_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("jax.md", tmp_path, monkeypatch)
    assert_close(names["value"], np.log(6 * np.pi), names["se"])
    assert bool((names["named"].posterior["tau"] > 0).all())


@pytest.mark.slow
def test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("runs.md", tmp_path, monkeypatch)
    assert Path("run.nc").is_file()


@pytest.mark.slow
def test_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = until_converged("clusters.md", tmp_path, monkeypatch)["fit"]
    assert "islands" in {check.name for check in fit.diagnostics.checks}
    value, se = fit.log_marginal_likelihood
    assert_close(value, 0.0, se)


@pytest.mark.slow
def test_funnels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = until_converged("funnels.md", tmp_path, monkeypatch)
    fit, path = names["fit"], names["path"]
    value, se = fit.log_marginal_likelihood
    # Standard errors are over 32 groups of chains.
    assert_close(value, -31.311347, se, df=31)
    assert_close(path.log_z(1.0), 1.5, path.log_z.se(1.0), df=31)


@pytest.mark.slow
def test_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = until_converged("modes.md", tmp_path, monkeypatch)["fit"]
    assert len(fit.modes) == 2
    assert_close(fit.modes.share, [0.7, 0.3], fit.modes.share_se)


def test_no_page_has_code_that_is_not_run() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md") if "```python" in path.read_text()}
    tests = [*(ROOT / "tests").glob("*.py"), *(ROOT / "tests" / "frontends").rglob("test_*.py")]
    text = "".join(path.read_text() for path in tests)
    here = {page for page in pages if f'"{page}"' in text or f'"docs/{page}"' in text}
    # Run by tests/frontends/test_documents.py, which takes the name of the language.
    assert {Path(page).stem for page in pages - here} == {"pymc", "numpyro"}


@pytest.mark.slow
def test_not_converged_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("not-converged.md", tmp_path, monkeypatch)
    run("plots.md", tmp_path, monkeypatch, seed=2)
    assert "cauchy" in Path("report.html").read_text().lower()


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if path.name not in navigation]
    assert not missing


def test_every_plot_is_described() -> None:
    text = (ROOT / "docs" / "plots.md").read_text()
    assert not [
        name
        for name in plots.__all__
        if f"pathtemp.plots.{name}" not in text and f"plots.{name}(" not in text and name != "plot"
    ]


def test_every_figure_of_the_gallery_is_shown_for_light_and_dark_pages() -> None:
    text = (ROOT / "docs" / "plots.md").read_text()
    light = set(re.findall(r"figures/(\w+)\.png#only-light", text))
    assert light == set(re.findall(r"figures/(\w+)-dark\.png#only-dark", text))
    assert light >= set(plots.__all__)


def test_no_page_installs_from_an_index_that_does_not_have_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    assert not [path.name for path in pages if re.search(r"pip install ['\"]?pathtemp", path.read_text())]


def test_the_glossary_has_one_meaning_for_each_word() -> None:
    words = re.findall(r"^\| ([^|]+?) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    named = [word.strip() for entry in words[1:] for word in entry.split(",")]
    wanted = {"base", "target", "path", "lam", "a", "delta", "tour", "round trip", "regeneration", "orbit", "lattice"}
    wanted |= {"leg", "chart", "mode", "verdict"}
    assert wanted <= set(named)
    assert len(named) == len(set(named))


@pytest.mark.slow
def test_the_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = until_converged("analysis.md", tmp_path, monkeypatch, fit="two")
    two = names["two"]
    assert len(names["velocity"]) == 82
    # Either labelling of each explanation has the same share.
    low = two.posterior["mu"].values[..., 0] < two.posterior["mu"].values[..., 1]
    assert_mean(low, 0.5)
    assert names["table"].index[0] == "three clusters"
    assert names["elpd"]["three"] > names["elpd"]["two"]
    assert Path("galaxies.html").is_file()
