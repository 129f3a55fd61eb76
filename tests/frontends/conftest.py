"""Which tests of the PyMC and NumPyro front ends run: `-m programs_full` for every model and the long runs."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "programs_full: every PyMC and NumPyro model, and long runs of them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "programs_full" in config.getoption("markexpr"):
        return
    heavy = [item for item in items if item.get_closest_marker("programs_full")]
    if heavy:
        config.hook.pytest_deselected(items=heavy)
        items[:] = [item for item in items if item not in heavy]
