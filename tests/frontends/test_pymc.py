"""PyMC models against PyMC itself: densities, gradients, prior draws, names."""

# ruff: noqa: E402
from __future__ import annotations

import functools
import os
import sys
import warnings

import pytest

pm = pytest.importorskip("pymc", reason="PyMC is not installed")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytensor
import pytensor.tensor as ptt
from agreement import assert_draws_have_the_density, precisions
from pymc.distributions import transforms
from pymc_models import MODELS
from scipy import special, stats

import pathtemp as pt
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.frontends.pymc_prior import jax_forward
from pathtemp.frontends.pymc_samplers import SAMPLERS
from pathtemp.frontends.pymc_special import erfcx
from pathtemp.result.draws import draws_dataset
from pathtemp.testing.calibration import FALSE_ALARM

QUICK = {"hierarchical"}
"""Models of the default suite; `-m programs_full` runs the others."""

PYTHON = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
"""PyTensor's own implementations, without the time to compile them."""


EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.programs_full) for name in MODELS]


@functools.cache
def built(name):
    source = MODELS[name]()
    return source, pt.from_pymc(source)


@pytest.fixture(params=EVERY)
def pair(request):
    source, model = built(request.param)
    assert model.sample_base is not None or request.param == "correlation"
    return source, model


# Three normals with means -1, 0 and 1 are in order where both of their differences, normal with means 1, are positive.
LOG_ORDER = {
    "mixture": -np.log(24.0),
    "ordinal": float(stats.multivariate_normal([-1.0, -1.0], [[2.0, -1.0], [-1.0, 2.0]]).logcdf([0.0, 0.0])),
}
"""Log prior probability of the order, by which priors with an order are normalised; PyMC's are not."""


def _points(model, count=3):
    return jax.random.normal(jax.random.key(5), (count, model.dim))


def test_densities_gradients_and_constrained_values_are_those_of_pymc(pair, request):
    source, model = pair
    order = LOG_ORDER.get(request.node.callspec.params["pair"], 0.0)
    values = [source.rvs_to_values[rv] for rv in source.free_RVs]
    joint, prior = source.logp(), source.logp(vars=source.free_RVs)
    wanted = {var.name for var in (*source.free_RVs, *source.deterministics)}
    named = [var for var in source.unobserved_value_vars if var.name in wanted]
    outputs = [joint, prior, *pytensor.grad(joint, values), *named]
    own = source.compile_fn(outputs, inputs=values, point_fn=False, mode=PYTHON, on_unused_input="ignore")
    both = jax.jit(lambda x: (jax.value_and_grad(model.log_target)(x), model.log_base(x)))
    for x in _points(model):
        log_joint, log_prior, *others = own(*(np.asarray(v) for v in model.layout.unravel(x).values()))
        slopes, constrained = others[: len(values)], others[len(values) :]
        (target, gradient), base = both(x)
        # The probability of an order among components that are not alike is a share of many draws.
        near = 0.01 if order else 0.0
        np.testing.assert_allclose([target, base], [log_joint - order, log_prior - order], rtol=1e-11, atol=near)
        np.testing.assert_allclose(gradient, np.concatenate([np.ravel(s) for s in slopes]), rtol=1e-8, atol=1e-8)
        ours = model.draws(np.asarray(x)[None])
        assert set(ours) == wanted
        for var, value in zip(named, constrained, strict=True):
            np.testing.assert_allclose(ours[var.name][0], value, rtol=1e-9, atol=1e-12)


@pytest.mark.programs_full
def test_prior_draws_have_the_prior_density(pair):
    source, model = pair
    if "corr" in source.named_vars and model.sample_base is None:
        pytest.skip("LKJCorr of PyMC 6 has other draws than its density; the front end says so")
    assert_draws_have_the_density(model, draws=500 if "on_host" in source.named_vars else 2000)


def test_draws_have_the_names_and_shapes_of_pymc(pair):
    source, model = pair
    names = sorted(var.name for var in (*source.free_RVs, *source.deterministics))
    draws = model.draws(np.asarray(_points(model)))
    own = pm.draw([source[name] for name in names], random_seed=1, mode=PYTHON)
    assert {k: v.shape[1:] for k, v in draws.items()} == {k: np.shape(v) for k, v in zip(names, own, strict=True)}


