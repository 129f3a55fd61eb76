"""The sweep over a ladder leaves its joint law as it is, and the estimates on the ladder are as good as they say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pathtemp.baselines import ladder
from pathtemp.baselines.ladder import Moves, first_state, sweep
from pathtemp.baselines.occupancy import occupancy
from pathtemp.errors import InputError
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing import gaussian_mixture
from pathtemp.testing.calibration import ENOUGH, FALSE_ALARM, assert_close, assert_scores, combined

PROBLEM = gaussian_mixture([0.3, 0.7], [[-2.5], [1.5]], scales=[0.5, 1.0], base_scale=3.0)
LADDER = np.array([0.0, 0.1, 0.4, 1.0])
LOG_C = np.array([0.0, -0.4, 0.3, 0.2])
CHAINS = 20_000


def move(keys, theta, log_c):
    path = GeometricPath(PROBLEM.model.log_base, PROBLEM.model.log_target)

    def one(key, x):
        # Steps so long that many proposals must be refused.
        state = first_state(x, 4)._replace(log_step=jnp.log(jnp.array([4.0, 3.0, 2.0, 1.5])))
        how = {"path": path, "ladder": jnp.asarray(LADDER), "moves": Moves(2, 3, 0.8), "learn": jnp.asarray(0.0)}
        return sweep(key, state, log_c=log_c, **how)[1]

    return jax.vmap(one)(keys, theta)


moved = jax.jit(move)


def after_one_sweep(log_c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start in the exact joint law under LOG_C; p-values of rungs and of theta at each rung after one sweep."""
    rng = np.random.default_rng(5)
    assert PROBLEM.log_z is not None
    assert PROBLEM.sample_at is not None
    share = np.exp(PROBLEM.log_z(LADDER) - LOG_C)
    share /= share.sum()
    theta = PROBLEM.sample_at(rng, LADDER[rng.choice(4, size=CHAINS, p=share)])
    out = moved(jax.random.split(jax.random.key(1), CHAINS), jnp.asarray(theta), jnp.asarray(log_c))
    rung = np.asarray(out.rung)
    of_rungs = stats.chisquare(np.bincount(rung, minlength=4), share * CHAINS).pvalue
    exact = [PROBLEM.sample_at(rng, np.full(CHAINS, lam))[:, 0] for lam in LADDER]
    of_theta = [stats.ks_2samp(np.asarray(out.theta)[rung == k, 0], exact[k]).pvalue for k in range(4)]
    return np.append(of_theta, of_rungs), np.asarray(out.acceptance), np.asarray(out.gradients)


def test_a_sweep_leaves_the_joint_law_as_it_is():
    p_values, acceptance, gradients = after_one_sweep(LOG_C)
    assert p_values.min() > FALSE_ALARM
    # Many proposals are refused and many are not, as the steps were chosen.
    assert 0.3 < acceptance.mean() < 0.9
    # Two moves of 1 to 3 leapfrogs, equally often.
    assert_close(gradients.mean(), 4.0, np.sqrt(2 * (2 / 3) / CHAINS))


def test_the_test_sees_a_wrong_pseudo_prior():
    p_values, _, _ = after_one_sweep(LOG_C + np.array([0.0, 0.0, 0.2, 0.0]))
    assert p_values.min() < 1e-9


def test_the_test_sees_a_proposal_that_is_never_refused(monkeypatch):
    monkeypatch.setattr(ladder, "acceptance", jnp.ones_like)
    monkeypatch.setitem(globals(), "moved", jax.jit(lambda *arguments: move(*arguments)))
    assert after_one_sweep(LOG_C)[0].min() < 1e-9


def test_occupancy_has_the_error_that_it_reports():
    log_z = np.array([0.0, 0.7, -0.4])
    log_c = np.array([0.0, 0.2, 0.1])
    p = np.exp(log_z - log_c)
    z = []
    for seed in range(ENOUGH):
        rung = np.random.default_rng([seed, 7]).choice(3, size=400, p=p / p.sum())
        # Every draw five times over: only the groups tell.
        estimate = occupancy(np.repeat(rung, 5), log_c, groups=np.arange(2000) // 5)
        z.append((estimate.mean - log_z)[1:] / estimate.stderr[1:])
    assert_scores(combined(z))


def test_a_rung_without_draws_has_a_finite_estimate_and_no_error():
    estimate = occupancy([0, 0, 2, 2], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(estimate.mean, [0.0, np.log(0.25), 0.0])
    assert np.isnan(estimate.stderr[1])
    with pytest.raises(InputError, match="rung must lie in"):
        occupancy([0, 2], [0.0, 0.0])
