"""Local laws after importance sampling: mass, spread and tails of known targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from pathtemp.modes.local import Local, from_covariance
from pathtemp.modes.refine import DRAWS, PASSES, effective, log_normal, log_student, refine
from pathtemp.testing.calibration import assert_close, assert_rate

COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.5]])
LOG_MASS = 1.3
RUNS = 64


def everywhere(theta: np.ndarray) -> np.ndarray:
    return np.ones(len(theta), bool)


def normal_target(theta: np.ndarray) -> np.ndarray:
    return LOG_MASS + np.asarray(stats.multivariate_normal([1.0, -2.0], COVARIANCE).logpdf(theta))


def student_target(theta: np.ndarray) -> np.ndarray:
    return LOG_MASS + np.asarray(stats.multivariate_t([1.0, -2.0], COVARIANCE, df=2).logpdf(theta))


def rough_law() -> Local:
    """Off centre, too wide one way and too narrow the other, without the correlation."""
    return from_covariance(np.array([1.2, -2.3]), np.diag([2.0, 0.3]), 0.0)


def refined(
    target: Callable[[np.ndarray], np.ndarray], own: Callable[[np.ndarray], np.ndarray] = everywhere
) -> list[tuple[Local, float, int]]:
    return [refine(rough_law(), target, own, np.random.default_rng([1, run])) for run in range(RUNS)]


def assert_mean(values: np.ndarray, exact: float | np.ndarray) -> None:
    """The mean over independent runs."""
    count = len(values)
    assert_close(values.mean(axis=0), exact, values.std(axis=0, ddof=1) / np.sqrt(count), df=count - 1)


def test_densities_of_the_law_integrate_to_one() -> None:
    law, rng = from_covariance(np.array([1.0, -2.0]), COVARIANCE, 0.0), np.random.default_rng(0)
    theta = rng.normal(size=(5, 2))
    np.testing.assert_allclose(log_normal(law, theta), normal_target(theta) - LOG_MASS, rtol=1e-9)
    student = stats.multivariate_t([1.0, -2.0], COVARIANCE, df=5)
    np.testing.assert_allclose(log_student(law, theta), student.logpdf(theta), rtol=1e-9)


def test_mass_centre_and_covariance_of_a_normal() -> None:
    found = refined(normal_target)
    assert_mean(np.exp([mass - LOG_MASS for _, mass, _ in found]), 1.0)
    assert all(spent == PASSES * DRAWS for _, _, spent in found)
    assert not any(law.heavy for law, _, _ in found)
    assert_mean(np.array([law.centre for law, _, _ in found]), np.array([1.0, -2.0]))
    for law, _, _ in found:
        covariance = np.cov(law.spread_out(np.random.default_rng(2).normal(size=(20_000, 2))).T)
        # From some 400 effective draws: relative standard errors of 8%.
        np.testing.assert_allclose(np.diag(covariance), np.diag(COVARIANCE), rtol=0.6)


def test_heavy_tails_are_noticed_and_the_mass_is_right_all_the_same() -> None:
    found = refined(student_target)
    assert_mean(np.exp([mass - LOG_MASS for _, mass, _ in found]), 1.0)
    assert_rate(sum(law.heavy for law, _, _ in found), RUNS, at_least=0.95)


@pytest.mark.parametrize("dim", [12, 30])
def test_heavy_tails_in_many_dimensions_are_followed_from_the_curvature_at_the_top(dim: int) -> None:
    """A covariance of heavy-tailed draws is so rough there that it had thrown away a law that was good."""
    target, df = stats.multivariate_t(np.zeros(dim), np.eye(dim), df=5), 5.0
    top = float(target.logpdf(np.zeros(dim)))
    law = from_covariance(np.zeros(dim), np.eye(dim) * df / (df + dim), top)
    found = [refine(law, target.logpdf, everywhere, np.random.default_rng([2, run])) for run in range(RUNS // 2)]
    assert law.log_evidence < -1.0
    assert_mean(np.exp([mass for _, mass, _ in found]), 1.0)
    assert_rate(sum(better.heavy for better, _, _ in found), RUNS // 2, at_least=0.95)
    # The scale of the law is known to a few percent; Laplace's is .54 and .38 of it.
    scale = np.array([np.exp(better.log_det / dim) for better, _, _ in found])
    assert_rate(int(np.sum(np.abs(np.log(scale)) < 0.2)), RUNS // 2, at_least=0.95)


def test_what_belongs_to_another_mode_does_not_count() -> None:
    found = refined(normal_target, lambda theta: theta[:, 0] > 1.0)
    assert_mean(np.exp([mass - LOG_MASS for _, mass, _ in found]), 0.5)


def test_where_nothing_is_its_own_the_first_law_stays() -> None:
    law, mass, spent = refine(
        rough_law(), normal_target, lambda theta: np.zeros(len(theta), bool), np.random.default_rng(0)
    )
    first = rough_law()
    np.testing.assert_array_equal(law.scale, first.scale)
    assert mass == first.log_evidence
    assert spent == DRAWS


def test_in_many_dimensions_law_and_mass_are_laplaces() -> None:
    dim = 200
    law = from_covariance(np.zeros(dim), np.eye(dim), 0.0)
    # Scales from .1 to 3 that one factor cannot follow: one draw has all of the weight.
    scale = np.geomspace(0.1, 3.0, dim)
    found, mass, _ = refine(
        law, lambda theta: -0.5 * np.sum((theta / scale) ** 2, axis=1), everywhere, np.random.default_rng(3)
    )
    assert found is law
    assert mass == law.log_evidence


def test_effective_draws() -> None:
    assert effective(np.full(10, 0.1)) == pytest.approx(10.0)
    assert effective(np.array([1.0, 0.0])) == pytest.approx(1.0)
