"""Bases: densities that integrate to one, samplers that draw from them, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.model.bases import Base, as_base
from pathtemp.model.model import model as join
from pathtemp.model.transforms import Interval, Positive
from pathtemp.testing.calibration import FALSE_ALARM, assert_close

COUNT = 10_000


def draws(base: Base, count: int = COUNT) -> np.ndarray:
    assert base.sample is not None
    return np.asarray(jax.jit(jax.vmap(base.sample))(jax.random.split(jax.random.key(0), count)))


def distribution_function(base: Base, at: np.ndarray) -> tuple[np.ndarray, float]:
    """Distribution function of a one-dimensional base by quadrature, and its value at the end of the line."""
    x = np.linspace(-60.0, 60.0, 60_001)
    density = np.exp(np.asarray(jax.jit(jax.vmap(base.log_prob))(x[:, None])))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(x))])
    return np.interp(at, x, cumulative), float(cumulative[-1])


class Shifted:
    """A distribution of no library, whose ``sample`` takes ``seed=``; normal(2, .5)."""

    def log_prob(self, x: jax.Array) -> jax.Array:
        return -0.5 * ((x - 2.0) / 0.5) ** 2 - jnp.log(0.5) - 0.5 * jnp.log(2 * jnp.pi)

    def sample(self, *, seed: jax.Array) -> jax.Array:
        return 2.0 + 0.5 * jax.random.normal(seed)


LONG_TO_COMPILE = {"student", "gamma", "beta", "truncated", "two-part simplex", "simplex", "independent"}


def quick_first(bases: dict[str, Any]) -> list[Any]:
    """Names of bases; those whose samplers take seconds to compile are slow."""
    return [pytest.param(x, marks=[pytest.mark.slow] if x in LONG_TO_COMPILE else []) for x in sorted(bases)]


ONE_DIMENSIONAL: dict[str, Any] = {
    "normal": pt.normal(1.0, 3.0, shape=(1,)),
    "normal without shape": pt.normal(-1.0, 0.5),
    "numpyro normal": dist.Normal(0.5, 2.0),
    "student": dist.StudentT(5.0, 1.0, 0.7),
    "half cauchy": dist.HalfCauchy(5.0),
    "half normal": dist.HalfNormal(0.3),
    "gamma": dist.Gamma(2.5, 3.0),
    "beta": dist.Beta(2.0, 5.0),
    "uniform": dist.Uniform(-3.0, 7.0),
    "truncated": dist.TruncatedNormal(0.0, 1.0, low=0.5),
    "two-part simplex": dist.Dirichlet(jnp.array([2.0, 3.0])),
    "seed": Shifted(),
    "function with sampler": pt.function_base(
        lambda x: -jnp.abs(x[0]) - jnp.log(2.0), sample=lambda key: jax.random.laplace(key, (1,)), dim=1
    ),
    "function, positive": pt.function_base(
        lambda v: -v["tau"],
        sample=lambda key: {"tau": jax.random.exponential(key)},
        shapes={"tau": ()},
        transforms={"tau": Positive()},
    ),
    "function, interval": pt.function_base(
        lambda v: -jnp.log(3.0),
        sample=lambda key: {"p": jax.random.uniform(key, minval=1.0, maxval=4.0)},
        shapes={"p": ()},
        transforms={"p": Interval(1.0, 4.0)},
    ),
}


@pytest.mark.parametrize("name", quick_first(ONE_DIMENSIONAL))
def test_density_with_its_jacobian_integrates_to_one_and_is_what_the_sampler_draws(name: str) -> None:
    base = as_base(ONE_DIMENSIONAL[name])
    assert base.layout.dim == 1
    x = draws(base)
    assert x.shape == (COUNT, 1)
    assert x.dtype == np.float64
    uniform, total = distribution_function(base, x[:, 0])
    assert total == pytest.approx(1.0, abs=1e-5)
    assert stats.kstest(uniform, "uniform", method="asymp").pvalue > FALSE_ALARM


@cache
def named() -> tuple[Base, np.ndarray]:
    """The base that is a dict of distributions, and its draws."""
    base = as_base(MANY_DIMENSIONAL["dict"][0])
    return base, draws(base)


def stein(base: Base, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means, and their standard errors, of the score and of (x - m) score + 1 in every coordinate: both are zero."""
    score = np.asarray(jax.jit(jax.vmap(jax.grad(base.log_prob)))(x))
    terms = np.concatenate([score, (x - x.mean(axis=0)) * score + 1.0], axis=1)
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(len(x))


