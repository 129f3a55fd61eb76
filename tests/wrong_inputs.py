"""What people type that cannot work, and words of the sentence that they get: one row each, as code.

Rows are evaluated with the names below. ``argument_rows`` adds each argument of each public function with values of a
wrong type or size; ``test_wrong_inputs`` holds all of them to the same.
"""

from __future__ import annotations

from functools import cache, partial
from io import StringIO  # noqa: F401  (a row has it)
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd  # type: ignore[import-untyped]
from synthetic import cauchy_fit, fit_of, odd_model

import pathtemp as pt
from pathtemp.result.marginal import Marginal

NAN, INF = float("nan"), float("inf")
BASE = pt.normal(0.0, 2.0, shape=(2,))
MODEL = odd_model()
Y = np.array([0.3, -1.2, 2.2])


def good(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def along(theta: jax.Array, lam: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(theta**2) * jnp.exp(-lam)


@cache
def marginal() -> Marginal:
    u = np.linspace(-2.0, 2.0, 17)
    log_p = -0.5 * u**2
    return Marginal.of("tau", u, log_p, np.stack([log_p, log_p + 0.01 * u]), np.exp, restricted=False)


def regression(y: Any) -> None:
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0.0, 1.0)), 1.0), obs=y)


def numpy_inside(y: Any) -> None:
    numpyro.sample("y", dist.Normal(np.exp(numpyro.sample("x", dist.Normal(0.0, 1.0))), 1.0), obs=y)


def counts_inside(y: Any) -> None:
    numpyro.sample("y", dist.Normal(numpyro.sample("k", dist.Poisson(3.0)), 1.0), obs=y)


