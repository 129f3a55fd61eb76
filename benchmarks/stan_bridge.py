"""What a gradient of a Stan program costs inside XLA, beside the same call from C, and how a batch uses the cores.

``python -m benchmarks.stan_bridge`` prints microseconds per gradient, the least of several repeats.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.bridge import StanDensity, loaded_bridge

EXAMPLES = Path(__file__).parents[1] / "examples" / "stan"
CHAINS = 32

MIXTURE = """data { int K; int D; array[K] vector[D] c; real<lower=0> s; }
parameters { vector[D] theta; }
model {
  vector[K] lp;
  for (k in 1:K) lp[k] = normal_lpdf(theta | c[k], s);
  target += log_sum_exp(lp);
}
alternative model { theta ~ normal(0, 1.5); }
"""
"""Ten normals in 100 dimensions."""

LOGISTIC = """data { int N; int D; matrix[N, D] x; array[N] int<lower=0, upper=1> y; }
parameters { vector[D] beta; }
model { beta ~ normal(0, 1); y ~ bernoulli_logit(x * beta); }
alternative model { beta ~ normal(0, 1); }
"""


def mixture() -> StanDensity:
    """The target of a mixture of ten normals in 100 dimensions."""
    centres = np.random.default_rng(0).normal(size=(10, 100))
    return target(MIXTURE, {"K": 10, "D": 100, "c": centres, "s": 0.3})


def logistic() -> StanDensity:
    """The target of a logistic regression on 1000 rows of 20 columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 20))
    return target(LOGISTIC, {"N": 1000, "D": 20, "x": x, "y": (rng.random(1000) < 0.5).astype(int)})


def example(name: str) -> StanDensity:
    """The target of a program of the gallery."""
    return target(EXAMPLES / f"{name}.stan", EXAMPLES / f"{name}.json")


def target(program: Any, data: Any) -> StanDensity:
    """The target density of a program."""
    density = from_stan(program, data=data).log_target
    assert isinstance(density, StanDensity)
    return density


def from_c(density: StanDensity, count: int) -> Callable[[], object]:
    """``count`` gradients of one chain, one after the other, called from C."""
    dim = density.instance.dim
    theta, gradient, value = np.full(dim, 0.1), np.empty(dim), np.empty(1)
    repeat = loaded_bridge().pathtemp_repeat
    return lambda: repeat(density.number, dim, count, *(x.ctypes.data for x in (theta, value, gradient)))


def from_xla(density: StanDensity, count: int) -> Callable[[], object]:
    """``count`` gradients of one chain in a compiled loop."""

    def body(_: int, x: jax.Array) -> jax.Array:
        value, gradient = jax.value_and_grad(density)(x)
        return x + 1e-9 * gradient + 0 * value

    loop = jax.jit(lambda x: jax.lax.fori_loop(0, count, body, x))
    x = jnp.full(density.instance.dim, 0.1)
    return lambda: loop(x).block_until_ready()


def batch(density: StanDensity, count: int, *, together: bool) -> Callable[[], object]:
    """``count`` gradients of each of 32 chains, as one batch or one by one."""
    gradient = jax.value_and_grad(density)
    evaluate = jax.vmap(gradient) if together else lambda z: jax.lax.map(gradient, z)
    loop = jax.jit(lambda z: jax.lax.fori_loop(0, count, lambda _, y: y + 1e-9 * evaluate(y)[1], z))
    x = jnp.asarray(np.random.default_rng(1).normal(size=(CHAINS, density.instance.dim)))
    return lambda: loop(x).block_until_ready()


def least(*actions: Callable[[], object], repeats: int = 100) -> list[float]:
    """Least seconds of each action, taken in turns; short ones, many times, find the moments when a core is free."""
    for action in actions:
        action()
    times = [[_seconds(action) for action in actions] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def overhead(density: StanDensity, count: int = 500) -> tuple[float, float]:
    """Microseconds of a gradient of one chain, called from C and from XLA."""
    c, xla = least(from_c(density, count), from_xla(density, count))
    return c / count * 1e6, xla / count * 1e6


def sharing(density: StanDensity, count: int = 10) -> tuple[float, float]:
    """Microseconds of a gradient of 32 chains, one by one and as one batch."""
    one, many = least(batch(density, count, together=False), batch(density, count, together=True))
    return one / count / CHAINS * 1e6, many / count / CHAINS * 1e6


def main() -> None:
    densities = {
        "Cauchy pair": example("cauchy"),
        "eight schools": example("eight_schools_centered"),
        "mixture, 100-d": mixture(),
        "logistic, 1000 x 20": logistic(),
    }
    print(f"microseconds per gradient; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'program':22}{'C':>8}{'XLA':>8}{'more':>8}{'one by one':>13}{'32 chains':>11}{'faster':>8}")
    for name, density in densities.items():
        c, xla = overhead(density)
        one, many = sharing(density)
        print(f"{name:22}{c:8.2f}{xla:8.2f}{xla - c:8.2f}{one:13.2f}{many:11.2f}{one / many:8.2f}")


if __name__ == "__main__":
    main()