MANY_DIMENSIONAL: dict[str, tuple[Any, int]] = {
    "normal vector": (pt.normal(jnp.array([0.0, 1.0, -2.0]), jnp.array([1.0, 0.1, 5.0])), 3),
    "normal matrix": (pt.normal(0.0, 2.0, shape=(2, 3)), 6),
    "correlated": (dist.MultivariateNormal(jnp.array([1.0, -1.0]), jnp.array([[2.0, 0.9], [0.9, 0.7]])), 2),
    "simplex": (dist.Dirichlet(jnp.array([4.0, 2.0, 3.0, 5.0])), 3),
    "independent": (dist.Gamma(2.0, 1.0).expand([3]).to_event(1), 3),
    "dict": (
        {
            "mu": dist.Normal(0.0, 5.0),
            "tau": dist.HalfNormal(5.0),
            "w": dist.Dirichlet(jnp.array([4.0, 2.0, 3.0])),
            "b": pt.normal(0.0, 1.0, shape=(2, 2)),
        },
        8,
    ),
}


@pytest.mark.parametrize("name", quick_first(MANY_DIMENSIONAL))
def test_sampler_draws_from_the_density_in_many_dimensions(name: str) -> None:
    given, dim = MANY_DIMENSIONAL[name]
    base = as_base(given)
    base, x = named() if name == "dict" else (base, draws(base))
    assert base.layout.dim == dim
    assert x.shape == (COUNT, dim)
    mean, se = stein(base, x)
    assert_close(mean, 0.0, se)


def test_the_identities_can_fail() -> None:
    base = as_base(MANY_DIMENSIONAL["correlated"][0])
    mean, se = stein(base, 1.1 * draws(base))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_close(mean, 0.0, se)


def test_constrained_draws_have_the_distributions_own_moments() -> None:
    base, x = named()
    out = base.layout.constrain_draws(x)
    assert {k: v.shape[1:] for k, v in out.items()} == {"mu": (), "tau": (), "w": (3,), "b": (2, 2)}
    np.testing.assert_allclose(out["w"].sum(axis=1), 1.0, rtol=1e-10)
    alpha = np.array([4.0, 2.0, 3.0])
    mean, n = alpha / 9.0, COUNT
    se = np.sqrt(mean * (1 - mean) / 10.0 / n)
    assert_close(out["w"].mean(axis=0), mean, se)
    assert stats.kstest(out["tau"], stats.halfnorm(scale=5.0).cdf, method="asymp").pvalue > FALSE_ALARM


def test_draws_of_a_dict_are_independent_of_each_other() -> None:
    base = as_base({"x": dist.Normal(0.0, 1.0), "y": dist.Normal(0.0, 1.0)})
    x = draws(base)
    assert_close(np.corrcoef(x.T)[0, 1], 0.0, 1 / np.sqrt(len(x)))


def test_target_sees_constrained_variables_as_the_base_names_them() -> None:
    def target(v: dict[str, jax.Array]) -> jax.Array:
        return -v["tau"] + jnp.sum(jnp.log(v["w"])) - 0.5 * v["mu"] ** 2 - jnp.sum(v["b"] ** 2)

    model = join(target, MANY_DIMENSIONAL["dict"][0])
    flat = jnp.asarray(named()[1][0])
    variables, log_jacobian = model.layout.constrain(flat)
    assert float(model.log_target(flat)) == pytest.approx(float(target(variables) + log_jacobian))


def test_an_array_base_gives_the_target_an_array() -> None:
    model = join(lambda x: -jnp.sum(x @ x.T), pt.normal(0.0, 1.0, shape=(2, 3)))
    assert float(model.log_target(jnp.ones(6))) == -12.0


def test_a_base_passes_through() -> None:
    base = pt.function_base(lambda x: -0.5 * x @ x, dim=2)
    assert as_base(base) is base
    assert base.sample is None


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: pt.normal(0.0, -1.0), "scale: it must be positive"),
        (lambda: pt.normal(0.0, 0.0, shape=(2,)), "scale: it must be positive"),
        (lambda: pt.normal(0.0, jnp.array([1.0, jnp.nan])), "scale: expected finite numbers"),
        (lambda: pt.normal(jnp.zeros(3), 1.0, shape=(2,)), "does not broadcast"),
        (lambda: pt.normal(jnp.zeros((3, 1)), jnp.ones(2), shape=(2,)), "does not broadcast"),
        (lambda: pt.function_base(lambda x: -x @ x), "either dim="),
        (lambda: pt.function_base(lambda x: -x @ x, dim=1, shapes={"x": ()}), "either dim="),
        (lambda: as_base({}), "empty"),
        (lambda: as_base(3.0), "has no log_prob"),
        (lambda: as_base({"a": dist.Normal(0.0, 1.0), "b": lambda x: x}), "'b'"),
        (lambda: as_base(dist.Poisson(3.0)), "discrete"),
        (lambda: as_base({"n": dist.Bernoulli(0.5)}), "discrete"),
        (lambda: join(3.0, pt.normal()), "target: expected a function"),
    ],
)
def test_what_cannot_be_a_base_is_refused_in_one_sentence(make: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        make()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 250
