"""What a gradient costs through XLA, beside the same call made from C, and how a batch uses the cores."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stan_programs import load

from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.bridge import StanDensity, loaded_bridge
from pathtemp.model import Model

pytestmark = [pytest.mark.stan_full, pytest.mark.usefixtures("toolchain")]
MIXTURE = """data { int K; int D; array[K] vector[D] c; real<lower=0> s; }
parameters { vector[D] theta; }
model {
  vector[K] lp;
  for (k in 1:K) lp[k] = normal_lpdf(theta | c[k], s);
  target += log_sum_exp(lp);
}
alternative model { theta ~ normal(0, 1.5); }
"""


def shortest(action: Callable[[], object], repeats: int = 9) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def seconds_from_c(density: StanDensity, count: int) -> float:
    theta, gradient, value = np.full(density.instance.dim, 0.1), np.empty(density.instance.dim), ctypes.c_double()
    pointers = [theta.ctypes.data, ctypes.addressof(value), gradient.ctypes.data]
    repeat = loaded_bridge().pathtemp_repeat
    return shortest(lambda: repeat(density.number, len(theta), count, *pointers)) / count


def seconds_from_xla(density: StanDensity, count: int) -> float:
    def body(_: int, x: jax.Array) -> jax.Array:
        value, gradient = jax.value_and_grad(density)(x)
        return x + 1e-9 * gradient + 0 * value

    loop = jax.jit(lambda x: jax.lax.fori_loop(0, count, body, x))
    x = jnp.full(density.instance.dim, 0.1)
    loop(x).block_until_ready()
    return shortest(lambda: loop(x).block_until_ready()) / count


def test_the_bridge_costs_less_than_a_microsecond() -> None:
    density = load("eight_schools").log_target
    assert isinstance(density, StanDensity)
    overhead = seconds_from_xla(density, 20_000) - seconds_from_c(density, 20_000)
    assert overhead < 1e-6


def test_a_batch_uses_the_cores() -> None:
    cores = os.cpu_count() or 1
    if cores < 2 or os.getloadavg()[0] > 0.5 * cores:
        pytest.skip("one core, or cores that others keep busy")
    model: Model = from_stan(
        MIXTURE, {"K": 10, "D": 100, "c": np.random.default_rng(0).normal(size=(10, 100)), "s": 0.3}
    )
    x = jnp.asarray(np.random.default_rng(1).normal(size=(32, 100)))
    gradient = jax.value_and_grad(model.log_target)

    def many(evaluate: Callable[[jax.Array], tuple[jax.Array, jax.Array]]) -> float:
        step = jax.jit(lambda z: jax.lax.fori_loop(0, 100, lambda _, y: y + 1e-9 * evaluate(y)[1], z))
        step(x).block_until_ready()
        return shortest(lambda: step(x).block_until_ready())

    one_by_one = many(lambda z: jax.lax.map(gradient, z))
    together = many(jax.vmap(gradient))
    assert one_by_one / together > 1.5
