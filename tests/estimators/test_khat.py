from __future__ import annotations

import numpy as np
import pytest
from exact_paths import link, scale_path

from pathtemp.errors import InputError
from pathtemp.estimators import khat, khat_threshold, marginal
from pathtemp.testing.calibration import assert_close, assert_rate


def khat_of_run(run: int, excess_slope: float, *, n: int = 3000):
    """Exact joint draws under log c = log z + slope lam, and k-hat of their estimated 1/p(a)."""
    rng = np.random.default_rng([7, run])
    fine = np.linspace(0.0, 1.0, 4001)
    p = np.exp(-excess_slope * link(fine)[0])
    cdf = np.concatenate([[0.0], np.cumsum(p[1:] + p[:-1])])
    a = np.interp(rng.uniform(size=n), cdf / cdf[-1], fine)
    lam, slope = link(a)
    dlogc_da = slope * (-9.0 / (1.0 + 9.0 * lam) + excess_slope)
    log_p = marginal(a, slope * scale_path(rng, lam), dlogc_da, np.linspace(0.0, 1.0, 101))
    ratio = -np.interp(a, log_p.at, log_p.mean)
    return ratio, (lam == 0) | (lam == 1), khat(ratio, flat=(lam == 0) | (lam == 1))


RUNS = 32


def test_passes_when_c_is_z():
    runs = [khat_of_run(run, 0.0)[2] for run in range(RUNS)]
    assert_rate(sum(good.passed and good.value < 0.5 for good in runs), RUNS, at_least=0.95)


def test_alarms_when_c_is_far_off():
    runs = [khat_of_run(run, 12.0)[2] for run in range(RUNS)]
    assert_rate(sum(not bad.passed for bad in runs), RUNS, at_least=0.95)


def test_visits_to_the_flat_ends_do_not_change_it():
    ratio, flat, before = khat_of_run(1, 3.0)
    extra = np.full(20_000, ratio[flat].max())
    after = khat(np.concatenate([ratio, extra]), flat=np.concatenate([flat, np.ones(20_000, dtype=bool)]))
    assert after == before


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.2])
def test_recovers_the_shape_of_a_pareto_tail(shape):
    log_ratio = shape * np.random.default_rng(2).exponential(size=20_000)
    tail = 3.0 * np.sqrt(20_000)
    assert_close(khat(log_ratio).value, shape, (1.0 + shape) / np.sqrt(tail))


def test_scale_of_the_ratios_does_not_matter():
    log_ratio = np.random.default_rng(3).exponential(size=1000)
    assert khat(log_ratio + 5e4).value == pytest.approx(khat(log_ratio).value, abs=1e-6)


def test_ties():
    assert khat(np.zeros(100)).value == -np.inf
    assert khat(np.zeros(100)).passed
    # The cutoff falls among the ties: the distinct ratios decide.
    tied = np.concatenate([np.zeros(5000), np.random.default_rng(4).exponential(size=40)])
    assert np.isfinite(khat(tied).value)
    assert np.isnan(khat(np.concatenate([np.zeros(990), np.arange(10.0)])).value)


@pytest.mark.parametrize("tied", range(70, 121, 2))
def test_ties_at_the_top_of_any_number(tied):
    """As many as the tail has draws, one fewer, one more: whatever the cutoff falls on, there is an answer."""
    ratio = np.append(np.random.default_rng(0).normal(-3.0, 1.0, size=1000 - tied), np.full(tied, 1.0))
    assert khat(ratio).value < 0.7


def test_too_few_draws_is_not_a_pass():
    few = khat(np.arange(20.0))
    assert np.isnan(few.value)
    assert not few.passed
    assert few.draws == 20


def test_threshold_grows_with_the_sample():
    assert [round(khat_threshold(n), 3) for n in (10, 100, 1000, 10**6)] == [0.0, 0.5, 0.667, 0.7]


def test_bad_input():
    with pytest.raises(InputError, match="flat"):
        khat(np.zeros(30), flat=[True])
    with pytest.raises(InputError, match="log_ratio"):
        khat([np.inf] * 30)
