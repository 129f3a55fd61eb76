"""The search finds modes whose basins hold little of the base, and says what it has not seen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp import testing
from pathtemp.modes.find import base_stream, find_modes, spread_over_levels
from pathtemp.modes.limits import Limits
from pathtemp.modes.search import MOST_MODES, Search
from pathtemp.modes.shares import mode_shares
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import assert_close, assert_scores

SLOW = pytest.mark.slow
"""Each problem has programs of its own to compile."""


def searched(problem: testing.Problem, *, seed: int = 0, scan: int = 16384) -> Search:
    model = problem.model
    draw = base_stream(model.sample_base, seed)
    theta = draw(256)
    search = Search(GeometricPath(model.log_base, model.log_target), scale=theta.std(axis=0), seed=seed)
    levels = (np.repeat([0.1, 0.2], 128), theta)
    find_modes(search, draw, levels, Limits(1e4, scan, slopes=scan), rng=np.random.default_rng(seed))
    return search


def narrow(dim: int, width: float, weight: float) -> testing.Problem:
    centres = np.zeros((2, dim))
    centres[0, 0], centres[1, 0] = -2.0, 8.0
    return testing.gaussian_mixture([1 - weight, weight], centres, scales=[1.0, width], base_scale=5.0)


@pytest.mark.parametrize(
    ("dim", "width", "weight"),
    [pytest.param(1, 0.003, 0.2, marks=SLOW), (3, 0.1, 0.5), pytest.param(5, 0.2, 0.3, marks=SLOW)],
)
def test_a_narrow_mode_is_found_by_the_scan(dim: int, width: float, weight: float) -> None:
    search = searched(narrow(dim, width, weight))
    assert sorted(mode.found_by for mode in search.modes) == ["base", "scan"]
    masses = np.exp([mode.log_mass for mode in search.modes])
    np.testing.assert_allclose(sorted(masses), sorted([weight, 1 - weight]), rtol=0.3)


def test_draws_of_the_target_say_nothing_of_what_the_search_missed() -> None:
    """The scan of the base met the narrow mode a few times, which draws of the target that lie in it do not change."""
    search = searched(narrow(3, 0.1, 0.5))
    before = [mode.held for mode in search.modes], search.missing
    centre = search.modes[int(np.argmin([mode.law.log_det for mode in search.modes]))].law.centre
    draws = centre + 0.1 * np.random.default_rng(0).normal(size=(512, 3))
    search.least_explained(search.scan(draws, gradients=512, drawn=512), 32)
    assert ([mode.held for mode in search.modes], search.missing) == before


@pytest.mark.parametrize(("further", "stages"), [(0.0, 1), (1e6, 4)])
def test_a_search_goes_on_where_a_mode_was_come_upon_rarely(further: float, stages: int) -> None:
    """No draw of the base shows the narrow mode, whose volume is e^-23: four points of the annealing pass do."""
    problem, seed = narrow(5, 0.01, 0.5), 0
    draw = base_stream(problem.model.sample_base, seed)
    theta = draw(256)
    theta[:4] = np.array([8.0, 0.0, 0.0, 0.0, 0.0]) + 0.01 * np.random.default_rng(0).normal(size=(4, 5))
    search = Search(GeometricPath(problem.model.log_base, problem.model.log_target), scale=np.full(5, 5.0), seed=seed)
    limits = Limits(1e4, 1024, slopes=1024, starts=256, further=further)
    find_modes(search, draw, (np.repeat([0.1, 0.2], 128), theta), limits, rng=np.random.default_rng(seed))
    assert len(search.modes) == 2
    assert search.missing > 0.3
    assert search.scanned == stages * 1024


def test_a_search_that_met_all_modes_often_does_not_go_on() -> None:
    model = testing.gaussian_mixture([0.5, 0.5], np.array([[-4.0], [4.0]]), scales=1.0, base_scale=5.0).model
    draw = base_stream(model.sample_base, 0)
    search = Search(GeometricPath(model.log_base, model.log_target), scale=np.full(1, 5.0), seed=0)
    limits = Limits(1e4, 1024, slopes=1024, starts=256, further=1e6)
    find_modes(search, draw, (np.repeat([0.1, 0.2], 128), draw(256)), limits, rng=np.random.default_rng(0))
    assert search.scanned == 1024


def test_a_mode_outside_the_base_counts_as_met_by_the_points_further_out() -> None:
    """No draw of the base lies in the basin of a mode ten standard deviations out, and about a hundred of others do.

    The basin is a disc of radius 9.3 whose middle is 15.5 from the origin: 7% of the 2048 points that follow a normal
    of scale 5 lie in it, and 3% of those of scale 33. Five or fewer, or another mode, would be a mistake.
    """
    problem = testing.gaussian_mixture(
        [0.5, 0.5], np.array([[0.0, 0.0], [7.0, 7.0]]), scales=[1.0, 0.6], base_scale=1.0
    )
    search = searched(problem)
    assert len(search.modes) == 2
    assert search.missing == 0.0


@SLOW
def test_ten_modes_and_their_masses() -> None:
    search = searched(testing.paper_mixture(30, centre_scale=5.0))
    assert len(search.modes) == 10
    assert search.unseen <= 0.05
    np.testing.assert_allclose(search.shares(), 0.1, rtol=0.3)


def comb(x: jax.Array) -> jax.Array:
    """Modes a unit apart in two dimensions, all alike."""
    return 20.0 * jnp.sum(jnp.cos(2.0 * jnp.pi * x))


def test_modes_that_no_list_holds_are_neither_forgotten_nor_listed() -> None:
    rng = np.random.default_rng(0)
    search = Search(GeometricPath(lambda x: -0.5 * jnp.sum(x**2), comb), scale=np.ones(2), seed=0)
    # Starts within half a unit of 144 modes, each of them once.
    starts = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    search.climb(starts + rng.uniform(-0.2, 0.2, starts.shape), found_by="base", random=True, most_gradients=np.inf)
    assert (len(search.modes), search.unlisted) == (MOST_MODES, 144 - MOST_MODES)
    # Every start was the first at its mode.
    assert search.unseen == 1.0
    assert search.crowded
    assert search.without_list


@SLOW
def test_more_modes_than_can_be_listed_are_sampled_from_the_base() -> None:
    """1024 corners of a cube, whose path from the base is short."""
    dim = 10

    def log_q(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.logaddexp(-0.5 * ((x - 2.0) / 0.3) ** 2, -0.5 * ((x + 2.0) / 0.3) ** 2))

    fit = pt.temper(target=log_q, base=pt.normal(0.0, 3.0, shape=(dim,)), seed=1, progress=False)
    value, se = fit.log_marginal_likelihood
    assert_close(value, dim * np.log(2 * 0.3 * np.sqrt(2 * np.pi)), se)
    assert fit.modes.why.startswith("the base as given: more than 128 modes")
    above = np.asarray(fit.posterior["theta"] > 0).mean(axis=(0, 1))
    assert np.all(np.abs(above - 0.5) < 0.15)


@SLOW
def test_heavy_bent_modes() -> None:
    problem = testing.student_modes()
    search = searched(problem)
    centres = np.stack([mode.law.centre for mode in search.modes])
    assert set(problem.labels(centres)) == set(range(5))
    main = search.shares() > 0.01
    assert main.sum() == 5
    assert all(mode.law.heavy for mode, big in zip(search.modes, main, strict=True) if big)


def test_a_bent_ridge_has_one_top() -> None:
    def log_banana(x):
        return -0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0] ** 2) / 0.1) ** 2

    draw = base_stream(lambda key: 3.0 * jax.random.normal(key, (2,)), 0)
    search = Search(GeometricPath(lambda x: -jnp.sum(x**2) / 18.0, log_banana), scale=np.full(2, 3.0), seed=0)
    search.climb(draw(64), found_by="base", random=True, most_gradients=1e5)
    assert len(search.modes) == 1


def test_one_mode_costs_little() -> None:
    search = searched(testing.beta_binomial("hard"), scan=1024)
    assert len(search.modes) == 1
    # Ascents, and one gradient for each of the points that are scanned.
    assert search.counts.gradients < 4500 + 1.25 * 1024 + 256


@pytest.mark.parametrize("make", [pytest.param(testing.flower, marks=SLOW), testing.funnel])
def test_ridges_and_unbounded_densities_are_given_up_early(make) -> None:
    search = searched(make())
    assert search.without_list
    assert search.counts.gradients < 3000


def test_far_starts_do_not_veto_what_near_ones_found() -> None:
    """Starts with a scale of e^-150 have a density, and do not come far; those nearby all end in one mode."""
    data = np.random.default_rng(0).normal(3.0, 0.01, size=50)

    def log_q(x):
        return jnp.sum(-0.5 * ((data - x[0]) / jnp.exp(x[1])) ** 2 - x[1])

    rng = np.random.default_rng(1)
    near, far = rng.uniform(-2.0, 2.0, size=(32, 2)), np.array([0.0, -150.0]) + rng.normal(size=(31, 2))
    search = Search(GeometricPath(lambda x: 0.0 * x[0], log_q), scale=np.ones(2), seed=0)
    search.climb(np.concatenate([near, far]), found_by="base", random=True, most_gradients=1e5)
    assert search.starts == 63
    assert len(search.modes) == 1
    assert search.modes[0].starts <= 40
    assert not search.without_list


@pytest.mark.parametrize("correlation", [0.9, pytest.param(0.99, marks=SLOW)])
def test_neighbours_that_are_correlated_hide_no_mode_in_many_dimensions(correlation: float) -> None:
    """Precisions differ by factors of 360 and of 40,000: one leg of an ascent does not lead to the top.

    Of the second no ascent arrives; curvature tells that the highest end is next to the top.
    """
    dim, spread = 120, np.sqrt(1.0 - correlation**2)

    def log_target(x: jax.Array) -> jax.Array:
        steps = jnp.append(x[0], (x[1:] - correlation * x[:-1]) / spread)
        return -0.5 * jnp.sum(steps**2) - 0.5 * dim * float(np.log(2 * np.pi)) - (dim - 1) * float(np.log(spread))

    theta = 10.0 * np.random.default_rng(0).normal(size=(64, dim))
    path = GeometricPath(lambda x: -0.005 * jnp.sum(x**2), log_target)
    search = Search(path, scale=np.full(dim, 10.0), seed=0)
    search.climb(theta, found_by="base", random=True, most_gradients=1e5)
    assert len(search.modes) == 1
    assert not search.without_list
    # Correlations worth a unit of path may be left out of the law, and half as much of its volume.
    assert search.modes[0].log_mass == pytest.approx(0.0, abs=1.0)
    np.testing.assert_allclose(search.modes[0].law.centre, 0.0, atol=0.01)


def test_an_end_on_a_slope_is_led_to_the_top() -> None:
    """In units of one, a direction ten thousand wide is below what an ascent can feel from where it starts."""
    widths = np.array([0.01, 1e4])
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    top = turn @ np.array([0.0, 5e4])

    def log_q(x):
        return -0.5 * jnp.sum(((x - top) @ turn / widths) ** 2)

    search = Search(GeometricPath(lambda x: 0.0 * x[0], log_q), scale=np.ones(2), seed=0)
    starts = np.random.default_rng(0).uniform(-2.0, 2.0, size=(32, 2))
    search.climb(starts, found_by="base", random=True, most_gradients=1e5)
    # One in a few hundred does not end within its leg; not one would be joined to the top were slopes given up.
    assert len(search.modes) == 1
    assert search.modes[0].starts >= 24
    assert not search.without_list
    z = (search.modes[0].law.centre - top) @ turn / widths
    np.testing.assert_allclose(z, 0.0, atol=0.1)


def test_levels_are_used_evenly() -> None:
    lam = np.repeat([0.0, 0.3, 0.6, 1.0], 5)
    pick = spread_over_levels(lam, lam[:, None], np.random.default_rng(0))
    assert sorted(pick(3).ravel().tolist()) == [0.3, 0.6, 1.0]
    assert sorted(pick(3).ravel().tolist()) == [0.3, 0.6, 1.0]


def test_standard_errors_of_shares_are_honest() -> None:
    """Tours of random length, each wholly in one mode: the error of a share is as large as it says."""
    rng = np.random.default_rng(0)
    z = []
    for _ in range(200):
        length = rng.geometric(0.2, size=(8, 120))
        mode = rng.uniform(size=(8, 120)) < 0.3
        labels = np.stack([np.repeat(m, n)[:200] for m, n in zip(mode, length, strict=True)]).astype(int)
        tours = np.stack([np.repeat(np.arange(120), n)[:200] for n in length])
        share, se, _ = mode_shares(labels, tours, 2)
        z.append((share[1] - 0.3) / se[1])
    assert_scores(z)
