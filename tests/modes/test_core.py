"""A spike inside a wider mode is noticed by its mass, and led to."""

from __future__ import annotations

import numpy as np
import pytest

import pathtemp as pt
from pathtemp.modes.core import log_excess, log_mass_around
from pathtemp.modes.local import from_covariance
from pathtemp.testing.calibration import assert_close

DIM = 8
SPIKE, SLAB = 0.01, 0.1


def log_target(theta):
    """99% in a spike, 1% in a slab of ten times its width, both at the origin."""
    square = np.sum(theta**2, axis=1)
    parts = [np.log(w) - 0.5 * square / s**2 - DIM * np.log(s) for w, s in ((0.99, SPIKE), (0.01, SLAB))]
    return np.logaddexp(*parts) - 0.5 * DIM * np.log(2 * np.pi)


def test_draws_of_the_slab_alone_are_found_out() -> None:
    """The spike has 99 times the mass around the slab's draws, whether or not points around them lie in the spike."""
    top = from_covariance(np.zeros(DIM), SPIKE**2 * np.eye(DIM), 0.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        excess = log_excess(top, SLAB * rng.normal(size=(500, DIM)), log_target, rng)
        # Importance sampling knows both masses within some percent, and leaves out a few percent of the second.
        assert 4.0 < excess < 5.4


def test_draws_of_the_spike_pass() -> None:
    rng = np.random.default_rng(1)
    top = from_covariance(np.zeros(DIM), SPIKE**2 * np.eye(DIM), 0.0)
    assert log_excess(top, SPIKE * rng.normal(size=(500, DIM)), log_target, rng) == -np.inf


def test_a_mode_that_is_wider_than_its_curvature_passes() -> None:
    """The law at the top of a heavy-tailed mode is narrow, and its mass is no larger than that around the draws."""
    rng = np.random.default_rng(2)
    draws = rng.standard_t(2.0, size=(2000, 1))
    top = from_covariance(np.zeros(1), 0.01 * np.eye(1), 0.0)
    assert log_excess(top, draws, lambda x: -1.5 * np.log1p(x[:, 0] ** 2 / 2.0), rng) < 1.0


def test_the_mass_around_a_law() -> None:
    rng = np.random.default_rng(3)
    law = from_covariance(np.zeros(DIM), SLAB**2 * np.eye(DIM), 0.0)
    # Of 2048 draws of a Student-t about half are effective: an error of .03.
    slab = log_mass_around(law, lambda x: -0.5 * np.sum((x / SLAB) ** 2, axis=1), rng)
    assert slab == pytest.approx(DIM * np.log(SLAB * np.sqrt(2 * np.pi)), abs=0.3)
    assert np.isnan(log_mass_around(law, lambda x: np.full(len(x), -np.inf), rng))


@pytest.mark.slow
def test_skillings_spike_is_in_the_draws() -> None:
    """In twenty dimensions the path from a wide base leads to the slab, and the top of the mode is the spike."""
    problem = pt.testing.gaussian_mixture([0.01, 0.99], np.zeros((2, 20)), scales=[0.1, 0.01], base_scale=1.0)
    for seed in range(3):
        fit = pt.temper(problem.model, seed=seed, progress=False)
        value, se = fit.log_marginal_likelihood
        assert_close(value, problem.log_z_end, se)
