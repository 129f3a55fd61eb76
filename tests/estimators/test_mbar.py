from __future__ import annotations

import numpy as np
import pytest
from exact_paths import (
    hard_beta_binomial,
    hard_beta_binomial_log_z,
    link,
    scale_log_z,
    scale_path,
)
from scipy.special import logsumexp

from pathtemp.errors import InputError
from pathtemp.estimators import bridge, mbar, mbar_se, multistate_bridge
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_scores

GRID = np.linspace(0.0, 1.0, 33)


def joint_draws(seed: int, n: int = 2000, dim: int = 2):
    rng = np.random.default_rng(seed)
    lam, _ = link(rng.uniform(size=n))
    return lam, scale_path(rng, lam, dim=dim)


def test_closed_form_over_the_whole_curve():
    lam, delta = joint_draws(1, n=20_000)
    error = mbar_se(lam, delta, np.arange(lam.size) % 64, GRID)
    assert_close(mbar(lam, delta, GRID)[1:], scale_log_z(GRID)[1:], error[1:], df=63)


@pytest.mark.slow
def test_errors_over_many_runs_are_those_of_the_jackknife():
    nodes, scores = np.linspace(0.0, 1.0, 9), []
    for run in range(ENOUGH):
        rng = np.random.default_rng([1, run])
        lam, _ = link(rng.uniform(size=600))
        delta = scale_path(rng, lam)
        error = mbar_se(lam, delta, np.arange(600) % 20, nodes)
        scores.append((mbar(lam, delta, nodes) - scale_log_z(nodes))[[1, 4, 8]] / error[[1, 4, 8]])
    for at_one_node in np.array(scores).T:
        assert_scores(at_one_node, df=19)


def test_error_is_that_of_the_jackknife_that_solves_again():
    nodes = np.linspace(0.0, 1.0, 17)
    lam, delta = joint_draws(20, n=1600)
    lam = np.where(np.abs(lam - 0.5) < 0.13, 0.8, lam)  # leaves nodes around 0.5 without a draw
    delta = scale_path(np.random.default_rng(20), lam)
    delta[(lam == 0) & (np.arange(1600) % 3 == 0)] = -np.inf
    block = np.arange(1600) % 16
    left_out = [mbar(lam[block != b], delta[block != b], nodes, tolerance=1e-9) for b in range(16)]
    jackknife = np.sqrt(15.0 * np.var(left_out, axis=0))
    np.testing.assert_allclose(mbar_se(lam, delta, block, nodes), jackknife, rtol=0.05)


@pytest.mark.slow
def test_hard_beta_binomial_z_scores():
    nodes, _ = link(np.linspace(0.1, 0.8, 65))
    z = []
    for run in range(ENOUGH):
        rng = np.random.default_rng([2, run])
        lam, _ = link(rng.uniform(size=3000))
        delta = hard_beta_binomial(rng, lam)
        se = mbar_se(lam, delta, np.arange(3000) % 16, nodes)
        z.append((mbar(lam, delta, nodes) - hard_beta_binomial_log_z(nodes))[-1] / se[-1])
    assert_scores(z, df=15)


def test_two_nodes_are_bridge_sampling():
    rng = np.random.default_rng(3)
    lam = np.repeat([0.0, 1.0], [300, 700])
    delta = scale_path(rng, lam)
    expected = bridge(delta[:300], delta[300:]).log_ratio[0]
    assert mbar(lam, delta, [0.0, 1.0], tolerance=1e-10)[1] == pytest.approx(expected, abs=1e-8)


def test_lams_on_nodes_are_the_multistate_bridge():
    rng = np.random.default_rng(4)
    nodes = np.array([0.0, 0.1, 0.4, 1.0])
    lam = np.repeat(nodes, [300, 50, 200, 700])
    delta = scale_path(rng, lam)
    expected = multistate_bridge(delta[:, None] * nodes, [300, 50, 200, 700])
    np.testing.assert_allclose(mbar(lam, delta, nodes, tolerance=1e-10), expected.mean, atol=1e-7)


def test_compression_does_not_show():
    nodes, _ = link(np.linspace(0.1, 0.8, 33))
    rng = np.random.default_rng(5)
    lam, _ = link(rng.uniform(size=8000))
    delta = hard_beta_binomial(rng, lam)
    whole = mbar(lam, delta, nodes, points=8000)
    np.testing.assert_allclose(mbar(lam, delta, nodes), whole, atol=2e-3)


