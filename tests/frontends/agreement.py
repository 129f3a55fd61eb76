"""Whether draws and a density belong together, for front ends of any language."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.model import Model


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