def test_everything_is_float64(pair):
    _, model = pair
    assert precisions(jax.value_and_grad(model.log_target), model.dim) == {"float64"}
    assert precisions(model.log_base, model.dim) == {"float64"}


NAMED = ("regression", "hierarchical", "correlated", "potential", "mixture", "time_series", "missing_values")
"""Models with coords, variables that others make, and several dimensions; names and shapes of all are tested above."""


@pytest.mark.programs_full
@pytest.mark.parametrize("name", NAMED)
def test_names_dims_and_coords_are_those_of_pm_sample(name):
    source, model = built(name)
    with source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = pm.sample(
            draws=2,
            tune=2,
            chains=1,
            progressbar=False,
            compute_convergence_checks=False,
            random_seed=1,
            initvals={"mu": np.arange(4.0)} if name == "mixture" else None,  # its order needs a start
            compile_kwargs={"mode": PYTHON},
        ).posterior
    ours = draws_dataset(model, np.asarray(_points(model, 2))[None])
    assert {k: v.shape for k, v in ours.data_vars.items()} == {k: v.shape for k, v in own.data_vars.items()}
    assert {k: v.dims for k, v in ours.data_vars.items()} == {k: v.dims for k, v in own.data_vars.items()}
    assert {k: list(v.values) for k, v in ours.coords.items()} == {k: list(v.values) for k, v in own.coords.items()}


@pytest.mark.programs_full
def test_gradients_stay_finite_in_the_tails_of_a_censored_normal():
    _, model = built("censored")
    far = jnp.array([[-60.0, 0.0], [60.0, 0.0], [0.0, -5.0], [-20.0, -2.0]])
    assert np.isfinite(jax.vmap(jax.grad(model.log_target))(far)).all()


DISTRIBUTIONS = {
    "NormalRV": lambda: pm.Normal.dist(1.0, 2.0),
    "HalfNormalRV": lambda: pm.HalfNormal.dist(2.0),
    "CauchyRV": lambda: pm.Cauchy.dist(1.0, 2.0),
    "LaplaceRV": lambda: pm.Laplace.dist(1.0, 2.0),
    "LogisticRV": lambda: pm.Logistic.dist(1.0, 2.0),
    "GumbelRV": lambda: pm.Gumbel.dist(1.0, 2.0),
    "UniformRV": lambda: pm.Uniform.dist(-1.0, 3.0),
    "LogNormalRV": lambda: pm.LogNormal.dist(0.5, 0.7),
    "ExponentialRV": lambda: pm.Exponential.dist(2.0),
    "GammaRV": lambda: pm.Gamma.dist(0.7, 2.0),
    "InvGammaRV": lambda: pm.InverseGamma.dist(3.0, 2.0),
    "ParetoRV": lambda: pm.Pareto.dist(3.0, 2.0),
    "BetaRV": lambda: pm.Beta.dist(0.5, 2.0),
    "StudentTRV": lambda: pm.StudentT.dist(nu=4.0, mu=1.0, sigma=2.0),
    "WeibullRV": lambda: pm.Weibull.dist(1.5, 2.0),
    "TriangularRV": lambda: pm.Triangular.dist(lower=-1.0, c=0.5, upper=3.0),
    "TruncatedNormalRV": lambda: pm.TruncatedNormal.dist(0.0, 1.0, lower=6.0, upper=9.0),
    "SkewNormalRV": lambda: pm.SkewNormal.dist(mu=1.0, sigma=2.0, alpha=-3.0),
    "MvNormalRV": lambda: pm.MvNormal.dist([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]])[0],
    "DirichletRV": lambda: pm.Dirichlet.dist([0.5, 2.0, 1.0])[0],
    "CategoricalRV": lambda: pm.Categorical.dist([0.5, 0.3, 0.2]) + pm.Normal.dist(0.0, 0.01),
    "BernoulliRV": lambda: pm.Bernoulli.dist(0.3) + pm.Normal.dist(0.0, 0.01),
}


QUICK_KINDS = {"NormalRV", "GammaRV", "TruncatedNormalRV"}
KINDS = [
    pytest.param(kind, marks=() if kind in QUICK_KINDS else pytest.mark.programs_full)
    for kind in sorted({*SAMPLERS} - {"BetaClippedRV"})
]


