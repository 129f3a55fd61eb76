"""The README's code runs, and the documents name things that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def outcome() -> dict[str, Any]:
    """Run the python blocks of the README one after the other; what they leave behind."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_first_example_finds_both_modes(outcome: dict[str, Any]) -> None:
    fit = outcome["fit"]
    value, se = fit.log_marginal_likelihood
    assert fit.converged
    assert abs(value - (-8.052885)) < 4 * se
    assert 0.4 < float((fit.posterior["theta"] > 0).mean()) < 0.6


def test_every_gate_is_explained(outcome: dict[str, Any]) -> None:
    explained = (ROOT / "docs" / "verdict.md").read_text()
    missing = [c.name for c in outcome["fit"].diagnostics.checks if f"| {c.name} |" not in explained]
    assert not missing


def test_documents_name_code_that_exists() -> None:
    text = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    dotted = set(re.findall(r"`(pathtemp(?:\.\w+)+)`", text))
    assert len(dotted) > 20
    for name in sorted(dotted):
        assert _exists(name), name


def test_documents_link_to_files_that_exist() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def _exists(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False
