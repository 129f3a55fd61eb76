"""The README's code runs, and the documents name things that exist."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from tempered import assert_mean, first_that

from pathtemp.testing.calibration import assert_close

ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[str]:
    """The python blocks of a page."""
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return found


@cache
def outcome(seed: int) -> dict[str, Any]:
    """What the python blocks of the README leave behind, run one after the other with this seed in place of one."""
    names: dict[str, Any] = {}
    for block in blocks("README.md"):
        exec(compile(re.sub(r"seed=1\b", f"seed={seed}", block), "README.md", "exec"), names)
    return names


def test_the_first_example_finds_both_modes() -> None:
    names = first_that(lambda names: names["fit"].converged, lambda k: outcome(k + 1))
    fit = names["fit"]
    value, se = fit.log_marginal_likelihood
    assert_close(value, -8.052885, se)
    # The engine stops by itself, at this error.
    assert se <= 0.02
    assert_mean(fit.posterior["theta"].values[..., 0] > 0, 0.5)
    assert names["share"] == float((fit.posterior["theta"] > 0).mean())


def test_the_first_page_of_the_site_has_the_same_example() -> None:
    assert blocks("docs/index.md") == blocks("README.md")


def test_every_gate_is_explained() -> None:
    explained = (ROOT / "docs" / "verdict.md").read_text()
    missing = [c.name for c in outcome(1)["fit"].diagnostics.checks if f"| {c.name} |" not in explained]
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