@pytest.mark.parametrize("kind", KINDS)
def test_samplers_draw_from_the_distributions_of_pymc(kind):
    variable = DISTRIBUTIONS[kind]()
    own = pm.draw(variable, 1500, random_seed=2, mode=PYTHON)
    ours = jax.vmap(jax_forward([variable]))(jax.random.split(jax.random.key(3), 20_000))[0]
    assert stats.ks_2samp(own, np.asarray(ours)).pvalue > FALSE_ALARM


def test_erfcx_to_thirteen_digits():
    x = np.concatenate([np.linspace(-26.0, 40.0, 2001), np.logspace(1.6, 8.0, 50)])
    np.testing.assert_allclose(erfcx(jnp.asarray(x)), special.erfcx(x), rtol=2e-13)


@pytest.mark.programs_full
def test_angles_have_one_turn():
    with pm.Model() as source:
        pm.VonMises("angle", 0.5, 3.0)
    model = pt.from_pymc(source)
    grid = np.linspace(-np.pi, np.pi, 4001)
    density = np.exp(jax.vmap(model.log_base)(jnp.asarray(grid)[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    assert model.log_base(jnp.array([3.2])) == -jnp.inf
    assert_draws_have_the_density(model, draws=300)


@pytest.mark.programs_full
def test_a_prior_interpolated_between_points_is_tempered_from_exact_draws():
    x = np.array([-2.0, 0.0, 0.5, 3.0])
    density = np.array([0.1, 0.8, 0.3, 0.2])
    with pm.Model() as source:
        pm.Normal("y", pm.Interpolated("v", x, density), 1.0, observed=0.4)
    model = pt.from_pymc(source)
    assert_draws_have_the_density(model, draws=1000)
    for u in (-1.5, 0.1, 0.3, 2.0):
        value = float(model.draws(np.array([[u]]))["v"][0])
        slope = (value + 2.0) * (3.0 - value) / 5.0  # of the logistic curve between the ends
        exact = np.log(np.interp(value, x, density) / np.trapezoid(density, x) * slope)
        np.testing.assert_allclose(model.log_base(jnp.array([u])), exact, rtol=1e-9)


@pytest.mark.programs_full
def test_host_draws_depend_on_the_key_alone_and_batch():
    _, model = built("on_the_host")
    keys = jax.random.split(jax.random.key(1), (2, 3))
    batched = jax.jit(jax.vmap(jax.vmap(model.sample_base)))(keys)
    single = model.sample_base(keys[1, 2])
    np.testing.assert_array_equal(batched[1, 2], single)
    assert len(np.unique(batched)) == batched.size


@pytest.mark.programs_full
def test_a_base_on_another_scale_is_the_same_density():
    with pm.Model() as source:
        pm.Normal("x", 0.0, pm.LogNormal("s", 0.0, 1.0))
        pm.Normal("y", source["x"], 1.0, observed=0.5)
    with pm.Model() as other:
        pm.Normal("x", 1.0, pm.HalfNormal("s", 2.0, default_transform=transforms.log_exp_m1))
    model = pt.from_pymc(source, base=other)
    assert_draws_have_the_density(model, draws=1000)
    x = jnp.array([0.3, -0.2])
    exact = stats.halfnorm(0, 2).logpdf(np.exp(0.3)) + stats.norm(1, np.exp(0.3)).logpdf(-0.2) + 0.3
    np.testing.assert_allclose(model.log_base(x), exact, rtol=1e-8)


def test_a_base_with_data_is_a_density_without_draws():
    def build(y):
        with pm.Model() as source:
            pm.Normal("y", pm.Normal("x"), 1.0, observed=y)
        return source

    model = pt.from_pymc(build(0.5), base=build(1.5))
    assert model.sample_base is None
    exact = stats.norm.logpdf(0.2) + stats.norm(0.2).logpdf(1.5)
    np.testing.assert_allclose(model.log_base(jnp.array([0.2])), exact, rtol=1e-12)


@pytest.mark.programs_full
def test_a_base_of_distributions_by_name_or_of_the_flat_vector():
    source, _ = built("simplex")
    named = pt.from_pymc(source, base={"p": dist.Dirichlet(jnp.array([3.0, 2.0, 2.0, 4.0]))})
    assert_draws_have_the_density(named, draws=1000)
    flat = pt.from_pymc(source, base=pt.normal(0.0, 2.0, shape=(3,)))
    assert_draws_have_the_density(flat, draws=1000)
    np.testing.assert_allclose(flat.log_base(jnp.zeros(3)), stats.norm(0, 2).logpdf(0) * 3)


@pytest.mark.programs_full
def test_a_base_must_have_the_same_variables():
    source, _ = built("regression")
    with pytest.raises(InputError, match="for 'b'; the base has no such variable"):
        pt.from_pymc(source, base={"sigma": dist.HalfNormal(1.0)})
    with pytest.raises(InputError, match="it has 2 dimensions, and model has 3"):
        pt.from_pymc(source, base=pt.normal(0.0, 1.0, shape=(2,)))
    wide = {"b": dist.Normal(0.0, 1.0).expand([2]), "sigma": dist.Normal(0.0, 1.0)}
    with pytest.raises(InputError, match="draws of 'sigma' fall outside the support"):
        pt.from_pymc(source, base=wide)
    with pm.Model() as signed:
        pm.Normal("b", shape=2)
        pm.Normal("sigma")
    with pytest.raises(InputError, match="draws of 'sigma' fall outside the support"):
        pt.from_pymc(source, base=signed)


def test_what_cannot_be_tempered_is_named():
    with pytest.raises(InputError, match=r"must be a pymc\.Model, and is a dict"):
        pt.from_pymc({})
    with pm.Model() as empty:
        pass
    with pytest.raises(InputError, match="no free variables"):
        pt.from_pymc(empty)
    with pm.Model() as discrete:
        pm.Normal("y", pm.Poisson("k", 3.0), 1.0, observed=2.0)
    with pytest.raises(InputError, match=r"\['k'\] are discrete"):
        pt.from_pymc(discrete)
    with pm.Model() as vague:
        pm.InverseGamma("tau2", 0.001, 0.001)
    with pytest.raises(InputError, match="draws of 'tau2' overflow"):
        pt.from_pymc(vague)
    with pm.Model() as minibatch:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, observed=pm.Minibatch(np.arange(10.0), batch_size=2), total_size=10)
    with pytest.raises(InputError, match="'y' observes a minibatch"):
        pt.from_pymc(minibatch)
    with pm.Model() as simulator:
        pm.Simulator("y", lambda rng, mu, size=None: rng.normal(mu, size=size), pm.Normal("mu"), observed=np.zeros(3))
    with pytest.raises(InputError, match="'y' is a Simulator, which compares draws with data"):
        pt.from_pymc(simulator)


def test_an_operation_without_a_jax_form_names_its_variable():
    class Sine(pytensor.graph.op.Op):
        itypes, otypes = [ptt.dscalar], [ptt.dscalar]

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.sin(inputs[0])

    with pm.Model() as source:
        a = pm.Normal("a")
        b = pm.Normal("b")
        pm.Normal("fine", a, 1.0, observed=0.1)
        pm.Normal("opaque", Sine()(b), 1.0, observed=0.1)
    with pytest.raises(InputError, match="'opaque' has no JAX form: No JAX conversion"):
        pt.from_pymc(source)


def test_a_custom_prior_without_draws_is_only_a_density():
    with pm.Model() as source:
        x = pm.CustomDist("x", logp=lambda value: -0.5 * value**2 - 0.5 * np.log(2 * np.pi))
        pm.Normal("y", x, 1.0, observed=0.3)
    model = pt.from_pymc(source)
    assert model.sample_base is None
    np.testing.assert_allclose(model.log_base(jnp.array([0.4])), stats.norm.logpdf(0.4))


def test_draws_that_do_not_have_the_density_are_not_used():
    with pm.Model() as source:
        pm.CustomDist(
            "wide",
            logp=lambda value: -0.5 * (value / 1.2) ** 2,
            random=lambda rng=None, size=None: rng.normal(size=size),
        )
    with pytest.warns(UserWarning, match="draws of 'wide' do not have the density"):
        model = pt.from_pymc(source)
    assert model.sample_base is None


def test_without_pymc_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathtemp\[pymc\]'"):
        pt.from_pymc(None)


def test_xla_keeps_the_devices_it_had():
    built("hierarchical")
    assert "device_count=100" not in os.environ.get("XLA_FLAGS", "")
