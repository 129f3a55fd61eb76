"""Every truth computed a second time, by another way than the package's own."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy import integrate, interpolate, stats
from scipy.special import logsumexp

from pathtemp.errors import InputError
from pathtemp.testing import (
    ALL,
    Problem,
    beta_binomial,
    cauchy_pair,
    conjugate_regression,
    eight_schools,
    eight_schools_tau,
    flower,
    funnel,
    gaussian_scale,
    harmonic_oscillators,
    high_dimensional_gaussian,
    logistic_regression,
    mixture_1d,
    paper_mixture,
    ridge,
    rosenbrock,
    shell,
    unidentifiable_coin,
    uniform_supports,
    unknown_scale_regression,
)
from pathtemp.testing.calibration import FALSE_ALARM, assert_close
from pathtemp.testing.eight_schools import EFFECT, STDERR
from pathtemp.testing.regression import simulate

LAMS = np.array([0.0, 0.03, 0.4, 0.9, 1.0])


def test_evidences_of_curved_targets_by_plain_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    square, cube = rng.uniform(-5.0, 5.0, size=(400_000, 2)), rng.uniform(size=(1_000_000, 2))
    radius = np.linalg.norm(3.0 * rng.normal(size=(400_000, 5)), axis=1)
    for problem, log_likelihood in (
        (rosenbrock(), -((1.0 - square[:, 0]) ** 2) - 100.0 * (square[:, 1] - square[:, 0] ** 2) ** 2),
        (ridge(1000, 300), stats.binom.logpmf(300, 1000, cube.prod(axis=1))),
        (shell(5), -0.5 * ((radius - 3.0) / 0.1) ** 2),
    ):
        likelihood = np.exp(log_likelihood)
        error = likelihood.std() / np.sqrt(len(likelihood))
        assert error < 0.03 * likelihood.mean()
        assert_close(likelihood.mean(), np.exp(problem.log_z_end), error)


def derivative(axis: np.ndarray) -> np.ndarray:
    """Spacing of an axis that is a smooth function of its index."""
    n = np.arange(len(axis))
    return np.asarray(interpolate.CubicSpline(n, axis)(n, 1))


def grid_log_z(problem: Problem, axes: list[np.ndarray], lam: float) -> float:
    """Trapezoid rule over a product grid of the flat vector, on the problem's own JAX densities."""
    points = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    log_w = 0.0
    for axis in np.meshgrid(*[np.log(derivative(a)) for a in axes], indexing="ij"):
        log_w = log_w + axis.ravel()
    quick = {"xla_backend_optimization_level": 0}
    base = np.asarray(jax.jit(jax.vmap(problem.model.log_base), compiler_options=quick)(points))
    target = np.asarray(jax.jit(jax.vmap(problem.model.log_target), compiler_options=quick)(points))
    return float(logsumexp((1.0 - lam) * base + lam * target + log_w))


@pytest.mark.parametrize(
    ("problem", "value", "digits"),
    [
        (beta_binomial("easy"), -3.997147, 6),
        (beta_binomial("hard"), -17.10858, 5),
        (cauchy_pair(), -8.052885, 6),
        (flower(6), 5.0594007, 7),
        (flower(40, base_scale=10.0), 5.0594007, 7),
        (flower(40, variant="printed"), 9.809479, 6),
        (unidentifiable_coin(), -4.97455, 5),
        (eight_schools(), -31.311347, 6),
        (eight_schools(centred=True), -31.311347, 6),
        (gaussian_scale(2), -np.log(10.0), 12),
        (gaussian_scale(7, precision=3.0), -3.5 * np.log(3.0), 12),
        (harmonic_oscillators(), -0.5 * np.log([1.0, 2.0, 4.0, 8.0, 16.0]).sum(), 12),
        (uniform_supports(), -np.log(2.0), 12),
        (uniform_supports(reverse=True), np.log(2.0), 12),
        (funnel(), 0.0, 10),
        (mixture_1d(), 0.0, 10),
        (paper_mixture(), 0.0, 10),
    ],
    ids=lambda x: x.name if isinstance(x, Problem) else "",
)
def test_published_values(problem: Problem, value: float, digits: int) -> None:
    assert problem.log_z_end == pytest.approx(value, abs=0.6 * 10.0**-digits)
    assert problem.log_z_error <= 1e-8


