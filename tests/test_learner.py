"""What the rounds teach: pooled draws, the spread along the path, the pseudo-prior and the step sizes."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.engines.default.learner import (
    NO_DENSITY,
    Draws,
    Pool,
    adapt_step,
    along_path,
    cells_for,
    fit_kernel,
    fit_prior,
    learned,
    mean_log_scale,
    nodes_for,
    path_length,
    spread_of_delta,
)
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.strata import relative_width
from pathtemp.kernels.transported_hmc import KernelParameters
from pathtemp.settings import Settings
from pathtemp.testing import gaussian_scale
from pathtemp.testing.calibration import assert_close


def scale_draws(count: int = 20_000, dim: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lam, delta, theta) of exact draws on the Gaussian scale path, atoms included."""
    rng = np.random.default_rng(0)
    lam = np.clip(rng.uniform(-0.2, 1.2, size=count), 0.0, 1.0)
    sample_at = gaussian_scale(dim).sample_at
    assert sample_at is not None
    theta = sample_at(rng, lam)
    return lam, -4.5 * np.sum(theta**2, axis=1), theta


def test_spread_of_delta_is_its_standard_deviation_given_lam() -> None:
    lam, delta, _ = scale_draws()
    centres, spread = spread_of_delta(lam, delta)
    assert len(centres) <= 100
    expected = 9.0 / (1.0 + 9.0 * centres)
    # Each of 100 groups of 200 draws has an error of 10%; their mean size is .08, with a standard error of .006.
    assert np.mean(np.abs(np.log(spread / expected))) < 0.15


def test_spread_of_delta_without_finite_or_with_constant_values() -> None:
    lam = np.linspace(0.0, 1.0, 500)
    assert np.all(spread_of_delta(lam, np.zeros(500))[1] <= 1e-12)
    half = np.where(np.arange(500) % 2, -np.inf, np.sin(37.0 * np.arange(500)))
    assert np.all(np.isfinite(spread_of_delta(lam, half)[1]))


