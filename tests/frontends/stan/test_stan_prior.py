"""The prior of a plain program as its base: normalised, drawn exactly, and log z the evidence."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import multivariate_normal, norm
from stan_programs import data_of, exact_draws, load

import pathtemp as pt
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.model import StanDraws
from pathtemp.model.bases import Automatic
from pathtemp.model.model import Model
from pathtemp.modes.reference import with_reference
from pathtemp.testing.calibration import assert_close, assert_scores

LARGEST_SE = 0.1
"""Of log z in these runs; one much larger would agree with any truth."""


def integral(log_density: Any, x: np.ndarray) -> float:
    """Log integral over three coordinates, by the trapezium rule, which is exact to rounding for what falls off."""
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    values = np.asarray(jax.jit(jax.vmap(log_density))(grid))
    return float(logsumexp(values) + 3 * np.log(x[1] - x[0]))


def mixture_evidence() -> float:
    """Of `plain_prior.stan`, in the constrained parameters with the normalised prior."""
    file = data_of("plain_prior")
    assert file is not None
    data = json.loads(file.read_text())
    y, width = np.array(data["y"]), data["width"]
    mu, s = np.linspace(-8.0, 8.0, 161), np.linspace(1e-3, 7.0, 200)
    low, high = np.meshgrid(mu, mu, indexing="ij")
    # On the diagonal half of a cell is inside.
    inside = np.where(low < high, 1.0, np.where(low == high, 0.5, 0.0))
    weight = 2.0 * inside * np.exp(norm.logpdf(low, 0, width) + norm.logpdf(high, 0, width)) * (mu[1] - mu[0]) ** 2

    def given(sigma: float) -> float:
        one = norm.pdf(y[:, None], mu, sigma)
        return float(np.sum(weight * np.prod(0.3 * one[:, :, None] + 0.7 * one[:, None, :], axis=0)))

    return float(np.log(np.trapezoid([given(sigma) * 2.0 * norm.pdf(sigma) for sigma in s], s)))


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_both_densities_are_divided_by_the_mass_of_the_prior() -> None:
    model = load("plain_prior")
    x = np.linspace(-14.0, 7.0, 57)
    assert integral(model.log_base, x) == pytest.approx(0.0, abs=1e-3)
    assert integral(model.log_target, x) == pytest.approx(mixture_evidence(), abs=5e-3)
    assert str(model.base).splitlines() == [
        "the prior, lines 12-13 of plain_prior.stan, drawn exactly",
        "   12  mu ~ normal(0, width);",
        "   13  sigma ~ normal(0, 1);",
    ]
    assert model.base.evidence


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_draws_of_the_prior_are_ordered_and_have_its_moments() -> None:
    model = load("plain_prior")
    assert isinstance(model.constrain_draws, StanDraws)
    draws = model.draws(exact_draws(model, 4000))
    assert np.all(draws["mu"][:, 0] < draws["mu"][:, 1])
    # The larger of two standard normals has mean 1/sqrt(pi); a half-normal sqrt(2/pi).
    for values, mean in ((draws["mu"][:, 1] / 1.5, 1 / np.sqrt(np.pi)), (draws["sigma"], np.sqrt(2 / np.pi))):
        assert_close(values.mean(), mean, values.std() / np.sqrt(len(values)))
    assert draws["log_lik"].shape == (4000, 5)


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_another_base_leaves_log_z_what_it_is() -> None:
    own, other = load("plain_prior"), load("plain_prior", base="auto")
    x = np.array([-0.5, 0.2, 0.1])
    assert other.log_target(x) == own.log_target(x)
    assert other.base.evidence
    assert str(other.base).startswith("one that pt.temper finds, in place of the prior, lines 12-13")


Y = np.array([1.1, -0.4, 2.3, 0.9, 1.7])
X = np.array([[1.0, -1.0], [1.0, -0.5], [1.0, 0.0], [1.0, 0.5], [1.0, 1.0]])
FOUR_IN_ONE = """data { vector[5] y; int n; int heads; matrix[5, 2] X; real width; }
parameters { real mu; real<lower=0, upper=1> p; vector[2] b; real<lower=0> s; }
model {
  mu ~ normal(1, 3); y ~ normal(mu, 2);
  p ~ beta(2, 5); heads ~ binomial(n, p);
  b ~ normal(0, width); target += normal_lpdf(y | X * b, 0.7);
  s ~ normal(0, 1); y ~ normal(0, s);
}
"""
"""Four models that know nothing of each other: the evidence is the product of theirs."""


def integral_of_independent(log_density: Any, blocks: list[list[int]]) -> float:
    """Log integral of a density whose blocks of coordinates are independent, each by the trapezium rule."""
    one = np.linspace(-30.0, 30.0, 1201)
    at = np.zeros(sum(map(len, blocks)))
    total = value = float(log_density(at))
    for block in blocks:
        # Two coefficients are within 12 of zero, 5 standard deviations of their prior and more.
        x = one if len(block) == 1 else np.linspace(-12.0, 12.0, 161)
        points = np.tile(at, (len(x) ** len(block), 1))
        points[:, block] = np.stack(np.meshgrid(*[x] * len(block), indexing="ij"), axis=-1).reshape(-1, len(block))
        values = np.asarray(jax.jit(jax.vmap(log_density))(points))
        total += float(logsumexp(values) + len(block) * np.log(x[1] - x[0]) - value)
    return total


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_the_densities_of_an_ordinary_program_integrate_to_one_and_to_the_evidence() -> None:
    model = from_stan(FOUR_IN_ONE, data={"y": Y, "n": 20, "heads": 13, "X": X, "width": 2.0})
    truth = (
        multivariate_normal(np.ones(5), 4 * np.eye(5) + 9).logpdf(Y),
        gammaln(21) - gammaln(14) - gammaln(8) + betaln(15, 12) - betaln(2, 5),
        multivariate_normal(np.zeros(5), 0.49 * np.eye(5) + 4 * X @ X.T).logpdf(Y),
        np.log(quad(lambda s: 2 * norm.pdf(s) * np.exp(norm.logpdf(Y, 0, s).sum()), 0, 20)[0]),
    )
    blocks = [[0], [1], [2, 3], [4]]
    assert integral_of_independent(model.log_base, blocks) == pytest.approx(0.0, abs=1e-6)
    assert integral_of_independent(model.log_target, blocks) == pytest.approx(float(sum(truth)), abs=1e-6)
    assert model.base.evidence
    assert model.base.prior


EIGHT_SCHOOLS = (
    "data { int J; vector[J] y; vector[J] sigma; } parameters { real mu; real<lower=0> tau; vector[J] z; } "
    "model { y ~ normal(mu + tau * z, sigma); mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ std_normal(); }"
)


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_log_z_is_the_evidence_of_an_ordinary_program() -> None:
    data = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}
    model = from_stan(EIGHT_SCHOOLS, data=data)
    fits = [pt.temper(model, seed=seed, budget=40_000, progress=False) for seed in range(10)]
    values, errors = np.array([fit.log_marginal_likelihood for fit in fits]).T
    assert_scores((values + 31.311347) / errors)  # by quadrature over tau
    assert np.all(errors < LARGEST_SE)
    assert all(fit.is_evidence for fit in fits)


PRINTING = """data { real y; }
parameters { vector[2] x; }
model { x[1] ~ normal(0, 1); print("x is ", x); y ~ normal(sum(x), 1); }
"""
"""Of x[2] the prior says nothing."""


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_a_program_prints_once(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    model = from_stan(PRINTING, data={"y": 1.0})
    with caplog.at_level(logging.WARNING, logger="pathtemp.stan"):
        jax.jit(jax.vmap(model.log_target))(np.linspace(-1, 1, 100).reshape(50, 2)).block_until_ready()
    assert sum("Stan prints" in record.getMessage() for record in caplog.records) <= 1
    assert capfd.readouterr().out == ""


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_an_improper_prior_is_named_and_the_base_found() -> None:
    model: Model = from_stan(PRINTING, data={"y": 1.0})
    assert model.sample_base is None
    assert not model.base.evidence
    assert "no proper distribution to x; pt.temper finds one" in str(model.base)


HALF = """data { vector[5] y; }
parameters { real mu; real<lower=0> sigma; vector<lower=0>[1] k; }
model {
  mu ~ normal(1, 2);
  k ~ normal(0, 1);
  y ~ normal(mu + k[1], sigma);
}
"""


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_the_proper_part_of_an_improper_prior_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "half.stan"
    file.write_text(HALF)
    model = from_stan(file, data={"y": Y})
    assert str(model.base).splitlines() == [
        "the prior of k, mu, lines 4-5 of half.stan, drawn exactly; it gives no proper distribution to sigma; "
        "pt.temper finds a law of the rest",
        "    4  mu ~ normal(1, 2);",
        "    5  k ~ normal(0, 1);",
    ]
    assert not model.base.evidence
    with pytest.warns(UserWarning, match="no base was given for sigma"):
        whole, _ = with_reference(model, seed=0)
    # The cover is a Student-t on the log scale, of which little lies outside.
    assert integral(whole.log_base, np.linspace(-15.0, 15.0, 121)) == pytest.approx(0.0, abs=1e-2)
    draws = whole.base_draws(exact_draws(whole, 4000))
    for values, mean in ((draws["mu"], 1.0), (draws["k"][:, 0], np.sqrt(2 / np.pi))):
        assert_close(values.mean(), mean, values.std() / np.sqrt(len(values)))
    found = from_stan(file, data={"y": Y}, base="auto").log_base
    assert isinstance(found, Automatic)
    assert found.proper is None


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_log_z_from_the_proper_part_is_that_of_the_kernel() -> None:
    model = from_stan(HALF, data={"y": Y})
    truth = integral(model.log_target, np.linspace(-15.0, 15.0, 181))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [pt.temper(model, seed=seed, budget=180_000, progress=False) for seed in range(4)]
    values, errors = np.array([fit.log_constant for fit in fits]).T
    assert_scores((values - truth) / errors)
    assert np.all(errors < LARGEST_SE)
    assert not any(fit.is_evidence for fit in fits)
