"""The mixture base: normalised, its draws follow its density, other modes compile nothing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pathtemp.model.evaluate import energies_of, exact_draws
from pathtemp.modes.local import Local, from_covariance
from pathtemp.modes.mixture_base import MixtureBase, MixtureSampler, inflation, mixture_base
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import assert_close


def log_user(x):
    return jnp.sum(-0.5 * (x / 4.0) ** 2 - jnp.log(4.0 * jnp.sqrt(2 * jnp.pi)))


def draw_user(key):
    return 4.0 * jax.random.normal(key, (2,))


def laws(*, heavy: bool) -> list[Local]:
    first = from_covariance(np.array([-3.0, 0.0]), np.array([[1.0, 0.6], [0.6, 0.5]]), 0.0)
    second = from_covariance(np.array([5.0, 2.0]), np.diag([0.04, 0.3]), 0.0)
    return [first, Local(second.centre, second.scale, second.basis, second.gain, 0.0, heavy=heavy)]


def build(*, heavy: bool) -> tuple[MixtureBase, MixtureSampler]:
    return mixture_base(laws(heavy=heavy), np.array([0.3, 0.7]), log_user, draw_user)


@pytest.mark.parametrize("heavy", [pytest.param(False, marks=pytest.mark.slow), True])
def test_density_integrates_to_one(heavy: bool) -> None:
    base, _ = build(heavy=heavy)
    x, y = np.linspace(-40, 40, 1601), np.linspace(-40, 40, 601)

    def line(a):
        return jnp.sum(jnp.exp(jax.vmap(lambda b: base(jnp.array([a, b])))(y)))

    total = float(jnp.sum(jax.jit(lambda at: jax.lax.map(line, at))(jnp.asarray(x))))
    assert abs(total * (x[1] - x[0]) * (y[1] - y[0]) - 1.0) < 2e-3


def test_density_is_that_of_scipy() -> None:
    base, _ = build(heavy=True)
    at = np.random.default_rng(0).normal(scale=4.0, size=(20, 2))
    f2 = inflation(2) ** 2
    first = stats.multivariate_normal([-3.0, 0.0], f2 * np.array([[1.0, 0.6], [0.6, 0.5]])).pdf(at)
    second = stats.multivariate_t([5.0, 2.0], f2 * np.diag([0.04, 0.3]), df=5).pdf(at)
    user = stats.multivariate_normal([0.0, 0.0], 16.0 * np.eye(2)).pdf(at)
    truth = 0.9 * (0.3 * first + 0.7 * second) + 0.1 * user
    np.testing.assert_allclose(jnp.exp(jax.vmap(base)(jnp.asarray(at))), truth, rtol=1e-9)


@pytest.mark.parametrize("heavy", [pytest.param(False, marks=pytest.mark.slow), True])
def test_draws_follow_the_density(heavy: bool) -> None:
    """A self-consistency check that a wrong weight, scale or tail fails: E[r / psi] = 1 for any density r."""
    base, sample = build(heavy=heavy)
    draws = exact_draws(sample, seed=0, stream=5, count=40_000)
    log_psi = energies_of(GeometricPath(base, log_user), draws)[:, 0]
    for mean, covariance in (([-3.0, 0.0], np.eye(2)), ([5.0, 2.0], np.diag([0.09, 0.6])), ([0.0, 0.0], 9 * np.eye(2))):
        ratio = stats.multivariate_normal(mean, covariance).pdf(draws) / np.exp(log_psi)
        assert_close(ratio.mean(), 1.0, ratio.std() / np.sqrt(len(ratio)))


def test_other_modes_compile_nothing() -> None:
    from pathtemp.kernels.compilation import _programs

    _, sample = build(heavy=False)
    exact_draws(sample, seed=0, stream=0, count=1)
    before = set(_programs)
    moved = [Local(law.centre + 1.0, law.scale, law.basis, law.gain, 0.0) for law in laws(heavy=False)]
    other, sample = mixture_base([*moved, moved[0]], np.array([0.2, 0.3, 0.5]), log_user, draw_user)
    draws = exact_draws(sample, seed=0, stream=0, count=64)
    assert set(_programs) == before
    assert np.isfinite(jax.vmap(other)(jnp.asarray(draws))).all()
