"""Parts cover a bent mode: importance weights of the target over the mixture are far more even than over one law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.modes.local import Local, from_covariance
from pathtemp.modes.parts import Parts, in_parts, log_mixture
from pathtemp.testing.calibration import assert_close, assert_rate


def everywhere(theta: FloatArray) -> np.ndarray:
    return np.ones(len(theta), bool)


def log_banana(theta: FloatArray) -> FloatArray:
    """A banana of unit mass times three, asymmetric, with two plain dimensions."""
    x, y = theta[:, 0], (theta[:, 1] - 0.8 * theta[:, 0] ** 2 - 0.3 * theta[:, 0]) / 0.4
    square = x**2 + y**2 + np.sum(theta[:, 2:] ** 2, axis=1)
    return np.log(3.0) - 0.5 * square - np.log(0.4) - 0.5 * theta.shape[1] * np.log(2 * np.pi)


def banana_draws(rng: np.random.Generator, count: int) -> FloatArray:
    theta = rng.normal(size=(count, 4))
    theta[:, 1] = 0.4 * theta[:, 1] + 0.8 * theta[:, 0] ** 2 + 0.3 * theta[:, 0]
    return theta


def one_law() -> Local:
    draws = banana_draws(np.random.default_rng(5), 5000)
    return from_covariance(draws.mean(axis=0), np.cov(draws.T), 0.0)


def log_density(parts: Parts, theta: FloatArray) -> FloatArray:
    return np.asarray(logsumexp(log_mixture(parts, theta), axis=0))


def divergence(parts: Parts, rng: np.random.Generator) -> float:
    """From the banana, by its own exact draws: known to a hundredth of a nat."""
    theta = banana_draws(rng, 20_000)
    return float(np.mean(log_banana(theta) - log_density(parts, theta)) - np.log(3.0))


def test_parts_are_nearer_to_a_banana_than_one_law() -> None:
    """Population Monte Carlo finds them nine times in ten, and they then take away half of the divergence or more."""
    law, nearer = one_law(), 0
    of_one = divergence(((1.0, law),), np.random.default_rng(100))
    for seed in range(12):
        parts = in_parts(law, log_banana, everywhere, np.random.default_rng(seed))
        assert sum(weight for weight, _ in parts) == pytest.approx(1.0)
        nearer += divergence(parts, np.random.default_rng(100 + seed)) < 0.6 * of_one
    assert_rate(nearer, 12, at_least=0.85)


def test_parts_are_a_normalised_density() -> None:
    """Their integral over a banana's draws: the mean of p / q is one, by importance sampling with honest error."""
    parts = in_parts(one_law(), log_banana, everywhere, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    centre, scale = np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.5, 2.0, 1.5, 1.5])
    wide = scale * rng.standard_t(3, size=(200_000, 4)) + centre
    log_wide = stats.t(3, loc=centre, scale=scale).logpdf(wide).sum(axis=1)
    ratio = np.exp(log_density(parts, wide) - log_wide)
    assert_close(ratio.mean(), 1.0, ratio.std() / np.sqrt(len(ratio)))
    # The proposal covers the parts, whatever they are, so that the ratio has a variance of a few.
    assert ratio.std() / np.sqrt(len(ratio)) < 0.05


def test_points_of_another_mode_draw_no_part() -> None:
    law = one_law()
    parts = in_parts(law, log_banana, lambda theta: theta[:, 0] > 0.0, np.random.default_rng(0))
    share = sum(weight for weight, part in parts if part.centre[0] < -0.3)
    assert share < 0.05


def test_a_round_mode_keeps_its_law_and_its_name() -> None:
    law = from_covariance(np.ones(3), np.diag([1.0, 4.0, 0.1]), 0.0)

    def log_normal(theta: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.sum(law.standardise(theta) ** 2, axis=1))

    assert in_parts(law, log_normal, everywhere, np.random.default_rng(0)) == ((1.0, law),)


def test_where_there_is_no_density_the_law_stays() -> None:
    law = one_law()
    nothing = in_parts(law, lambda theta: np.full(len(theta), -np.inf), everywhere, np.random.default_rng(0))
    assert nothing == ((1.0, law),)
