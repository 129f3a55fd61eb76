"""NumPyro models of many kinds, small enough to compile in a second: name -> (model, args, kwargs)."""

# ruff: noqa: E402
from __future__ import annotations

from typing import Any

import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import closed_forms as cf
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer.reparam import LocScaleReparam

RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 2))
Y = X @ np.array([1.0, -0.5]) + 0.3 * RNG.normal(size=12)
GROUP = np.repeat(np.arange(3), 4)
COUNTS = np.array([3, 5, 2, 8])


def regression(x, y=None):
    b = numpyro.sample("b", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("obs", len(x)):
        numpyro.sample("y", dist.Normal(x @ b, sigma), obs=y)


def hierarchical(group, y=None):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", 3):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.deterministic("shrinkage", theta - mu)
    with numpyro.plate("obs", len(group)):
        numpyro.sample("y", dist.Normal(theta[group], 1.0), obs=y)


def noncentred(group, y=None):
    reparam = handlers.reparam(config={"theta": LocScaleReparam(0.0)})
    with reparam:
        hierarchical(group, y)


def simplex(y=None):
    p = numpyro.sample("p", dist.Dirichlet(jnp.array([2.0, 1.0, 0.5, 3.0])))
    numpyro.sample("y", dist.Multinomial(18, probs=p), obs=y)


def ordinal(y=None):
    cuts = numpyro.sample(
        "cuts", dist.TransformedDistribution(dist.Normal(0.0, 1.0).expand([3]), dist.transforms.OrderedTransform())
    )
    with numpyro.plate("obs", len(y)):
        numpyro.sample("y", dist.OrderedLogistic(0.3, cuts), obs=y)


def correlated(y=None):
    sd = numpyro.sample("sd", dist.Exponential(1.0).expand([2]).to_event(1))
    chol = numpyro.sample("chol", dist.LKJCholesky(2, 2.0))
    with numpyro.plate("obs", len(y)):
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(2), scale_tril=sd[:, None] * chol), obs=y)


def censored(y=None, limit=0.5):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.5))
    seen = y < limit
    with numpyro.plate("obs", len(y)):
        with handlers.mask(mask=seen):
            numpyro.sample("seen", dist.Normal(mu, sigma), obs=y)
        with handlers.mask(mask=~seen):
            beyond = jnp.log1p(-dist.Normal(mu, sigma).cdf(limit))
            numpyro.factor("beyond", beyond)


def potential():
    x = numpyro.sample("x", dist.Normal(0.0, 3.0).expand([2]).to_event(1))
    numpyro.factor("ring", -2.0 * (jnp.sum(x**2) - 4.0) ** 2 / 4.0)
    numpyro.deterministic("radius", jnp.sqrt(jnp.sum(x**2)))


def mixture(y=None):
    w = numpyro.sample("w", dist.Beta(2.0, 3.0))
    mu = numpyro.sample("mu", dist.Normal(jnp.array([-2.0, 2.0]), 1.0).to_event(1))
    parts = dist.Normal(mu, 0.5)
    with numpyro.plate("obs", len(y)):
        numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(jnp.stack([w, 1 - w])), parts), obs=y)


def enumerated_mixture(y=None):
    w = numpyro.sample("w", dist.Dirichlet(jnp.array([2.0, 1.0, 1.0])))
    with numpyro.plate("components", 3):
        mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    with numpyro.plate("obs", len(y)):
        z = numpyro.sample("z", dist.Categorical(w), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(mu[z], 0.5), obs=y)


def spike_and_slab(y=None):
    """The prior of a continuous site depends on the discrete one."""
    on = numpyro.sample("on", dist.Bernoulli(0.3), infer={"enumerate": "parallel"})
    beta = numpyro.sample("beta", dist.Normal(0.0, jnp.where(on == 1, 2.0, 0.1)))
    numpyro.sample("y", dist.Normal(beta, 0.5), obs=y)


