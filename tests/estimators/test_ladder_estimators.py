"""Exact answers and bad input of the estimators between two states and on ladders."""

from __future__ import annotations

import numpy as np
import pytest
from exact_paths import OSCILLATOR_LOG_Z, oscillators

from pathtemp.errors import InputError
from pathtemp.estimators import (
    annealed_importance,
    bridge,
    importance,
    ladder_importance,
    multistate_bridge,
    rao_blackwell,
    taylor,
    thermodynamic,
)
from pathtemp.testing.calibration import assert_rate


def test_importance_with_zero_ratios():
    # From U(-2, 2) to U(0, 2), unnormalised: half of the draws have ratio one.
    value, stderr = importance(np.repeat([0.0, -np.inf], 50)).log_ratio
    assert value == pytest.approx(-np.log(2.0))
    assert stderr == pytest.approx(np.sqrt(1.0 / 99.0), rel=1e-6)


def test_importance_does_not_overflow():
    assert importance(np.array([1e5, 1e5 - 1.0])).log_ratio[0] == pytest.approx(1e5 + np.log((1 + np.exp(-1)) / 2))


def test_taylor_and_importance_agree_as_the_step_shrinks():
    u = -0.5 * np.random.default_rng(0).normal(size=100) ** 2
    gap = [abs(importance(step * u).log_ratio[0] - taylor(u, step).log_ratio[0]) for step in (0.1, 0.01, 0.001)]
    assert gap[1] < 0.02 * gap[0]
    assert gap[2] < 0.02 * gap[1]


def test_bridge_between_uniforms_of_different_support():
    # State 1 covers half of state 0: its draws all have ratio one, and half of those of state 0 have none.
    value, stderr = bridge(np.repeat([0.0, -np.inf], 500), np.zeros(700)).log_ratio
    assert value == pytest.approx(-np.log(2.0), abs=1e-9)
    assert stderr == pytest.approx(np.sqrt(1.0 / 1000.0), rel=0.01)


def test_bridge_is_antisymmetric():
    rng = np.random.default_rng(1)
    x, y = -1.5 * rng.normal(size=50) ** 2, -0.375 * rng.normal(size=90) ** 2
    forward, backward = bridge(x, y).log_ratio, bridge(-y, -x).log_ratio
    assert forward[0] == pytest.approx(-backward[0], abs=1e-10)
    assert forward[1] == pytest.approx(backward[1], rel=1e-8)


def test_bridge_is_better_than_importance_either_way():
    errors = []
    for run in range(1000):
        rng = np.random.default_rng([2, run])
        x, y = rng.normal(size=500), rng.normal(size=500) / 4.0
        both = bridge(-7.5 * x**2, -7.5 * y**2).log_ratio[0]
        down, up = importance(-7.5 * x**2).log_ratio[0], -importance(7.5 * y**2).log_ratio[0]
        errors.append(np.array([both, down, up]) + np.log(4.0))
    both, down, up = np.square(errors).T
    # The root mean squares are .056 and .063; the mean difference of so many squares is eight of its errors from zero.
    assert np.mean(both) < np.mean(down)
    # From the narrow state the ratio has no variance.
    assert_rate(int(np.sum(both < up)), 1000, at_least=0.95)


def test_bridge_of_far_apart_scales():
    value, _ = bridge([-1e5, -1e5 + 1.0], [-1e5, -1e5 + 2.0]).log_ratio
    assert -1e5 < value < -1e5 + 2.0


def test_two_states_of_the_multistate_bridge_are_the_bridge():
    rng = np.random.default_rng(3)
    counts = [300, 0, 0, 0, 200]
    log_q = oscillators(rng, counts)[:, [0, 4]]
    ratio = log_q[:, 1] - log_q[:, 0]
    pair, many = bridge(ratio[:300], ratio[300:]).log_ratio, multistate_bridge(log_q, [300, 200]).log_ratio
    assert many[0] == pytest.approx(pair[0], abs=1e-8)
    assert many[1] == pytest.approx(pair[1], rel=0.05)


def test_multistate_bridge_does_not_mind_the_scale_of_densities():
    counts = [200, 100, 100, 100, 100]
    log_q = oscillators(np.random.default_rng(4), counts)
    shift, row = np.array([0.0, 1e4, -3e4, 5.0, 1e5]), np.linspace(-1e4, 1e4, 600)[:, None]
    moved = multistate_bridge(log_q + shift + row, counts)
    np.testing.assert_allclose(moved.mean - shift, multistate_bridge(log_q, counts).mean, atol=1e-6)


def test_rao_blackwell_with_different_supports():
    # States U(-2, 2) and U(0, 2), unnormalised, in joint draws under c = 1: z is 4 and 2.
    log_q = np.repeat([[0.0, -np.inf], [0.0, 0.0]], [2, 4], axis=0)
    assert rao_blackwell(log_q, [0.0, 0.0]).log_ratio[0] == pytest.approx(-np.log(2.0))


def test_rao_blackwell_does_not_depend_on_the_scale_of_c():
    log_q = oscillators(np.random.default_rng(5), [50] * 5)
    moved = rao_blackwell(log_q, OSCILLATOR_LOG_Z + 1e3)
    np.testing.assert_allclose(rao_blackwell(log_q, OSCILLATOR_LOG_Z).mean, moved.mean, atol=1e-9)


def test_annealed_work_does_not_exceed_log_z_on_average():
    increments = -0.5 * np.random.default_rng(6).normal(size=(500, 3)) ** 2
    estimate = annealed_importance(increments)
    assert np.all(np.cumsum(increments.mean(axis=0)) <= estimate.mean[1:])


def test_one_annealed_step_is_importance_sampling():
    ratio = -0.5 * np.random.default_rng(7).normal(size=100) ** 2
    assert annealed_importance(ratio[:, None]).log_ratio == importance(ratio).log_ratio


def test_thermodynamic_error_has_the_weights_of_the_trapezoid():
    u = [np.array([-1.0, 1.0]), np.array([-2.0, 2.0]), np.array([-3.0, 3.0])]
    # Variances of the means are 1, 4 and 9; weights of the rule .05, .5 and .45.
    estimate = thermodynamic([0.0, 0.1, 1.0], u)
    assert estimate.stderr[-1] == pytest.approx(np.sqrt(0.05**2 + 0.5**2 * 4.0 + 0.45**2 * 9.0))
    assert estimate.stderr[1] == pytest.approx(np.sqrt(0.05**2 * (1.0 + 4.0)))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: importance([np.nan]), "log_ratio"),
        (lambda: importance([-np.inf]), "states in between"),
        (lambda: taylor([np.inf], 1.0), "u must"),
        (lambda: ladder_importance([]), "log_ratios"),
        (lambda: ladder_importance([[0.0], []]), r"log_ratios\[1\]"),
        (lambda: ladder_importance([[0.0]], at=[0.0, 0.5, 1.0]), "at must have 2"),
        (lambda: bridge([-np.inf], [0.0]), "in common"),
        (lambda: multistate_bridge([[0.0, 0.0]], [1, 1]), "counts"),
        (lambda: multistate_bridge([[-np.inf, -np.inf]], [1, 0]), "log_q"),
        (lambda: rao_blackwell([[0.0, -np.inf]], [0.0, 0.0]), "log_q"),
        (lambda: rao_blackwell([[0.0, 0.0]], [0.0]), "log_c"),
        (lambda: annealed_importance([0.0]), "increments"),
        (lambda: thermodynamic([0.0, 1.0], [[0.0]]), "u must have 2"),
    ],
)
def test_bad_input_names_the_argument(call, word):
    with pytest.raises(InputError, match=word):
        call()
