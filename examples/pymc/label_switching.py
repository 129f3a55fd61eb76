"""A mixture of three normals whose labels are arbitrary: six equal modes, of which NUTS sees one a chain.

Run: python examples/pymc/label_switching.py
"""

from __future__ import annotations

import itertools

import numpy as np
import pymc as pm

import pathtemp as pt

CENTRES = np.array([-3.0, 0.0, 4.0])


def build() -> pm.Model:
    """Sixty observations from three components, whose centres have one and the same prior."""
    rng = np.random.default_rng(0)
    y = rng.normal(np.repeat(CENTRES, 20), 1.0)
    with pm.Model(coords={"component": [0, 1, 2]}) as model:
        mu = pm.Normal("mu", 0.0, 5.0, dims="component")
        sigma = pm.HalfNormal("sigma", 2.0)
        weight = pm.Dirichlet("weight", np.full(3, 5.0), dims="component")
        pm.NormalMixture("y", weight, mu, sigma, observed=y)
    return model


def shares(mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of draws (chain, draw, component) in each order of the labels, and its standard error over chains."""
    order = np.argsort(mu, axis=-1)
    orders = np.array(list(itertools.permutations(range(3))))
    of_chain = (order[:, :, None] == orders).all(axis=-1).mean(axis=1)
    return of_chain.mean(axis=0), of_chain.std(axis=0, ddof=1) / np.sqrt(len(of_chain))


def main() -> pt.Fit:
    """Temper from the prior and print the share of each order."""
    fit = pt.temper(pt.from_pymc(build()), seed=1)
    print(fit.summary())
    for order, share, se in zip(itertools.permutations(range(3)), *shares(fit.posterior["mu"].values), strict=True):
        print(f"order {order}: {share:.3f} +- {se:.3f} (exact: {1 / 6:.3f})")
    return fit


if __name__ == "__main__":
    main()
