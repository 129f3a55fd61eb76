"""Runs on a path that starts from a law that bends: right by their own errors, and resumed bit by bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from kept_runs import assert_same, run_keeping
from tempered import first_that

import pathtemp as pt
from pathtemp.settings import Settings
from pathtemp.testing import ridge, twisted_normal
from pathtemp.testing.calibration import assert_scores

SETTINGS = Settings(chains=32, effort="full")
pytestmark = pytest.mark.slow


def bends(fit: pt.Fit) -> bool:
    return fit.modes is not None and fit.modes.why.startswith("a bent law")


def test_a_bent_path_goes_on_from_any_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = twisted_normal(2).model

    def run(seed: int) -> tuple[pt.Fit, list[Path]]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        return run_keeping(model, folder, monkeypatch, seed=seed, budget=150_000, settings=SETTINGS)

    fit, copies = first_that(lambda made: bends(made[0]), run)
    for number in (2, len(copies) // 2, len(copies) - 2):
        place = Path(shutil.copy(copies[number], tmp_path / f"run-{number}.nc"))
        assert_same(fit, pt.resume(place, model, progress=False))


@pytest.mark.parametrize("make", [twisted_normal, ridge])
def test_log_z_on_bent_paths_is_right_within_its_errors(make) -> None:
    """Curved in eight dimensions, and a narrow ridge with a mode at either end: of one law each, not of pieces."""
    problem = make()
    fits = [pt.temper(problem.model, seed=seed, budget=150_000, settings=SETTINGS, progress=False) for seed in range(8)]
    assert sum(map(bends, fits)) >= 2  # All eight were; were it three in four, one in two thousand times it is fewer.
    values = np.array([fit.log_marginal_likelihood for fit in fits])
    assert_scores((values[:, 0] - problem.log_z_end) / values[:, 1])