def hidden_markov(y=None):
    stay = numpyro.sample("stay", dist.Beta(4.0, 1.0))
    mu = numpyro.sample("mu", dist.Normal(jnp.array([-1.0, 1.0]), 1.0).to_event(1))
    rows = jnp.stack([jnp.stack([stay, 1 - stay]), jnp.stack([1 - stay, stay])])

    def step(z, y_t):
        z = numpyro.sample("z", dist.Categorical(rows[z]), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(mu[z], 0.5), obs=y_t)
        return z, None

    scan(step, 0, y)


def random_walk(y=None):
    sigma = numpyro.sample("sigma", dist.Gamma(2.0, 4.0))

    def step(state, y_t):
        state = numpyro.sample("state", dist.Normal(state, sigma))
        numpyro.sample("y", dist.Normal(state, 0.5), obs=y_t)
        return state, state

    scan(step, 0.0, y)


def moving_support(y=None):
    """The support of one site is a function of another."""
    low = numpyro.sample("low", dist.Normal(0.0, 1.0))
    width = numpyro.sample("width", dist.InverseGamma(3.0, 2.0))
    u = numpyro.sample("u", dist.Uniform(low, low + width))
    angle = numpyro.sample("angle", dist.TruncatedNormal(u, 1.0, low=low))
    numpyro.sample("y", dist.StudentT(3.0, u + angle, 0.5), obs=y)


def crossed_plates(y=None):
    mu = numpyro.sample("mu", dist.Laplace(0.0, 1.0))
    rows, columns = numpyro.plate("rows", 2, dim=-2), numpyro.plate("columns", 3, dim=-1)
    with rows:
        r = numpyro.sample("r", dist.Normal(0.0, 1.0))
    with columns:
        c = numpyro.sample("c", dist.Normal(0.0, 1.0))
    with rows, columns:
        e = numpyro.sample("e", dist.Gumbel(0.0, 1.0))
        numpyro.deterministic("mean", mu + r + c + e)
        numpyro.sample("y", dist.Normal(mu + r + c + e, 1.0), obs=y)


def beta_binomial():
    p = numpyro.sample("p", dist.Beta(2.0, 3.0))
    numpyro.sample("heads", dist.Binomial(cf.FLIPS, p), obs=cf.HEADS)


def normal_mean():
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=cf.SAMPLE)


def poisson_gamma():
    rate = numpyro.sample("rate", dist.Gamma(3.0, 1.0))
    numpyro.sample("counts", dist.Poisson(rate), obs=cf.COUNTS)


def conjugate_regression():
    s2 = numpyro.sample("s2", dist.InverseGamma(3.0, 2.0))
    beta = numpyro.sample("beta", dist.Normal(0.0, jnp.sqrt(s2)).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(cf.X @ beta, jnp.sqrt(s2)), obs=cf.Y)


CLOSED_FORMS = {f.__name__: f for f in (beta_binomial, normal_mean, poisson_gamma, conjugate_regression)}
"""Models whose evidence closed_forms has."""

SERIES = np.array([-1.1, -0.8, -1.2, 0.9, 1.3])
MODELS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "regression": (regression, (X,), {"y": Y}),
    "hierarchical": (hierarchical, (GROUP,), {"y": Y}),
    "noncentred": (noncentred, (GROUP,), {"y": Y}),
    "simplex": (simplex, (), {"y": COUNTS}),
    "ordinal": (ordinal, (), {"y": np.array([0, 1, 1, 2, 3])}),
    "correlated": (correlated, (), {"y": X}),
    "censored": (censored, (), {"y": np.minimum(Y, 0.5)}),
    "potential": (potential, (), {}),
    "mixture": (mixture, (), {"y": SERIES}),
    "enumerated_mixture": (enumerated_mixture, (), {"y": SERIES}),
    "spike_and_slab": (spike_and_slab, (), {"y": 1.2}),
    "hidden_markov": (hidden_markov, (), {"y": SERIES}),
    "random_walk": (random_walk, (), {"y": SERIES}),
    "moving_support": (moving_support, (), {"y": 0.7}),
    "crossed_plates": (crossed_plates, (), {"y": np.arange(6.0).reshape(2, 3)}),
}
