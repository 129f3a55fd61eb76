"""What the tests of the Stan front end need; those marked `stan_full` compile many programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from stan_programs import build_default_programs

from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan import build as building
from pathtemp.frontends.stan.toolchain import find_compiler, find_stan

MOST_PROGRAMS = 2
"""How many programs the default suite may compile."""


@pytest.fixture(scope="session", autouse=True)
def few_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """The default suite stays quick: it fails where a test asks for one program too many."""
    wanted: set[str] = set()
    build = building.build

    def counted(artifacts: Sequence[building.Artifact], **options: Any) -> None:
        wanted.update(artifact.slot.key for artifact in artifacts if artifact.slot.kind == "program")
        build(artifacts, **options)

    building.build = counted
    yield
    building.build = build
    if "not stan_full" in request.config.getoption("markexpr"):
        assert len(wanted) <= MOST_PROGRAMS


@pytest.fixture(scope="session")
def stanc_available() -> None:
    try:
        find_stan()
    except (InputError, MissingExtraError) as error:
        pytest.skip(f"no Stan compiler: {error}")


@pytest.fixture(scope="session")
def toolchain(stanc_available: None) -> None:
    if find_compiler() is None:
        pytest.skip("no C++ compiler")


@pytest.fixture(scope="session")
def compiled(toolchain: None) -> None:
    """The programs of the default suite, compiled side by side where the cache lacks them."""
    build_default_programs()
