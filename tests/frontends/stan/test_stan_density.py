"""Densities against closed forms and finite differences, and draws against Stan's names."""

from __future__ import annotations

import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from stan_programs import default_and_more, load

from pathtemp._types import FloatArray, LogDensity
from pathtemp.frontends.stan.bridge import StanDensity, _CallbackRoute, _FfiRoute

pytestmark = pytest.mark.usefixtures("compiled")


def finite_difference(f: LogDensity, x: FloatArray, step: float = 1e-5) -> FloatArray:
    up = jax.vmap(f)(x + step * np.eye(len(x)))
    down = jax.vmap(f)(x - step * np.eye(len(x)))
    return np.asarray(up - down) / (2 * step)


def test_both_densities_of_one_program_keep_their_constants() -> None:
    model = load("cauchy")
    for theta in (-9.7, 0.3, 4.0):
        x = jnp.array([theta])
        assert model.log_base(x) == pytest.approx(st.norm(0, 5).logpdf(theta), rel=1e-12)
        target = st.cauchy(theta, 0.2).logpdf(10) + st.cauchy(theta, 0.2).logpdf(-10)
        assert model.log_target(x) == pytest.approx(target, rel=1e-12)


def test_the_jacobian_of_a_scale_is_in_the_density() -> None:
    model = load("eight_schools")
    y, sigma = np.array([28, 8, -3, 7, -1, 1, 18, 12.0]), np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    x = np.random.default_rng(3).normal(size=model.dim)
    mu, log_tau, theta = x[0], x[1], x[2:]
    tau = np.exp(log_tau)
    prior = st.norm(0, 5).logpdf(mu) + st.halfcauchy(0, 5).logpdf(tau) + log_tau
    prior += st.norm(mu, tau).logpdf(theta).sum()
    assert model.log_base(x) == pytest.approx(prior, rel=1e-12)
    assert model.log_target(x) == pytest.approx(prior + st.norm(theta, sigma).logpdf(y).sum(), rel=1e-12)


@pytest.mark.parametrize("name", default_and_more())
def test_gradients_agree_with_finite_differences(name: str) -> None:
    model = load(name)
    points = np.random.default_rng(1).uniform(-1, 1, (3, model.dim))
    for density in (model.log_base, model.log_target):
        value, gradient = jax.jit(jax.vmap(jax.value_and_grad(density)))(points)
        assert np.isfinite(value).all()
        for x, v, g in zip(points, value, gradient, strict=True):
            assert density(x) == pytest.approx(float(v), rel=1e-13)
            np.testing.assert_allclose(g, finite_difference(density, x), rtol=2e-6, atol=2e-6)


def test_a_density_works_inside_scan_under_two_vmaps_and_forwards() -> None:
    density = load("eight_schools").log_target
    x = np.random.default_rng(0).normal(size=(3, 4, 10))

    def step(z: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        value, gradient = jax.vmap(jax.vmap(jax.value_and_grad(density)))(z)
        return z + 1e-3 * gradient, value

    moved, values = jax.jit(lambda z: jax.lax.scan(step, z, None, length=3))(x)
    one = np.array(x[2, 1])
    for k in range(3):
        value, gradient = jax.value_and_grad(density)(one)
        assert values[k, 2, 1] == pytest.approx(float(value), rel=1e-13)
        one = one + 1e-3 * np.asarray(gradient)
    np.testing.assert_allclose(moved[2, 1], one, rtol=1e-13)
    direction = np.random.default_rng(1).normal(size=10)
    _, slope = jax.jvp(density, (x[0, 0],), (direction,))
    assert slope == pytest.approx(float(jax.grad(density)(x[0, 0]) @ direction), rel=1e-12)


def test_a_large_batch_split_over_threads_is_the_same_as_one_by_one() -> None:
    density = load("eight_schools").log_target
    x = np.random.default_rng(0).normal(size=(2000, 10))
    batched = jax.jit(jax.vmap(jax.value_and_grad(density)))
    for _ in range(3):  # the first call measures what an evaluation costs; later ones share the work
        value, gradient = batched(x)
    loop_value, loop_gradient = jax.jit(lambda z: jax.lax.map(jax.value_and_grad(density), z))(x)
    np.testing.assert_array_equal(value, loop_value)
    np.testing.assert_array_equal(gradient, loop_gradient)


@pytest.mark.stan_full
def test_a_rejection_is_density_zero_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    model = load("nasty", seed=7)  # a seed of its own: nothing was rejected before
    density = model.log_target
    bad = np.zeros(model.dim)
    bad[1] = 20.0  # tau = exp(20) is over the limit
    far = np.zeros(model.dim)
    far[1] = 1e8
    with caplog.at_level(logging.WARNING, logger="pathtemp.stan"):
        assert float(density(far)) == -np.inf
        assert caplog.records == []  # nobody asks what happens out there
        before = density.rejections  # type: ignore[attr-defined]
        assert before == 1
        value, gradient = jax.jit(jax.vmap(jax.value_and_grad(density)))(np.stack([bad, 0 * bad, bad]))
    assert density.rejections == before + 2  # type: ignore[attr-defined]
    assert value[0] == value[2] == -np.inf
    assert np.isfinite(value[1])
    np.testing.assert_array_equal(gradient[0], 0.0)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert "tau too big" in messages[0]
    assert "'nasty.stan', line 17" in messages[0]


def test_an_error_of_stan_is_density_zero_and_counted() -> None:
    density = load("eight_schools", seed=8).log_target  # a seed of its own: nothing was rejected before
    bad = np.zeros(10)
    bad[1] = -800.0  # tau = exp(-800) is 0, which is no scale of a normal
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(density)))(np.stack([0 * bad, bad]))
    assert np.isfinite(value[0])
    assert value[1] == -np.inf
    np.testing.assert_array_equal(gradient[1], 0.0)
    assert density.rejections == 1  # type: ignore[attr-defined]


