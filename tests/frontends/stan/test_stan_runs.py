"""Whole runs of Stan programs: log z is absolute along the path. The run of the default suite is that of the page."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln
from scipy.stats import norm
from stan_programs import load, path

import pathtemp as pt
from pathtemp.frontends.stan import from_stan
from pathtemp.model.model import Model
from pathtemp.result.fit import Fit
from pathtemp.testing.calibration import assert_close

pytestmark = [pytest.mark.stan_full, pytest.mark.usefixtures("toolchain")]
LARGEST_SE = 0.5
"""Errors of log z are a tenth of it in these runs; one much larger would agree with any truth."""


def run(model: Model, **options: Any) -> Fit:
    return pt.temper(model, seed=1, progress=False, **options)


def assert_log_z(fit: Fit, truth: float) -> None:
    value, se = fit.log_marginal_likelihood
    assert_close(value, truth, se)
    assert se < LARGEST_SE


def test_a_base_that_was_found_gives_the_same_log_z_and_is_kept_with_a_checkpoint(tmp_path: Path) -> None:
    model, place = load("cauchy", base="auto"), tmp_path / "run.nc"
    with pytest.warns(UserWarning, match=r"within about 100 of the origin found 2 modes, .* a mode far outside"):
        fit = run(model, budget=180_000, checkpoint=place)
    assert_log_z(fit, -8.052885)
    assert fit.exact_base
    assert float(abs(fit.base["theta"]).quantile(0.5)) > 10.0  # wider than the modes, at -10 and 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is read, and not looked for again
        again = pt.resume(place, model, progress=False)
    assert again.posterior.equals(fit.posterior)
    with pytest.raises(pt.InputError, match="not those in the file"):
        pt.resume(place, load("cauchy"), progress=False)


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


def test_the_curve_of_the_coin() -> None:
    fit = run(load("discrete_only_data"), modes="off")  # the curve of this base, not of one that is found
    n, y = 100, 50

    def log_z(b: float) -> float:
        choose = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
        return float(b * choose + betaln(b * y + 1, b * (n - y) + 1) + np.log(digamma(b * n + 2) - digamma(b * y + 1)))

    assert log_z(1.0) == pytest.approx(-4.97455, abs=1e-5)
    lam = np.array([0.1, 0.3, 0.6, 1.0])
    assert_close(fit.log_z(lam), [log_z(b) for b in lam], fit.log_z.se(lam))
    assert_log_z(fit, log_z(1.0))


def test_the_curve_of_the_beta_binomial_from_a_base_in_python() -> None:
    dist = pytest.importorskip("numpyro.distributions")
    al, be, y, n = 9, 0.75, 115, 550
    model = load("beta_binomial", base={"th": dist.Beta(al, be)})
    assert model.sample_base is not None
    fit = run(model, modes="off")

    def log_z(b: float) -> float:
        choose = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
        return float(b * choose + betaln(al + b * y, be + b * (n - y)) - betaln(al, be))

    assert log_z(1.0) == pytest.approx(-17.10858, abs=1e-5)
    lam = np.array([0.1, 0.5, 1.0])
    assert_close(fit.log_z(lam), [log_z(b) for b in lam], fit.log_z.se(lam))
    assert_log_z(fit, log_z(1.0))


def test_a_rejecting_program_runs_and_says_what_stan_said_once(caplog: pytest.LogCaptureFixture) -> None:
    text = """parameters { real x; }
transformed parameters { if (x > 3) reject("x is too large: ", x); }
model { x ~ normal(2, 1); }
alternative model { x ~ normal(0, 2); }
"""
    model = from_stan(text)
    with caplog.at_level(logging.WARNING, logger="pathtemp.stan"):
        fit = run(model, budget=180_000)
    assert_log_z(fit, float(norm.logcdf(1.0) - norm.logcdf(1.5)))  # of what both densities have left
    assert float(fit.posterior["x"].max()) <= 3
    assert model.log_target.rejections > 0  # type: ignore[attr-defined]
    told = [r.getMessage() for r in caplog.records if "line 2" in r.getMessage()]
    assert 1 <= len(told) <= 2  # once for each density
