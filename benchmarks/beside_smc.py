"""The evidence of PyMC models with closed forms: pathtemp beside ``pm.sample_smc``, with the evaluations of each.

    python -m benchmarks.beside_smc [--seeds 10] [--out benchmarks/results/beside_smc.csv]

An evaluation is one of the log likelihood, or of a gradient; both methods are charged for all they make, warm-up and
the search for further modes included. Both run at their default settings, SMC with four chains (by default it has as
many as there are cores), pathtemp with the budget given here.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
from pymc.smc.kernels import IMH
from scipy import stats
from scipy.special import betaln, gammaln

import pathtemp as pt
from benchmarks.measure import Row, column, markdown, table

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 6))
Y = X @ RNG.normal(size=6) + 0.5 * RNG.normal(size=60)
SAMPLE = RNG.normal(1.5, 1.0, size=30)
COUNTS = RNG.poisson(6.0, size=25)
HEADS, FLIPS = 61, 80


def regression() -> tuple[pm.Model, float]:
    """Conjugate: s2 ~ InverseGamma(3, 2), beta ~ N(0, s2 I), y ~ N(X beta, s2): y is a multivariate t."""
    with pm.Model() as model:
        s2 = pm.InverseGamma("s2", 3.0, 2.0)
        beta = pm.Normal("beta", 0.0, s2**0.5, shape=X.shape[1])
        pm.Normal("y", X @ beta, s2**0.5, observed=Y)
    law = stats.multivariate_t(np.zeros(len(Y)), 2.0 / 3.0 * (np.eye(len(Y)) + X @ X.T), df=6)
    return model, float(law.logpdf(Y))


def normal_mean() -> tuple[pm.Model, float]:
    """Normal: mu ~ N(0, 5), y ~ N(mu, 1): y is a multivariate normal."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0.0, 5.0), 1.0, observed=SAMPLE)
    n = len(SAMPLE)
    return model, float(stats.multivariate_normal(np.zeros(n), np.eye(n) + 25.0).logpdf(SAMPLE))


def poisson_gamma() -> tuple[pm.Model, float]:
    """Counts: rate ~ Gamma(2, 1/2), counts ~ Poisson(rate)."""
    with pm.Model() as model:
        pm.Poisson("counts", pm.Gamma("rate", 2.0, 0.5), observed=COUNTS)
    total, n = COUNTS.sum(), len(COUNTS)
    prior, posterior = 2 * np.log(0.5) - gammaln(2), gammaln(2 + total) - (2 + total) * np.log(0.5 + n)
    return model, float(prior + posterior - gammaln(COUNTS + 1).sum())


def beta_binomial() -> tuple[pm.Model, float]:
    """Coin: p ~ Beta(1, 1), heads ~ Binomial(flips, p)."""
    with pm.Model() as model:
        pm.Binomial("heads", FLIPS, pm.Beta("p", 1.0, 1.0), observed=HEADS)
    binomial = gammaln(FLIPS + 1) - gammaln(HEADS + 1) - gammaln(FLIPS - HEADS + 1)
    return model, float(binomial + betaln(1 + HEADS, 1 + FLIPS - HEADS) - betaln(1, 1))


MODELS: dict[str, tuple[Callable[[], tuple[pm.Model, float]], float]] = {
    "regression, 7-d": (regression, 60_000),
    "normal mean": (normal_mean, 27_000),
    "Poisson-gamma": (poisson_gamma, 27_000),
    "beta-binomial": (beta_binomial, 27_000),
}
"""Each model with its exact log evidence, and the gradient equivalents that pathtemp gets."""

SMC, OURS = "pm.sample_smc", "pathtemp"


class CountedIMH(IMH):  # type: ignore[misc]
    """PyMC's default SMC kernel, with a count of its likelihood evaluations."""

    evaluations = 0

    def setup_kernel(self) -> None:
        """Count the first particles."""
        super().setup_kernel()
        CountedIMH.evaluations += self.draws

    def mutate(self) -> None:
        """Count the proposals of all steps; ``n_steps`` is one more than those."""
        super().mutate()
        CountedIMH.evaluations += self.draws * (self.n_steps - 1)


def by_smc(model: pm.Model, *, seed: int, draws: int = 2000, chains: int = 4) -> Row:
    """``pm.sample_smc`` with its own defaults, and a standard error from its chains."""
    CountedIMH.evaluations = 0
    with model:
        data: Any = pm.sample_smc(
            draws,
            kernel=CountedIMH,
            chains=chains,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    # One row a chain, which is a list of its own where chains took different numbers of stages.
    stages = np.squeeze(data.sample_stats["log_marginal_likelihood"].values).tolist()
    final = [[value for value in chain if np.isfinite(value)][-1] for chain in stages]
    spread = float(np.std(final, ddof=1))
    return {
        "value": float(np.mean(final)),
        "se": spread / np.sqrt(chains),
        "spread": spread,
        "evaluations": CountedIMH.evaluations,
        "gradients": 0,
    }


def by_pathtemp(model: pm.Model, *, seed: int, budget: float) -> Row:
    """``pt.temper`` of the model as it is."""
    fit = pt.temper(pt.from_pymc(model), budget=budget, seed=seed, progress=False)
    value, se = fit.log_marginal_likelihood
    evaluations = fit.counts.gradients + fit.counts.densities
    return {"value": value, "se": se, "spread": se, "evaluations": evaluations, "gradients": fit.counts.gradients}


def compared(name: str, *, seeds: int) -> list[Row]:
    """Runs of each method on one model."""
    build, budget = MODELS[name]
    model, exact = build()

    def rows_of(method: str, run: Callable[[int], Row]) -> list[Row]:
        return [{"model": name, "method": method, "exact": exact, **timed(run, seed, exact)} for seed in range(seeds)]

    smc = rows_of(SMC, lambda seed: by_smc(model, seed=seed))
    return [*smc, *rows_of(OURS, lambda seed: by_pathtemp(model, seed=seed, budget=budget))]


def timed(run: Callable[[int], Row], seed: int, exact: float) -> Row:
    """What one run found, how far off it was, and how long it took."""
    began = time.perf_counter()
    found = run(seed)
    error = found["value"] - exact
    return {"seed": seed, **found, "error": error, "z": error / found["se"], "seconds": time.perf_counter() - began}


HEADER = ["model", "method", "evaluations", "gradients", "RMSE", "mean se", "largest |z|", "seconds"]


def line(name: str, method: str, rows: list[Row]) -> list[str]:
    """Means over seeds."""
    return [
        name,
        method,
        f"{column(rows, 'evaluations').mean():,.0f}",
        f"{column(rows, 'gradients').mean():,.0f}",
        f"{np.sqrt(np.mean(column(rows, 'error') ** 2)):.4f}",
        f"{column(rows, 'se').mean():.4f}",
        f"{np.abs(column(rows, 'z')).max():.2f}",
        f"{np.median(column(rows, 'seconds')):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/beside_smc.csv"))
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    lines = []
    with table(options.out) as append:
        for name in MODELS:
            rows = compared(name, seeds=options.seeds)
            for row in rows:
                append(row)
            for method in (SMC, OURS):
                lines.append(line(name, method, [row for row in rows if row["method"] == method]))
                print(" | ".join(lines[-1]), flush=True)
    print()
    print(markdown(HEADER, lines))


if __name__ == "__main__":
    main()
