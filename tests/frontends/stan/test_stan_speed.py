"""What a gradient costs through XLA, beside the same call made from C, and how a batch uses the cores."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from pathtemp.frontends.stan.bridge import StanDensity

benchmark = pytest.importorskip("benchmarks.stan_bridge", reason="run from the root, as python -m pytest")
pytestmark = [pytest.mark.stan_full, pytest.mark.usefixtures("toolchain")]


def test_the_bridge_costs_less_than_a_microsecond() -> None:
    from_c, from_xla = benchmark.overhead(benchmark.example("eight_schools_centered"))
    assert from_xla - from_c < 1.0


@pytest.mark.parametrize("density", [lambda: benchmark.example("eight_schools_centered"), benchmark.mixture])
def test_a_batch_uses_the_cores(density: Callable[[], StanDensity]) -> None:
    cores = os.cpu_count() or 1
    if cores < 2 or os.getloadavg()[0] > 0.5 * cores:
        pytest.skip("one core, or cores that others keep busy")
    one_by_one, together = benchmark.sharing(density())
    assert one_by_one / together > 1.5
