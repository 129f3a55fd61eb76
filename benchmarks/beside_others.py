"""pathtemp beside nested sampling, parallel tempering and bridge sampling, on one and on three modes.

    python -m benchmarks.beside_others [--seeds 5] [--only one_mode] [--out FILE]

Both targets are mixtures of normals in five dimensions with the base normal(0, 5) and log z = 0. Nested sampling is
dynesty (``pip install dynesty``) at its default settings. Parallel tempering is written below: 16 replicas on a
geometric ladder, HMC of eight leapfrogs, swaps of neighbours, log z by MBAR over the rungs. Bridge sampling takes four
chains of NUTS and a normal fitted to half of their draws, as the R package bridgesampling does. An evaluation is one of
the density or of its gradient, warm-up included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import ndtri

import pathtemp as pt
from benchmarks.measure import Row, column, markdown, table
from pathtemp._types import Array, FloatArray
from pathtemp.model.model import Model
from pathtemp.model.model import model as join

DIM, WIDTH = 5, 5.0
"""Dimension, and the standard deviation of the base."""

CENTRES = {
    "one_mode": np.full((1, DIM), 1.0),
    "three_modes": np.array([[-4.0] * DIM, [4.0] * DIM, [4.0, -4.0, 4.0, -4.0, 4.0]]),
}
SHARES = {"one_mode": np.array([1.0]), "three_modes": np.array([0.5, 0.3, 0.2])}
SCALE = 0.5
"""Standard deviation of every mode."""

RUNGS, SWEEPS, LEAPFROGS = 16, 1500, 8
"""Replicas, iterations of each (a fifth of them warm-up) and leapfrogs of an iteration."""

BUDGET = 180_000
"""Gradient evaluations of pathtemp."""


@cache
def log_target(case: str) -> Callable[[Array], Array]:
    """The normalised target."""
    centres, log_share = jnp.asarray(CENTRES[case]), jnp.log(jnp.asarray(SHARES[case]))
    constant = DIM * (0.5 * np.log(2 * np.pi) + np.log(SCALE))
    return lambda x: jax.nn.logsumexp(log_share - 0.5 * jnp.sum(((x - centres) / SCALE) ** 2, axis=1)) - constant


def log_base(x: Array) -> Array:
    """The normalised base."""
    return -0.5 * jnp.sum((x / WIDTH) ** 2) - DIM * (0.5 * np.log(2 * np.pi) + np.log(WIDTH))


@cache
def the_model(case: str) -> Model:
    """Target and base."""
    return join(log_target(case), pt.normal(0.0, WIDTH, shape=(DIM,)), name=case)


def share_error(case: str, theta: FloatArray) -> float:
    """Mean error of the shares of draws (n, dim): each belongs to the nearest centre."""
    nearest = np.argmin(((theta[:, None] - CENTRES[case]) ** 2).sum(-1), axis=1)
    found = np.bincount(nearest, minlength=len(SHARES[case])) / len(theta)
    return float(np.abs(found - SHARES[case]).mean())


Outcome = tuple[float, float, int, FloatArray]
"""log z, its standard error, evaluations, and draws (n, dim) of the target."""


def by_pathtemp(case: str, seed: int) -> Outcome:
    """The default engine."""
    fit = pt.temper(the_model(case), seed=seed, budget=BUDGET, progress=False)
    value, se = fit.log_marginal_likelihood
    return value, se, fit.counts.gradients + fit.counts.densities, fit.posterior["theta"].values.reshape(-1, DIM)


def by_nested_sampling(case: str, seed: int) -> Outcome:
    """Dynesty at its default settings."""
    from dynesty import NestedSampler

    ratio = _compiled_ratio(case)
    sampler = NestedSampler(
        lambda x: float(ratio(x)), lambda u: WIDTH * ndtri(u), DIM, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False)
    found = sampler.results
    return float(found.logz[-1]), float(found.logzerr[-1]), int(np.sum(found.ncall)), found.samples_equal()


def by_parallel_tempering(case: str, seed: int) -> Outcome:
    """Replica exchange with HMC; every replica has one gradient for each leapfrog."""
    ladder = np.concatenate([np.zeros(1), np.geomspace(1e-4, 1.0, RUNGS - 1)])
    theta, delta = _compiled_exchange(case)(jax.random.key(seed), jnp.asarray(ladder))
    kept = slice(SWEEPS // 5, None)
    lam, delta = np.broadcast_to(ladder, delta.shape)[kept], np.asarray(delta)[kept]
    stretch = np.broadcast_to(np.arange(len(delta))[:, None] * 8 // len(delta), delta.shape)
    value = pt.estimators.mbar(lam, delta, ladder)[-1]
    se = pt.estimators.mbar_se(lam, delta, stretch, ladder)[-1]
    return float(value), float(se), RUNGS * SWEEPS * (LEAPFROGS + 1), np.asarray(theta)[kept]


@cache
def _compiled_ratio(case: str) -> Callable[[FloatArray], Array]:
    return jax.jit(lambda x: log_target(case)(x) - log_base(x))


@cache
def _compiled_exchange(case: str) -> Callable[[Array, Array], tuple[Array, Array]]:
    return jax.jit(lambda key, ladder: _exchanged(key, log_target(case), ladder))


def _exchanged(key: Array, target: Callable[[Array], Array], ladder: Array) -> tuple[Array, Array]:
    """Target draws (sweeps, dim) and delta (sweeps, rungs)."""
    step = 0.9 / jnp.sqrt((1 - ladder) / WIDTH**2 + ladder / SCALE**2) / DIM**0.25

    def log_q(x: Array, lam: Array) -> Array:
        return (1 - lam) * log_base(x) + lam * target(x)

    def hmc(key: Array, x: Array, lam: Array, size: Array) -> Array:
        gradient = jax.grad(log_q)
        keys = jax.random.split(key)
        p = jax.random.normal(keys[0], x.shape)
        y, r = x, p + 0.5 * size * gradient(x, lam)
        for k in range(LEAPFROGS):
            y = y + size * r
            r = r + (0.5 if k == LEAPFROGS - 1 else 1.0) * size * gradient(y, lam)
        ratio = log_q(y, lam) - 0.5 * jnp.sum(r**2) - log_q(x, lam) + 0.5 * jnp.sum(p**2)
        return jnp.where(jnp.log(jax.random.uniform(keys[1])) < ratio, y, x)

    def sweep(x: Array, at: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        key, odd = at
        keys = jax.random.split(key, RUNGS + 1)
        x = jax.vmap(hmc)(keys[1:], x, ladder, step)
        delta = jax.vmap(lambda y: target(y) - log_base(y))(x)
        # Pairs (0, 1), (2, 3), ... in one sweep and (1, 2), (3, 4), ... in the next.
        i = jnp.arange(RUNGS)
        lower = i - (i + odd) % 2
        upper = lower + 1
        valid = (lower >= 0) & (upper < RUNGS)
        low, high = jnp.clip(lower, 0, RUNGS - 1), jnp.clip(upper, 0, RUNGS - 1)
        log_u = jnp.log(jax.random.uniform(keys[0], (RUNGS + 1,)))[low]
        swaps = valid & (log_u < (ladder[high] - ladder[low]) * (delta[low] - delta[high]))
        order = jnp.where(swaps, jnp.where(i == low, high, low), i)
        return x[order], (x[order][-1], delta[order])

    keys = jax.random.split(key, SWEEPS + 1)
    start = WIDTH * jax.random.normal(keys[0], (RUNGS, DIM))
    _, (theta, delta) = jax.lax.scan(sweep, start, (keys[1:], jnp.arange(SWEEPS) % 2))
    return theta, delta


def by_bridge_sampling(case: str, seed: int) -> Outcome:
    """Four chains of NUTS, a normal fitted to half of the draws, and the bridge between it and the other half."""
    draws = pt.baselines.nuts(the_model(case), seed=seed)
    theta = draws.flat.reshape(-1, DIM)
    fitted, rest = theta[::2], theta[1::2]
    law = stats.multivariate_normal(fitted.mean(axis=0), np.cov(fitted.T))
    own = law.rvs(len(rest), random_state=np.random.default_rng(seed))
    ratio = [np.asarray(jax.vmap(log_target(case))(jnp.asarray(x))) - law.logpdf(x) for x in (own, rest)]
    value, se = pt.estimators.bridge(*ratio).log_ratio
    return float(value), float(se), int(draws.gradients) + 2 * len(rest), theta


METHODS: dict[str, Callable[[str, int], Outcome]] = {
    "pathtemp": by_pathtemp,
    "nested sampling (dynesty)": by_nested_sampling,
    "parallel tempering": by_parallel_tempering,
    "NUTS and bridge sampling": by_bridge_sampling,
}
HEADER = ["target", "method", "seeds", "evaluations", "error of log z (RMSE)", "reported", "error of the shares"]


def run(case: str, method: str, seed: int) -> Row:
    """One run."""
    began = time.perf_counter()
    value, se, evaluations, theta = METHODS[method](case, seed)
    error = {"error": value, "se": se, "share_error": share_error(case, theta)}
    return {"case": case, "method": method, "seed": seed, **error, "evaluations": evaluations} | {
        "seconds": time.perf_counter() - began
    }


def line(rows: list[Row]) -> list[str]:
    """A line of the table."""
    error, share = column(rows, "error"), column(rows, "share_error")
    return [
        *(str(rows[0]["case"]), str(rows[0]["method"]), str(len(rows))),
        f"{column(rows, 'evaluations').mean():,.0f}",
        f"{np.sqrt(np.mean(error**2)):.3f}",
        f"{column(rows, 'se').mean():.3f}",
        f"{share.mean():.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=list(CENTRES), action="append")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/beside_others.csv"))
    options = parser.parse_args()
    with table(options.out) as append:
        lines = []
        for case in options.only or CENTRES:
            for method in METHODS:
                rows = [run(case, method, seed) for seed in range(options.seeds)]
                for row in rows:
                    append(row)
                lines.append(line(rows))
                print(" | ".join(lines[-1]), flush=True)
    print(markdown(HEADER, lines))


if __name__ == "__main__":
    main()
