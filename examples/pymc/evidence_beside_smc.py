"""The evidence of a conjugate regression: closed form, pm.sample_smc and pathtemp side by side.

Each row has the estimate, its error and standard error, and the evaluations of the model that it took.

Run: python examples/pymc/evidence_beside_smc.py
"""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.smc.kernels import IMH
from scipy import stats

import pathtemp as pt

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 6))
Y = X @ RNG.normal(size=6) + 0.5 * RNG.normal(size=60)


def exact() -> float:
    """Log density of the multivariate t that Y has under the prior."""
    shape = np.eye(len(Y)) + X @ X.T
    return float(stats.multivariate_t(np.zeros(len(Y)), 2.0 / 3.0 * shape, df=6).logpdf(Y))


def build() -> pm.Model:
    """Normal-inverse-gamma regression."""
    with pm.Model() as model:
        s2 = pm.InverseGamma("s2", 3.0, 2.0)
        beta = pm.Normal("beta", 0.0, s2**0.5, shape=X.shape[1])
        pm.Normal("y", X @ beta, s2**0.5, observed=Y)
    return model


class CountedIMH(IMH):
    """PyMC's SMC kernel, with a count of its likelihood evaluations."""

    evaluations = 0

    def _initialize_kernel(self) -> None:
        super()._initialize_kernel()
        CountedIMH.evaluations += self.draws

    def mutate(self) -> None:
        """Count the proposals of all steps."""
        super().mutate()
        CountedIMH.evaluations += self.draws * (self.n_steps - 1)


def by_smc(draws: int = 2000, chains: int = 4, seed: int = 1) -> tuple[float, float, int]:
    """Estimate of pm.sample_smc, its standard error over chains, and evaluations."""
    CountedIMH.evaluations = 0
    with build():
        data = pm.sample_smc(
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
    return float(np.mean(final)), float(np.std(final, ddof=1) / np.sqrt(chains)), CountedIMH.evaluations


def by_pathtemp(budget: float = 20_000, seed: int = 1) -> tuple[float, float, int]:
    """Estimate of pathtemp, its standard error, and evaluations: densities and gradients."""
    fit = pt.temper(pt.from_pymc(build()), budget=budget, seed=seed, progress=False)
    return (*fit.log_marginal_likelihood, fit.counts.gradients + fit.counts.densities)


def main() -> dict[str, tuple[float, float, int]]:
    """Print the table."""
    truth = exact()
    rows = {"pm.sample_smc": by_smc(), "pathtemp": by_pathtemp()}
    print(f"{'':15s}{'log evidence':>14s}{'error':>9s}{'se':>8s}{'evaluations':>13s}   exact {truth:.4f}")
    for name, (value, se, evaluations) in rows.items():
        print(f"{name:15s}{value:14.4f}{value - truth:9.4f}{se:8.4f}{evaluations:13,d}")
    return rows


if __name__ == "__main__":
    main()
