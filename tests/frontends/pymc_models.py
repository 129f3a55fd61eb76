"""PyMC models of many kinds, small enough to compile in a second: name -> function that builds one."""

# ruff: noqa: E402
from __future__ import annotations

from collections.abc import Callable

import pytest

pm = pytest.importorskip("pymc", reason="PyMC is not installed")

import closed_forms as cf
import numpy as np
import pytensor.tensor as pt
from pymc.distributions import transforms

RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 2))
Y = X @ np.array([1.0, -0.5]) + 0.3 * RNG.normal(size=12)
GROUP = np.repeat(np.arange(3), 4)
SERIES = np.array([-1.1, -0.8, -1.2, 0.9, 1.3])


def regression() -> pm.Model:
    with pm.Model(coords={"covariate": ["age", "dose"], "obs": np.arange(12)}) as model:
        x = pm.Data("x", X, dims=("obs", "covariate"))
        b = pm.Normal("b", 0.0, 2.0, dims="covariate")
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", x @ b, sigma, observed=Y, dims="obs")
    return model


def hierarchical() -> pm.Model:
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        tau = pm.HalfCauchy("tau", 1.0)
        theta = pm.Normal("theta", mu, tau, dims="group")
        pm.Deterministic("shrinkage", theta - mu, dims="group")
        pm.Normal("y", theta[GROUP], 1.0, observed=Y)
    return model


def noncentred() -> pm.Model:
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        z = pm.StudentT("z", 5.0, shape=3)
        theta = pm.Deterministic("theta", tau * z)
        pm.Normal("y", theta[GROUP], pm.InverseGamma("s2", 3.0, 2.0), observed=Y)
    return model


def simplex() -> pm.Model:
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([2.0, 1.0, 0.5, 3.0]))
        pm.Multinomial("y", 18, p, observed=[3, 5, 2, 8])
    return model


def ordinal() -> pm.Model:
    """An order on components that are not alike: the prior is drawn again until it holds."""
    with pm.Model() as model:
        cuts = pm.Normal("cuts", np.linspace(-1, 1, 3), 1.0, transform=transforms.ordered)
        pm.OrderedLogistic("y", 0.3, cuts, observed=[0, 1, 1, 2, 3])
    return model


def correlated() -> pm.Model:
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        mu = pm.MvNormal("mu", np.zeros(2), chol=chol)
        pm.MvNormal("y", mu, chol=chol, observed=X)
    return model


def correlation() -> pm.Model:
    with pm.Model() as model:
        pm.LKJCorr("corr", n=3, eta=2.0)
        x = pm.MvNormal("x", np.zeros(2), np.array([[1.0, 0.4], [0.4, 2.0]]))
        pm.Normal("y", x, 1.0, observed=[0.3, 0.1])
    return model


def censored() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        sigma = pm.LogNormal("sigma", 0.0, 0.5)
        pm.Censored("y", pm.Normal.dist(mu, sigma), lower=None, upper=0.5, observed=np.minimum(Y, 0.5))
    return model


def potential() -> pm.Model:
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 3.0, shape=2)
        pm.Potential("ring", -2.0 * (pt.sum(x**2) - 4.0) ** 2 / 4.0)
        pm.Deterministic("radius", pt.sqrt(pt.sum(x**2)))
    return model


def mixture() -> pm.Model:
    """An order on exchangeable components: the prior is sorted."""
    with pm.Model(coords={"component": [1, 2, 3, 4]}) as model:
        w = pm.Dirichlet("w", np.ones(4), dims="component")
        centre = pm.Normal("centre", 0.0, 1.0)
        mu = pm.Normal("mu", centre, 2.0, dims="component", transform=transforms.ordered)
        pm.NormalMixture("y", w, mu, 0.5, observed=SERIES)
    return model


def mixture_prior() -> pm.Model:
    with pm.Model() as model:
        w = pm.Beta("w", 2.0, 3.0)
        slab = pm.Mixture("slab", pt.stack([w, 1 - w]), [pm.Normal.dist(-1.0, 0.3), pm.Laplace.dist(2.0, 1.0)])
        pm.Normal("y", slab, 0.5, observed=1.2)
    return model


def time_series() -> pm.Model:
    with pm.Model() as model:
        sigma = pm.Exponential("sigma", 1.0)
        walk = pm.GaussianRandomWalk("walk", sigma=sigma, init_dist=pm.Normal.dist(0, 1), steps=4)
        ar = pm.AR("ar", [0.5], sigma=0.3, init_dist=pm.Normal.dist(0, 1), steps=4)
        pm.Normal("y", walk + ar, 0.5, observed=SERIES)
    return model


def moving_support() -> pm.Model:
    """The support of one variable is a function of another."""
    with pm.Model() as model:
        low = pm.Normal("low", 0.0, 1.0)
        width = pm.Weibull("width", 2.0, 1.0)
        u = pm.Uniform("u", low, low + width)
        angle = pm.TruncatedNormal("angle", u, 1.0, lower=low)
        zero = pm.ZeroSumNormal("zero", sigma=1.0, shape=3)
        pm.StudentT("y", nu=3.0, mu=u + angle + zero, sigma=0.5, observed=[0.7, 0.1, -0.2])
    return model


def missing_values() -> pm.Model:
    y = np.ma.masked_invalid(np.array([0.5, np.nan, 1.5, np.nan]))
    with pm.Model() as model:
        mu = pm.Logistic("mu", 0.0, 1.0)
        pm.Normal("y", mu, pm.Pareto("scale", 3.0, 0.5), observed=y)
    return model


def on_the_host() -> pm.Model:
    """No JAX sampler for these: PyTensor draws the prior."""
    with pm.Model() as model:
        a = pm.Truncated("a", pm.Gamma.dist(2.0, 1.0), upper=3.0)
        b = pm.Moyal("on_host", a, 1.0)
        pm.Normal("y", b, 1.0, observed=0.3)
    return model


def beta_binomial() -> pm.Model:
    with pm.Model() as model:
        pm.Binomial("heads", cf.FLIPS, pm.Beta("p", 2.0, 3.0), observed=cf.HEADS)
    return model


def normal_mean() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0.0, 2.0), 1.0, observed=cf.SAMPLE)
    return model


def poisson_gamma() -> pm.Model:
    with pm.Model() as model:
        pm.Poisson("counts", pm.Gamma("rate", 3.0, 1.0), observed=cf.COUNTS)
    return model


def conjugate_regression() -> pm.Model:
    with pm.Model() as model:
        s2 = pm.InverseGamma("s2", 3.0, 2.0)
        beta = pm.Normal("beta", 0.0, s2**0.5, shape=3)
        pm.Normal("y", cf.X @ beta, s2**0.5, observed=cf.Y)
    return model


CLOSED_FORMS = {f.__name__: f for f in (beta_binomial, normal_mean, poisson_gamma, conjugate_regression)}
"""Models whose evidence closed_forms has."""

MODELS: dict[str, Callable[[], pm.Model]] = {
    build.__name__: build
    for build in (
        regression,
        hierarchical,
        noncentred,
        simplex,
        ordinal,
        correlated,
        correlation,
        censored,
        potential,
        mixture,
        mixture_prior,
        time_series,
        moving_support,
        missing_values,
        on_the_host,
    )
}
