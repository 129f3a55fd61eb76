"""The draw of a given theta: exact against quadrature, and invariant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, CHAINS, QUICK, REFUSED, SLOW, Plant, exact_draws, law, with_bugs, worst_p_value

from pathtemp.kernels import lam_given_theta
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.paths.geometric import LOG_ZERO, delta
from pathtemp.paths.links import BASE_END, TARGET_START, MetricLink

NODES = np.array([0.0, 0.05, 0.1, 0.4, 0.45, 1.0])
LOG_C = np.array([0.3, -1.0, -1.2, -3.0, -2.5, -4.0])
LINK, PRIOR = MetricLink(jnp.asarray(NODES)), PseudoPrior(jnp.asarray(LOG_C), jnp.asarray(-0.2))
CELLS = len(NODES) - 1


@cache
def compiled() -> Callable[..., tuple[jax.Array, jax.Array]]:
    return jax.jit(jax.vmap(lam_given_theta.draw, (0, None, None, None)), compiler_options=QUICK)


def log_density_of(r: np.ndarray, delta: float) -> np.ndarray:
    """Unnormalised log p(a | theta) of folded a, straight from its definition."""
    s = np.clip((r - BASE_END) / (TARGET_START - BASE_END), 0.0, 1.0)
    positions = np.linspace(0.0, 1.0, CELLS + 1)
    inside = np.interp(s, positions, NODES) * delta - np.interp(s, positions, LOG_C)
    return np.where(r <= BASE_END, 0.2, inside)


def cdf(delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Folded a, and its distribution function by quadrature."""
    edges = np.concatenate([[0.0, BASE_END], np.linspace(BASE_END, TARGET_START, 20 * 500 * CELLS + 1)[1:], [1.0]])
    log_p = log_density_of(0.5 * (edges[1:] + edges[:-1]), delta)
    mass = np.exp(log_p - log_p.max()) * np.diff(edges)
    return edges, np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()


@pytest.mark.parametrize("value", [-300.0, -4.0, 0.0, 1.0, 2.5, 40.0, 5000.0])
def test_draws_and_bin_probabilities_agree_with_quadrature(value: float) -> None:
    u = jax.random.uniform(jax.random.key(2), (CHAINS, 3))
    a, probability = jax.device_get(compiled()(u, jnp.asarray(value), LINK, PRIOR))
    edges, mass = cdf(value)
    bounds = np.concatenate([[0.0], np.linspace(BASE_END, TARGET_START, CELLS + 1), [1.0]])
    expected = np.diff(np.interp(bounds, edges, mass))
    np.testing.assert_allclose(probability[0], expected, atol=2e-6)
    r = 1.0 - np.abs(1.0 - a)
    uniform = np.interp(r, edges, mass)
    assert stats.kstest(uniform, "uniform", method="asymp").pvalue > ACCEPTED
    assert np.all((a >= 0) & (a < 2))
    assert stats.binomtest(int(np.sum(a > 1)), CHAINS).pvalue > ACCEPTED


def test_a_cell_with_no_slope_is_drawn_from_uniformly() -> None:
    link, prior = MetricLink(jnp.array([0.0, 0.5, 1.0])), PseudoPrior(jnp.zeros(3), jnp.asarray(0.0))
    u = jax.random.uniform(jax.random.key(3), (CHAINS, 3))
    a, probability = jax.device_get(compiled()(u, jnp.asarray(0.0), link, prior))
    np.testing.assert_allclose(probability[0], lam_given_theta.bins(2), rtol=1e-9)
    assert stats.kstest(a, "uniform", args=(0, 2), method="asymp").pvalue > ACCEPTED


def test_where_the_target_has_no_density_lam_is_zero() -> None:
    u = jax.random.uniform(jax.random.key(4), (1000, 3))
    a, probability = jax.device_get(compiled()(u, jnp.asarray(LOG_ZERO), LINK, PRIOR))
    assert np.all(np.isfinite(probability))
    assert np.all(1.0 - np.abs(1.0 - a) <= BASE_END)
    np.testing.assert_allclose(probability[:, 0], 1.0)


def test_the_corners_of_the_uniforms_stay_inside() -> None:
    corners = np.array([0.0, 0.5, np.nextafter(1.0, 0.0)])
    u = np.stack(np.meshgrid(corners, corners, corners), axis=-1).reshape(-1, 3)
    for value in (-50.0, 0.0, 50.0):
        a, probability = jax.device_get(compiled()(u, jnp.asarray(value), LINK, PRIOR))
        assert np.all((a >= 0) & (a <= 2))
        r = 1.0 - np.abs(1.0 - a)
        bounds = np.concatenate([[0.0], np.linspace(BASE_END, TARGET_START, CELLS + 1), [1.0]])
        chosen = np.sum(np.cumsum(probability[0]) < u[:, :1], axis=1)
        assert np.all((r >= bounds[chosen] - 1e-12) & (r <= bounds[chosen + 1] + 1e-12))


