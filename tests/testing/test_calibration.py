"""The judge of random results: how often it alarms at what is right, and at what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pathtemp.errors import InputError
from pathtemp.testing.calibration import (
    BIAS,
    ENOUGH,
    FALSE_ALARM,
    SPREAD,
    assert_close,
    assert_rate,
    assert_scores,
    combined,
    judge_scores,
    power,
)


@pytest.mark.parametrize(
    ("sd", "mean"),
    [(2.0, 0.0), (0.5, 0.0), (1.0, 1.0), (1.0, -1.0)],
    ids=["errors half their size", "errors twice their size", "bias of one error", "bias the other way"],
)
def test_what_is_wrong_is_caught(sd: float, mean: float) -> None:
    # The power is .998 or more: that 400 trials have more than 16 misses has a probability below 1e-12.
    assert power(ENOUGH, sd=sd, mean=mean, trials=400) >= 0.96


@pytest.mark.parametrize(("sd", "mean"), [(SPREAD[0], 0.0), (SPREAD[1], BIAS), (1.0, 0.0), (1.0, -BIAS)])
def test_false_alarms_have_the_rate_that_is_stated(sd: float, mean: float) -> None:
    """At a rate large enough to be counted, at the edges of what is allowed."""
    rate, trials = 0.05, 500
    rng = np.random.default_rng(1)
    for count in (1, 5, ENOUGH):
        z = mean + sd * rng.standard_normal((trials, count))
        alarms = sum(not judge_scores(row, false_alarm=rate).passed for row in z)
        assert stats.binom.sf(alarms - 1, trials, rate) > FALSE_ALARM


def test_few_groups_make_student_scores() -> None:
    """Standard errors from eight groups: z is Student-t, and would alarm were it taken for normal."""
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((20_000, 8))
    z = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(8))
    assert judge_scores(z, df=7, spread=(0.97, 1.03), bias=0.03).passed
    assert not judge_scores(z, spread=(0.97, 1.03), bias=0.03).passed


def test_scores_of_one_run_count_once() -> None:
    """Ten quantities that say the same thing are one score, and a shared error shows all the same."""
    rng = np.random.default_rng(3)
    same = rng.standard_normal((ENOUGH, 1)) * np.ones(10)
    noisy = same + 0.3 * rng.standard_normal(same.shape)
    np.testing.assert_allclose(combined(same), same[:, 0])
    assert judge_scores(combined(noisy / np.hypot(1.0, 0.3))).passed
    assert not judge_scores(combined(2.0 * noisy)).passed
    assert not judge_scores(combined(noisy + 1.0)).passed
    with pytest.raises(InputError, match="too few"):
        combined(np.zeros((3, 2)))


def test_scores_that_are_no_numbers_fail() -> None:
    for bad in (np.nan, np.inf):
        assert not judge_scores([0.1, bad]).passed
    with pytest.raises(InputError, match="no scores"):
        judge_scores([])
    with pytest.raises(AssertionError, match="standard errors too small"):
        assert_scores([10.0, -10.0, 10.0, -10.0])


def test_a_single_value() -> None:
    assert_close(1.0, 1.0, 0.0)
    for value, se in ((7.0, 1.0), (1.0, np.nan), (np.nan, 1.0), (1.0, 0.0), (0.5, np.inf)):
        with pytest.raises(AssertionError, match="are allowed"):
            assert_close(value, 0.0, se)
    # Nine groups: Student's t with eight degrees of freedom has wider tails, by as much as its quantile says.
    assert_close(14.0, 0.0, 1.0, df=8)


def test_rates() -> None:
    assert_rate(20, 20, at_least=0.9)
    assert_rate(0, 20, at_most=0.1)
    with pytest.raises(AssertionError, match="at most"):
        assert_rate(15, 20, at_most=0.1)
    with pytest.raises(AssertionError, match="at least"):
        assert_rate(2, 20, at_least=0.9)
