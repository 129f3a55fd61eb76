"""What the package imports is what pyproject.toml declares: nothing is owed to another package's dependencies."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from versions import FAST_PART, FROM_CACHE, IN_ARVIZ

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "src" / "pathtemp").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def imported(text: str, *, at_once: bool = False) -> set[str]:
    """The packages outside the standard library that a module imports: wherever in it, or as soon as it is imported."""
    module = ast.parse(text)
    nodes = module.body if at_once else list(ast.walk(module))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"pathtemp"}


def declared(*extras: str) -> set[str]:
    """The import names of the direct dependencies, with those of some extras."""
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    found = (re.match(r"[\w.-]+", text) for group in groups for text in group)
    return {match[0].replace("-", "_") for match in found if match}


def owed(*extras: str, at_once: bool) -> dict[str, set[str]]:
    """The imports of each module that are not declared."""
    found = {str(path): imported(path.read_text(), at_once=at_once) - declared(*extras) for path in MODULES}
    return {name: missing for name, missing in found.items() if missing}


def test_imports_are_seen_wherever_they_are() -> None:
    text = "import os, numpy.linalg\ndef f():\n    from pandas.api import types\nfrom . import x\nimport pathtemp.fit"
    assert imported(text) == {"numpy", "pandas"}
    assert imported(text, at_once=True) == {"numpy"}


def test_every_import_is_declared() -> None:
    assert owed("stan", "pymc", "numpyro", "plots", "paper", "arviz", "dask", at_once=False) == {}


def test_no_module_needs_an_extra_to_be_imported() -> None:
    assert owed(at_once=True) == {}


def test_every_dependency_has_a_lower_bound() -> None:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    unbounded = [text for group in groups for text in group if ">=" not in text and not text.startswith("pathtemp[")]
    assert unbounded == []


def test_what_every_version_runs_is_there() -> None:
    for asked in (*FAST_PART, *FROM_CACHE, IN_ARVIZ[-1]):
        file, _, name = asked.partition("::")
        assert re.search(rf"^(def|class) {name}\b" if name else "", (ROOT / file).read_text(), re.M), asked