def test_points_that_are_not_finite_never_reach_stan() -> None:
    density = load("cauchy").log_target
    for x in (np.nan, np.inf, -np.inf):
        value, gradient = jax.value_and_grad(density)(jnp.array([x]))
        assert value == -np.inf
        assert gradient[0] == 0.0


@pytest.mark.stan_full
def test_draws_have_stans_names_and_shapes() -> None:
    model = load("every_type")
    x = np.random.default_rng(0).normal(size=(5, model.dim))
    draws = model.draws(x)
    shapes = {name: values.shape[1:] for name, values in draws.items()}
    assert shapes["M"] == (2, 3)
    assert shapes["vectors"] == (2, 3)
    assert shapes["shares"] == (2, 3)
    assert shapes["R"] == (3, 3)
    assert shapes["Ms"] == (2, 2, 2)
    assert shapes["twice"] == (2, 2, 3)
    assert shapes["gt:2"] == (2,)
    assert shapes["gat:2"] == (2, 3)
    np.testing.assert_allclose(draws["twice"][:, 0], 2 * draws["M"])
    np.testing.assert_allclose(draws["shares"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(draws["gat:2"][0], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_allclose(draws["gz.imag"], draws["above"])
    np.testing.assert_allclose(np.linalg.norm(draws["direction"], axis=1), 1.0)
    assert (np.diff(draws["sorted"], axis=1) > 0).all()
    assert (draws["above"] > 2).all()
    np.testing.assert_array_equal(draws["table"][2], [[1, 2, 3], [4, 5, 6]])
    assert list(model.layout.shapes)[:2] == ["plain", "above"]
    assert model.layout.dim == model.dim


def test_generated_quantities_are_of_target_draws_alone_and_repeat_with_the_seed() -> None:
    model = load("eight_schools")
    x = np.random.default_rng(0).normal(size=(4, model.dim))
    assert set(model.base_draws(x)) == {"mu", "tau", "theta"}
    assert set(model.draws(x)) == {"mu", "tau", "theta", "y_new"}
    one, two = model.draws(x), model.draws(x)
    np.testing.assert_array_equal(one["y_new"], two["y_new"])
    assert not np.array_equal(one["y_new"], model.draws(x + 1e-9)["y_new"])
    other = load("eight_schools", seed=5).draws(x)
    assert not np.array_equal(one["y_new"], other["y_new"])


@pytest.mark.stan_full
def test_random_numbers_of_transformed_data_are_those_of_the_seed_in_both_densities() -> None:
    x = np.random.default_rng(0).normal(size=9)
    same = [float(load("nasty", seed=3).log_target(x)) for _ in range(2)]
    assert same[0] == same[1]
    assert float(load("nasty", seed=4).log_target(x)) != same[0]


def test_a_model_made_twice_is_one_density() -> None:
    assert load("cauchy").log_target is load("cauchy").log_target


@pytest.mark.stan_full
@pytest.mark.parametrize("route", [_FfiRoute, _CallbackRoute])
def test_a_value_rounded_to_the_edge_of_its_range_is_a_rejection_and_no_infinite_density(route: Any) -> None:
    """Dirichlet(1/2) rises without end towards the edge, but not on the unconstrained scale, where 0 is rounding."""
    base = load("lda_small").log_base
    assert isinstance(base, StanDensity)
    point = np.zeros(base.instance.dim)
    point[1] = 45.0  # the last of three parts is e^-45 of the whole, which 1 minus the others does not hold
    assert base.instance.log_density(point) == np.inf
    value, gradient = route(base).value_and_gradient(jnp.asarray(point))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, 0.0)
    point[1] = 30.0
    assert np.isfinite(route(base).value(jnp.asarray(point)))


@pytest.mark.stan_full
@pytest.mark.parametrize("route", [_FfiRoute, _CallbackRoute])
def test_a_mass_that_stan_rounds_to_zero_is_a_rejection_and_no_infinite_density(route: Any) -> None:
    """A count between 1 and 9 at a rate of e^-40: Stan divides by a probability of zero."""
    target = load("truncation").log_target
    assert isinstance(target, StanDensity)
    point = np.array([0.5, 0.0, -40.0])
    assert target.instance.log_density(point) == np.inf
    value, gradient = route(target).value_and_gradient(jnp.asarray(point))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, 0.0)
    assert np.isfinite(route(target).value(jnp.asarray([0.5, 0.0, -30.0])))
    assert not load("cauchy").log_target.instance.divides  # type: ignore[attr-defined]
