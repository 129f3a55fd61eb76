from __future__ import annotations

import numpy as np
import pytest
from exact_paths import hard_beta_binomial, hard_beta_binomial_log_z, link, scale_log_z, scale_path

from pathtemp.errors import InputError
from pathtemp.estimators import isotonic, path_sampling, pinned
from pathtemp.testing.calibration import ENOUGH, assert_close


def test_closed_form_over_the_whole_curve():
    rng = np.random.default_rng(1)
    lam, _ = link(rng.uniform(size=(32, 2000)))
    delta = scale_path(rng, lam)
    grid = np.linspace(0.0, 1.0, 17)
    curves = np.array([isotonic(one, u, grid) for one, u in zip(lam, delta, strict=True)])
    # It gives no standard errors: those of the mean come from the spread of the runs.
    error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    assert_close(curves.mean(axis=0)[1:], scale_log_z(grid)[1:], error[1:], df=len(curves) - 1)


def test_curve_is_convex():
    rng = np.random.default_rng(2)
    lam, _ = link(rng.uniform(size=300))
    curve = isotonic(lam, scale_path(rng, lam), np.linspace(0.0, 1.0, 401))
    assert np.min(np.diff(curve, 2)) > -1e-9


def test_error_is_within_that_of_the_trapezoid_on_the_hard_beta_binomial():
    at = np.linspace(0.1, 0.8, 65)
    nodes, _ = link(at)
    truth = hard_beta_binomial_log_z(nodes)
    smooth, raw = [], []
    for run in range(ENOUGH):
        rng = np.random.default_rng([1, run])
        a = rng.uniform(size=500)
        lam, slope = link(a)
        delta = hard_beta_binomial(rng, lam)
        smooth.append(np.mean((isotonic(lam, delta, nodes) - truth) ** 2))
        raw.append(np.mean((path_sampling(a, slope * delta, at).mean - truth) ** 2))
    # The root mean squares are .92 and 1.0: the difference of the means of squares is six of its standard errors away.
    assert np.sqrt(np.mean(smooth)) < 1.3 * np.sqrt(np.mean(raw))


def test_ties_are_pooled_whatever_their_order():
    lam, delta = np.array([0.0, 0.0, 0.5, 0.5, 1.0]), np.array([-9.0, -1.0, -1.0, -5.0, 0.0])
    grid = np.linspace(0.0, 1.0, 11)
    order = [1, 0, 3, 2, 4]
    np.testing.assert_allclose(isotonic(lam, delta, grid), isotonic(lam[order], delta[order], grid))


def test_slope_is_constant_beyond_the_outermost_draws():
    for estimator in (isotonic, pinned):
        curve = estimator([0.4, 0.6], [1.0, 2.0], [0.0, 0.2, 0.4, 0.6, 1.0])
        np.testing.assert_allclose(curve, [0.0, 0.2, 0.4, 0.7, 1.5])


def test_zero_density_of_the_target_is_a_jump_at_0():
    curve = isotonic([0.0, 0.0, 0.0, 0.0, 1.0], [-np.inf, 0.0, -np.inf, 0.0, 0.0], [0.0, 0.1, 1.0])
    np.testing.assert_allclose(curve, [0.0, -np.log(2.0), -np.log(2.0)])


def test_weights_are_repeated_draws():
    rng = np.random.default_rng(3)
    lam = rng.uniform(size=200)
    delta = scale_path(rng, lam)
    weights = np.arange(200) % 4
    grid = np.linspace(0.0, 1.0, 17)
    for estimator in (isotonic, pinned):
        repeated = estimator(np.repeat(lam, weights), np.repeat(delta, weights), grid)
        np.testing.assert_allclose(estimator(lam, delta, grid, weights=weights), repeated, atol=1e-10)


def test_pinned_chains_of_a_large_problem():
    rng = np.random.default_rng(4)
    strata, _ = link(np.linspace(0.1, 0.8, 64))
    lam, ends = np.repeat(strata, 50), [0.0, 1.0]
    slope = -9000.0 / (1.0 + 9.0 * strata)
    by_rule = pinned(strata, slope, ends)[-1]
    assert by_rule == pytest.approx(-1000.0 * np.log(10.0), abs=1.0)
    # The rule is linear in the means of the strata, each of standard error sqrt(2 / (50 dim)) times itself.
    weight = np.array([pinned(strata, unit, ends)[-1] for unit in np.eye(64)])
    error = np.sqrt(np.sum((weight * slope) ** 2) * 2.0 / (50 * 2000))
    assert_close(pinned(lam, scale_path(rng, lam, dim=2000), ends)[-1], by_rule, error)


def test_bad_grid():
    with pytest.raises(InputError, match="grid"):
        isotonic([0.5], [1.0], [1.0, 0.0])
