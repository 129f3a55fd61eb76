"""Whole runs of PyMC and NumPyro models: evidence against closed forms, draws against NUTS, labels, ArviZ."""

# ruff: noqa: E402
from __future__ import annotations

import importlib
import itertools
import sys
import warnings
from pathlib import Path

import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import jax
import numpy as np
import numpyro_models
from arviz_stats import ess, rhat, summary
from closed_forms import EXACT
from numpyro.infer import MCMC, NUTS

import pathtemp as pt

EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW = pytest.mark.programs_full
CASES = [
    pytest.param(language, name, marks=() if name == "normal_mean" else SLOW)
    for language, name in itertools.product(["pymc", "numpyro"], EXACT)
]


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


@pytest.mark.parametrize(("language", "name"), CASES)
def test_evidence_is_the_closed_form(language, name):
    fit = pt.temper(closed_form(language, name), seed=5, progress=False)
    value, se = fit.log_marginal_likelihood
    assert fit.converged, fit.warnings
    assert se <= 0.02
    assert abs(value - EXACT[name]) < 3 * se


@pytest.mark.parametrize(("language", "name"), CASES)
def test_evidence_from_a_base_that_was_found(language, name):
    """The joint density is normalised, and so is that base: log z is the evidence from there as well."""
    model = closed_form(language, name, base="auto")
    with pytest.warns(UserWarning, match="no base was given"):
        fit = pt.temper(model, seed=5, budget=60_000, progress=False)
    value, se = fit.log_marginal_likelihood
    assert fit.exact_base
    assert se <= 0.05
    assert abs(value - EXACT[name]) < 4 * se


@SLOW
@pytest.mark.parametrize("language", ["pymc", "numpyro"])
def test_errors_of_the_evidence_are_as_large_as_reported(language):
    model = closed_form(language, "conjugate_regression")
    fits = [pt.temper(model, seed=seed, budget=40_000, progress=False) for seed in range(12)]
    z = [(f.log_marginal_likelihood.value - EXACT["conjugate_regression"]) / f.log_marginal_likelihood.se for f in fits]
    assert abs(np.mean(z)) < 3.5 / np.sqrt(12)
    assert 0.4 < np.std(z) < 1.8


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


UNIMODAL = ["regression", "noncentred", "simplex", "ordinal", "correlated", "censored"]
"""Models that NUTS samples well, in both languages; the closed forms and two more of each language beside them."""


@SLOW
@pytest.mark.parametrize("name", [*UNIMODAL, "random_walk", "crossed_plates", *EXACT])
def test_draws_agree_with_nuts_of_numpyro(name):
    import arviz_base

    models = numpyro_models.MODELS | {k: (f, (), {}) for k, f in numpyro_models.CLOSED_FORMS.items()}
    source, args, kwargs = models[name]
    mcmc = MCMC(
        NUTS(source, target_accept_prob=0.95),
        num_warmup=1000,
        num_samples=4000,
        num_chains=2,
        progress_bar=False,
        chain_method="sequential",
    )
    mcmc.run(jax.random.key(0), *args, **kwargs)
    fit = pt.temper(pt.from_numpyro(source, *args, **kwargs), seed=2, progress=False)
    scores = agreement_with(arviz_base.from_numpyro(mcmc).posterior.dataset, fit.posterior)
    assert np.abs(scores).max() < 4, scores


@SLOW
@pytest.mark.parametrize("name", [*UNIMODAL, "time_series", "potential", *EXACT])
def test_draws_agree_with_nuts_of_pymc(name):
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    models = importlib.import_module("pymc_models")
    source = (models.MODELS | models.CLOSED_FORMS)[name]()
    with source:
        reference = pm.sample(
            draws=3000, tune=1000, chains=2, cores=1, target_accept=0.95, random_seed=1, progressbar=False
        )
    fit = pt.temper(pt.from_pymc(source), seed=2, progress=False)
    own = reference.posterior
    scores = agreement_with(own.to_dataset() if hasattr(own, "to_dataset") else own, fit.posterior)
    assert np.abs(scores).max() < 4, scores


