"""The stated power is the rate at which planted modes are found, or less."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pathtemp.modes.find import Limits, base_stream, find_modes
from pathtemp.modes.local import from_covariance
from pathtemp.modes.power import Goal, Power, basin_shares, log_planted, power_at
from pathtemp.modes.scan import Scan
from pathtemp.modes.search import Search
from pathtemp.modes.shape import normal_shape
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import FALSE_ALARM, assert_rate
from pathtemp.testing.families import Parts

UNIT = normal_shape(from_covariance(np.zeros(1), np.eye(1), 0.0))


def brute_force(places, points, height, *, width: float, share: float) -> float:
    """The same question, asked of every point for every planted normal with a unit covariance, made narrower."""
    noticed = 0
    for place in places:
        law = stats.multivariate_normal(place, width**2 * np.eye(len(place)))
        log_planted = np.log(share) - np.log1p(-share) + law.logpdf(points)
        noticed += bool(np.any(log_planted > height))
    return noticed / len(places)


@pytest.mark.parametrize("width", [1.0, 0.7, 0.5, 0.3])
def test_power_is_what_every_point_says(width: float) -> None:
    rng = np.random.default_rng(0)
    points, places = 4.0 * rng.normal(size=(500, 3)), 4.0 * rng.normal(size=(200, 3))
    height = stats.multivariate_normal(np.zeros(3)).logpdf(points)
    made = power_at(normal_shape(from_covariance(np.zeros(3), np.eye(3), 0.0)), 0.0, places, points, height)
    for share in (0.5, 0.05):
        # Single precision may turn a tie or two.
        assert made(width=width, share=share) == pytest.approx(
            brute_force(places, points, height, width=width, share=share), abs=0.011
        )


def test_between_the_widths_power_is_a_lower_bound() -> None:
    rng = np.random.default_rng(1)
    points, places = 4.0 * rng.normal(size=(500, 3)), 4.0 * rng.normal(size=(200, 3))
    height = stats.multivariate_normal(np.zeros(3)).logpdf(points)
    made = power_at(normal_shape(from_covariance(np.zeros(3), np.eye(3), 0.0)), 0.0, places, points, height)
    for width in (0.85, 0.6, 0.4, 0.1):
        exact = brute_force(places, points, height, width=width, share=0.1)
        assert exact - 0.1 < made(width=width, share=0.1) <= exact + 0.011


def test_a_narrow_law_of_many_dimensions_has_a_small_basin() -> None:
    rng = np.random.default_rng(2)
    law, points = normal_shape(from_covariance(np.zeros(10), np.eye(10), 0.0)), 5.0 * rng.normal(size=(4000, 10))
    places, log_q = 5.0 * rng.normal(size=(50, 10)), stats.multivariate_normal(np.zeros(10)).logpdf(points)
    wide, thin = (basin_shares(law, 0.0, places, points, log_q, Goal(width, 0.1)).mean() for width in (1.0, 0.5))
    assert thin < 0.1 * wide
    assert 0.02 < wide < 0.5


def test_a_gradient_that_points_elsewhere_is_picked() -> None:
    """Around a heavy-tailed mode densities say nothing of another one, and gradients do."""
    rng = np.random.default_rng(3)
    theta = 10.0 * rng.normal(size=(1000, 2))
    theta[::100] = [10.0, 1.0]
    to = np.where((np.arange(1000) % 100 == 0)[:, None], np.array([30.0, 0.0]), 0.0)
    slope = (to - theta) / (1.0 + np.sum((to - theta) ** 2, axis=1, keepdims=True))
    scan = Scan(theta, -np.log1p(np.sum(theta**2, axis=1)), slope)
    scan.explain([from_covariance(np.zeros(2), np.eye(2), 0.0)], [0.0])
    assert set(scan.pick(20)[:10]) == set(range(0, 1000, 100))


def test_points_without_a_density_are_never_picked() -> None:
    theta = np.arange(8.0)[:, None]
    scan = Scan(theta, np.where(theta[:, 0] > 3.0, -np.inf, -theta[:, 0]), np.where(theta > 3.0, np.nan, 1.0))
    scan.explain([from_covariance(np.zeros(1), np.eye(1), 0.0)], [0.0])
    assert set(scan.pick(8)) <= {0, 1, 2, 3}


def test_the_planted_mode_has_its_mass() -> None:
    x = np.linspace(-30.0, 30.0, 20001)
    shape = normal_shape(from_covariance(np.zeros(1), 4.0 * np.eye(1), 0.0))
    density = np.exp(log_planted(shape, (x / 2.0) ** 2, Goal(0.5, 0.2)))
    assert np.trapezoid(density, x) == pytest.approx(0.25, rel=1e-3)


def test_nothing_is_certain_without_points() -> None:
    made = power_at(UNIT, 0.0, np.zeros((5, 1)), np.zeros((0, 1)), np.zeros(0))
    assert isinstance(made, Power)
    assert made(width=1.0, share=0.9) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1.0, 0.6])
def test_stated_power_is_not_above_the_rate_of_finding(width: float) -> None:
    """A mode is planted for real, at a draw of the base; the power was stated by a search of the target without it."""
    dim, runs, stated, found = 6, 100, [], 0
    for number in range(runs):
        rng = np.random.default_rng([7, number])
        place = 4.0 * rng.normal(size=dim)
        alone = _two_modes(place, width, 1e-300)
        stated.append(_searched(alone, number).power(width=width, share=0.1))
        found += len(_searched(_two_modes(place, width, 0.1), number).modes) == 2
    assert_rate(found, runs, at_least=max(float(np.mean(stated)) - 0.03, 0.0))
    # It is not far below either: the search has little else to find modes by.
    assert stats.binom.sf(found - 1, runs, min(float(np.mean(stated)) + 0.3, 1.0)) > FALSE_ALARM


def _two_modes(place, width: float, share: float) -> Parts:
    dim = len(place)
    return Parts(
        jnp.log(jnp.array([1.0 - share, share])),
        jnp.stack([jnp.zeros(dim), jnp.asarray(place)]),
        jnp.stack([jnp.ones(dim), jnp.full(dim, width)]),
        jnp.eye(dim),
        *(jnp.zeros(()) for _ in range(4)),
    )


def _searched(target: Parts, seed: int) -> Search:
    dim = target.centre.shape[1]
    draw = base_stream(lambda key: 4.0 * jax.random.normal(key, (dim,)), seed)
    theta = draw(64)
    search = Search(GeometricPath(lambda x: -jnp.sum(x**2) / 32.0, target), scale=np.full(dim, 4.0), seed=seed)
    levels = (np.full(64, 0.1), theta)
    find_modes(search, draw, levels, Limits(2e4, 1024, slopes=1024), rng=np.random.default_rng(seed))
    return search
