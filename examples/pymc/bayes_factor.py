"""Are counts Poisson or geometric? A Bayes factor beside its closed form.

Run: python examples/pymc/bayes_factor.py
"""

from __future__ import annotations

import numpy as np
import pymc as pm
from scipy.special import betaln, gammaln

import pathtemp as pt

COUNTS = np.array([0, 1, 0, 6, 2, 0, 3, 1, 9, 0, 1, 4])


def poisson() -> pm.Model:
    """Counts with one rate."""
    with pm.Model() as model:
        pm.Poisson("counts", pm.Gamma("rate", 2.0, 1.0), observed=COUNTS)
    return model


def geometric() -> pm.Model:
    """Counts of failures before a success."""
    with pm.Model() as model:
        pm.Geometric("counts", pm.Beta("p", 2.0, 2.0), observed=COUNTS + 1)
    return model


def exact() -> float:
    """Log evidence of the Poisson model less that of the geometric one."""
    total, n = COUNTS.sum(), len(COUNTS)
    of_poisson = gammaln(2 + total) - gammaln(2) - (2 + total) * np.log1p(n) - gammaln(COUNTS + 1).sum()
    return float(of_poisson - (betaln(2 + n, 2 + total) - betaln(2, 2)))


def main(budget: float | None = None) -> tuple[float, float]:
    """Print the comparison and the Bayes factor."""
    models = {"poisson": pt.from_pymc(poisson()), "geometric": pt.from_pymc(geometric())}
    fits = {name: pt.temper(model, budget=budget, seed=1, progress=False) for name, model in models.items()}
    print(pt.compare(fits))
    result = pt.bayes_factor(fits["poisson"], fits["geometric"])
    print(f"log Bayes factor {result.log_bf:.3f} +- {result.se:.3f}, exact {exact():.3f}")
    return result


if __name__ == "__main__":
    main()
