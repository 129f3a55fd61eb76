"""The rules behind the truths, against distributions that scipy knows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pathtemp.errors import InputError
from pathtemp.testing.calibration import FALSE_ALARM
from pathtemp.testing.quadrature import TabulatedDensity, draw_tabulated, edges_around, gauss_legendre


def test_gauss_legendre_is_exact_for_polynomials_on_unequal_panels() -> None:
    x, log_w = gauss_legendre(np.array([-1.0, 0.5, 0.6, 3.0]), order=4)
    for power in range(8):
        exact = (3.0 ** (power + 1) - (-1.0) ** (power + 1)) / (power + 1)
        assert np.sum(np.exp(log_w) * x**power) == pytest.approx(exact, rel=1e-13)


def test_edges_hold_every_centre() -> None:
    edges = edges_around([-10.0, 3.0], narrowest=0.01, widest=100.0)
    assert np.all(np.diff(edges) > 0)
    assert {-10.0, 3.0} <= set(edges)
    assert edges[0] == pytest.approx(-110.0)
    assert edges[-1] == pytest.approx(103.0)


def test_tabulated_gamma_has_the_integrals_of_a_gamma() -> None:
    exact = stats.gamma(2.5, scale=2.0)
    mine = TabulatedDensity(lambda x: 7.0 + 1.5 * np.log(x) - 0.5 * x, np.geomspace(1e-9, 200.0, 200))
    p, x = np.array([1e-4, 0.1, 0.5, 0.999]), np.array([0.01, 1.0, 5.0, 40.0])
    np.testing.assert_allclose(mine.quantile(p), exact.ppf(p), rtol=1e-9)
    np.testing.assert_allclose(mine.cdf(x), exact.cdf(x), rtol=1e-9)
    np.testing.assert_allclose(mine.log_pdf(x), exact.logpdf(x), rtol=1e-9)
    assert mine.expectation(lambda t: t**2) == pytest.approx(exact.moment(2), rel=1e-9)
    assert mine.log_pdf(-1.0) == -np.inf
    assert mine.cdf([-1.0, 1e9]) == pytest.approx([0.0, 1.0])


def test_quantiles_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(InputError, match="p must be inside"):
        TabulatedDensity(lambda x: -x, np.linspace(0.0, 1.0, 5)).quantile([0.5, 1.0])


def test_tabulated_draws_follow_the_density_of_their_own_lam() -> None:
    """Normals whose mean is lam: the draws minus their lams are standard normal, in the order of the lams."""
    rng = np.random.default_rng(0)
    x = np.linspace(-12.0, 12.0, 2001)
    lam = rng.choice(np.append(rng.uniform(-3.0, 3.0, size=700), np.full(300, 2.0)), size=20_000)
    draws = draw_tabulated(rng, x, lambda l: -0.5 * (x - l) ** 2, lam)
    assert stats.kstest(draws - lam, "norm").pvalue > FALSE_ALARM
    assert stats.kstest((draws - lam)[lam == 2.0], "norm").pvalue > FALSE_ALARM
    assert np.corrcoef(draws, lam)[0, 1] > 0.5


def test_tabulated_draws_are_exact_where_the_log_density_is_linear() -> None:
    """Two cells suffice for an exponential, and none is lost where the density underflows."""
    rng = np.random.default_rng(1)
    x = np.array([0.0, 3.0, 40.0])
    draws = draw_tabulated(rng, x, lambda l: -l * x - 2000.0, np.ones(20_000))
    assert stats.kstest(draws, "expon").pvalue > FALSE_ALARM
    steep = draw_tabulated(rng, x, lambda l: 500.0 * l * x, np.ones(1000))
    assert steep.min() > 39.9
