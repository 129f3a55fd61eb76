"""How much a run does beside its gradients, and that it says so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from tempered import problem

import pathtemp as pt
from pathtemp.engines.default import effort
from pathtemp.errors import InputError
from pathtemp.model import price
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import Settings


def settled(settings: Settings) -> Settings:
    model = problem("mixture_1d").model
    return effort.settled_effort(settings, GeometricPath(model.log_base, model.log_target), np.zeros((3, 1)))


def takes(seconds: list[float]) -> Iterator[float]:
    """Seconds of each block of 64 evaluations, one after the other."""
    return iter(64.0 * np.array(seconds))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "DEAR", 2e-4)
    monkeypatch.setattr(effort, "CHEAP", 5e-6)


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ([1e-6], "thorough"),
        ([1e-3, 1e-3, 4e-6], "thorough"),
        ([1e-3, 1e-3, 1e-3, 1e-4, 1e-3], "full"),
        ([1e-3, 3e-4, 1e-3, 1e-3, 1e-3], "light"),
    ],
)
def test_the_price_of_a_density_decides(monkeypatch: pytest.MonkeyPatch, seconds: list[float], chosen: str) -> None:
    """The quickest timing counts, and none is made once one is cheap."""
    clock = takes(seconds)
    monkeypatch.setattr(effort, "_seconds", lambda path, block: next(clock))
    made = settled(Settings())
    assert made.effort == chosen
    assert made.orbit == (2 if chosen == "light" else 4)
    assert next(clock, None) is None


def test_what_the_user_says_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "_seconds", lambda *given: pytest.fail("it was timed"))
    light = settled(Settings(effort="light"))
    assert (light.effort, light.iterations, settled(light)) == ("light", 16, light)
    assert settled(Settings(effort="full", orbit=128)).orbit == 128


def test_a_slow_density_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "values_of", lambda path, theta: time.sleep(1e-3 * len(theta)))
    # A loaded machine may take longer, and never less.
    assert settled(Settings()).effort == "light"


def test_the_price_of_a_density_beside_its_gradient_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a density is not cheap; its gradient is all but free here, so that it costs as much."""
    monkeypatch.setattr(price, "DEAR", 2e-4)
    monkeypatch.setattr(effort, "values_of", lambda path, theta: time.sleep(5e-4 * len(theta)))
    assert settled(Settings()).density_price == 1.0
    assert settled(Settings(density_price=0.1)).density_price == 0.1
    assert settled(Settings(effort="full")).density_price == 0.25


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(InputError, match="effort: it must be one of auto, light, full, thorough"):
        Settings(effort="some")  # type: ignore[arg-type]


def test_a_light_run_says_so_and_evaluates_little() -> None:
    settings = Settings(effort="light")
    begin = time.perf_counter()
    fit = pt.temper(problem("mixture_1d").model, budget=60_000, seed=0, settings=settings, progress=False)
    passed = time.perf_counter() - begin
    assert fit.settings.effort == "light"  # type: ignore[union-attr]
    assert "light effort, a density costs 0.25 gradients" in str(fit.summary())
    # Two densities for each gradient of a round, and a scan of 1024; the full effort makes ten times as many.
    assert fit.counts.densities < 3 * fit.counts.gradients + 20_000
    assert {"start", "compile", "anneal", "search", "adapt", "sample", "verdict", "other"} == set(fit.seconds)
    assert 0.0 < sum(fit.seconds.values()) <= passed
