"""Bases given in Python, or by another program, for the parameters of a Stan program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stan_programs import assert_means, load, path

import pathtemp.model.bases as bases
from pathtemp.errors import InputError
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.python_base import python_base
from pathtemp.frontends.stan.simplex import LogRatioSimplex

dist = pytest.importorskip("numpyro.distributions")
pytestmark = pytest.mark.usefixtures("compiled")


def same_as_the_program() -> dict[str, Any]:
    """The distributions of typed_base.stan, in another order."""
    i, j = np.arange(1.0, 3), np.arange(1.0, 4)
    k = np.arange(1.0, 3)
    return {
        "L": dist.LKJCholesky(3, 1.5),
        "Ms": dist.Normal(k[:, None, None] + 2 * i[:, None] + 0 * i, i + np.zeros((2, 2, 2))),
        "M": dist.Normal(i[:, None] + 0 * j, j + 0 * i[:, None]),
        "grid": dist.Beta(i[:, None] + 0 * j, j + 0 * i[:, None]),
        "mu": dist.Normal(1.0, 2.0),
        "tau": dist.LogNormal(0.0, 1.0),
        "between": dist.Uniform(-2.0, 3.0),
        "above": dist.TruncatedNormal(np.arange(1.0, 4), 2.0, low=2.0),
        "w": dist.Dirichlet(np.array([1.0, 2.0, 3.0])),
        "shares": dist.Dirichlet(np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])),
    }


@pytest.mark.stan_full
def test_distributions_by_name_are_on_the_constrained_scale_with_the_jacobians_of_stan() -> None:
    model = load("typed_base", base=same_as_the_program())
    points = np.random.default_rng(0).normal(size=(6, model.dim))
    base, base_gradient = jax.jit(jax.vmap(jax.value_and_grad(model.log_base)))(points)
    target, target_gradient = jax.vmap(jax.value_and_grad(model.log_target))(points)
    np.testing.assert_allclose(base, target, rtol=1e-8)
    np.testing.assert_allclose(base_gradient, target_gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.stan_full
def test_exact_draws_of_the_base_are_on_the_unconstrained_scale_of_stan() -> None:
    model = load("typed_base", base=same_as_the_program())
    assert model.sample_base is not None
    flat = np.asarray(jax.jit(jax.vmap(model.sample_base))(jax.random.split(jax.random.key(1), 4000)))
    draws = model.draws(flat)
    assert_means(draws["mu"], 1)
    assert_means(draws["M"], [[1, 1, 1], [2, 2, 2]])
    assert_means((draws["M"] - [[1], [2]]) ** 2, [[1, 4, 9], [1, 4, 9]])
    assert_means(draws["shares"], [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    assert_means(draws["Ms"][:, :, :, 0], [[3, 5], [4, 6]])
    assert np.isfinite(jax.vmap(model.log_target)(flat)).all()


class Pretended:
    """An instance of `parameters { array[2] simplex[3] w; real x; }` with the simplex of later versions of Stan."""

    dim = 5
    unconstrained_names = ("w.1.1", "w.2.1", "w.1.2", "w.2.2", "x")

    def names(self) -> list[str]:
        return ["w.1.1", "w.2.1", "w.1.2", "w.2.2", "w.1.3", "w.2.3", "x"]

    def constrain(self, theta: np.ndarray) -> tuple[np.ndarray, list[str]]:
        shares = np.asarray(LogRatioSimplex()(jnp.asarray(theta[:, :4].reshape(-1, 2, 2))))
        return np.concatenate([shares.swapaxes(1, 2).reshape(-1, 6), theta[:, 4:]], axis=1), []


def test_the_simplex_of_later_versions_of_stan() -> None:
    alpha = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]])
    base = {"x": dist.Normal(0.0, 1.0), "w": dist.Dirichlet(alpha)}
    log_prob, sample = python_base(base, Pretended())  # type: ignore[arg-type]
    u = np.array([0.3, -0.7, 1.1, 0.2, 0.5])
    shares = np.asarray(LogRatioSimplex()(jnp.asarray(u[:4].reshape(2, 2))))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(LogRatioSimplex().inv(jnp.asarray(shares)), u[:4].reshape(2, 2), atol=1e-12)
    expected = dist.Normal(0, 1).log_prob(0.5) + dist.Dirichlet(alpha).log_prob(shares).sum()
    for k in range(2):  # the Jacobian of the first two shares
        jacobian = jax.jit(jax.jacobian(lambda x: LogRatioSimplex()(x)[:2]))(jnp.asarray(u[2 * k : 2 * k + 2]))
        expected += np.log(abs(np.linalg.det(jacobian)))
    assert log_prob(jnp.asarray(u)) == pytest.approx(float(expected), rel=1e-9)
    assert sample is not None
    draws = jax.jit(jax.vmap(sample))(jax.random.split(jax.random.key(0), 4000))
    assert_means(LogRatioSimplex()(draws[:, :4].reshape(-1, 2, 2)), alpha / alpha.sum(axis=1, keepdims=True))


def test_a_distribution_over_the_flat_vector_is_on_the_unconstrained_scale() -> None:
    model = load("eight_schools", base=bases.normal(0.0, 2.0, shape=(10,)))
    x = np.random.default_rng(0).normal(size=10)
    expected = -0.5 * np.sum((x / 2) ** 2) - 10 * np.log(2 * np.sqrt(2 * np.pi))
    assert model.log_base(x) == pytest.approx(expected, rel=1e-12)
    assert model.sample_base is not None


def test_a_function_with_names_may_couple_parameters() -> None:
    def log_prior(p: dict[str, jax.Array]) -> jax.Array:
        hyper = dist.Normal(0, 5).log_prob(p["mu"]) + dist.HalfCauchy(5).log_prob(p["tau"])
        return jnp.asarray(hyper + dist.Normal(p["mu"], p["tau"]).log_prob(p["theta"]).sum())

    shapes = {"mu": (), "tau": (), "theta": (8,)}
    transforms = {"tau": dist.transforms.ExpTransform()}
    base = bases.function_base(log_prior, shapes=shapes, transforms=transforms)
    python, stan = load("eight_schools", base=base), load("eight_schools")
    x = np.random.default_rng(0).normal(size=10)
    assert python.log_base(x) == pytest.approx(float(stan.log_base(x)), rel=1e-12)


def test_the_only_parameter_needs_no_name() -> None:
    model = from_stan(path("cauchy"), {"y": 10.0}, base=dist.Normal(0.0, 2.0))
    # and it takes the place of the alternative block, which is normal(0, 5)
    assert model.log_base(jnp.array([3.0])) == pytest.approx(float(dist.Normal(0, 2).log_prob(3.0)))


@pytest.mark.stan_full
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": dist.HalfNormal(1.0)}, "the distribution of 'mu' has bounds, and .* declares none"),
        ({"between": dist.Uniform(-2.0, 2.0)}, "the distribution of 'between'"),
        ({"M": dist.Normal(np.zeros((3, 2)), 1.0)}, r"'M' has the shape \(3, 2\), .* declares \(2, 3\)"),
        ({"w": dist.Dirichlet(np.ones(4))}, "the distribution of 'w'"),
    ],
)
def test_a_distribution_with_another_support_or_shape_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("typed_base", base=same_as_the_program() | change)


BY_NAME = {
    "theta": dist.Normal(0.0, 4.0).expand([8]).to_event(1),
    "mu": dist.Normal(0.1, 3.0),
    "tau": dist.HalfCauchy(5.0),
}


def test_a_base_by_name_has_the_jacobian_of_a_scale() -> None:
    model = load("eight_schools", base=BY_NAME)
    x = np.random.default_rng(0).normal(size=10)
    expected = stats.norm(0.1, 3).logpdf(x[0]) + stats.norm(0, 4).logpdf(x[2:]).sum()
    expected += stats.halfcauchy(0, 5).logpdf(np.exp(x[1])) + x[1]
    assert model.log_base(x) == pytest.approx(expected, rel=1e-12)
    assert model.sample_base is not None


def test_a_base_by_name_names_every_parameter_with_its_support() -> None:
    with pytest.raises(InputError, match="no distribution for 'tau'"):
        load("eight_schools", base={name: BY_NAME[name] for name in ("theta", "mu")})
    with pytest.raises(InputError, match="names 'wrong', which is no parameter"):
        load("eight_schools", base=BY_NAME | {"wrong": dist.Normal(0.0, 1.0)})
    with pytest.raises(InputError, match=r"'tau' has no bounds, and .* line 8 declares some"):
        load("eight_schools", base=BY_NAME | {"tau": dist.Normal(0.0, 1.0)})
    with pytest.raises(
        InputError, match=r"'theta' has the shape \(7,\), and eight_schools.stan, line \d+ declares \(8,\)"
    ):
        load("eight_schools", base=BY_NAME | {"theta": dist.Normal(np.zeros(7), 1.0)})


def test_a_flat_base_must_fit() -> None:
    with pytest.raises(InputError, match="it has 3 dimensions, and the program has 10"):
        load("eight_schools", base=bases.normal(0.0, 1.0, shape=(3,)))
    with pytest.raises(InputError, match="whole unconstrained space"):
        load("eight_schools", base=dist.HalfNormal(np.ones(10)))


@pytest.mark.stan_full
def test_another_program_may_be_the_base() -> None:
    model = load("typed_base", base_program=path("typed_base"))
    x = np.random.default_rng(0).normal(size=model.dim)
    assert float(model.log_base(x)) == float(model.log_target(x))


@pytest.mark.stan_full
def test_a_base_program_must_have_the_same_parameters() -> None:
    with pytest.raises(InputError, match=r"base_program: both must have the same parameters, and '\w+' is in"):
        load("every_type", base_program=path("typed_base"))


def test_a_base_is_given_once() -> None:
    with pytest.raises(InputError, match="either base or base_program"):
        load("cauchy", base_program=path("cauchy"), base=bases.normal(0.0, 1.0, shape=(1,)))


@pytest.mark.stan_full
def test_a_program_without_data_is_its_own_prior_and_base() -> None:
    model = load("typed_base")
    assert model.base.prior
    assert model.sample_base is not None


def test_a_base_may_be_left_to_be_found_in_place_of_the_alternative_block() -> None:
    asked = load("cauchy", base="auto")
    assert isinstance(asked.log_base, bases.Automatic)
    assert asked.sample_base is None