def test_a_fit_goes_into_arviz():
    fit = pt.temper(closed_form("numpyro", "normal_mean"), seed=1, budget=40_000, progress=False)
    tree = fit.to_arviz()
    table = summary(tree)
    assert list(table.index) == ["mu"]
    exact = 4.0 * numpyro_models.cf.SAMPLE.sum() / (1 + 4.0 * 4)
    assert abs(float(fit.posterior["mu"].mean()) - exact) < 0.1


@SLOW
def test_all_label_permutations_have_equal_shares_where_nuts_is_stuck(monkeypatch):
    example_ = example("pymc", "label_switching", monkeypatch)
    pm = sys.modules["pymc"]
    source = example_.build()
    with source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stuck = pm.sample(draws=300, tune=300, chains=4, cores=1, random_seed=3, progressbar=False)
    assert float(rhat(stuck.posterior["mu"]).max()) > 1.5
    fit = pt.temper(pt.from_pymc(source), budget=400_000, seed=1, progress=False)
    share, se = example_.shares(fit.posterior["mu"].values)
    assert (np.abs(share - 1 / 6) < 3 * se).all(), (share, se)


@SLOW
@pytest.mark.parametrize("name", ["regression, 7-d", "normal mean", "Poisson-gamma", "beta-binomial"])
def test_evidence_beside_smc_with_fewer_evaluations(name):
    """The same number as ``pm.sample_smc`` within its spread, more precise, for fewer evaluations, at default settings.

    The standard error of one run of SMC comes from four chains and is itself uncertain by 40%: three runs are pooled.
    """
    pytest.importorskip("pymc", reason="PyMC is not installed")
    rows = importlib.import_module("benchmarks.beside_smc").compared(name, seeds=3)
    smcs, ours = rows[:3], rows[3:]
    for smc, our in zip(smcs, ours, strict=True):
        assert our["evaluations"] < smc["evaluations"]
        assert abs(our["z"]) < 3
        assert abs(our["value"] - smc["value"]) < 3 * np.hypot(our["se"], smc["spread"])
    smc_se, our_se = (np.sqrt(np.mean([row["se"] ** 2 for row in group])) for group in (smcs, ours))
    assert our_se < smc_se


@SLOW
def test_example_bayes_factor(monkeypatch):
    example_ = example("pymc", "bayes_factor", monkeypatch)
    log_bf, se = example_.main(budget=50_000)
    assert se < 0.02
    assert abs(log_bf - example_.exact()) < 3 * se


@SLOW
@pytest.mark.parametrize(
    ("language", "name", "variable", "edge"),
    [("pymc", "change_point", "change", "BETWEEN"), ("numpyro", "two_explanations", "frequency", "HALF")],
)
def test_examples_with_two_modes(language, name, variable, edge, monkeypatch):
    example_ = example(language, name, monkeypatch)
    fit = example_.main(budget=100_000)
    log_evidence, share = example_.exact()
    value, se = fit.log_marginal_likelihood
    assert abs(value - log_evidence) < 3 * se
    below = (fit.posterior[variable] < getattr(example_, edge)).mean("draw").values
    assert abs(below.mean() - share) < 4 * below.std(ddof=1) / np.sqrt(len(below))


@SLOW
def test_example_enumerated_mixture(monkeypatch):
    pytest.importorskip("funsor", reason="funsor, which enumeration needs, is not installed")
    fit = example("numpyro", "enumerated_mixture", monkeypatch).main(budget=100_000)
    mu = fit.posterior["mu"].values
    first = (mu[..., 0] < mu[..., 1]).mean(axis=1)
    assert abs(first.mean() - 0.5) < 4 * first.std(ddof=1) / np.sqrt(len(first))
