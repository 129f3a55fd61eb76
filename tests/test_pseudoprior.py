from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, expit

from pathtemp.errors import InputError
from pathtemp.paths.links import CubicLink, MetricLink
from pathtemp.paths.pseudoprior import CubicSpline, Kernels, PiecewiseLinear

LAM = np.asarray(CubicLink()(jnp.linspace(0.1, 0.8, 101)))
FINE = np.asarray(CubicLink()(jnp.linspace(0.1, 0.8, 1001)))
FAMILIES = [PiecewiseLinear, Kernels, CubicSpline]


def hard_curve(lam):
    """log z of the hard beta-binomial without its binomial coefficient: steep at 0, nearly straight after."""
    return betaln(9.0 + 115.0 * lam, 0.75 + 435.0 * lam) - betaln(9.0, 0.75)


def smooth_curve(lam):
    return -np.log1p(9.0 * lam)


def naive_least_squares(lam, log_z, j):
    """Coefficients of the line, Gaussian and logit kernels, fitted as they are."""
    x = (lam[:, None] - np.arange(1, j + 1) / (j + 1)) * j
    basis = np.column_stack([lam, np.exp(-0.5 * x**2), expit(x)])
    return basis, np.linalg.lstsq(basis, log_z, rcond=None)[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_anchored_and_accurate_on_a_smooth_curve(family):
    log_c = family.fit(LAM, smooth_curve(LAM) + 7.0)
    assert float(log_c(jnp.zeros(()))) == pytest.approx(0.0, abs=1e-9)
    assert np.max(np.abs(np.asarray(log_c(jnp.asarray(FINE))) - smooth_curve(FINE))) < 2e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_derivative_is_that_of_the_value(family):
    log_c = family.fit(LAM, hard_curve(LAM))
    at = jnp.asarray([0.003, 0.11, 0.4567, 0.77, 0.991])
    by_autodiff = jax.vmap(jax.grad(log_c))(at)
    np.testing.assert_allclose(log_c.derivative(at), by_autodiff, rtol=1e-7)
    step = 1e-6
    np.testing.assert_allclose(log_c.derivative(at), (log_c(at + step) - log_c(at)) / step, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_scalars_and_arrays(family):
    log_c = family.fit(LAM, smooth_curve(LAM))
    at = jnp.linspace(0.0, 1.0, 12).reshape(3, 4)
    for function in (log_c, log_c.derivative):
        assert function(at).shape == (3, 4)
        np.testing.assert_allclose(function(at)[1, 2], function(at[1, 2]), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_refitting_does_not_recompile(family):
    traces = []

    @jax.jit
    def value(log_c, lam):
        traces.append(1)
        return log_c(lam) + log_c.derivative(lam)

    for scale in (1.0, 2.0, 3.0):
        value(family.fit(LAM, scale * smooth_curve(LAM)), jnp.asarray(0.3))
    assert len(traces) == 1


def test_slope_is_stable_where_naive_coefficients_explode():
    rng = np.random.default_rng(0)
    truth = hard_curve(LAM)
    noisy = truth + 0.1 * rng.normal(size=LAM.size) * (LAM > 0)

    basis, naive = naive_least_squares(LAM, truth, 20)
    assert np.linalg.cond(basis) > 1e8
    _, naive_noisy = naive_least_squares(LAM, noisy, 20)
    assert abs(naive_noisy[0] - naive[0]) > 100.0
    assert np.max(np.abs(naive_noisy - naive)) > 1e5

    fit, fit_noisy = (Kernels.fit(LAM, curve, kernels=20) for curve in (truth, noisy))
    assert abs(float(fit_noisy.slope - fit.slope)) < 0.1
    error = np.asarray(fit_noisy(jnp.asarray(FINE))) - hard_curve(FINE)
    assert np.sqrt(np.mean(error**2)) < 0.15


def test_slope_can_be_replaced_by_itself():
    log_z, new_slope = hard_curve(LAM), -25.0
    fit = Kernels.fit(LAM, log_z, kernels=20)
    moved = replace(fit, slope=jnp.asarray(new_slope))
    difference = np.asarray(moved(jnp.asarray(LAM)) - fit(jnp.asarray(LAM)))
    np.testing.assert_allclose(difference, (new_slope - float(fit.slope)) * LAM, atol=1e-6)

    basis, naive = naive_least_squares(LAM, log_z, 20)
    naive[0] = new_slope
    assert np.max(np.abs(basis @ naive - log_z)) > 1000.0


def test_slope_is_the_least_squares_line_through_the_origin():
    y = hard_curve(LAM)
    assert float(Kernels.fit(LAM, y).slope) == pytest.approx((LAM @ y) / (LAM @ LAM), rel=1e-12)


def test_few_grid_points_do_not_blow_up_the_kernels():
    lam = np.linspace(0.0, 1.0, 12)
    fit = Kernels.fit(lam, smooth_curve(lam), kernels=10)
    between = np.linspace(0.0, 1.0, 301)
    assert np.max(np.abs(np.asarray(fit(jnp.asarray(between))) - smooth_curve(between))) < 0.1


def test_piecewise_linear_in_position_along_a_metric_link():
    nodes = jnp.asarray([0.0, 0.01, 0.2, 1.0])
    log_c = PiecewiseLinear.fit(nodes, [0.0, -1.0, -4.0, -5.0])
    link = MetricLink(nodes)
    for s in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert float(log_c.at(jnp.asarray(s))) == pytest.approx(float(log_c(link.at(jnp.asarray(s)))), abs=1e-12)
    assert float(log_c.derivative(jnp.asarray(1.0))) == pytest.approx(-1.25)


def test_spline_follows_the_hard_curve():
    log_c = CubicSpline.fit(LAM, hard_curve(LAM), cells=40)
    assert np.max(np.abs(np.asarray(log_c(jnp.asarray(FINE))) - hard_curve(FINE))) < 0.05


@pytest.mark.parametrize("family", FAMILIES)
def test_flat_curve_is_exactly_flat(family):
    log_c = family.fit(LAM, np.full(LAM.size, 3.0))
    np.testing.assert_array_equal(log_c(jnp.asarray(FINE)), 0.0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("lam", "log_z", "word"),
    [
        ([0.0, 1.0], [0.0], "log_z"),
        ([0.0, 1.0], [0.0, -np.inf], "log_z"),
        ([0.1, 1.0], [0.0, 1.0], "lam must start at 0"),
        ([0.0, 0.0], [0.0, 1.0], "lam"),
    ],
)
def test_bad_input_names_the_argument(family, lam, log_z, word):
    with pytest.raises(InputError, match=word):
        family.fit(lam, log_z)


def test_too_many_cells_or_no_kernels():
    with pytest.raises(InputError, match="cells"):
        CubicSpline.fit(LAM, smooth_curve(LAM), cells=99)
    with pytest.raises(InputError, match="kernels"):
        Kernels.fit(LAM, smooth_curve(LAM), kernels=0)
