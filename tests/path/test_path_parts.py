"""The parts of the engine along a path, on exact laws: the transport, the curves, the interval, the search."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from synthetic import nothing_to_tell

from pathtemp.engines.path.chains import PathChains
from pathtemp.engines.path.estimates import Curves, groups_of, path_sampled
from pathtemp.engines.path.search import bursts_for, search
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.transport import NodalTransport, flat_transport, refine, to_z
from pathtemp.engines.path.weights import thinned
from pathtemp.engines.path.widen import edge_noise, tail_masses, wanted_interval
from pathtemp.paths.function import FunctionPath
from pathtemp.result.grouping import MOST_GROUPS
from pathtemp.settings import Settings
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_scores


def funnel_draws(count: int, dim: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """lam, (theta, mu) with theta_i ~ normal(mu, exp(lam)) about mu ~ normal(0, 3), and gradients."""
    rng = np.random.default_rng(0)
    lam = rng.uniform(low, high, count)
    mu = 3 * rng.normal(size=count)
    theta = mu[:, None] + np.exp(lam)[:, None] * rng.normal(size=(count, dim - 1))
    slope = -(theta - mu[:, None]) * np.exp(-2 * lam)[:, None]
    gradient = np.column_stack([slope, -slope.sum(axis=1) - mu / 9.0])
    return lam, np.column_stack([theta, mu]), gradient


def fitted(lam: np.ndarray, theta: np.ndarray, gradient: np.ndarray, interval: tuple[float, float]) -> NodalTransport:
    learned = flat_transport(interval, theta)
    for radius in (8.0, 4.0, 2.0, 2.0, 2.0):
        learned = refine(learned, lam, theta, gradient, radius=radius)
    return learned


def test_the_chart_of_a_funnel_is_exact_from_few_draws() -> None:
    lam, theta, gradient = funnel_draws(1000, 5, -6.0, 2.0)
    learned = fitted(lam, theta, gradient, (-6.0, 2.0))
    z, g = to_z(learned.transport(), (lam + 6.0) / 8.0, theta, gradient)
    # Of a standard normal the gradient is -z, draw by draw; moments of 1000 draws alone would not show that.
    assert np.std(z + g) < 0.15
    # Of 5000 numbers with mean square 1: the standard error is .01.
    assert np.std(z) == pytest.approx(1.0, abs=0.08)


def test_unseen_nodes_follow_the_trend_of_the_scales() -> None:
    lam, theta, gradient = funnel_draws(2000, 4, -2.0, 2.0)
    learned = fitted(lam, theta, gradient, (-4.0, 2.0))
    # The coordinates after the first have scale exp(lam) times a constant in the neck.
    slope = np.diff(learned.log_diagonal[:, 1:-1], axis=0) / np.diff(learned.lam)[:, None]
    assert np.abs(slope[0] - 1.0).max() < 0.15


def test_path_sampling_integrates_and_knows_its_error() -> None:
    rng = np.random.default_rng(1)
    z = []
    for _ in range(ENOUGH):
        s = rng.uniform(size=(200, 32))
        u = -4.0 * s + rng.normal(scale=2.0, size=s.shape)
        curves = path_sampled(s, u, np.ones_like(s), 64)
        end, se = curves.mean[-1] - curves.mean[0], curves.se(lambda x: x[-1] - x[0])
        z.append(float((end + 2.0) / se))
    assert_scores(z, df=31)


def test_weights_undo_a_density_that_rises_within_a_cell() -> None:
    rng = np.random.default_rng(2)
    s = np.sqrt(rng.uniform(size=(20_000, 8)))  # density 2 s
    u = 10.0 * s**2
    few_cells, plain = path_sampled(s, u, 1.0 / s, 4), path_sampled(s, u, np.ones_like(s), 4)
    assert_close(few_cells.mean[-1], 10.0 / 3.0, few_cells.se(lambda x: x[-1]), df=7)
    # Within a cell the mean of s^2 under a density 2 s is too high: by 3% over all, with a standard error of .1%.
    assert plain.mean[-1] > 1.01 * 10.0 / 3.0


def test_every_chain_has_a_group() -> None:
    assert groups_of(64).max() == 31
    assert groups_of(8).tolist() == list(range(8))


def test_intervals_are_widened_only_where_mass_is_left() -> None:
    x = np.linspace(-3.0, 20.0, 129)
    log_p = -0.5 * x**2
    masses, _ = tail_masses(-3.0, 20.0, log_p)
    assert np.exp(masses[0]) == pytest.approx(0.00135, rel=0.5)
    wanted = wanted_interval(-3.0, 20.0, log_p)
    assert wanted is not None
    assert wanted[0] < -3.0
    assert wanted[1] == 20.0
    assert edge_noise(np.full(10, 0.5), np.zeros(10)) == (np.inf, np.inf)


def test_the_search_gives_up_chains_that_are_lost() -> None:
    starts = np.random.default_rng(0).normal(size=(16, 3))
    starts[0] = 1e4
    found = search(lambda x: -0.5 * jnp.sum(x**2), starts, bursts=bursts_for(6000, len(starts), 0.0), seed=0)
    assert np.abs(found.last).max() < 6.0


def test_thinned_draws_have_the_original_law() -> None:
    x = np.random.default_rng(3).uniform(-6, 6, size=(4000, 16, 1))
    log_weight = -0.5 * x[..., 0] ** 2
    draws = thinned(x, log_weight, seed=0)
    assert draws.shape[::2] == (MOST_GROUPS, 1)
    weight = np.exp(log_weight)
    worth = weight.sum() ** 2 / np.sum(weight**2)
    assert worth - MOST_GROUPS < draws.size <= worth
    # The weighted draws have the error of so many independent ones, and taking some of them adds as much at most.
    assert_close(draws.mean(), 0.0, np.sqrt(2.0 / worth))
    assert_close(np.mean(draws**2), 1.0, np.sqrt(2.0 * 2.0 / worth))


def test_target_marginals() -> None:
    lam, root = np.linspace(0.0, 1.0, 5), np.array([0.0, 0.0, 4.0, 4.0])
    optimal = TargetMarginal("optimal").log_density(lam, root, root)
    assert optimal[-1] > optimal[0]
    given = TargetMarginal("given", lambda x: -(x**2)).log_density(lam, root, root)
    np.testing.assert_allclose(given, -(lam**2))


def test_curves_map_keeps_the_groups() -> None:
    curves = Curves(np.arange(3.0), np.ones(3), np.ones((4, 3))).map(np.arange(2.0), lambda x: x[:2] * 2)
    assert curves.without.shape == (4, 2)


def small_chains() -> PathChains:
    """Normals of scale exp(lam), on their exact transport."""

    def log_q(theta: jnp.ndarray, lam: jnp.ndarray) -> jnp.ndarray:
        return -0.5 * jnp.sum((theta * jnp.exp(-lam)) ** 2) - 2.0 * lam

    learned = flat_transport((0.0, 1.0), np.random.default_rng(0).normal(size=(100, 2)))
    learned = replace(learned, location=np.zeros((25, 2)), log_diagonal=np.tile(learned.lam[:, None], (1, 2)))
    settings = Settings(chains=8, iterations=16)
    target = TargetMarginal("uniform")
    how = {"target": target, "settings": settings, "seed": 0, "watch": nothing_to_tell()}
    chains = PathChains(FunctionPath(log_q), (), ends=(0.0, 0.0), **how)
    chains.begin(learned, np.zeros((8, 2)), np.full(8, 0.5))
    chains.compile()
    return chains


def test_a_chain_that_never_moves_teaches_nothing() -> None:
    chains = small_chains()
    record = chains.round()
    acceptance, u = np.array(record.acceptance), np.array(record.u)
    acceptance[:, 3], u[:, 3] = 0.0, -3000.0
    chains.adapt(record._replace(acceptance=jnp.asarray(acceptance), u=jnp.asarray(u)))
    assert np.abs(chains.log_z).max() < 0.1


def test_a_step_that_is_far_too_small_grows_fast() -> None:
    chains = small_chains()
    record, before = chains.round(), chains.log_step
    chains.adapt(record._replace(acceptance=jnp.ones_like(record.acceptance)))
    assert (chains.log_step - before).min() > 1.0