def test_bins_have_the_length_of_their_part_of_a() -> None:
    assert np.asarray(lam_given_theta.bins(5)).tolist() == [0.125, *[0.125] * 5, 0.25]


def test_choose_draws_with_the_given_probabilities_and_never_an_impossible_one() -> None:
    probability = jnp.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    u = jnp.concatenate([jnp.array([0.0, np.nextafter(1.0, 0.0)]), jax.random.uniform(jax.random.key(0), (CHAINS,))])
    index = np.asarray(jax.vmap(lambda x: lam_given_theta.choose(x, probability))(u))
    count = np.bincount(index, minlength=6)
    assert count[5] == 0
    assert count[2] == 0
    assert count[0] <= 1
    assert stats.chisquare(count[[1, 3, 4]], np.array([0.2, 0.5, 0.3]) * count[[1, 3, 4]].sum()).pvalue > ACCEPTED


@cache
def mover(name: str, *, cells: int, plants: Sequence[Plant] = ()) -> Callable[..., jax.Array]:
    """The compiled draw for many chains: (bug, u, theta)."""
    exact = law(name, cells=cells)

    def move(u: jax.Array, theta: jax.Array) -> jax.Array:
        return lam_given_theta.draw(u, delta(exact.path.energies(theta)), exact.link, exact.prior)[0]

    return jax.jit(jax.vmap(with_bugs(move, plants), (None, 0, 0)), compiler_options=QUICK)


def one_draw(name: str, *, cells: int, plants: Sequence[Plant] = (), bug: int = -1) -> float:
    """Draw a given theta for chains from the exact law: the worst p-value."""
    exact = law(name, cells=cells)
    theta, a = start = exact_draws(exact, 0)
    u = jax.random.uniform(jax.random.key(1), (CHAINS, 3))
    new = np.asarray(mover(name, cells=cells, plants=plants)(bug, u, theta))
    # The law of a has a density, so that a draw is new with probability one.
    assert np.all(new != a)
    return worst_p_value(exact, start, (theta, new))


@pytest.mark.parametrize(
    ("name", "cells"),
    [("correlated", 2), ("mixture", 16), *(pytest.param(name, 16, marks=pytest.mark.slow) for name in SLOW)],
)
def test_one_draw_from_the_exact_law_stays_in_it(name: str, cells: int) -> None:
    assert one_draw(name, cells=cells) > ACCEPTED


def wrong_sign_of_log_c(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.log_masses

    def wrong(delta: jax.Array, link: MetricLink, prior: PseudoPrior) -> tuple[jax.Array, jax.Array]:
        sign = jnp.where(on, -1.0, 1.0)
        return right(delta, link, PseudoPrior(sign * prior.log_c, sign * prior.at_base))

    patch.setattr(lam_given_theta, "log_masses", wrong)


def wrong_sign_of_delta(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.log_masses
    patch.setattr(lam_given_theta, "log_masses", lambda delta, *args: right(jnp.where(on, -delta, delta), *args))


def wrong_slope_inside_cells(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.log_masses

    def wrong(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
        log_mass, rise = right(*args)  # type: ignore[arg-type]
        return log_mass, jnp.where(on, -rise, rise)

    patch.setattr(lam_given_theta, "log_masses", wrong)


def atoms_of_the_wrong_size(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.bins
    patch.setattr(lam_given_theta, "bins", lambda cells: jnp.where(on, 1.0 / (cells + 2), right(cells)))


BUGS = (wrong_sign_of_log_c, wrong_sign_of_delta, wrong_slope_inside_cells, atoms_of_the_wrong_size)


@pytest.mark.parametrize("bug", range(len(BUGS)), ids=[plant.__name__ for plant in BUGS])
def test_a_planted_bug_is_seen(bug: int) -> None:
    assert one_draw("correlated", cells=2, plants=BUGS, bug=bug) < REFUSED


def test_pseudo_prior_is_linear_between_nodes_with_its_own_value_at_the_base() -> None:
    a = np.array([0.0, BASE_END, BASE_END + 1e-9, 0.1875, 0.25, TARGET_START, 1.0, 1.75, 1.95])
    expected = np.array([-0.2, -0.2, 0.3, -0.35, -1.0, -4.0, -4.0, -1.0, -0.2])
    np.testing.assert_allclose([float(PRIOR(jnp.asarray(x))) for x in a], expected, atol=1e-6)
