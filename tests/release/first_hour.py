"""The first hour of somebody new, in the language of their models: run by the Python that pathtemp was installed for.

    python first_hour.py jax | numpyro | pymc | stan

The quick start, a model of one's own, a wrong input, a figure, a report, ArviZ, and a run that goes on from its
checkpoint. Budgets are small: it has to work, and what it gives is tested elsewhere.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats import summary

import pathtemp as pt

Y = np.array([-2.1, -1.8, -2.4, 2.2, 1.7, 2.5])
BUDGET = 150_000
SIGMA = 0.5


@dataclass(frozen=True)
class Language:
    """What a user of one language writes."""

    quick_start: Any
    own: Any
    wrong: Callable[[], Any]
    variable: str
    predicts: bool = False
    """Whether the model says what it observes, one by one."""


def jax_language() -> Language:
    """Log densities of arrays, and of dicts."""
    import jax.numpy as jnp

    def log_q(theta: Any) -> Any:
        z = (theta + jnp.array([-10.0, 10.0])) / 0.2
        return -jnp.sum(jnp.log1p(z**2))

    def mean(v: Any) -> Any:
        return -0.5 * jnp.sum((jnp.asarray(Y) - v["mu"]) ** 2) - 0.5 * (v["mu"] / 3.0) ** 2

    return Language(
        {"target": log_q, "base": pt.normal(0.0, 5.0, shape=(1,))},
        {"target": mean, "base": {"mu": pt.normal(0.0, 3.0)}},
        lambda: pt.temper(target=log_q, base="wide"),
        "mu",
    )


def numpyro_language() -> Language:
    """Functions of the data."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def mixture(y: Any) -> None:
        with numpyro.plate("component", 2):
            mu = numpyro.sample("mu", dist.Normal(0.0, 3.0))
        with numpyro.plate("obs", len(y)):
            halves = dist.Categorical(jnp.full(2, 0.5))
            numpyro.sample("y", dist.MixtureSameFamily(halves, dist.Normal(mu, SIGMA)), obs=y)

    def single(y: Any) -> None:
        mu, sigma = numpyro.sample("mu", dist.Normal(0.0, 3.0)), numpyro.sample("sigma", dist.HalfNormal(2.0))
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y)

    y = jnp.asarray(Y)
    return Language(
        pt.from_numpyro(mixture, y), pt.from_numpyro(single, y), lambda: pt.from_numpyro(single), "sigma", True
    )


def pymc_language() -> Language:
    """Models in a context."""
    import pymc as pm

    with pm.Model() as mixture:
        mu = pm.Normal("mu", 0.0, 3.0, shape=2)
        pm.NormalMixture("y", np.full(2, 0.5), mu, SIGMA, observed=Y)
    with pm.Model() as single:
        pm.Normal("y", pm.Normal("mu", 0.0, 3.0), pm.HalfNormal("sigma", 2.0), observed=Y)
    with pm.Model() as discrete:
        pm.Normal("y", pm.Poisson("count", 3.0), 1.0, observed=Y)
    return Language(pt.from_pymc(mixture), pt.from_pymc(single), lambda: pt.from_pymc(discrete), "sigma", True)


def stan_language() -> Language:
    """Programs and data."""
    start = "data { int N; vector[N] y; } parameters { real mu; real<lower=0> sigma; } model { mu ~ normal(0, 3);"
    quick = f"{start} sigma ~ normal(0, 2); y ~ normal(mu, sigma); }}"
    Path("own.stan").write_text(f"{start} sigma ~ exponential(1); y ~ student_t(4, mu, sigma); }}")
    data = {"N": len(Y), "y": Y}
    return Language(
        pt.from_stan(quick, data), pt.from_stan("own.stan", data), lambda: pt.from_stan("own.stan", {"N": 6}), "sigma"
    )


LANGUAGES: dict[str, Callable[[], Language]] = {
    "jax": jax_language,
    "numpyro": numpyro_language,
    "pymc": pymc_language,
    "stan": stan_language,
}


def temper(model: Any, **options: Any) -> pt.Fit:
    """A short run of a model, or of a target with its base."""
    given = model if isinstance(model, dict) else {"model": model}
    return pt.temper(**given, budget=BUDGET, progress=False, **options)


def resume(path: str, model: Any) -> pt.Fit:
    """The fit of a checkpoint."""
    given = model if isinstance(model, dict) else {"model": model}
    return pt.resume(path, progress=False, **given)


def one_sentence(call: Callable[[], Any]) -> str:
    """What a wrong input is told."""
    try:
        call()
    except pt.InputError as error:
        text = str(error)
    else:
        raise AssertionError("a wrong input was taken")
    assert text, "an error without words"
    assert "Traceback" not in text, text
    return text


def in_arviz(fit: pt.Fit, language: Language) -> str:
    """Tables, pictures and LOO by ArviZ itself, and new data: its version."""
    import arviz as az

    data = fit.to_arviz()
    assert language.variable in az.summary(data).index
    for plot in (az.plot_trace, az.plot_forest):
        assert plot(data) is not None
    if language.predicts:
        assert np.isfinite(az.loo(data).elpd_loo if hasattr(az, "InferenceData") else az.loo(data).elpd)
        assert fit.predict()["y"].shape[2:] == Y.shape
    return str(az.__version__)


def play(language: Language) -> None:
    """Everything, one after the other, in the folder where it is called."""
    fit = temper(language.quick_start, seed=1)
    assert np.isfinite(fit.log_marginal_likelihood.value), fit.summary()
    print(fit.summary())
    own = temper(language.own, seed=2, checkpoint="run.nc")
    print(own.summary())
    print("a wrong input:", one_sentence(language.wrong))
    fit.plot().savefig("figure.png", dpi=80)
    pt.plots.trace(own, var=(language.variable,)).savefig("trace.png", dpi=80)
    own.report("report.html")
    for name in ("figure.png", "trace.png", "report.html"):
        assert Path(name).stat().st_size > 10_000, name
    table = summary(own.to_arviz())
    assert language.variable in table.index, table
    if importlib.util.find_spec("arviz") is not None:
        print("ArviZ", in_arviz(own, language))
    again = resume("run.nc", language.own)
    assert np.array_equal(again.posterior[language.variable], own.posterior[language.variable])


def main(name: str) -> None:
    """Play the hour of one language."""
    warnings.simplefilter("ignore")
    play(LANGUAGES[name]())
    print(f"the first hour with {name}: done")


if __name__ == "__main__":
    main(sys.argv[1])
