"""The marginal: quadrature against exact laws, extrapolation with a warning, standard errors from the jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pathtemp.errors import InputError
from pathtemp.result.marginal import Marginal
from pathtemp.testing.calibration import ENOUGH, assert_scores

LEVELS = np.array([1e-6, 1e-3, 0.2, 0.5, 0.9, 0.999, 1 - 1e-6])


def exponential(low: float = -16.0, *, restricted: bool = False) -> Marginal:
    u = np.linspace(low, 4.0, 129)
    log_p = stats.expon.logpdf(np.exp(u)) + u
    return Marginal.of("tau", u, log_p, np.tile(log_p, (4, 1)), np.exp, restricted=restricted)


def test_an_exponential_law_on_the_log_scale() -> None:
    marginal = exponential()
    np.testing.assert_allclose(marginal.quantile(LEVELS).value, stats.expon.ppf(LEVELS), rtol=1e-4)
    x = np.array([1e-4, 0.1, 1.0, 9.0])
    np.testing.assert_allclose(marginal.pdf(x).value, stats.expon.pdf(x), rtol=1e-4)
    np.testing.assert_allclose(marginal.log_pdf(x).value, stats.expon.logpdf(x), atol=1e-4)
    np.testing.assert_allclose(marginal.cdf(x).value, stats.expon.cdf(x), rtol=1e-4)
    for k, exact in ((1, 1.0), (2, 2.0), (3, 6.0)):
        assert marginal.moment(k).value == pytest.approx(exact, rel=1e-4)
    assert marginal.sd().value == pytest.approx(1.0, rel=1e-4)


def test_a_decreasing_map_turns_the_law_round() -> None:
    u = np.linspace(-9.0, 9.0, 129)
    log_p = stats.norm.logpdf(u, 1.0, 1.0)
    marginal = Marginal.of("x", u, log_p, np.tile(log_p, (3, 1)), lambda u: 3.0 - 2.0 * u, restricted=False)
    np.testing.assert_allclose(marginal.quantile(LEVELS[1:-1]).value, stats.norm.ppf(LEVELS[1:-1], 1.0, 2.0), atol=1e-3)


def test_tails_are_extrapolated_with_a_warning_and_only_then() -> None:
    short = exponential(low=-6.0)
    with pytest.warns(UserWarning, match="tau was sampled from"):
        value = short.quantile(1e-5).value
    assert value == pytest.approx(1e-5, rel=0.03)  # the exponential falls off like tau there, a straight line in u
    with pytest.warns(UserWarning, match="extrapolated"):
        assert short.cdf(1e-4).value == pytest.approx(1e-4, rel=0.03)
    assert short.quantile(0.5).value == pytest.approx(np.log(2.0), rel=1e-3)


def test_a_restricted_law_ends_at_its_interval() -> None:
    law = exponential(low=0.0, restricted=True)
    exact = stats.truncexpon(np.exp(4.0) - 1.0, loc=1.0)
    np.testing.assert_allclose(law.quantile([0.01, 0.5, 0.9]).value, exact.ppf([0.01, 0.5, 0.9]), rtol=1e-4)
    assert law.pdf(0.5).value == 0.0
    assert law.cdf(0.5).value == 0.0


def test_standard_errors_are_those_of_the_jackknife() -> None:
    rng = np.random.default_rng(0)
    u = np.linspace(-8.0, 8.0, 129)
    z = []
    for _ in range(ENOUGH):
        shifts = rng.normal(scale=0.3, size=16)
        curves = [-0.5 * (u - shift) ** 2 for shift in shifts]
        mean = np.mean(curves, axis=0)
        without = np.array([(16 * mean - curve) / 15 for curve in curves])
        marginal = Marginal.of("x", u, mean, without, lambda u: u, restricted=False)
        median = marginal.quantile(0.5)
        z.append(float(median.value / median.se))
    assert_scores(z, df=15)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="p: probabilities"):
        exponential().quantile(0.0)
    with pytest.raises(InputError, match="function: it must return"):
        exponential().expectation(lambda x: np.zeros(3))
