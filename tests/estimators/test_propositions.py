"""The propositions of the paper's appendix, as identities and limits between the estimators."""

from __future__ import annotations

import numpy as np
from exact_paths import OSCILLATOR_LOG_Z, oscillators

from pathtemp.estimators import (
    annealed_importance,
    bridge,
    ladder_importance,
    multistate_bridge,
    rao_blackwell,
    thermodynamic,
)
from pathtemp.testing.calibration import assert_close

COUNTS = [60, 20, 50, 10, 40]


def test_rao_blackwell_is_the_multistate_bridge_with_the_stated_alpha():
    """z_i - a_i z_i + sum_j b_ij z_j, alpha_ij = (n_j / z_j) / sum_m q_m / c_m and c_m = z_m / n_m."""
    q = np.exp(oscillators(np.random.default_rng(1), COUNTS))
    n = np.array(COUNTS)
    state = np.repeat(np.arange(5), n)
    guess = np.exp(np.array([0.0, 0.4, -0.2, -1.5, -0.7]))
    c = guess / n
    total = (q / c).sum(axis=1)
    expected = np.empty(5)
    for i in range(5):
        others = [j for j in range(5) if j != i]
        own = state == i
        a_i = sum(np.mean((n[j] / guess[j] / total * q[:, j])[own]) for j in others)
        b_i = {j: np.mean((n[j] / guess[j] / total * q[:, i])[state == j]) for j in others}
        expected[i] = guess[i] - a_i * guess[i] + sum(b_i[j] * guess[j] for j in others)
    estimate = rao_blackwell(np.log(q), np.log(c))
    np.testing.assert_allclose(estimate.mean, np.log(expected / expected[0]), atol=1e-12)


def test_rao_blackwell_with_the_optimal_c_is_a_fixed_point():
    log_q = oscillators(np.random.default_rng(2), COUNTS)
    optimal = multistate_bridge(log_q, COUNTS)
    again = rao_blackwell(log_q, optimal.mean - np.log(COUNTS))
    np.testing.assert_allclose(again.mean, optimal.mean, atol=1e-9)


def test_path_sampling_is_the_limit_of_bridge_and_annealed_importance():
    """On the same draws of ever denser ladders, the estimates on the scale of z approach that of log z."""
    rng = np.random.default_rng(3)
    gaps = []
    for rungs in (4, 16, 64, 256):
        precision = np.geomspace(1.0, 16.0, rungs + 1)
        draws = rng.normal(size=(400, rungs + 1)) / np.sqrt(precision)
        u = -7.5 * draws**2
        step = np.diff(precision) / 15.0
        path, error = thermodynamic((precision - 1.0) / 15.0, list(u.T)).log_ratio
        importance_steps = ladder_importance(list((u[:, :-1] * step).T)).log_ratio[0]
        bridges = sum(bridge(u[:, j] * step[j], u[:, j + 1] * step[j]).log_ratio[0] for j in range(rungs))
        annealed = annealed_importance(u[:, :-1] * step).log_ratio[0]
        gaps.append(np.abs(np.array([importance_steps, bridges, annealed]) - path))
    gaps = np.array(gaps)
    # The trapezoid of the densest ladder is 2e-5 off.
    assert_close(path, OSCILLATOR_LOG_Z[-1], error)
    # Noise aside, the gap of importance sampling and annealing falls with the spacing, of the bridge faster: from .1 on
    # the first ladder to .0005, less than 1e-4 and .001 (standard deviations) on the last.
    assert np.all(gaps[-1] < [0.01, 0.002, 0.02])
    assert np.all(gaps[-1] < gaps[0] / 8.0)
