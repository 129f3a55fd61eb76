"""Tail quantiles and moments of tau in eight schools: divide and conquer beside NUTS, centred and non-centred.

    python -m benchmarks.funnels_beside_nuts [--seeds 20] [--only NAME] [--processes 1] [--figure FILE.png]

The paper's experiment (section 4.5; mu flat, tau uniform on (.1, 100)) and its two figures, at one number of gradients
for all: errors of the quantiles of either tail, and of the first four moments, root mean squares over seeds.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from benchmarks.measure import Row, column, markdown, table
from benchmarks.parallel import spread
from pathtemp import testing
from pathtemp._types import Array, FloatArray
from pathtemp.testing.eight_schools import EFFECT, STDERR

BUDGET = 200_000
LEFT = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
RIGHT = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
MOMENTS = (1, 2, 3, 4)
CHAINS, WARM_UP, BATCH = 4, 150, 50
METHODS = ("divide_and_conquer", "paper", "nuts_centred", "nuts_non_centred")
LABELS = dict(zip(METHODS, ("pathtemp", "the paper's engine", "NUTS, centred", "NUTS, non-centred"), strict=True))


def log_density(x: Array, *, centred: bool) -> Array:
    """Log density of (mu, logit of log tau within its interval, theta or eta)."""
    low, high = float(np.log(0.1)), float(np.log(100.0))
    mu, b, rest = x[0], x[1], x[2:]
    log_tau = low + (high - low) * jax.nn.sigmoid(b)
    jacobian = jax.nn.log_sigmoid(b) + jax.nn.log_sigmoid(-b) + log_tau
    tau = jnp.exp(log_tau)
    theta = rest if centred else mu + tau * rest
    prior = -0.5 * jnp.sum(((rest - mu) / tau) ** 2) - 8 * log_tau if centred else -0.5 * jnp.sum(rest**2)
    return prior + jacobian - 0.5 * jnp.sum(((jnp.asarray(EFFECT) - theta) / jnp.asarray(STDERR)) ** 2)


@cache
def _programs(centred: bool) -> tuple[Any, Any]:
    """Warm-up of all chains, and a batch of transitions, compiled."""

    def density(x: Array) -> Array:
        return log_density(x, centred=centred)

    def warm(key: Array) -> Any:
        start_key, run_key = jax.random.split(key)
        start = jax.random.normal(start_key, (10,)) * jnp.array([8.0, 1.0, *[8.0 if centred else 1.0] * 8])
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, density, adaptation_info_fn=lambda _s, info, _a: info.num_integration_steps
        )
        (state, tuned), spent = adaptation.run(run_key, start, WARM_UP)
        return state, tuned["step_size"], tuned["inverse_mass_matrix"], spent.sum()

    def batch(key: Array, state: Any, step: Array, mass: Array) -> Any:
        kernel = blackjax.nuts.build_kernel()

        def one(state: Any, key: Array) -> Any:
            state, info = kernel(key, state, density, step, mass)
            return state, (state.position[1], info.num_integration_steps)

        state, (b, spent) = jax.lax.scan(one, state, jax.random.split(key, BATCH))
        return state, b, spent.sum()

    return jax.jit(jax.vmap(warm)), jax.jit(jax.vmap(batch))


def nuts(seed: int, *, centred: bool) -> tuple[FloatArray, int]:
    """Draws of tau of four chains, and the gradients spent: as many batches as the budget holds."""
    warm, batch = _programs(centred)
    key = jax.random.key(seed)
    state, step, mass, spent = warm(jax.random.split(key, CHAINS))
    gradients, draws = int(spent.sum()), []
    while gradients < BUDGET:
        key = jax.random.fold_in(key, len(draws))
        state, b, spent = batch(jax.random.split(key, CHAINS), state, step, mass)
        gradients += int(spent.sum())
        draws.append(np.asarray(b))
    low, high = np.log(0.1), np.log(100.0)
    b = np.concatenate(draws, axis=1) if draws else np.zeros((CHAINS, 1))
    return np.exp(low + (high - low) / (1.0 + np.exp(-b))).ravel(), gradients


def estimates(method: str, seed: int) -> tuple[FloatArray, FloatArray, int]:
    """Quantiles at LEFT and RIGHT, moments, and gradients spent."""
    level = np.array([*LEFT, *RIGHT])
    if method.startswith("nuts"):
        tau, gradients = nuts(seed, centred=method == "nuts_centred")
        return np.quantile(tau, level), np.array([np.mean(tau**k) for k in MOMENTS]), gradients
    problem = testing.eight_schools_flat()
    settings: Any = pt.settings.PAPER.replace(draws=4000, adaptations=3) if method == "paper" else pt.settings.DEFAULT
    fit = pt.divide_and_conquer(
        problem.model,
        margin="tau",
        interval=problem.interval,
        budget=BUDGET,
        seed=seed,
        settings=settings,
        progress=False,
    )
    assert fit.marginal is not None
    moments = [float(fit.marginal.moment(k).value) for k in MOMENTS]
    return fit.marginal.quantile(level).value, np.array(moments), fit.counts.gradients


@cache
def truth() -> tuple[FloatArray, FloatArray]:
    """Exact quantiles and moments."""
    law = testing.eight_schools_tau("flat")
    return law.quantile(np.array([*LEFT, *RIGHT])), np.array([law.expectation(lambda t, k=k: t**k) for k in MOMENTS])


def run(method: str, seeds: range) -> list[Row]:
    """All runs of one method: relative errors."""
    rows: list[Row] = []
    for seed in seeds:
        quantiles, moments, gradients = estimates(method, seed)
        exact = truth()
        row: Row = {"method": method, "seed": seed, "gradients": gradients}
        row |= {f"q{p:g}": float(x) for p, x in zip((*LEFT, *RIGHT), quantiles / exact[0] - 1.0, strict=True)}
        row |= {f"m{k}": float(x) for k, x in zip(MOMENTS, moments / exact[1] - 1.0, strict=True)}
        rows.append(row)
        print(
            f"{method} seed {seed}: {gradients} gradients, q.001 {row['q0.001']:+.3f}, m1 {row['m1']:+.4f}", flush=True
        )
    return rows


def rmse(rows: list[Row], name: str) -> float:
    """Root mean square relative error."""
    return float(np.sqrt(np.mean(column(rows, name) ** 2)))


def draw(results: dict[str, list[Row]], file: Path) -> None:
    """The paper's two figures in one: errors of tail quantiles, and of moments."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for method, rows in results.items():
        for ax, levels in ((panels[0], LEFT), (panels[1], RIGHT)):
            tail = [min(p, 1 - p) for p in levels]
            ax.loglog(tail, [rmse(rows, f"q{p:g}") for p in levels], "o-", ms=3, label=LABELS[method])
        panels[2].semilogy(MOMENTS, [rmse(rows, f"m{k}") for k in MOMENTS], "o-", ms=3, label=LABELS[method])
    panels[0].set(title="Left tail of tau", xlabel="probability below", ylabel="relative RMSE")
    panels[1].set(title="Right tail of tau", xlabel="probability above")
    panels[2].set(title="Moments of tau", xlabel="order", xticks=MOMENTS)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=METHODS, action="append", help="may be given more than once")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/funnels_beside_nuts.csv"))
    parser.add_argument("--figure", type=Path, default=Path("benchmarks/results/funnels_beside_nuts.png"))
    options = parser.parse_args()
    with table(options.out) as append:
        names = options.only or METHODS
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    shown = [f"q{p:g}" for p in (LEFT[0], LEFT[3], LEFT[5], RIGHT[1], RIGHT[3], RIGHT[-1])] + [f"m{k}" for k in MOMENTS]
    lines = (
        [name, str(len(rows)), f"{column(rows, 'gradients').mean():,.0f}", *(f"{rmse(rows, x):.4f}" for x in shown)]
        for name, rows in results.items()
    )
    print(markdown(["method", "runs", "gradients", *shown], lines))
    draw(results, options.figure)


if __name__ == "__main__":
    main()
