"""Ascents arrive at modes, cost what they say, and give up where there is none."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.modes.ascent import CHUNK, FIRST_STEPS, LANES, ascend
from pathtemp.modes.dedupe import nearest_mode
from pathtemp.modes.local import Local, from_covariance, local_law
from pathtemp.testing.calibration import assert_rate


def covariance_of(law: Local) -> np.ndarray:
    """Of the linear map that spreads standard normals out."""
    dim = len(law.centre)
    columns = law.spread_out(np.eye(dim)) - law.spread_out(np.zeros((dim, dim)))
    return np.asarray(columns.T @ columns)


def banana(x):
    return -0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0] ** 2) / 0.1) ** 2


def test_most_arrive_at_the_top_of_a_bent_ridge() -> None:
    starts = np.random.default_rng(0).normal(scale=3.0, size=(50, 2))
    ends = ascend(banana, starts, scale=np.full(2, 3.0), most_gradients=1e5)
    assert_rate(int(np.sum(np.all(np.abs(ends.theta) < 0.1, axis=1))), len(starts), at_least=0.8)
    assert ends.gradients % (LANES * CHUNK) == 0


def test_heavy_tails_are_climbed_from_far_away() -> None:
    starts = np.array([[1e3], [-1e3], [1e5]])
    ends = ascend(lambda x: -jnp.log1p(x[0] ** 2), starts, scale=np.ones(1), most_gradients=1e5)
    assert ends.arrived.all()
    np.testing.assert_allclose(ends.theta, 0.0, atol=0.05)


def test_badly_scaled_coordinates_are_no_hindrance() -> None:
    widths = np.array([1e-4, 1.0, 1e4])
    starts = np.random.default_rng(0).normal(size=(8, 3)) * widths * 3
    ends = ascend(lambda x: -0.5 * jnp.sum((x / widths) ** 2), starts, scale=widths, most_gradients=1e5)
    assert ends.arrived.all()
    np.testing.assert_allclose(ends.theta / widths, 0.0, atol=0.03)


def collinear(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and square root of the precision of a normal of widths from .001 to 100, in no coordinate's direction."""
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return rng.normal(size=dim), 10.0 ** np.linspace(-2.0, 3.0, dim)[:, None] * turn.T


def test_more_steps_and_own_units_climb_what_the_first_steps_do_not() -> None:
    mean, root = collinear(20)

    def log_q(x):
        return -0.5 * jnp.sum((root @ (x - mean)) ** 2)

    starts = np.random.default_rng(0).uniform(-2.0, 2.0, size=(32, 20))
    short = ascend(log_q, starts, scale=np.ones(20), most_gradients=1e5)
    long = ascend(log_q, starts, scale=np.ones(20), most_gradients=1e5, most_steps=4 * FIRST_STEPS)
    assert not short.arrived.any()
    assert short.gradients == LANES * FIRST_STEPS
    assert long.arrived.all()
    # Some steps more in units of the curvature, which took a gradient a dimension, are enough.
    assert long.gradients <= LANES * (FIRST_STEPS + 20 + FIRST_STEPS)
    assert np.all(np.abs((long.theta - mean) @ root.T) < 0.01)
    assert set(long.unit) == set(range(32))


def test_units_that_are_known_make_it_quick() -> None:
    mean, root = collinear(20)
    units = np.repeat(np.linalg.inv(root)[None], 32, axis=0)
    starts = np.random.default_rng(0).uniform(-2.0, 2.0, size=(32, 20))
    log_q = lambda x: -0.5 * jnp.sum((root @ (x - mean)) ** 2)  # noqa: E731
    ends = ascend(log_q, starts, scale=units, most_gradients=1e5)
    assert ends.arrived.all()
    assert ends.gradients <= 3 * LANES * CHUNK


def test_the_log_density_of_each_start_is_noted() -> None:
    starts = np.linspace(-3.0, 3.0, 40)[:, None]
    ends = ascend(lambda x: -0.5 * x[0] ** 2, starts, scale=np.ones(1), most_gradients=1e5)
    np.testing.assert_allclose(ends.first, -0.5 * starts[:, 0] ** 2, rtol=1e-12)


def test_a_looser_end_is_sooner_and_lower() -> None:
    starts = np.random.default_rng(0).normal(scale=3.0, size=(32, 10))
    widths = 10.0 ** np.linspace(-0.5, 0.5, 10)
    ends = [
        ascend(lambda x: -0.5 * jnp.sum((x / widths) ** 2), starts, scale=np.ones(10), most_gradients=1e5, close=close)
        for close in (1e-6, 10.0)
    ]
    assert all(end.arrived.all() for end in ends)
    assert ends[1].gradients < ends[0].gradients
    assert np.median(ends[1].height) < -0.01 < np.median(ends[0].height)


@pytest.mark.parametrize("rise", [lambda x: x[0], lambda x: jnp.exp(x[0]), lambda x: jnp.nan * x[0]])
def test_a_density_without_a_maximum_has_no_modes(rise) -> None:
    ends = ascend(rise, np.zeros((3, 1)), scale=np.ones(1), most_gradients=1e5)
    assert not ends.arrived.any()


def test_a_start_without_density_is_given_up() -> None:
    def half(x):
        return jnp.where(x[0] > 0, -0.5 * (x[0] - 2.0) ** 2, -jnp.inf)

    ends = ascend(half, np.array([[1.0], [-1.0]]), scale=np.ones(1), most_gradients=1e5)
    assert ends.arrived.tolist() == [True, False]


