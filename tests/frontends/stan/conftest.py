"""Which tests of the Stan front end run: `-m stan_full` for those that compile many programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from stan_programs import build_default_programs

from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.stan.toolchain import find_compiler, find_stan

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stan_full: compiles many Stan programs; run by `make test-stan`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "stan_full" in config.getoption("markexpr"):
        return
    heavy = [item for item in items if HERE in item.path.parents and item.get_closest_marker("stan_full")]
    if heavy:
        config.hook.pytest_deselected(items=heavy)
        items[:] = [item for item in items if item not in heavy]


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