def test_points_along_the_hard_curve() -> None:
    curve = beta_binomial("hard").log_z
    assert curve is not None
    np.testing.assert_allclose(curve([0.01, 0.1]), [-5.1687, -11.50045], atol=1e-4)


@pytest.mark.parametrize("name", [n for n, make in sorted(ALL.items()) if make().log_z is not None])
def test_curves_start_at_zero_keep_the_shape_and_are_convex(name: str) -> None:
    problem = ALL[name]()
    assert problem.log_z is not None
    assert float(problem.log_z(0.0)) == pytest.approx(0.0, abs=1e-9)
    assert problem.log_z(np.array([[0.2, 0.5, 1.0]])).shape == (1, 3)
    assert problem.log_z(0.5).shape == ()
    inside = problem.log_z(np.linspace(0.05, 0.95, 19))
    assert np.diff(inside, 2).min() > -1e-9


@pytest.mark.parametrize("lam", LAMS)
def test_cauchy_pair_by_adaptive_quadrature(lam: float) -> None:
    def density(x: float) -> float:
        base = stats.norm.logpdf(x, 0.0, 5.0)
        target = stats.cauchy.logpdf(x, -10.0, 0.2) + stats.cauchy.logpdf(x, 10.0, 0.2)
        return float(np.exp((1.0 - lam) * base + lam * target))

    edges = [0.0, 5.0, 9.5, 9.9, 10.0, 10.1, 10.5, 15.0, 100.0, 1e4, 1e6]
    half = sum(integrate.quad(density, a, b, epsabs=0.0)[0] for a, b in pairwise(edges))
    problem = cauchy_pair()
    assert problem.log_z is not None
    assert float(problem.log_z(lam)) == pytest.approx(np.log(2 * half), abs=1e-8)


def test_mass_near_a_cauchy_mode() -> None:
    draws = cauchy_pair().sample_target(np.random.default_rng(0), 100_000)[:, 0]
    near = np.mean(np.abs(draws - 10.0) < 2.0)
    assert_close(near, 0.4692, np.sqrt(0.25 / 100_000))


@pytest.mark.parametrize("variant", ["squared", "printed"])
def test_flower_on_a_cartesian_grid(variant: str) -> None:
    problem = flower(5, variant=variant)  # type: ignore[arg-type]
    axis = np.linspace(-45.0, 45.0, 1201)
    assert problem.log_z is not None
    for lam in (0.0, 0.3, 1.0):
        # Near the origin the target waves faster than any grid, but it has little mass there.
        tolerance = 2e-3 if lam > 0 else 1e-6
        assert grid_log_z(problem, [axis, axis], lam) == pytest.approx(float(problem.log_z(lam)), abs=tolerance)


@pytest.mark.slow
def test_eight_schools_evidence_over_mu_and_tau() -> None:
    mu, log_tau = np.linspace(-45.0, 45.0, 901)[:, None], np.linspace(-30.0, 12.0, 1501)
    tau = np.exp(log_tau)
    for lam, problem in ((1.0, eight_schools()), (0.25, eight_schools(centred=True))):
        # normal(y | theta, s)^lam is normal(y | theta, s / sqrt(lam)) times a constant.
        log_joint = stats.norm.logpdf(mu, 0.0, 5.0) + stats.halfcauchy.logpdf(tau, scale=5.0) + log_tau
        for y, s in zip(EFFECT, STDERR, strict=True):
            constant = 0.5 * np.log(2 * np.pi * s**2 / lam) - 0.5 * lam * np.log(2 * np.pi * s**2)
            log_joint = log_joint + stats.norm.logpdf(y, mu, np.sqrt(s**2 / lam + tau**2)) + constant
        value = logsumexp(log_joint) + np.log(mu[1, 0] - mu[0, 0]) + np.log(log_tau[1] - log_tau[0])
        assert problem.log_z is not None
        # What is left out, tau above exp(12), has a prior share of 2e-5 and next to no likelihood.
        assert float(problem.log_z(lam)) == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