def test_the_budget_is_kept() -> None:
    ends = ascend(banana, np.ones((500, 2)), scale=np.ones(2), most_gradients=5 * LANES * CHUNK)
    assert ends.gradients <= 12 * LANES * CHUNK
    assert not ends.arrived.all()


def test_local_law_is_the_inverse_curvature() -> None:
    covariance = np.array([[4.0, 1.9, 0.0], [1.9, 1.0, 0.02], [0.0, 0.02, 0.01]]) * 1e-2
    precision = jnp.asarray(np.linalg.inv(covariance))
    mode = np.array([1.0, -2.0, 3.0])
    law, spent = local_law(
        lambda x: 7.0 - 0.5 * (x - mode) @ precision @ (x - mode), mode, 7.0, scale=np.ones(3), spread=0.1
    )
    assert spent == 7
    assert not law.flat
    z = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(covariance_of(law), covariance, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(law.standardise(law.spread_out(z)), z, atol=1e-9)
    truth = 7.0 + 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert abs(law.log_evidence - truth) < 1e-4


def test_a_place_on_the_slope_is_no_mode() -> None:
    top = np.array([0.1])
    for at, rise in ((0.1, 0.0), (0.6, 0.125)):
        law, _ = local_law(lambda x: -0.5 * jnp.sum((x - 0.1) ** 2), np.array([at]), 0.0, scale=np.ones(1), spread=1.0)
        assert abs(law.rise - rise) < 1e-6
    np.testing.assert_allclose(law.centre, top, atol=1e-6)


def test_a_ridge_is_flat() -> None:
    law, _ = local_law(
        lambda x: -0.5 * (jnp.hypot(x[0], x[1]) - 5.0) ** 2,
        np.array([5.0, 0.0]),
        0.0,
        scale=np.full(2, 4.0),
        spread=0.2,
    )
    assert law.flat


@pytest.mark.parametrize("width", [1e-3, 300.0, 1e5, 1e8])
def test_a_wide_direction_is_not_flat(width: float) -> None:
    widths = np.array([1.0, width])
    law, spent = local_law(lambda x: -0.5 * jnp.sum((x / widths) ** 2), np.zeros(2), 0.0, scale=np.ones(2), spread=1.0)
    assert not law.flat
    np.testing.assert_allclose(law.scale, widths, rtol=1e-3)
    assert spent == (5 if width < 1 else 10)


@pytest.mark.parametrize(
    ("log_q", "at"),
    [
        (lambda x: -0.5 * x[0] ** 2 + 0.0 * x[1], [0.0, 0.0]),
        (lambda x: -0.5 * x[0] ** 2 - jnp.exp(-x[1]), [0.0, 21.0]),
        (lambda x: -0.5 * x[0] ** 2 - (1e-3 * x[1]) ** 4, [0.0, 0.01]),
    ],
    ids=["constant", "levels off", "quartic"],
)
def test_curvature_that_is_not_there_on_a_second_look_is_flat(log_q, at: list[float]) -> None:
    law, _ = local_law(log_q, np.array(at), 0.0, scale=np.ones(2), spread=1.0)
    assert law.flat


def test_the_matrix_of_a_law_spreads_out() -> None:
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    law = from_covariance(np.zeros(2), covariance, 0.0)
    np.testing.assert_allclose(law.matrix @ law.matrix.T, covariance, rtol=1e-12)
    np.testing.assert_allclose(law.spread_out(np.eye(2)), law.matrix.T, atol=1e-12)


def test_rank_is_what_is_needed() -> None:
    assert len(from_covariance(np.zeros(50), 3.0 * np.eye(50), 0.0).gain) == 0
    one = np.eye(50) + np.ones((50, 50))
    law = from_covariance(np.zeros(50), one, 0.0)
    np.testing.assert_allclose(covariance_of(law), one, atol=1e-9)


def test_correlations_between_all_neighbours_take_a_high_rank() -> None:
    """Beyond a rank of 64 the law would be some 10 units of path away from its covariance; a unit may be left out."""
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
    law = from_covariance(np.zeros(300), covariance, 0.0)
    inverse = np.linalg.inv(law.matrix)
    left = np.log(np.linalg.eigvalsh(inverse @ covariance @ inverse.T))
    assert 64 < len(law.gain) < 300
    assert np.sqrt(0.5 * np.sum(left**2)) < 1.5


def test_an_ascent_ends_where_it_comes_to_a_known_mode() -> None:
    """It takes fewer steps; where no mode is known, or another one, it goes on to the top."""
    starts = np.random.default_rng(9).normal(scale=3.0, size=(256, 2))
    top, elsewhere = (from_covariance(np.full(2, x), np.diag([1.0, 0.01]), 0.0) for x in (0.0, 50.0))
    whole, same, sooner = (
        ascend(banana, starts, scale=np.full(2, 3.0), most_gradients=1e6, laws=laws)
        for laws in ([], [elsewhere], [top])
    )
    np.testing.assert_array_equal(whole.theta, same.theta)
    # The last steps to within a millionth of a nat are a quarter of all; of 256 ascents, a tenth at least.
    assert sooner.gradients < 0.9 * whole.gradients
    assert np.all(sooner.arrived[whole.arrived])
    np.testing.assert_array_equal(nearest_mode([top], sooner.theta[sooner.arrived]), 0)
