"""Whole runs of PyMC and NumPyro models: evidence against closed forms, draws against NUTS, labels."""

# ruff: noqa: E402
from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import closed_forms as cf
import jax
import numpy as np
import numpyro_models
from agreement import assert_share
from arviz_stats import ess
from closed_forms import EXACT
from numpyro.infer import MCMC, NUTS

import pathtemp as pt
from pathtemp.testing.calibration import assert_close, assert_scores

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.programs_full
LARGEST_SE = 0.2
"""Ten times what errors of log evidences are in these runs; one much larger would agree with any truth."""


def assert_evidence(fit, exact):
    value, se = fit.log_marginal_likelihood
    assert_close(value, exact, se)
    assert se < LARGEST_SE


def closed_form(language, name, **options):
    if language == "numpyro":
        return pt.from_numpyro(numpyro_models.CLOSED_FORMS[name], **options)
    pytest.importorskip("pymc", reason="PyMC is not installed")
    return pt.from_pymc(importlib.import_module("pymc_models").CLOSED_FORMS[name](), **options)


def example(language, name, monkeypatch):
    pytest.importorskip(language, reason=f"{language} is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES / language))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


@pytest.mark.parametrize("language", ["pymc", "numpyro"])
@pytest.mark.parametrize("name", ["beta_binomial", "normal_mean", "poisson_gamma"])
def test_the_mean_likelihood_of_prior_draws_is_the_closed_form(language, name):
    """No run is needed: a tenth of such draws count, or more, and what a run makes of the densities is tested below."""
    model = closed_form(language, name)
    draws = jax.vmap(model.sample_base)(jax.random.split(jax.random.key(4), 20_000))
    weight = np.exp(np.asarray(jax.jit(jax.vmap(lambda x: model.log_target(x) - model.log_base(x)))(draws)))
    assert weight.sum() ** 2 / np.sum(weight**2) > len(weight) / 10
    assert_close(weight.mean() / np.exp(EXACT[name]), 1.0, weight.std() / weight.mean() / np.sqrt(len(weight)))


@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_the_evidence_and_the_draws_of_a_run_are_exact(language):
    fit = pt.temper(closed_form(language, "normal_mean"), seed=5, budget=120_000, progress=False)
    assert_evidence(fit, EXACT["normal_mean"])
    assert_share(fit.posterior["mu"].mean("draw"), 4.0 * cf.SAMPLE.sum() / (1 + 4.0 * len(cf.SAMPLE)))


@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_evidence_from_a_base_that_was_found(language):
    """The joint density is normalised, and so is that base: log z is the evidence from there as well."""
    model = closed_form(language, "poisson_gamma", base="auto")
    with pytest.warns(UserWarning, match="no base was given"):
        fit = pt.temper(model, seed=5, budget=180_000, progress=False)
    assert fit.exact_base
    assert_evidence(fit, EXACT["poisson_gamma"])


def test_errors_of_the_evidence_are_as_large_as_reported():
    model = closed_form("numpyro", "conjugate_regression")
    fits = [pt.temper(model, seed=seed, budget=120_000, progress=False) for seed in range(12)]
    z = [(f.log_marginal_likelihood.value - EXACT["conjugate_regression"]) / f.log_marginal_likelihood.se for f in fits]
    assert_scores(z)  # of 12: errors of a quarter of their size, and a bias of three


def agreement_with(reference, posterior):
    """z-scores of means and variances between a Dataset of NUTS draws and ours."""
    scores = []
    for name in reference.data_vars:
        for power in (1, 2):
            centre = reference[name].mean(("chain", "draw"))
            own, other = ((d[name] - centre) ** power for d in (posterior, reference))
            errors = [x.std(("chain", "draw")) / np.sqrt(ess(x)) for x in (own, other)]
            gap = np.ravel(own.mean(("chain", "draw")) - other.mean(("chain", "draw")))
            error = np.ravel(np.sqrt(errors[0] ** 2 + errors[1] ** 2))
            varies = np.ravel(other.std(("chain", "draw"))) > 1e-9  # the diagonal of a correlation matrix does not
            scores.extend(gap[varies] / error[varies])
    return np.array(scores)


def assert_agreement(reference, posterior):
    """Errors of both sides rest on effective sample sizes, which are estimates: hence few degrees of freedom."""
    assert_close(agreement_with(reference, posterior), 0.0, 1.0, df=20)


@pytest.mark.parametrize("name", ["correlated", "random_walk"])
def test_draws_agree_with_nuts_of_numpyro(name):
    import arviz_base

    source, args, kwargs = numpyro_models.MODELS[name]
    mcmc = MCMC(
        NUTS(source, target_accept_prob=0.95),
        num_warmup=1000,
        num_samples=2000,
        num_chains=2,
        progress_bar=False,
        chain_method="sequential",
    )
    mcmc.run(jax.random.key(0), *args, **kwargs)
    fit = pt.temper(pt.from_numpyro(source, *args, **kwargs), seed=2, progress=False)
    assert_agreement(arviz_base.from_numpyro(mcmc).posterior.dataset, fit.posterior)


@pytest.mark.parametrize("name", ["simplex", "time_series"])
def test_draws_agree_with_nuts_of_pymc(name):
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    source = importlib.import_module("pymc_models").MODELS[name]()
    with source:
        reference = pm.sample(
            draws=1500, tune=1000, chains=2, cores=1, target_accept=0.95, random_seed=1, progressbar=False
        )
    fit = pt.temper(pt.from_pymc(source), seed=2, progress=False)
    own = reference.posterior
    assert_agreement(own.to_dataset() if hasattr(own, "to_dataset") else own, fit.posterior)


def test_all_label_permutations_have_equal_shares(monkeypatch):
    example_ = example("pymc", "label_switching", monkeypatch)
    fit = pt.temper(pt.from_pymc(example_.build()), budget=600_000, seed=1, progress=False)
    share, se = example_.shares(fit.posterior["mu"].values)
    assert_close(share, 1 / 6, se, df=fit.posterior.sizes["chain"] - 1)


def test_example_bayes_factor(monkeypatch):
    example_ = example("pymc", "bayes_factor", monkeypatch)
    log_bf, se = example_.main(budget=150_000)
    assert_close(log_bf, example_.exact(), se)
    assert se < LARGEST_SE


@pytest.mark.parametrize(
    ("language", "name", "variable", "edge"),
    [("pymc", "change_point", "change", "BETWEEN"), ("numpyro", "two_explanations", "frequency", "HALF")],
)
def test_examples_with_two_modes(language, name, variable, edge, monkeypatch):
    example_ = example(language, name, monkeypatch)
    fit = example_.main(budget=300_000)
    log_evidence, share = example_.exact()
    assert_evidence(fit, log_evidence)
    assert_share((fit.posterior[variable] < getattr(example_, edge)).mean("draw"), share)


def test_example_enumerated_mixture(monkeypatch):
    pytest.importorskip("funsor", reason="funsor, which enumeration needs, is not installed")
    fit = example("numpyro", "enumerated_mixture", monkeypatch).main(budget=300_000)
    mu = fit.posterior["mu"].values
    assert_share((mu[..., 0] < mu[..., 1]).mean(axis=1), 0.5)