def test_eight_schools_tau_quantiles_and_draws() -> None:
    tau = eight_schools_tau()
    quantiles = tau.quantile([0.001, 0.01, 0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles, [0.004923, 0.049232, 0.246391, 2.748731, 9.841949], atol=6e-7)
    assert tau.expectation(lambda t: t) == pytest.approx(3.59771, abs=6e-6)
    problem = eight_schools()
    draws = problem.model.draws(problem.sample_target(np.random.default_rng(1), 20_000))["tau"]
    assert stats.kstest(draws, tau.cdf).pvalue > FALSE_ALARM


def test_eight_schools_tau_with_flat_mu_over_mu() -> None:
    tau = eight_schools_tau("flat")
    mu = np.linspace(-150.0, 150.0, 6001)[:, None]

    def log_density(t: np.ndarray) -> np.ndarray:
        parts = [stats.norm.logpdf(y, mu, np.sqrt(s**2 + t**2)) for y, s in zip(EFFECT, STDERR, strict=True)]
        return np.asarray(logsumexp(sum(parts), axis=0))

    at = np.array([0.1, 1.0, 6.0, 30.0])
    np.testing.assert_allclose(np.diff(tau.log_pdf(at)), np.diff(log_density(at)), atol=1e-9)
    assert integrate.quad(lambda t: float(tau.pdf(t)), 0.1, 100.0, limit=200)[0] == pytest.approx(1.0, abs=1e-8)
    assert tau.pdf([0.05, 150.0]) == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("lam", LAMS)
def test_coin_on_a_logit_grid(lam: float) -> None:
    problem = unidentifiable_coin(20, 7)
    axis = np.linspace(-40.0, 40.0, 801)
    assert problem.log_z is not None
    assert grid_log_z(problem, [axis, axis], lam) == pytest.approx(float(problem.log_z(lam)), abs=1e-8)


@pytest.mark.parametrize("lam", LAMS)
def test_one_dimensional_problems_on_a_grid(lam: float) -> None:
    for problem, axis in (
        (mixture_1d(), np.linspace(-120.0, 120.0, 24_001)),
        (beta_binomial("easy"), np.linspace(-60.0, 60.0, 24_001)),
        (harmonic_oscillators([7.0], centres=[-1.5]), np.linspace(-20.0, 20.0, 4001)),
        (conjugate_regression(1, 6), np.linspace(-30.0, 30.0, 24_001)),
        (high_dimensional_gaussian(1, sigma=0.3), np.linspace(-12.0, 12.0, 4001)),
    ):
        assert problem.log_z is not None
        expected = grid_log_z(problem, [axis], lam)
        assert float(problem.log_z(lam)) == pytest.approx(expected, abs=1e-9), problem.name


@pytest.mark.parametrize("lam", LAMS)
def test_unknown_scale_and_funnel_on_grids(lam: float) -> None:
    regression = unknown_scale_regression(1, 6)
    # beta spreads with sigma, so the grid is wide; the base's sigma has polynomial tails.
    axes = [np.sinh(np.linspace(-8.0, 8.0, 601)), np.linspace(-3.0, 6.0, 601)]
    assert regression.log_z is not None
    assert float(regression.log_z(lam)) == pytest.approx(grid_log_z(regression, axes, lam), abs=1e-5)
    small = funnel(1)
    # sinh spacing resolves the neck, exp(-7), and reaches far beyond the mouth.
    axes = [np.linspace(-18.0, 18.0, 361), np.sinh(np.linspace(-18.0, 18.0, 1201)) * 1e-4]
    assert small.log_z is not None
    assert float(small.log_z(lam)) == pytest.approx(grid_log_z(small, axes, lam), abs=1e-4)


@pytest.mark.parametrize("lam", LAMS[1:])
def test_conjugate_regression_is_a_multivariate_normal(lam: float) -> None:
    """The tempered likelihood is normal with variance sigma^2 / lam, times a constant."""
    design, y = simulate(5, 50, 0.7, 0)
    covariance = 0.7**2 / lam * np.eye(50) + 1.5**2 * design @ design.T
    constant = 25 * np.log(2 * np.pi * 0.7**2 / lam) - 25 * lam * np.log(2 * np.pi * 0.7**2)
    expected = stats.multivariate_normal(np.zeros(50), covariance).logpdf(y) + constant
    problem = conjugate_regression(5, 50, sigma=0.7, prior_scale=1.5)
    assert problem.log_z is not None
    assert float(problem.log_z(lam)) == pytest.approx(expected, abs=1e-8)


def test_unknown_scale_regression_is_a_multivariate_student() -> None:
    design, y = simulate(5, 50, 1.0, 0)
    scale = 2.0 / 3.0 * (np.eye(50) + 2.0**2 * design @ design.T)
    expected = stats.multivariate_t(np.zeros(50), scale, df=6).logpdf(y)
    assert unknown_scale_regression().log_z_end == pytest.approx(expected, abs=1e-8)


def test_length_and_barrier_of_the_gaussian_scale() -> None:
    problem, rng, n = gaussian_scale(2), np.random.default_rng(4), 40_000
    nodes, weights = np.polynomial.legendre.leggauss(12)
    length = barrier = 0.0
    for node, weight in zip(nodes, weights, strict=True):
        assert problem.sample_at is not None
        draws = problem.sample_at(rng, np.full(n, 0.5 + 0.5 * node))
        delta = -4.5 * (draws**2).sum(axis=1)
        length += 0.5 * weight * delta.std()
        barrier += 0.25 * weight * np.abs(delta[::2] - delta[1::2]).mean()
    # Delta is exponential: relative standard errors of a spread are .007, those of a mean difference too, and the sums
    # over twelve nodes have .003.
    assert length == pytest.approx(np.log(10.0), rel=0.02)
    assert barrier == pytest.approx(1.1513, rel=0.02)


def test_high_dimensional_gaussian_has_a_long_way_to_go() -> None:
    problem = high_dimensional_gaussian()
    assert problem.log_z_end == pytest.approx(-6980.0, abs=1.0)
    assert problem.model.dim == 2000


@pytest.mark.slow
def test_logistic_reference_against_a_grid() -> None:
    problem = logistic_regression(2, 40)
    axis = np.linspace(-20.0, 20.0, 401)
    assert problem.log_z is not None
    for lam in (0.05, 1.0):
        assert abs(float(problem.log_z(lam)) - grid_log_z(problem, [axis, axis], lam)) < 0.005
    assert abs(problem.log_z_end - grid_log_z(problem, [axis, axis], 1.0)) < 4 * problem.log_z_error


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "n", "value"), [(10, 300, -119.4786), (30, 2000, -941.2553)])
def test_logistic_reference_values(dim: int, n: int, value: float) -> None:
    """The values come from 1e6 and 2e5 draws (standard errors .0002 and .0005); 2e4 must agree."""
    problem = logistic_regression(dim, n)
    assert problem.log_z_error < 0.005
    assert abs(problem.log_z_end - value) < 4 * problem.log_z_error + 0.001


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: beta_binomial("medium"), "case must be one of"),  # type: ignore[arg-type]
        (lambda: flower(2), "petals must be 3"),
        (lambda: flower(variant="square"), "variant must be"),  # type: ignore[arg-type]
        (lambda: eight_schools_tau("uniform"), "prior must be"),  # type: ignore[arg-type]
        (lambda: harmonic_oscillators([1.0, 2.0], centres=[0.0]), "as many centres"),
        (lambda: gaussian_scale(2, precision=-1.0), "every precision must be positive"),
        (lambda: unidentifiable_coin(10, 11), "y must be between"),
        (lambda: Problem("empty", cauchy_pair().model), "give log_z"),
        (lambda: logistic_regression(2, 10).sample_target(np.random.default_rng(0), 1), "no exact draws"),
    ],
)
def test_bad_input_is_named(make: object, what: str) -> None:
    with pytest.raises(InputError, match=what):
        make()  # type: ignore[operator]


def test_names_and_shapes_are_those_a_user_sees() -> None:
    problem = eight_schools(centred=True)
    draws = problem.model.draws(problem.sample_target(np.random.default_rng(2), 7))
    assert {name: x.shape for name, x in draws.items()} == {"mu": (7,), "tau": (7,), "theta": (7, 8)}
    assert np.all(draws["tau"] > 0)
    p = beta_binomial("easy")
    assert np.all(np.abs(p.model.draws(p.sample_target(np.random.default_rng(3), 9))["p"] - 0.5) < 0.5)
    assert all(make().name == name for name, make in ALL.items())
