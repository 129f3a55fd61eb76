"""Log marginal likelihoods of ordinary Stan programs, with no `alternative model`, beside their exact values.

    python -m benchmarks.stan_evidence [--only NAME] [--seeds 10] [--budget 4e4] [--out FILE.csv]

Each row is on disk as soon as it is made. `z` is the error in standard errors of the run.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln, gammaln
from scipy.stats import multivariate_normal, norm

import pathtemp as pt
from benchmarks.measure import Row, markdown, table

WITHIN = 3.0
"""Standard errors within which each run is to be."""

EIGHT_SCHOOLS = -31.311347
"""By quadrature over tau."""


@dataclass(frozen=True)
class Case:
    """A program, its data, and the exact log marginal likelihood."""

    name: str
    program: str
    data: dict[str, Any]
    truth: float


def conjugate_normal() -> Case:
    """One mean, known scale."""
    y = np.array([1.1, -0.4, 2.3, 0.9, 1.7])
    truth = multivariate_normal(np.ones(5), 4 * np.eye(5) + 9).logpdf(y)
    program = "data { vector[5] y; } parameters { real mu; } model { mu ~ normal(1, 3); y ~ normal(mu, 2); }"
    return Case("conjugate normal", program, {"y": y}, float(truth))


def beta_binomial() -> Case:
    """A share, uniform on its scale but for a beta prior."""
    truth = gammaln(21) - gammaln(14) - gammaln(8) + betaln(15, 12) - betaln(2, 5)
    program = (
        "data { int n; int y; } parameters { real<lower=0, upper=1> p; } model { p ~ beta(2, 5); y ~ binomial(n, p); }"
    )
    return Case("beta-binomial", program, {"n": 20, "y": 13}, float(truth))


def half_normal() -> Case:
    """A scale whose prior is a half-normal by its bound alone; by quadrature."""
    y = np.array([1.1, -0.4, 2.3, 0.9, 1.7])
    mass, _ = quad(lambda s: 2 * norm.pdf(s) * np.exp(norm.logpdf(y, 0, s).sum()), 0, 20)
    program = "data { vector[5] y; } parameters { real<lower=0> s; } model { s ~ normal(0, 1); y ~ normal(0, s); }"
    return Case("half-normal", program, {"y": y}, float(np.log(mass)))


def _regression(predictors: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(points), rng.normal(size=(points, predictors - 1))])
    return x, x @ rng.normal(size=predictors) + 0.7 * rng.normal(size=points)


def known_scale() -> Case:
    """Ten coefficients and a known scale."""
    x, y = _regression(10, 40)
    truth = multivariate_normal(np.zeros(40), 0.49 * np.eye(40) + 4 * x @ x.T).logpdf(y)
    program = (
        "data { int N; int K; matrix[N, K] X; vector[N] y; real s; } parameters { vector[K] b; } "
        "model { b ~ normal(0, s); target += normal_lpdf(y | X * b, 0.7); }"
    )
    return Case("linear regression, scale known", program, {"N": 40, "K": 10, "X": x, "y": y, "s": 2.0}, float(truth))


def conjugate_regression() -> Case:
    """Five coefficients whose prior has the scale of the noise, which is inverse gamma: the closed form."""
    x, y = _regression(5, 30)
    a, b, n = 3.0, 2.0, len(y)
    precision = np.eye(5) / 4.0
    after = precision + x.T @ x
    centre = np.linalg.solve(after, x.T @ y)
    a_after, b_after = a + n / 2, b + 0.5 * (y @ y - centre @ after @ centre)
    determinants = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(after)[1]
    truth = 0.5 * determinants - n / 2 * np.log(2 * np.pi) + a * np.log(b) - a_after * np.log(b_after)
    truth += gammaln(a_after) - gammaln(a)
    program = (
        "data { int N; int K; matrix[N, K] X; vector[N] y; } parameters { vector[K] beta; real<lower=0> v; } "
        "model { v ~ inv_gamma(3, 2); beta ~ normal(0, 2 * sqrt(v)); y ~ normal(X * beta, sqrt(v)); }"
    )
    return Case("linear regression, normal-inverse-gamma", program, {"N": n, "K": 5, "X": x, "y": y}, float(truth))


def eight_schools() -> Case:
    """Non-centred, with its half-Cauchy prior on tau."""
    program = (
        "data { int J; vector[J] y; vector[J] sigma; } parameters { real mu; real<lower=0> tau; vector[J] z; } "
        "model { y ~ normal(mu + tau * z, sigma); mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ std_normal(); }"
    )
    data = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}
    return Case("eight schools, non-centred", program, data, EIGHT_SCHOOLS)


CASES: tuple[Callable[[], Case], ...] = (
    conjugate_normal,
    beta_binomial,
    half_normal,
    known_scale,
    conjugate_regression,
    eight_schools,
)


def run(case: Case, model: Any, *, seed: int, budget: float | None) -> Row:
    """One row: the error of one run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = pt.temper(model, seed=seed, budget=budget, progress=False)
    value, se = fit.log_marginal_likelihood
    row: Row = {"name": case.name, "seed": seed, "exact": case.truth, "log_z": value, "se": se}
    row |= {"z": (value - case.truth) / se, "evidence": fit.is_evidence, "converged": fit.converged}
    return row | {"gradients": fit.counts.gradients, "densities": fit.counts.densities}


def line(name: str, rows: list[Row]) -> list[str]:
    """One line of the printed table, over the seeds of a case."""
    z = np.array([row["z"] for row in rows])
    errors = np.array([row["log_z"] - row["exact"] for row in rows])
    within = f"{np.sum(np.abs(z) < WITHIN)} of {len(z)}"
    told = f"{sum(row['evidence'] for row in rows)}"
    converged = f"{sum(row['converged'] for row in rows)}"
    sizes = [f"{np.sqrt(np.mean(errors**2)):.4f}", f"{np.mean([row['se'] for row in rows]):.4f}"]
    cost = f"{np.mean([row['gradients'] for row in rows]):,.0f}"
    return [name, f"{rows[0]['exact']:.4f}", *sizes, f"{np.abs(z).max():.1f}", within, told, converged, cost]


HEADER = [
    "program",
    "exact",
    "RMSE",
    "mean se",
    "largest z",
    "within 3 se",
    "called evidence",
    "converged",
    "gradients",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", help="part of a name; may be given more than once")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=4e4)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/stan_evidence.csv"))
    options = parser.parse_args()
    cases = [make() for make in CASES]
    lines = []
    with table(options.out) as append:
        for case in cases:
            if options.only and not any(part in case.name for part in options.only):
                continue
            model = pt.from_stan(case.program, data=case.data, name=case.name, progress=False)
            rows = []
            for seed in range(options.seeds):
                rows.append(run(case, model, seed=seed, budget=options.budget))
                append(rows[-1])
            lines.append(line(case.name, rows))
    print(markdown(HEADER, lines))


if __name__ == "__main__":
    main()
