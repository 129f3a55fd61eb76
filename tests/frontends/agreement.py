"""Whether draws and a density belong together, for front ends of any language."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from pathtemp.model.model import Model
from pathtemp.testing.calibration import assert_close


def stein_scores(model: Model, *, draws: int = 2000, seed: int = 0) -> np.ndarray:
    """z-scores of E[f'(x) + f(x) dlog psi/dx] = 0 over exact draws of the base, two functions f a coordinate.

    The expectation is zero for every smooth bounded f only if the draws have the density psi.
    """
    keys = jax.random.split(jax.random.key(seed), draws)

    def terms(key: Any) -> jax.Array:
        x = model.sample_base(key)
        slope = jax.grad(model.log_base)(x)
        odd = 1 - jnp.tanh(x) ** 2 + jnp.tanh(x) * slope
        even = slope / jnp.cosh(x / 3) - jnp.tanh(x / 3) / jnp.cosh(x / 3) / 3
        return jnp.concatenate([odd, even])

    values = np.asarray(jax.jit(jax.vmap(terms))(keys))
    return values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(draws))


def assert_draws_have_the_density(model: Model, *, draws: int = 2000) -> None:
    """Fail where exact draws of the base contradict its density."""
    assert_close(stein_scores(model, draws=draws), 0.0, 1.0)


def assert_share(of_chains: ArrayLike, exact: float) -> None:
    """Fail unless the mean of shares, one for each chain, is the exact one within their spread over chains."""
    shares = np.asarray(of_chains)
    assert_close(shares.mean(), exact, shares.std(ddof=1) / np.sqrt(len(shares)), df=len(shares) - 1)


def precisions(function: Any, dim: int) -> set[str]:
    """Floating-point types that occur anywhere in a function of (dim,), inner functions included."""

    def walk(jaxpr: Any) -> set[str]:
        found = {str(v.aval.dtype) for eqn in jaxpr.eqns for v in eqn.outvars if hasattr(v.aval, "dtype")}
        for eqn in jaxpr.eqns:
            for value in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda p: hasattr(p, "jaxpr")):
                if hasattr(value, "jaxpr"):
                    found |= walk(value.jaxpr)
        return found

    return {name for name in walk(jax.make_jaxpr(function)(jnp.zeros(dim)).jaxpr) if name.startswith("float")}
