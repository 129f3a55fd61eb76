"""A two-component mixture written with discrete labels: NumPyro sums them out, tempering visits both modes.

Run: python examples/numpyro/enumerated_mixture.py
"""

from __future__ import annotations

import numpy as np
import numpyro
import numpyro.distributions as dist

import pathtemp as pt

Y = np.random.default_rng(0).normal(np.repeat([-2.0, 2.0], [10, 15]), 0.7)


def mixture(y: np.ndarray) -> None:
    """Each observation belongs to one of two components, which have the same prior."""
    weight = numpyro.sample("weight", dist.Beta(2.0, 2.0))
    with numpyro.plate("component", 2):
        mu = numpyro.sample("mu", dist.Normal(0.0, 3.0))
    with numpyro.plate("obs", len(y)):
        label = numpyro.sample("label", dist.Bernoulli(weight), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(mu[label], 0.7), obs=y)


def main(budget: float | None = None) -> pt.Fit:
    """Print the share of draws in each order of the components, one half by symmetry."""
    fit = pt.temper(pt.from_numpyro(mixture, Y), budget=budget, seed=1, progress=False)
    first = (fit.posterior["mu"].isel(component=0) < fit.posterior["mu"].isel(component=1)).mean("draw").values
    print(f"share of mu[0] < mu[1]: {first.mean():.3f} +- {first.std(ddof=1) / np.sqrt(len(first)):.3f}")
    return fit


if __name__ == "__main__":
    main()
