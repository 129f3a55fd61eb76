"""Errors of every estimator have the size of its standard errors, and no bias, over many independent runs."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.coverage import CASES, SYSTEMS
from pathtemp.testing.calibration import ENOUGH, assert_scores

DEAR = ("mbar", "multistate_bridge")
"""Estimators that solve equations for every data set."""


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow) if c in DEAR else c for c in CASES])
def test_errors_are_those_reported(case: str, system: str) -> None:
    scores = []
    for run in range(ENOUGH):
        estimate, truth = CASES[case](np.random.default_rng([2020, run]), SYSTEMS[system])
        scores.append((estimate.mean - truth)[1:] / estimate.stderr[1:])
    for at_one_position in np.array(scores).T:
        assert_scores(at_one_position)
