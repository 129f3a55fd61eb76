"""Whole runs of Stan programs: log z is absolute, and the draws are those of both modes."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, digamma, gammaln
from stan_programs import EXAMPLES, load, path

import pathtemp as pt
from pathtemp.fit import Fit
from pathtemp.frontends.stan import from_stan
from pathtemp.model import Model


def run(model: Model, **options: Any) -> Fit:
    return pt.temper(model, progress=False, **options)


def z_score(fit: Fit, truth: float) -> float:
    value, se = fit.log_marginal_likelihood
    assert se < 0.2
    return (value - truth) / se


@pytest.mark.usefixtures("compiled")
def test_the_cauchy_pair_has_both_modes_and_an_absolute_log_z() -> None:
    fit = run(load("cauchy"), seed=3, budget=60_000)
    assert abs(z_score(fit, -8.052885)) < 3.5
    shares = (fit.posterior["theta"] > 0).mean(dim="draw").values
    assert abs(shares.mean() - 0.5) < 4 * shares.std() / np.sqrt(len(shares)) + 0.05
    assert fit.posterior["theta"].dims == ("chain", "draw")


@pytest.mark.usefixtures("compiled")
def test_a_base_that_was_found_gives_the_same_log_z_and_is_kept_with_a_checkpoint(tmp_path: Path) -> None:
    model, place = load("cauchy", base="auto"), tmp_path / "run.nc"
    with pytest.warns(UserWarning, match=r"within about 100 of the origin found 2 modes, .* a mode far outside"):
        fit = run(model, seed=3, budget=60_000, checkpoint=place)
    assert abs(z_score(fit, -8.052885)) < 3.5
    assert fit.exact_base
    assert float(abs(fit.base["theta"]).quantile(0.5)) > 10.0  # wider than the modes, at -10 and 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is read, and not looked for again
        again = pt.resume(place, model, progress=False)
    assert again.posterior.equals(fit.posterior)
    with pytest.raises(pt.InputError, match="not those in the file"):
        pt.resume(place, load("cauchy"), progress=False)


@pytest.mark.usefixtures("compiled")
def test_the_call_of_the_r_package_gives_what_its_scripts_use() -> None:
    given = pt.stan.path_sample(path("cauchy"), {"y": 3.0}, N_loop=2, iter=800, seed=1, progress=False)
    assert set(given.in_target) == set(given.in_prior) == {"theta"}
    assert len(given.path_post_a) == len(given.path_post_z)
    lam = pt.stan.g_lambda(given.path_post_a)
    assert lam[0] == pytest.approx(0.0, abs=1e-9)
    assert lam[-1] == pytest.approx(1.0)
    with pytest.raises(pt.InputError, match="K_gaussian"):
        pt.stan.path_sample(path("cauchy"), {"y": 3.0}, K_logit=5, K_gaussian=6)
    with pytest.raises(pt.InputError, match="flat ends"):
        pt.stan.path_sample(path("cauchy"), {"y": 3.0}, a_lower=0.2)


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
class TestKnownAnswers:
    def test_eight_schools(self) -> None:
        fit = run(load("eight_schools"), seed=1)
        assert abs(z_score(fit, -31.311347)) < 3
        assert fit.posterior["y_new"].shape[2:] == (8,)
        assert "y_new" not in fit.base

    def test_eight_schools_with_the_prior_as_a_program(self) -> None:
        fit = run(load("eight_schools", base_program=path("eight_schools_prior")), seed=2)
        assert abs(z_score(fit, -31.311347)) < 3

    def test_the_coin(self) -> None:
        fit = run(load("discrete_only_data"), seed=1, modes="off")  # the curve of this base, not of one that is found
        n, y = 100, 50

        def log_z(b: float) -> float:
            choose = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
            return float(
                b * choose + betaln(b * y + 1, b * (n - y) + 1) + np.log(digamma(b * n + 2) - digamma(b * y + 1))
            )

        assert log_z(1.0) == pytest.approx(-4.97455, abs=1e-5)
        for lam in (0.1, 0.3, 0.6, 1.0):
            assert abs(float(fit.log_z(lam)) - log_z(lam)) < 3 * float(fit.log_z.se(lam)), lam

    def test_the_beta_binomial(self) -> None:
        fit = run(load("beta_binomial"), seed=1, modes="off")
        al, be, y, n = 9, 0.75, 115, 550

        def log_z(lam: float) -> float:
            choose = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
            return float(lam * choose + betaln(al + lam * y, be + lam * (n - y)) - betaln(al, be))

        assert log_z(1.0) == pytest.approx(-17.10858, abs=1e-5)
        for lam in (0.1, 0.5, 1.0):
            assert abs(float(fit.log_z(lam)) - log_z(lam)) < 3 * float(fit.log_z.se(lam)), lam

    def test_two_models_joined(self) -> None:
        file = EXAMPLES / "logit_probit.stan"
        model = from_stan(file, file.with_suffix(".json"))
        fit = run(model, seed=1)

        def mass(density: Any) -> float:
            return quad(lambda b: float(np.exp(density(np.array([b])))), -8, 8, limit=200)[0]

        truth = np.log(mass(model.log_target) / mass(model.log_base))
        assert abs(z_score(fit, truth)) < 3

    def test_a_rejecting_program_runs_and_says_what_stan_said_once(self, caplog: pytest.LogCaptureFixture) -> None:
        text = """parameters { real x; }
transformed parameters { if (x > 3) reject("x is too large: ", x); }
model { x ~ normal(2, 1); }
alternative model { x ~ normal(0, 2); }
"""
        model = from_stan(text)
        with caplog.at_level(logging.WARNING, logger="pathtemp.stan"):
            fit = run(model, seed=1, budget=60_000)
        assert float(fit.posterior["x"].max()) <= 3
        assert model.log_target.rejections > 0  # type: ignore[attr-defined]
        told = [r.getMessage() for r in caplog.records if "line 2" in r.getMessage()]
        assert 1 <= len(told) <= 2  # once for each density

    def test_a_base_in_python_gives_exact_draws(self) -> None:
        dist = pytest.importorskip("numpyro.distributions")
        model = load("beta_binomial", base={"th": dist.Beta(9.0, 0.75)})
        assert model.sample_base is not None
        fit = run(model, seed=1)
        assert abs(z_score(fit, -17.10858)) < 3
        draws = jax.vmap(model.sample_base)(jax.random.split(jax.random.key(0), 10))
        assert draws.shape == (10, 1)
