"""What is released: one version everywhere, a recipe that asks for what the package needs, and packages that work."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import PROJECT, ROOT, Built, Environment, build
from make_dist import try_both

import pathtemp as pt

LANGUAGES = {"jax": "plots", "stan": "stan,plots", "numpyro": "numpyro,arviz,plots", "pymc": "pymc,plots"}
"""The extras that a user of each language installs, in the order in which one environment gets them.

Each language finds what those before it brought, so that the one with least comes first; that no import goes without
its dependency is seen by tests/test_declared.py.
"""


def requirement(text: str) -> tuple[str, str]:
    """Name and lower bound: of ``jax>=0.6`` as of ``jax >=0.6``."""
    found = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?\s*>=([\d.]+)", text)
    assert found, text
    return found[1], found[2]


def recipe(section: str) -> dict[str, str]:
    """The requirements that the recipe lists in one of its sections."""
    text = (ROOT / "conda" / "meta.yaml").read_text()
    listed = re.search(rf"^  {section}:\n((?:    - .*\n)+)", text, re.MULTILINE)
    assert listed, section
    lines = [line.removeprefix("    - ") for line in listed[1].splitlines()]
    return dict(requirement(line) for line in lines if ">=" in line)


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f'version = "{version}"' in (ROOT / "conda" / "meta.yaml").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", pt.__version__)


def test_the_recipe_asks_for_what_the_package_needs() -> None:
    needed = dict(requirement(text) for text in PROJECT["dependencies"])
    found = recipe("run")
    assert found.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert found == needed
    extras = dict(requirement(text) for name in ("pymc", "numpyro") for text in PROJECT["optional-dependencies"][name])
    assert {name: bound for name, bound in recipe("run_constrained").items() if name in extras} == extras


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built") / "dist")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is gone afterwards: an environment takes two gigabytes."""
    folder = tmp_path_factory.mktemp("release")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def environment(built: Built, place: Path) -> Environment:
    """One environment for all: empty, then with the wheel, then with one extra more for each language."""
    made = Environment.fresh(place / "environment")
    lines = try_both(built, made, place)
    assert len(lines) == 2, lines
    return made


@pytest.mark.release
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_hour(language: str, built: Built, environment: Environment, place: Path) -> None:
    if language == "stan" and not any(shutil.which(name) for name in ("g++", "clang++")):
        pytest.skip("there is no C++ compiler")
    environment.install(built.wheel, extras=LANGUAGES[language])
    script = Path(__file__).with_name("first_hour.py")
    folder = place / language
    folder.mkdir()
    said = environment.run("python", script, language, cwd=folder)
    print(said)
    assert said.splitlines()[-1] == f"the first hour with {language}: done"


@pytest.mark.release
def test_all_extras_together(built: Built, environment: Environment, place: Path) -> None:
    environment.install(built.wheel, extras="all")
    said = environment.run("pathtemp", "doctor", cwd=place)
    lines = {line.split()[1]: line.split()[0] for line in said.splitlines() if line.split()[:1] in (["ok"], ["absent"])}
    assert {lines[name] for name in ("httpstan", "pymc", "numpyro", "matplotlib")} == {"ok"}
