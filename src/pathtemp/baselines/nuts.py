"""Plain NUTS on the target alone: what one does without tempering."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathtemp._types import Array, FloatArray, IntArray, LogDensity
from pathtemp.api.arguments import a_kind_of, whole_number
from pathtemp.errors import MissingExtraError
from pathtemp.kernels.compilation import compiled_once, use_compilation_cache
from pathtemp.model.inputs import check_model, starts
from pathtemp.model.model import Model
from pathtemp.result.draws import draws_dataset
from pathtemp.seeds import round_key, seed_word
from pathtemp.verdict.draws import rhat_ess

try:
    import blackjax
except ImportError:
    raise MissingExtraError("blackjax", "paper") from None

FEWEST_WARM_UP = 20
"""Transitions below which Stan's windows cannot be laid out."""


@dataclass(frozen=True)
class NutsFit:
    """Draws of the target by NUTS; there is no path, so no log z and no verdict.

    Parameters
    ----------
    posterior
        Draws over (chain, draw, ...), constrained, named as the model names them.
    flat
        The same on the unconstrained scale, shape (chain, draw, dim).
    rhat, ess_bulk, ess_tail
        Worst over the parameters.
    spent
        Leapfrogs of each kept transition, shape (chain, draw).
    gradients
        Gradient evaluations, warm-up included.
    divergences
        Kept transitions that diverged.
    seconds
        Wall seconds by part.
    """

    posterior: xr.Dataset
    flat: FloatArray
    rhat: float
    ess_bulk: float
    ess_tail: float
    spent: IntArray
    gradients: int
    divergences: int
    seconds: dict[str, float]


def nuts(
    model: Model, *, draws: int = 1000, warm_up: int = 1000, chains: int = 4, max_depth: int = 10, seed: int = 0
) -> NutsFit:
    """NUTS with Stan's window adaptation on the target of ``model``, started from draws of its base.

    Parameters
    ----------
    model
        Its target is sampled; its base only gives the starts.
    draws, warm_up
        Kept and discarded transitions of each chain.
    chains
        Chains side by side.
    max_depth
        Largest tree depth.
    seed
        The same seed gives the same draws.

    >>> from pathtemp.testing import gaussian_scale
    >>> fit = nuts(gaussian_scale(2, precision=4.0).model, draws=300, warm_up=200)
    >>> fit.flat.shape, bool(abs(fit.flat.std() - 0.5) < 0.1)
    ((4, 300, 2), True)
    """
    a_kind_of("model", model, Model, "a model from a front end, or a pt.Model")
    least = {"draws": 1, "warm_up": FEWEST_WARM_UP, "chains": 1, "max_depth": 1}
    for name, value in (("draws", draws), ("warm_up", warm_up), ("chains", chains), ("max_depth", max_depth)):
        whole_number(name, value, least=least[name])
    use_compilation_cache()
    word = seed_word(seed)
    theta = starts(model, count=max(chains, 64), seed=word)
    good = theta[np.isfinite(check_model(model, theta)[:, 1])]
    first = good[np.arange(chains) % len(good)]
    static = (model.log_target, draws, warm_up, max_depth)
    program, compiling = compiled_once(_program, static, (np.uint32(0), first))
    begin = time.perf_counter()
    flat, spent, diverged, warm = (np.asarray(x) for x in jax.device_get(program(np.uint32(word), first)))
    rhat, bulk, tail = rhat_ess(flat)
    return NutsFit(
        posterior=draws_dataset(model, flat),
        flat=flat,
        rhat=rhat,
        ess_bulk=bulk,
        ess_tail=tail,
        spent=spent,
        gradients=int(warm.sum() + spent.sum()),
        divergences=int(diverged.sum()),
        seconds={"compile": compiling, "sample": time.perf_counter() - begin},
    )


def _program(log_target: LogDensity, draws: int, warm_up: int, max_depth: int) -> Callable[[Array, Array], Any]:
    """All chains, as a function of seed and starts (chain, dim)."""
    kernel = blackjax.nuts.build_kernel()
    adaptation = blackjax.window_adaptation(
        blackjax.nuts,
        log_target,
        adaptation_info_fn=lambda _state, info, _adaptation: info.num_integration_steps,
        max_num_doublings=max_depth,
    )

    def chain(key: Array, start: Array) -> Any:
        warm_key, sample_key = jax.random.split(key)
        (state, tuned), warm = adaptation.run(warm_key, start, warm_up)

        def one(state: Any, key: Array) -> Any:
            step, mass = tuned["step_size"], tuned["inverse_mass_matrix"]
            state, info = kernel(key, state, log_target, step, mass, max_depth)
            return state, (state.position, info.num_integration_steps, info.is_divergent)

        _, (position, spent, diverged) = jax.lax.scan(one, state, jax.random.split(sample_key, draws))
        return position, spent, diverged, warm.sum()

    def program(seed: Array, first: Array) -> Any:
        return jax.vmap(chain)(jax.random.split(round_key(seed, jnp.uint32(0)), first.shape[0]), jnp.asarray(first))

    return program
