"""When did the rate change? Yearly counts with two candidate years: a posterior with two modes.

The change is a smooth step, so that the year has a gradient; quadrature over the year and the two rates gives the exact
evidence and the exact probability of each candidate.

Run: python examples/pymc/change_point.py
"""

from __future__ import annotations

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import expit, logsumexp

import pathtemp as pt

YEARS = np.arange(40.0)
COUNTS = np.concatenate([np.tile([4, 6, 5], 5)[:14], np.tile([2, 3, 3], 4)[:12], np.tile([1, 0, 2], 5)[:14]])
WIDTH = 0.3
BETWEEN = 20.0
"""A year between the two candidates."""


def build() -> pm.Model:
    """A rate before and a rate after, and the year between them."""
    with pm.Model(coords={"year": YEARS}) as model:
        change = pm.Uniform("change", 0.0, 40.0)
        before = pm.Gamma("before", 3.0, 1.0)
        after = pm.Gamma("after", 3.0, 1.0)
        step = pm.math.sigmoid((YEARS - change) / WIDTH)
        rate = pm.Deterministic("rate", before + (after - before) * step, dims="year")
        pm.Poisson("counts", rate, observed=COUNTS, dims="year")
    return model


def exact() -> tuple[float, float]:
    """Log evidence, and the probability that the change came before ``BETWEEN``, by quadrature."""
    changes, rates = np.linspace(0.05, 39.95, 400), np.linspace(0.05, 9.95, 100)
    log_prior = stats.gamma(3).logpdf(rates)
    log_rates = np.empty(len(changes))
    for i, change in enumerate(changes):
        step = expit((YEARS - change) / WIDTH)[:, None, None]
        rate = rates[:, None] * (1 - step) + rates * step
        log_like = stats.poisson.logpmf(COUNTS[:, None, None], rate).sum(axis=0)
        log_rates[i] = logsumexp(log_like + log_prior[:, None] + log_prior) + 2 * np.log(rates[1] - rates[0])
    total = logsumexp(log_rates)
    early = np.exp(logsumexp(log_rates[changes < BETWEEN]) - total)
    return float(total - np.log(len(changes))), float(early)


def main(budget: float | None = None) -> pt.Fit:
    """Print the evidence and the probability of the earlier change."""
    fit = pt.temper(pt.from_pymc(build()), budget=budget, seed=1, progress=False)
    early = (fit.posterior["change"] < BETWEEN).mean("draw").values
    log_evidence, share = exact()
    value, se = fit.log_marginal_likelihood
    print(f"log evidence {value:.3f} +- {se:.3f}, exact {log_evidence:.3f}")
    print(f"probability of the early change {early.mean():.3f}, exact {share:.3f}")
    return fit


if __name__ == "__main__":
    main()
