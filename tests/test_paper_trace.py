"""Estimates of the paper's engine from draws whose law is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp._types import LogDensity
from pathtemp.engines.paper.engine import next_pseudo_prior
from pathtemp.engines.paper.trace import PaperTrace, importance_curve, log_z_curve, marginal_khat, path_nodes
from pathtemp.estimators.path_sampling import path_sampling
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import Kernels
from pathtemp.testing import Problem, beta_binomial, uniform_supports
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_scores

CELLS = 100
EASY = beta_binomial("easy")


@cache
def _ends(log_base: LogDensity, log_target: LogDensity) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Both densities of many points; compiled once for each number of them."""
    return jax.jit(jax.vmap(lambda x: (log_base(x), log_target(x))))


def delta_of(problem: Problem) -> Callable[[np.ndarray], np.ndarray]:
    model = problem.model
    ends = _ends(model.log_base, model.log_target)

    def delta(theta: np.ndarray) -> np.ndarray:
        base, target = ends(jnp.asarray(theta))
        return np.asarray(target) - np.asarray(base)

    return delta


def trace_of(theta: np.ndarray, a: np.ndarray, delta: np.ndarray, chains: int) -> PaperTrace:
    shape = (chains, -1)
    lam = np.asarray(CubicLink()(jnp.asarray(a)))
    group = np.repeat(np.arange(2 * chains), len(a) // (2 * chains))
    a, lam, delta, group = (x.reshape(shape) for x in (a, lam, delta, group))
    return PaperTrace(theta.reshape(*a.shape, 1), a, lam, delta, np.full(a.shape, 0.8), group)


def exact_trace(problem: Problem, rng: np.random.Generator, draws: int = 1600, chains: int = 4) -> PaperTrace:
    """Independent draws with a uniform on (0, 2): what a perfect sampler with c = z would give."""
    a = rng.uniform(0.0, 2.0, draws)
    assert problem.sample_at is not None
    theta = problem.sample_at(rng, np.asarray(CubicLink()(jnp.asarray(a))))
    return trace_of(theta, a, delta_of(problem)(theta), chains)


def test_log_z_of_exact_draws_is_unbiased_with_honest_errors() -> None:
    rng = np.random.default_rng(1)
    # One call of the problem's sampler and densities for all runs.
    whole = exact_trace(EASY, rng, draws=ENOUGH * 4800, chains=1)
    z = []
    for run in range(ENOUGH):
        part = slice(run * 4800, (run + 1) * 4800)
        curve = log_z_curve(trace_of(whole.theta[0, part], whole.a[0, part], whole.delta[0, part], 8), CELLS)
        z.append((curve.mean[-1] - EASY.log_z_end) / curve.stderr[-1])
    assert_scores(z, df=15)


def test_the_dip_of_the_gradient_near_the_base_is_integrated_without_bias() -> None:
    hard = beta_binomial("hard")
    assert hard.log_z is not None
    a = np.random.default_rng(3).uniform(0.0, 2.0, 160_000)
    lam = np.asarray(CubicLink()(jnp.asarray(a)))
    # The exact mean of delta in place of draws: what is left is the error of the rule.
    low, high = np.maximum(lam - 1e-6, 0.0), np.minimum(lam + 1e-6, 1.0)
    slope = (hard.log_z(high) - hard.log_z(low)) / (high - low)
    curve = log_z_curve(trace_of(np.zeros((a.size, 1)), a, slope, 4), CELLS)
    # A trapezoid through the means of the cells is .08 too high from lam = .01 on.
    assert np.max(np.abs(curve.mean[20:] - hard.log_z(curve.lam[20:]))) < 0.02


def test_a_link_with_other_ends_gives_the_same_log_z() -> None:
    """With lam = 0 and lam = 1 for more of the draws, as in the paper's horseshoe: fewer draws between, same curve."""
    link, rng = CubicLink(0.35, 0.65), np.random.default_rng(4)
    a = rng.uniform(0.0, 2.0, 160_000)
    lam = np.asarray(link(jnp.asarray(a)))
    assert EASY.sample_at is not None
    assert EASY.log_z is not None
    theta = EASY.sample_at(rng, lam)
    plain = trace_of(theta, a, delta_of(EASY)(theta), 4)
    trace = replace(plain, lam=lam.reshape(plain.lam.shape), link=link)
    curve = log_z_curve(trace, CELLS)
    np.testing.assert_allclose(curve.lam, path_nodes(CELLS, link)[1])
    assert_close(curve.mean[1:], EASY.log_z(curve.lam[1:]), curve.stderr[1:], df=7)
    assert curve.stderr[-1] < 0.03
    assert np.max(np.abs(log_z_curve(replace(trace, link=CubicLink()), CELLS).mean - EASY.log_z(curve.lam))) > 0.5
    right = Kernels.fit(curve.lam, EASY.log_z(curve.lam))
    assert marginal_khat(trace, right, CELLS).value < 0.5
    assert PaperTrace.join([trace, trace]).link == link


def test_unequal_supports_jump_where_they_should() -> None:
    for reverse in (False, True):
        problem = uniform_supports(reverse=reverse)
        trace = exact_trace(problem, np.random.default_rng(1), draws=8000)
        curve = log_z_curve(trace, CELLS)
        assert_close(curve.mean[-1], problem.log_z_end, curve.stderr[-1], df=7)
        assert 0 < curve.stderr[-1] < 0.1


def held_trace(rng: np.random.Generator, draws: int) -> PaperTrace:
    """Draws of the exact law as a chain gives them that is held where delta is far out: repeats of one state.

    A state is proposed from the exact law, kept with probability 1/h and then repeated h times; h grows with
    the distance of delta.
    """
    free = exact_trace(EASY, rng, draws=4 * draws, chains=1)
    delta = free.delta[0]
    held = 1 + (delta < -15.0) * 7
    kept = np.flatnonzero(rng.uniform(size=len(held)) < 1.0 / held)
    index = np.repeat(kept, held[kept])[:draws]
    return trace_of(free.theta[0, index], free.a[0, index], delta[index], 1)


def test_repeats_of_held_states_hardly_bias_log_z() -> None:
    """Of a bias of .37 some .08 is left, that of a ratio; over 48 runs its mean has a standard error of .016."""
    traces = [held_trace(np.random.default_rng([2, run]), 4000) for run in range(48)]
    ours = np.array([log_z_curve(t, CELLS).mean[-1] for t in traces]) - EASY.log_z_end
    ties_only = np.array([path_sampling(t.folded, t.u, [0.0, 1.0]).mean[-1] for t in traces]) - EASY.log_z_end
    assert abs(ours.mean()) < 0.5 * ties_only.mean()
    with pytest.raises(AssertionError, match="standard errors"):
        assert_close(ties_only.mean(), 0.0, ties_only.std(ddof=1) / np.sqrt(len(traces)), df=len(traces) - 1)


def test_khat_is_small_for_uniform_a_and_large_for_a_wrong_c() -> None:
    rng = np.random.default_rng(0)
    trace = exact_trace(EASY, rng, draws=40_000, chains=1)
    _, lam = path_nodes(CELLS)
    assert EASY.log_z is not None
    right = Kernels.fit(lam, EASY.log_z(lam))
    assert marginal_khat(trace, right, CELLS).value < 0.5
    far = Kernels.fit(lam, EASY.log_z(lam) + 15.0 * lam)
    left = np.flatnonzero(rng.uniform(size=trace.lam.size) < np.exp(-15.0 * trace.lam[0]))[:4000]
    shunned = trace_of(trace.theta[0, left], trace.a[0, left], trace.delta[0, left], 1)
    assert marginal_khat(shunned, far, CELLS).value > 0.7


def test_first_guess_is_the_whole_importance_curve_only_while_stuck() -> None:
    rng = np.random.default_rng(2)
    assert EASY.sample_at is not None
    theta = EASY.sample_at(rng, np.zeros(400))
    stuck = trace_of(theta, np.full(400, 0.05), delta_of(EASY)(theta), 4)
    curve = log_z_curve(stuck, CELLS)
    np.testing.assert_array_equal(curve.mean, 0.0)
    guess = importance_curve(stuck, curve.lam)
    assert guess is not None
    assert EASY.log_z is not None
    assert np.max(np.abs(guess - EASY.log_z(curve.lam))) < 0.6
    log_c = next_pseudo_prior(curve, stuck, stuck, stuck=True, kernels=10)
    np.testing.assert_allclose(np.asarray(log_c(jnp.asarray(curve.lam))), guess, atol=0.1)
    crossed = exact_trace(EASY, rng, draws=400)
    log_c = next_pseudo_prior(curve, crossed, stuck, stuck=True, kernels=10)
    np.testing.assert_allclose(np.asarray(log_c(jnp.asarray(curve.lam))), 0.0, atol=1e-9)


def test_no_guess_where_no_base_draw_has_density_under_the_target() -> None:
    nowhere = trace_of(np.zeros((8, 1)), np.full(8, 0.05), np.full(8, -np.inf), 2)
    assert importance_curve(nowhere, np.array([0.0, 1.0])) is None


def test_adaptations_are_pooled_and_the_last_visits_kept() -> None:
    rng = np.random.default_rng(5)
    first, second = exact_trace(EASY, rng, draws=80), exact_trace(EASY, rng, draws=80)
    pooled = PaperTrace.join([first, second])
    assert pooled.a.shape == (4, 40)
    target = pooled.at(1.0, most=1)
    for chain in range(4):
        visits = np.concatenate([t.theta[chain][t.lam[chain] == 1] for t in (first, second)])
        np.testing.assert_array_equal(target[chain, -1], visits[-1])