@pytest.mark.parametrize("count", [7, 60, 181, 6123])
def test_spread_of_delta_is_that_of_each_group_by_itself(count: int) -> None:
    rng = np.random.default_rng(count)
    lam, delta = np.sort(rng.uniform(size=count)), rng.normal(size=count)
    groups = np.array_split(np.arange(count), int(np.clip(count // 60, 1, 100)))
    centres, spread = spread_of_delta(lam, delta)
    np.testing.assert_allclose(centres, [lam[g].mean() for g in groups], rtol=1e-12)
    lines = [np.polyval(np.polyfit(lam[g], delta[g], 1), lam[g]) for g in groups]
    np.testing.assert_allclose(spread, [np.std(delta[g] - y) for g, y in zip(groups, lines, strict=True)], rtol=1e-6)


def test_one_heavy_tail_does_not_own_the_spread() -> None:
    rng = np.random.default_rng(1)
    delta = rng.standard_cauchy(600)
    delta[0] = 1e6
    # Three times a robust spread of 1.5, of 60 draws each: that it comes out six times too large has odds below 1e-8.
    assert spread_of_delta(np.full(600, 0.5), delta)[1].max() < 25.0


def test_length_of_the_gaussian_scale_path() -> None:
    lam, delta, _ = scale_draws(40_000)
    # Its relative standard error is .005.
    assert path_length(lam, delta) == pytest.approx(np.log(10.0), rel=0.06)


def test_cells_are_short_and_fill_the_strata_of_the_base() -> None:
    assert [cells_for(length) for length in (0.0, 24.0, 25.0, 1e4)] == [60, 60, 120, 480]
    for length in (1.0, 20.0, 60.0, 150.0):
        cells = cells_for(length)
        assert relative_width(cells)[0] == pytest.approx(60 / cells)
        assert length / cells <= 0.4


def test_pseudo_prior_is_log_z() -> None:
    problem = gaussian_scale(2)
    lam, delta, _ = scale_draws(5000)
    nodes = np.linspace(0.0, 1.0, 33) ** 2
    prior = fit_prior(lam, delta, nodes)
    assert problem.log_z is not None
    # Standard errors are .03 at most.
    np.testing.assert_allclose(prior.log_c, problem.log_z(nodes), atol=0.2)
    assert float(prior.at_base) == 0.0


def test_pseudo_prior_jumps_where_the_target_has_the_smaller_support() -> None:
    rng = np.random.default_rng(2)
    lam = np.clip(rng.uniform(-0.3, 1.3, size=4000), 0.0, 1.0)
    # Half of the base has no target; above the base every draw is in the other half, where the densities agree.
    delta = np.where((lam <= 0) & (rng.uniform(size=4000) < 0.5), -np.inf, 0.0)
    prior = fit_prior(lam, delta, np.linspace(0.0, 1.0, 17))
    assert float(prior.at_base) == 0.0
    # The log of a share of one half among n draws at the base has a standard error of 1 / sqrt(n).
    assert_close(prior.log_c, -np.log(2.0), 1.0 / np.sqrt(np.sum(lam <= 0)))


def draws_of(lam: float, count: int = 10, dim: int = 2) -> Draws:
    return Draws(np.full(count, lam), np.full(count, lam), np.full((count, dim), lam), np.full(count, lam))


def test_pool_replaces_the_annealing_pass_and_drops_the_oldest_third() -> None:
    pool = Pool([draws_of(0.95)], replaced_by=2)
    assert set(pool.lam_delta()[0]) == {0.95}
    pool.add(draws_of(0.0))
    assert set(pool.lam_delta()[0]) == {0.95, 0.0}
    for i in range(1, 9):
        pool.add(draws_of(i / 10))
    np.testing.assert_allclose(np.unique(pool.lam_delta()[0]), np.arange(9) / 10)
    assert len(pool.lam_delta()[0]) == 90
    pool.trim(1 / 3)
    np.testing.assert_allclose(np.unique(pool.lam_delta()[0]), np.arange(3, 9) / 10)
    pool.trim(1 / 3)
    assert len(pool.lam_delta()[0]) == 60
    np.testing.assert_allclose(np.unique(pool.lam_theta()[0]), np.arange(3, 9) / 10)


def test_pool_turns_missing_density_into_minus_infinity() -> None:
    pool = Pool([Draws(np.zeros(2), np.array([2.0 * NO_DENSITY, 1.0]), np.zeros((2, 1)), np.zeros(2))], replaced_by=1)
    np.testing.assert_array_equal(pool.lam_delta()[1], [-np.inf, 1.0])


def test_along_path_bins_linearly() -> None:
    mean, count = along_path(np.array([0.0, 0.25, 1.0]), np.array([2.0, 4.0, 8.0]), 3)
    np.testing.assert_allclose(count, [1.5, 0.5, 1.0])
    np.testing.assert_allclose(mean, [(2.0 + 0.5 * 4.0) / 1.5, 4.0, 8.0])


def test_steps_grow_where_too_much_is_accepted_and_shrink_where_too_little() -> None:
    position = np.linspace(0.0, 1.0, 1001)
    acceptance = np.where(position < 0.5, 1.0, 0.5)
    moved = adapt_step(np.zeros(5), position, acceptance, target=0.8, gain=1.0)
    assert moved[0] == pytest.approx(0.2, abs=0.01)
    assert moved[-1] == pytest.approx(-0.3, abs=0.01)


def test_steps_where_no_move_was_made_follow_their_neighbours() -> None:
    moved = adapt_step(np.zeros(5), np.array([0.0, 1.0]), np.array([0.8, 0.4]), target=0.8, gain=1.0)
    np.testing.assert_allclose(moved, [0.0, -0.1, -0.2, -0.3, -0.4])


def test_fitted_kernel_fits_the_path_it_was_fitted_to() -> None:
    lam, delta, theta = scale_draws()
    pool = Pool([Draws(lam, delta, theta, lam)], replaced_by=1)
    parameters = fit_kernel(pool, cells=64, full=True, log_step=np.zeros(2), step_lam=np.array([0.0, 1.0]))
    nodes = np.asarray(parameters.link.nodes)
    assert np.all(np.diff(nodes) > 0)
    assert isinstance(parameters.prior, PseudoPrior)
    # Standard errors are .015 at most; those of a scale are 2%.
    np.testing.assert_allclose(parameters.prior.log_c, -np.log1p(9.0 * nodes), atol=0.12)
    for s in (0.0, 0.5, 1.0):
        expected = 1.0 / np.sqrt(1.0 + 9.0 * parameters.link.host_at(np.asarray(s)))
        np.testing.assert_allclose(parameters.transport.at(jnp.asarray(s)).scale, expected, rtol=0.15)
    # Steps are given in units of theta and kept in units of z.
    np.testing.assert_allclose(np.asarray(parameters.log_step) + mean_log_scale(parameters.transport), 0.0, atol=1e-9)
    assert bool(parameters.orbit)
    assert not bool(parameters.pinned)


def test_nodes_follow_the_marginal_that_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    lam = rng.uniform(size=40_000)
    # Spread 1 and mean 0 in the lower half, spread 1 and mean 9 in the upper half: only E U^2 tells them apart.
    delta = rng.normal(size=lam.size) + 9.0 * (lam > 0.5)
    nodes = {m: nodes_for(lam, delta, cells=200, marginal=m) for m in ("uniform", "constant-kl", "min-variance")}
    below = {name: float(np.mean(x < 0.5)) for name, x in nodes.items()}
    assert below["constant-kl"] == pytest.approx(0.5, abs=0.03)
    assert below["min-variance"] == pytest.approx(1.0 / (1.0 + np.sqrt(82.0)), abs=0.03)
    np.testing.assert_allclose(nodes["uniform"], _cubic(np.linspace(0.0, 1.0, 201)), atol=2e-3)


def _cubic(t: np.ndarray) -> np.ndarray:
    """The paper's link between its flat ends."""
    return t**2 * (3.0 - 2.0 * t)


def fitted_in(dim: int) -> KernelParameters:
    lam, delta, theta = scale_draws(2000, dim)
    pool = Pool([Draws(lam, delta, theta, lam)], replaced_by=1)
    return fit_kernel(pool, cells=60, full=True, log_step=np.zeros(2), step_lam=np.array([0.0, 1.0]))


def test_many_dimensions_want_more_short_rounds_than_few() -> None:
    few, many, short = fitted_in(2), fitted_in(10), Settings(iterations=16)
    assert not learned(few, short, rounds=2)
    assert learned(few, short, rounds=3)
    assert not learned(many, short, rounds=5)
    assert learned(many, short, rounds=6)
    assert learned(many, Settings(), rounds=3)
    # The maps of legs are not learned.
    assert learned(replace(many, leg_step=np.zeros(2)), short, rounds=3)
