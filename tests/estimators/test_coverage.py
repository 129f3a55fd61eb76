"""The truth lies within two reported standard errors as often as it should, over many seeds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from exact_paths import OSCILLATOR_LOG_Z, PRECISIONS, link, oscillators, scale_log_z, scale_path

from pathtemp.estimators import (
    Estimate,
    annealed_importance,
    bridge,
    importance,
    ladder_importance,
    mbar,
    mbar_se,
    multistate_bridge,
    path_sampling,
    rao_blackwell,
    taylor,
    thermodynamic,
)

SEEDS = 200
LOG_RATIOS = OSCILLATOR_LOG_Z - OSCILLATOR_LOG_Z[0]


def by_importance(rng: np.random.Generator) -> tuple[Estimate, np.ndarray]:
    x = rng.normal(size=400)
    return importance(-0.5 * x**2), LOG_RATIOS[:2]


def by_taylor(rng):
    # The expansion estimates the slope: the truth is that of the slope, whatever the step.
    return taylor(-0.5 * rng.normal(size=400) ** 2, 0.3), np.array([0.0, -0.15])


def by_ladder_importance(rng):
    steps = np.diff(PRECISIONS)
    ratios = [-0.5 * d * rng.normal(size=400) ** 2 / k for d, k in zip(steps, PRECISIONS, strict=False)]
    return ladder_importance(ratios), LOG_RATIOS


def by_bridge(rng):
    x, y = rng.normal(size=200), rng.normal(size=600) / 4.0
    return bridge(-7.5 * x**2, -7.5 * y**2), LOG_RATIOS[[0, 4]]


def by_multistate_bridge(rng):
    counts = [300, 20, 100, 50, 200]
    return multistate_bridge(oscillators(rng, counts), counts), LOG_RATIOS


def by_mbar(rng):
    lam = rng.choice((PRECISIONS - 1.0) / 15.0, size=800)
    delta = -7.5 * rng.normal(size=800) ** 2 / (1.0 + 15.0 * lam)
    grid, groups = (PRECISIONS - 1.0) / 15.0, np.arange(800) % 50
    return Estimate(grid, mbar(lam, delta, grid), mbar_se(lam, delta, groups, grid)), LOG_RATIOS


def joint_ladder(rng, log_c, n):
    """Exact joint draws: k with probability z_k / c_k, theta given k; log_q at every state."""
    p = np.exp(OSCILLATOR_LOG_Z - log_c)
    k = rng.choice(5, size=n, p=p / p.sum())
    x = rng.normal(size=n) / np.sqrt(PRECISIONS[k])
    return -0.5 * x[:, None] ** 2 * PRECISIONS


def by_rao_blackwell(rng):
    log_c = np.array([0.0, -0.5, 0.3, -1.0, -1.2])
    return rao_blackwell(joint_ladder(rng, log_c, 500), log_c), LOG_RATIOS


def by_rao_blackwell_in_groups(rng):
    # Every draw eight times over, as a slow chain would have it: only the groups tell.
    log_c = np.zeros(5)
    log_q = np.repeat(joint_ladder(rng, log_c, 320), 8, axis=0)
    return rao_blackwell(log_q, log_c, groups=np.arange(2560) // 8), LOG_RATIOS


def by_annealed_importance(rng):
    # Half-refreshed at each step: invariant for its state, but never in equilibrium with it.
    x, increments = rng.normal(size=600), []
    for here, there in pairwise(PRECISIONS):
        increments.append(-0.5 * (there - here) * x**2)
        x = 0.5 * x + np.sqrt(0.75 / there) * rng.normal(size=600)
    return annealed_importance(np.stack(increments, axis=1)), LOG_RATIOS


def by_thermodynamic(rng):
    precision = np.geomspace(1.0, 16.0, 161)
    u = [-7.5 * rng.normal(size=10) ** 2 / k for k in precision]
    estimate = thermodynamic((precision - 1.0) / 15.0, u)
    return Estimate(PRECISIONS, estimate.mean[::40], estimate.stderr[::40]), LOG_RATIOS


def by_path_sampling(rng, groups=None):
    a = rng.uniform(size=1500)
    lam, slope = link(a)
    at = np.array([0.0, 0.3, 0.45, 0.6, 1.0])
    return path_sampling(a, slope * scale_path(rng, lam), at, groups=groups), scale_log_z(link(at)[0])


def by_path_sampling_in_groups(rng):
    return by_path_sampling(rng, groups=np.arange(1500) % 40)


CASES: list[Callable] = [
    by_importance,
    by_taylor,
    by_ladder_importance,
    by_bridge,
    by_multistate_bridge,
    by_mbar,
    by_rao_blackwell,
    by_rao_blackwell_in_groups,
    by_annealed_importance,
    by_thermodynamic,
    by_path_sampling,
    by_path_sampling_in_groups,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_coverage_of_two_standard_errors(case):
    z = []
    for seed in range(SEEDS):
        estimate, truth = case(np.random.default_rng([seed, 2020]))
        z.append((estimate.mean - truth)[1:] / estimate.stderr[1:])
    inside = np.mean(np.abs(z) < 2.0, axis=0)
    assert np.all((inside >= 0.88) & (inside <= 0.99)), inside
    # An estimator that is biased by half a standard error would pass the line above.
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.35)
