"""The second estimate of log z, from traces of exact draws: right, with an error that is over chains and not draws."""

from __future__ import annotations

import numpy as np
import pytest

from pathtemp.engines.default.trace import Trace
from pathtemp.engines.default.verdict import second_estimate
from pathtemp.testing.calibration import ENOUGH, assert_scores, judge_scores

CHAINS, DRAWS, TIMES = 16, 10, 4
GROUPS = 8
"""Chains are pooled to so many groups, which leaves one less degrees of freedom to the standard error."""
EXACT = -np.log(10.0)


def exact_trace(seed: int) -> Trace:
    """Draws on the path from a standard normal in two dimensions to one of precision 10, a tenth of them at each end.

    Every draw stands four times over: only the chains say how many there are.
    """
    rng = np.random.default_rng([seed, 21])
    lam = np.clip(rng.uniform(-0.125, 1.125, (DRAWS, CHAINS)), 0.0, 1.0)
    delta = -4.5 * rng.chisquare(2, lam.shape) / (1.0 + 9.0 * lam)
    trace = Trace(CHAINS)
    fields = {"a": lam, "lam": lam, "delta": delta, "first": delta}
    trace.rows.add(**{name: np.repeat(x, TIMES, axis=0) for name, x in fields.items()})
    return trace


@pytest.fixture(scope="module")
def estimates() -> np.ndarray:
    """Value and standard error, shape (128, 2)."""
    return np.array([second_estimate(exact_trace(seed)) for seed in range(ENOUGH)])


def test_errors_are_those_that_are_reported(estimates: np.ndarray) -> None:
    assert_scores((estimates[:, 0] - EXACT) / estimates[:, 1], df=GROUPS - 1)


def test_the_test_sees_errors_that_count_draws_instead_of_chains(estimates: np.ndarray) -> None:
    """Errors from the draws, each of them counted four times, are half as large."""
    by_draws = estimates[:, 1] / np.sqrt(TIMES)
    assert not judge_scores((estimates[:, 0] - EXACT) / by_draws, df=GROUPS - 1).passed


def test_without_draws_away_from_the_base_there_is_no_estimate() -> None:
    value, se = second_estimate(Trace(CHAINS))
    assert np.isnan(value)
    assert se == np.inf
    at_base = Trace(CHAINS)
    at_base.rows.add(**{name: np.zeros((DRAWS, CHAINS)) for name in ("a", "lam", "delta", "first")})
    value, se = second_estimate(at_base)
    assert np.isnan(value)
    assert se == np.inf


def test_long_runs_are_thinned_alike_in_all_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thinned by the four times that each draw stands, the trace still holds all there is to know."""
    whole = second_estimate(exact_trace(0))
    monkeypatch.setattr("pathtemp.engines.default.verdict.MBAR_POINTS", CHAINS * DRAWS)
    value, se = second_estimate(exact_trace(0))
    # The places of the nodes follow from the draws that are left, and move the value by a hundredth of its error.
    assert abs(value - whole[0]) < 0.1 * se
    assert se == pytest.approx(whole[1], rel=0.1)