def test_integer_weights_are_repeated_draws():
    lam, delta = joint_draws(6, n=300)
    weights = np.arange(300) % 3
    repeated = mbar(np.repeat(lam, weights), np.repeat(delta, weights), GRID, tolerance=1e-9)
    np.testing.assert_allclose(mbar(lam, delta, GRID, weights=weights, tolerance=1e-9), repeated, atol=1e-7)


def test_order_and_shape_of_draws_do_not_matter():
    lam, delta = joint_draws(7)
    shuffle = np.random.default_rng(0).permutation(lam.size)
    again = mbar(lam[shuffle].reshape(20, -1), delta[shuffle].reshape(20, -1), GRID)
    np.testing.assert_allclose(again, mbar(lam, delta, GRID), atol=1e-6)


@pytest.mark.parametrize("fixed", [0.0, 0.5, 1.0])
def test_all_lams_equal_is_importance_sampling(fixed):
    lam = np.full(500, fixed)
    delta = scale_path(np.random.default_rng(8), lam)
    nodes = np.array([0.0, 0.5, 1.0])
    weights = logsumexp((nodes - fixed) * delta[:, None], axis=0)
    np.testing.assert_allclose(mbar(lam, delta, nodes), weights - weights[0], atol=1e-8)


def test_unvisited_nodes_and_few_draws():
    rng = np.random.default_rng(9)
    lam = np.repeat([0.0, 1.0], 2000)
    delta = scale_path(rng, lam)
    error = mbar_se(lam, delta, np.arange(4000) % 40, GRID)
    assert_close(mbar(lam, delta, GRID)[1:], scale_log_z(GRID)[1:], error[1:], df=39)
    assert mbar([0.3], [-2.0], [0.0, 1.0]).tolist() == pytest.approx([0.0, -2.0])


def test_target_without_density_on_half_of_the_base():
    rng = np.random.default_rng(10)
    lam, _ = link(rng.uniform(size=20_000))
    theta = np.where(lam > 0, rng.uniform(0.0, 2.0, lam.size), rng.uniform(-2.0, 2.0, lam.size))
    delta = np.where(theta > 0, 0.0, -np.inf)
    curve = mbar(lam, delta, GRID)
    share_se = np.sqrt(1.0 / np.sum(lam == 0))
    assert curve[0] == 0.0
    assert_close(curve[1:], -np.log(2.0), share_se)
    # An error from 64 groups has a relative standard error of .09.
    assert mbar_se(lam, delta, np.arange(lam.size) % 64, GRID)[-1] == pytest.approx(share_se, rel=0.6)


def test_base_without_density_on_half_of_the_target():
    rng = np.random.default_rng(11)
    lam, _ = link(rng.uniform(size=20_000))
    theta = np.where(lam < 1, rng.uniform(0.0, 2.0, lam.size), rng.uniform(-2.0, 2.0, lam.size))
    curve = mbar(lam, np.where(theta > 0, 0.0, np.inf), GRID)
    assert np.max(np.abs(curve[:-1])) < 1e-12
    assert_close(curve[-1], np.log(2.0), 1.0 / np.sqrt(np.sum(lam == 1)))


def test_huge_delta():
    lam, delta = joint_draws(12, n=4000, dim=40_000)
    assert np.min(delta) < -1e5
    nodes, _ = link(np.linspace(0.1, 0.8, 257))
    curve = mbar(lam, delta, nodes)
    assert np.isfinite(curve).all()
    error = mbar_se(lam, delta, np.arange(lam.size) % 20, nodes)[-1]
    assert error < 10.0
    assert_close(curve[-1], -20_000 * np.log(10.0), error, df=19)


def test_constant_likelihood():
    lam, _ = joint_draws(13)
    np.testing.assert_allclose(mbar(lam, np.full(lam.size, -3.0), GRID), -3.0 * GRID, atol=1e-9)


def test_one_group_has_no_error():
    lam, delta = joint_draws(14, n=100)
    assert np.isnan(mbar_se(lam, delta, np.zeros(100), GRID)).all()


@pytest.mark.parametrize(
    ("lam", "delta", "grid", "word"),
    [
        ([0.5], [1.0, 2.0], [0.0, 1.0], "delta"),
        ([0.5], [np.nan], [0.0, 1.0], "delta"),
        ([0.0], [-np.inf], [0.0, 1.0], "delta"),
        ([1.5], [1.0], [0.0, 1.0], "lam"),
        ([], [], [0.0, 1.0], "lam"),
        ([0.5], [1.0], [0.1, 1.0], "grid"),
        ([0.5], [1.0], [0.0, 0.0], "grid"),
    ],
)
def test_bad_input_names_the_argument(lam, delta, grid, word):
    with pytest.raises(InputError, match=word):
        mbar(lam, delta, grid)
