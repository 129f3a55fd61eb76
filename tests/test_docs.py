"""The code of the site runs, page by page, and the site lists every page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

mpl.use("Agg")
ROOT = Path(__file__).parents[1]


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The python blocks of a page, one after the other, in an empty folder; what they leave behind."""
    monkeypatch.chdir(folder)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    plt.close("all")
    return names


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_first_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = run("index.md", tmp_path, monkeypatch)["fit"]
    value, se = fit.log_marginal_likelihood
    assert fit.converged
    assert abs(value - (-8.052885)) < 4 * se


def test_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("jax.md", tmp_path, monkeypatch)
    assert abs(names["value"] - np.log(6 * np.pi)) < 4 * names["se"]
    assert bool((names["named"].posterior["tau"] > 0).all())


def test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("runs.md", tmp_path, monkeypatch)
    assert (tmp_path / "run.nc").is_file()


def test_funnels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("funnels.md", tmp_path, monkeypatch)
    fit, path = names["fit"], names["path"]
    assert fit.converged, fit.warnings
    value, se = fit.log_marginal_likelihood
    assert abs(value - (-31.311347)) < 4 * se
    assert abs(path.log_z(1.0) - 1.5) < 4 * path.log_z.se(1.0)


def test_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = run("modes.md", tmp_path, monkeypatch)["fit"]
    assert fit.converged, fit.warnings
    assert len(fit.modes) == 2
    assert np.all(np.abs(fit.modes.share - [0.7, 0.3]) < 4 * fit.modes.share_se)


def test_no_page_has_code_that_is_not_run() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md") if "```python" in path.read_text()}
    tests = [*(ROOT / "tests").glob("*.py"), *(ROOT / "tests" / "frontends").rglob("test_*.py")]
    text = "".join(path.read_text() for path in tests)
    here = {page for page in pages if f'"{page}"' in text}
    # Run by tests/frontends/test_documents.py, which takes the name of the language.
    assert {Path(page).stem for page in pages - here} == {"pymc", "numpyro"}


def test_not_converged_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("not-converged.md", tmp_path, monkeypatch)
    run("plots.md", tmp_path, monkeypatch)
    assert "Cauchy" in (tmp_path / "report.html").read_text() or "cauchy" in (tmp_path / "report.html").read_text()


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if path.name not in navigation]
    assert not missing


def test_every_plot_is_described() -> None:
    from pathtemp import plots

    text = (ROOT / "docs" / "plots.md").read_text()
    assert not [
        name
        for name in plots.__all__
        if f"pathtemp.plots.{name}" not in text and f"plots.{name}(" not in text and name != "plot"
    ]
