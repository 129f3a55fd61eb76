"""The truth lies within two reported standard errors as often as it should, over many seeds."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.coverage import CASES, RANGE, SYSTEMS, z_scores

SEEDS = 200


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("case", CASES)
def test_coverage_of_two_standard_errors(case: str, system: str) -> None:
    z = z_scores(case, system, seeds=SEEDS)
    inside = np.mean(np.abs(z) < 2.0, axis=0)
    assert np.all((inside >= RANGE[0]) & (inside <= RANGE[1])), inside
    # An estimator that is biased by half a standard error would pass the line above.
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.35)
