"""Delta of any size: base draws far out on a log scale have delta of -1e44, and no weight anywhere on the path."""

from __future__ import annotations

import numpy as np
import pytest

from pathtemp.engines.default.learner import fit_prior, path_length, spread_of_delta
from pathtemp.errors import SamplingError
from pathtemp.estimators.mbar import mbar, mbar_se
from pathtemp.paths.links import metric_nodes
from pathtemp.testing.calibration import ENOUGH, assert_scores

SHARE = 0.05
"""Share of the base draws that are far out."""

FAR = (-1e3, -1e6, -1e13, -1e20, -1e44, -1e200, -1e300, -np.inf)
EXACT = float(-0.5 * np.log(10.0) + np.log(1.0 - SHARE))
"""log z(1): a normal whose precision goes from 1 to 10, and the share of the base that has no density there."""


def draws(rng: np.random.Generator, far: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Draws (lam, delta), a quarter of them at the base; a share of those far out, of one size or of all sizes."""
    lam = np.concatenate([np.zeros(500), rng.uniform(size=1500)])
    delta = -4.5 * (rng.normal(size=2000) / np.sqrt(1.0 + 9.0 * lam)) ** 2
    out = (lam == 0) & (rng.uniform(size=2000) < SHARE)
    delta[out] = -(10.0 ** rng.uniform(4.0, 300.0, out.sum())) if far is None else far
    return lam, delta


@pytest.mark.parametrize("far", [None, *(pytest.param(far, marks=pytest.mark.slow) for far in (-1e13, -np.inf))])
def test_mbar_is_right_whatever_the_size_of_delta(far: float | None) -> None:
    rng, z = np.random.default_rng(0), []
    grid = np.linspace(0.0, 1.0, 17)
    for _ in range(ENOUGH):
        lam, delta = draws(rng, far)
        log_z = mbar(lam, delta, grid, points=400)
        se = mbar_se(lam, delta, np.arange(len(lam)) % 16, grid, points=400)
        z.append((log_z[-1] - EXACT) / se[-1])
    # Sixteen groups give the standard error; the grid of 17 nodes has a bias of a tenth of it.
    assert_scores(z, df=15)


@pytest.mark.parametrize("far", [*FAR, None])
def test_the_fitted_pseudo_prior_and_the_length_of_the_path_do_not_see_what_has_no_weight(far: float | None) -> None:
    lam, delta = draws(np.random.default_rng(1), far)
    clean = draws(np.random.default_rng(1), -np.inf)
    centres, spread = spread_of_delta(lam, delta)
    assert np.all(np.isfinite(spread))
    assert path_length(lam, delta) == pytest.approx(path_length(*clean), rel=1.0)
    nodes = metric_nodes(centres, spread, 60)
    log_c = np.asarray(fit_prior(lam, delta, nodes).log_c)
    # Nodes and compression differ a little with the draws; each is right to a few hundredths (its error is .03).
    assert log_c[-1] == pytest.approx(float(fit_prior(*clean, nodes).log_c[-1]), abs=0.02)
    assert np.all(np.abs(log_c) < 3.0)


def test_a_pseudo_prior_without_digits_is_refused() -> None:
    lam = np.linspace(0.0, 1.0, 2000)
    with pytest.raises(SamplingError, match="too much for its digits"):
        fit_prior(lam, np.full(2000, -1e12), np.linspace(0.0, 1.0, 61))