def paired(y: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def subsampled(y: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", len(y), subsample_size=2) as index:
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[index])


STAN = """data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  y ~ normal(mu, 1);
  mu ~ normal(0, 5);
}
"""
SCALE = "parameters { real<lower=0> tau; } model { tau ~ gamma(2, 1); }"
START = {"mu": 0.0, "theta": [0.0] * 3, "tau": 1.0}
THERE: dict[str, Any] = globals() | {"fit": cauchy_fit(), "Path": Path, "partial": partial, "fit_of": fit_of, "pd": pd}

MODELS: list[tuple[str, str]] = [
    ("pt.temper()", "temper: "),
    ("pt.temper(3)", "model: expected a PyMC model, a NumPyro function, a Stan program or a pt.Model"),
    ("pt.temper(good)", "a log density goes to target="),
    ("pt.temper(good, BASE)", "a log density goes to target="),
    ("pt.temper([MODEL])", "model: "),
    ("pt.temper(MODEL, 1000)", "name all others, as in budget=30_000"),
    ("pt.temper(MODEL, MODEL)", "model: "),
    ("pt.temper(dist.Normal(0.0, 1.0))", "it is a distribution (Normal)"),
    ("pt.temper(fit)", "model: "),
    ("pt.temper(fit.posterior)", "model: "),
    ("pt.temper(np)", "model: "),
    ("pt.temper(b'model')", "model: "),
    ("pt.temper('')", "program: the text is empty"),
    ("pt.temper('/')", "program: "),
    ("pt.temper('missing.stan')", "program: cannot read 'missing.stan'"),
    ("pt.temper(Path('missing.stan'))", "program: cannot read 'missing.stan'"),
    ("pt.temper(good, target=good, base=BASE)", "temper: "),
    ("pt.temper(MODEL, data={})", "data: "),
    ("pt.temper(good, data={'N': 3})", "data: it goes with a Stan program"),
    ("pt.temper(target=MODEL, base=BASE)", "target: "),
    ("pt.temper(target=good, base='auto')", "base: "),
    ("pt.temper(target=good)", "give dim="),
    ("pt.temper(target=good, base=lambda x: x)", "function_base"),
    ("pt.temper(target=good, base=[BASE])", "base: it is a list"),
    ("pt.temper(target=good, base={1: BASE})", "base: the names of a dict of distributions are texts"),
    ("pt.temper(target=good, base=dist.Poisson(2.0))", "discrete"),
    ("pt.temper(target=good, base=(BASE, BASE))", "base: it is a tuple"),
    ("pt.temper(target=good, base={'a': {'b': BASE}})", "base: 'a' is a dict"),
    ("pt.temper(target=good, dim=(2,))", "dim: it must be a whole number"),
    ("pt.temper(target=good, prior=BASE)", "base= is what it is called here"),
    ("pt.temper(good, dim=2)", "a log density goes to target="),
    ("pt.temper(MODEL, seed=jax.random.key(0))", "seed: expected an int"),
    ("pt.temper(MODEL, seed=np.random.default_rng(0))", "seed: expected an int, got a Generator"),
    ("pt.temper(target=lambda x: jnp.atleast_1d(good(x)), base=BASE)", "target: the log density returns shape (1,)"),
    ("pt.temper(target=lambda x: jax.scipy.stats.norm.logpdf(x), base=BASE)", "returns shape (2,)"),
    ("pt.temper(target=lambda x: np.sum(np.exp(x)), base=BASE)", "target: the log density fails"),
    ("pt.temper(target=lambda x: good(x).astype(jnp.float32), base=BASE)", "float32"),
    ("pt.temper(target=lambda x: good(x) + 0j, base=BASE)", "returns complex128; it must be computed in float64"),
    ("pt.temper(target=lambda x: good(x) if x[0] > 0 else -1.0, base=BASE)", "target: the log density fails"),
    ("pt.temper(target=lambda p: good(p.a), base={'a': BASE})", "target: the log density fails"),
    ("pt.temper(target=lambda a, b: good(a), base=BASE)", "target: the log density fails"),
    ("pt.temper(target=lambda x: good(x) + jnp.ones(3) @ x, base=BASE)", "on a point with 2 parameters"),
    ("pt.temper(target=jax.vmap(good), base=BASE)", "target: the log density "),
    ("pt.temper(target=lambda x: None, base=BASE)", "NoneType"),
    ("pt.temper(target=lambda x: print(x), dim=2)", "target: the log density returns"),
    ("pt.temper(target=good, base=pt.normal)", "base: it is a function"),
    ("pt.temper(target=good, base=dist.Normal)", "base: it is the class Normal; give a distribution of it"),
    ("pt.temper(target=good, base={'a': dist.Normal})", "base: 'a' is the class Normal"),
    ("pt.temper(target=good, base='prior')", "base: it is a str"),
    ("pt.temper(target=good, base={})", "base: the dict of distributions is empty"),
    ("pt.temper(target=good, base=BASE, dim=2)", "dim: it goes with target= alone"),
    ("pt.temper(target=lambda x: [good(x)], base=BASE)", "target: the log density returns a list"),
    ("pt.temper(target=lambda x: (good(x), 1.0), base=BASE)", "target: the log density returns a tuple"),
    ("pt.temper(target=lambda x: {'lp': good(x)}, base=BASE)", "target: the log density returns a dict"),
    ("pt.temper(target=lambda x: 'a', base=BASE)", "target: the log density fails"),
    ("pt.temper(target=lambda x: jnp.sum(x) > 0, base=BASE)", "target: the log density returns bool"),
    ("pt.temper(target=lambda x: good(x.reshape(3)), base=BASE)", "target: the log density fails"),
    ("pt.temper(target=lambda v: v['mu'], base={'nu': BASE})", "KeyError: 'mu'"),
    ("pt.temper(None, 3)", "model: only a NumPyro function takes further arguments"),
    ("pt.temper(model=None, base=BASE)", "temper: give a model"),
    ("pt.temper(numpyro)", "model: expected a PyMC model"),
    ("pt.temper(regression, 'data.csv')", "data: site 'y' observes 'data.csv' (a str)"),
    ("pt.temper(regression, np.array(['a', 'b']))", "data: site 'y' observes array(['a', 'b']"),
    ("pt.temper(regression, np.array([]))", "model: regression observes no data"),
    ("pt.temper(regression, None)", "model: regression observes no data"),
    ("pt.temper(paired, Y)", "data: site 'y' observes values of shape (3,), and its distribution has shape (2,)"),
    ("pt.temper(regression, y=Y, x=Y)", "as a NumPyro model, regression was given other arguments"),
    ("pt.from_pymc(good)", "from_pymc: model must be a pymc.Model"),
    ("pt.from_pymc('model.stan')", "from_pymc: model must be a pymc.Model"),
    ("pt.from_numpyro(MODEL)", "from_numpyro: model"),
    ("pt.from_numpyro(along)", "from_numpyro: "),
    ("pt.temper(jax.jit(regression), Y)", "is compiled by jax.jit"),
    ("pt.temper(numpyro.handlers.seed(regression, 0), Y)", "is inside handlers.seed"),
    ("pt.temper(regression, list(Y))", "data: site 'y' observes a list"),
    ("pt.temper(regression, np.ma.masked_equal(Y, 2.2))", "data: site 'y' observes a masked array"),
    ("pt.temper(regression, pd.Series(Y))", "data: site 'y' observes a Series"),
    ("pt.temper(regression, data={'y': Y})", "NumPyro functions take arguments"),
    ("pt.temper(regression)", "as a NumPyro model, regression was given other arguments"),
    ("pt.temper(numpy_inside, Y)", "takes a site out of JAX"),
    ("pt.temper(counts_inside, Y)", "site 'k' is a Poisson"),
    ("pt.temper(subsampled, Y)", "plate 'data' subsamples 2 of 3"),
    ("pt.temper(STAN, data={'N': 3, 'y': Y}, dim=1)", "dim: it goes with target= alone"),
    ("pt.temper(STAN, N=3, y=Y)", "data: give N, y as data={...}"),
    ("pt.temper(STAN, data={'N': 3, 'y': Y}, budget=3)", "budget: 3 gradient equivalents are too few"),
    ("pt.temper(StringIO(''), data={'N': 3, 'y': Y})", "model: it is an open file"),
    ("pt.from_stan(STAN, {'N': 3, 'y': Y}, base={'mu': dist.Gamma(1.0, 1.0)})", "line 6 declares none"),
    ("pt.from_stan(SCALE, base={'tau': dist.Normal(0.0, 1.0)})", "line 1 declares some"),
    ("pt.from_stan(STAN, {'N': 3, 'y': Y}, include_paths=['nope'])", "include_paths: there is no folder 'nope'"),
    ("pt.from_stan(STAN, data=[1])", "data: expected a dict"),
    ("pt.from_stan(STAN, 'missing.json')", "data: cannot read 'missing.json'"),
    ("pt.from_stan(STAN, base=3)", "base: it is an int"),
    ("pt.from_stan(STAN)", "line 2: the data variable 'N' is not in data"),
    ("pt.from_stan(STAN, {'N': -1, 'y': []})", "line 2: the data variable 'N' must be at least 0, and is -1"),
    ("pt.from_stan(STAN, {'N': 2, 'y': Y})", "line 3: the data variable 'y' is declared with size (N = 2)"),
    ("pt.from_stan(STAN, {'N': 1, 'y': [NAN]})", "line 3: the data variable 'y' has NaN"),
    ("pt.from_stan(STAN, {'N': 3, 'Y': Y})", "line 3: the data variable 'y' is not in data; is 'Y' meant?"),
    ("pt.from_stan(STAN, {'N': 3, 'y': Y}, base={'nu': BASE})", "base: it has no distribution for 'mu'"),
    ("pt.from_stan(STAN, pd.DataFrame({'y': Y}))", "take its columns, as in {'N': len(df), 'y': df['y']}"),
    ("pt.from_stan(STAN, data=pd.DataFrame({'y': Y}))", "take its columns"),
    ("pt.from_stan(STAN, 'measured.csv')", "data: measured.csv is a table"),
    ("pt.from_stan(STAN, data=Path('measured.csv'))", "data: measured.csv is a table"),
    (
        "pt.from_stan(STAN, {'N': 3, 'y': [1.0, None, 2.0]})",
        "'y' must be a 1-dimensional array of real numbers, and has",
    ),
    ("pt.from_stan(STAN, {'N': 3, 'y': np.ma.masked_equal(Y, 2.2)})", "has missing values; leave them out"),
    ("pt.from_stan(STAN, {'N': 3, 'y': Y.reshape(-1, 1)})", "and is of shape (3, 1)"),
    ("pt.from_stan(STAN, {'N': 3, 'y': pd.Series(['a', 'b', 'c'])})", "and is a Series"),
    ("pt.from_stan(STAN, {'N': '3', 'y': Y})", "line 2: the data variable 'N' must be an integer, and is '3'"),
    ("pt.from_stan(STAN, {'N': 3.5, 'y': Y})", "line 2: the data variable 'N' must be an integer"),
    ("pt.from_stan(STAN, {'N': 3, 'y': 'abc'})", "line 3: the data variable 'y' must be a 1-dimensional array"),
    ("pt.from_stan(STAN, {'N': 3, 'y': Y + 1j})", "of real numbers, and is complex"),
    ("pt.from_stan(STAN, {3: 3})", "data: the names must be strings, and 3 is not"),
    ("pt.from_stan(STAN.encode(), {'N': 3, 'y': Y})", "program: expected the path or the text"),
    ("pt.from_stan('model { }')", "line 1: the program has no parameters"),
    ("pt.divide_and_conquer(STAN, margin='tau', data={})", "margin: the program has no 'tau'"),
]

RUNS: list[tuple[str, str]] = [
    *[
        (f"pt.temper(MODEL, {name}=1)", words)
        for name, words in {
            "tune": "tune: there is no such argument; a run finds its own warm-up",
            "num_warmup": "num_warmup: there is no such argument; a run finds its own warm-up",
            "num_samples": "draws= is what it is called here",
            "iter_sampling": "draws= is what it is called here",
            "random_seed": "seed= is what it is called here",
            "rng_key": "seed= is what it is called here",
            "target_accept": "the acceptance is one of settings=",
            "parallel_chains": "cores= is what it is called here",
            "progressbar": "progress= is what it is called here",
            "initvals": "init= is what it is called here",
            "n_jobs": "cores= is what it is called here",
            "temperatures": "the path is learned, and has no ladder",
            "buget": "is budget= meant?",
            "return_inferencedata": "fit.to_arviz() is what ArviZ takes",
            "timeout": "max_seconds= is what it is called here",
        }.items()
    ],
    ("pt.temper(MODEL, settings=pt.settings)", "settings: it must be pt.settings.DEFAULT"),
    ("pt.temper(MODEL, settings=pt.settings.Settings)", "settings: it must be pt.settings.DEFAULT"),
    ("pt.temper(MODEL, progress=None)", "progress: it must be True, False or an object"),
    ("pt.temper(MODEL, checkpoint=True)", "checkpoint: 'True' is no name of a file"),
    ("pt.temper(MODEL, checkpoint='no\\nsuch/run.nc')", "checkpoint: there is no folder"),
    ("pt.temper(MODEL, modes=True)", "modes: expected finite points of shape (n, dim), got shape ()"),
    ("pt.temper(MODEL, modes=None)", "modes: "),
    ("pt.temper(MODEL, max_seconds='1m')", "max_seconds: it must be a positive number"),
    ("pt.temper(MODEL, init='random')", "init: expected a dict of values"),
    ("pt.divide_and_conquer(MODEL, 'tau')", "margin: "),
    ("pt.divide_and_conquer(MODEL, margin='tau', budget=5)", "budget: 5 gradient equivalents are too few"),
    ("pt.temper(MODEL, draws=1000, tune=1000, chains=4)", "tune: there is no such argument"),
    ("pt.temper(MODEL, draws=10**12)", "draws: "),
    ("pt.temper(MODEL, max_seconds=5, islands=2)", "max_seconds: "),
    ("pt.temper(MODEL, cores=2, client=object())", "cores: "),
    ("pt.temper(MODEL, islands=2, settings=pt.settings.PAPER)", "islands: the paper's engine has none"),
    ("pt.temper(MODEL, islands=2, checkpoint='run.nc')", "checkpoint: it is of one island"),
    ("pt.temper(MODEL, client='tcp://10.0.0.1:8786')", "client: "),
    ("pt.temper(MODEL, cluster='slurm')", "cluster: "),
    ("pt.temper(MODEL, cluster='local', client=object())", "cluster: "),
    ("pt.temper(MODEL, checkpoint='')", "checkpoint: "),
    ("pt.temper(MODEL, modes=[[NAN, 1.0]])", "modes: "),
    ("pt.temper(MODEL, init={'mu': 0.0})", "init: give a value for each of mu, theta, tau"),
    ("pt.temper(MODEL, init=START | {'mu': NAN})", "init of mu: "),
    ("pt.temper(MODEL, init=START | {'mu': [1.0, 2.0]})", "init: "),
    ("pt.temper(MODEL, init=START | {'tau': -1.0})", "init: a value lies outside the range"),
    ("pt.temper(MODEL, init=START, modes='off')", "init: it is where modes are looked for"),
    ("pt.temper(MODEL, init=START, settings=pt.settings.PAPER)", "init: the paper's engine starts from draws"),
    ("pt.divide_and_conquer(margin='tau')", "model: give one, or target= with base="),
    ("pt.divide_and_conquer(target=good, margin='tau')", "base: give one beside target="),
    ("pt.divide_and_conquer(MODEL, 3, margin='tau')", "model: only a NumPyro function takes further arguments"),
    ("pt.divide_and_conquer(MODEL, margin='tau', chains=1)", "chains: two at least"),
    ("pt.divide_and_conquer(MODEL, margin=['tau', 'tau'])", "margin: a name is there twice"),
    ("pt.divide_and_conquer(MODEL, margin='tau', draws=100)", "draws: it is an argument of pt.temper"),
    ("pt.divide_and_conquer(MODEL, margin='tau', interval=(1.0,))", "interval: "),
    ("pt.divide_and_conquer('model.stan', margin='tau')", "program: cannot read 'model.stan'"),
    ("pt.path_sample(along, 2, chains=1)", "chains: "),
    ("pt.path_sample(along, 2, settings=pt.settings.PAPER)", "settings: "),
    ("pt.path_sample(MODEL, 2)", "log_q: "),
    ("pt.path_sample(good, 2)", "log_q: "),
    ("pt.path_sample(lambda t, lam: t * lam, 2)", "log_q: "),
    ("pt.path_sample(lambda t, lam: None, 2)", "log_q: "),
    ("pt.path_sample(lambda t, lam: 1 / 0, 2)", "log_q: "),
    ("pt.path_sample(lambda t, lam: float(t[0]), 2)", "log_q: "),
    ("pt.bridge('model.stan', MODEL)", "model_a: "),
    ("pt.bridge(fit, MODEL)", "model_a: "),
    ("pt.resume('none.nc')", "none.nc"),
    ("pt.resume('/etc/hostname')", "resume: "),
]

AFTER: list[tuple[str, str]] = [
    ("fit.extend()", "extend: "),
    ("fit.extend(budget=1000)", "extend: "),
    ("fit.predict()", "predict: "),
    ("fit.summary(var_names=[])", "var_names: the list is empty"),
    ("fit.summary(var_names=['thet'])", "var_names: "),
    ("fit.plot(var_names=['mu'])", "var_names: "),
    ("fit.plot(colour='red')", "plot: "),
    ("fit.plot(var_names=[])", "var_names: the list is empty"),
    ("fit.plot(var=['theta[0]'])", "var: there is no ['theta[0]']"),
    ("fit.plot(exact=lambda lam: 'a')", "exact: the function must give a number for each"),
    ("fit.plot(exact=lambda lam: lam[:2])", "exact: the function gives shape (2,)"),
    ("pt.plots.target_draws(fit, density=lambda x: None)", "density: the function must give a number"),
    ("pt.plots.target_draws(fit, density=lambda x: x.nope)", "density: the function fails at an array of points"),
    ("pt.plots.trace(fit, var_names=['theta'])", "trace: got an unexpected keyword argument 'var_names'"),
    ("pt.plots.comparison(fit)", "table: it must be the table that pt.compare gives"),
    ("pt.settings.DEFAULT.replace(chain=3)", "chain: the settings have no such field; is chains meant?"),
    ("pt.settings.PAPER.replace(foo=3)", "foo: the settings have no such field"),
    ("fit.log_z(2.0)", "lam: "),
    ("fit.log_z([0.5, 2.0])", "lam: "),
    ("fit.save('no/such/folder/fit.nc')", "save: "),
    ("fit.save('.')", "save: "),
    ("fit.report('no/such/folder/r.html')", "report: "),
    ("pt.load('none.nc')", "load: "),
    ("pt.load('/etc/hostname')", "load: "),
    ("pt.load('/dev/null')", "load: "),
    ("fit.stan_variable('nope')", "stan_variable: there is no"),
    ("fit_of(MODEL).predict(seed='x')", "seed: "),
    ("pt.bayes_factor(fit, 3)", "fit_b: "),
    ("pt.bayes_factor('x', fit)", "fit_a: "),
    ("pt.compare(fit)", "fits: "),
    ("pt.compare([fit])", "compare: "),
    ("pt.compare(None)", "fits: it must be a dict of fits by name"),
    ("pt.compare([fit, 3])", "fits: it must be a fit"),
    ("pt.compare({'a': fit, 'b': None})", "b: it must be a fit"),
    ("pt.compare({'a': MODEL, 'b': MODEL}, weights={'a': 1.0, 'c': 1.0})", "compare: weights names ['a', 'c']"),
    ("pt.compare({'a': MODEL, 'b': MODEL}, budget='many')", "budget: it must be a positive number"),
    ("pt.compare([fit, fit])", "fits: "),
    ("pt.compare({'a': fit})", "compare: "),
    ("pt.compare({'a': fit, 'b': 3})", "b: "),
    ("pt.compare({'a': good, 'b': fit})", "a: "),
    ("pt.compare({'a': fit, 'b': fit}, budget=1e4)", "budget: "),
    ("pt.compare({'a': MODEL, 'b': MODEL}, buget=3)", "is budget= meant?"),
    ("pt.compare({'a': fit, 'b': fit}, data={})", "data: "),
    ("pt.compare({'a': 'missing.stan', 'b': fit}, data={})", "program: "),
    ("pt.compare({'a': fit, 'b': fit}, weights={'a': 0.0, 'b': 1.0})", "weights"),
    ("marginal().expectation(lambda x: 1.0)", "function: "),
    ("pt.normal(np.zeros(2), scale=np.ones(3))", "normal: "),
    ("pt.normal(0.0, [1.0, -1.0])", "scale: "),
    ("pt.normal(0.0, 1.0, shape=(2, 'x'))", "shape: "),
    ("pt.function_base(good)", "function_base: "),
    ("pt.function_base(good, dim=2, shapes={'a': ()})", "function_base: "),
    ("pt.settings.DEFAULT.replace(rhat=0.5)", "rhat: "),
    ("pt.settings.DEFAULT.replace(adapt_least=0.8, adapt_share=0.2)", "adapt_least: "),
    ("pt.settings.DEFAULT.replace(iterations=30)", "iterations: "),
    ("pt.plots.pairs(fit, var='theta')", "var: "),
    ("pt.plots.pairs(fit, var=('theta',))", "var: "),
    ("pt.estimators.path_sampling([0.5], [1.0, 2.0])", "u must have 1 values"),
    ("pt.baselines.discrete_tempering(MODEL, settings=pt.settings.DEFAULT)", "settings: "),
    ("pt.diagnose_margin(fit.posterior, MODEL, 3)", "margin: "),
]

TYPED = [*MODELS, *RUNS, *AFTER]
