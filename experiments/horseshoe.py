"""Regularised horseshoe, logit and probit in one run against two runs (section 4.4): tail-ESS per second over beta.

Two experiments of the paper: 100 predictors with the flat ends of the link moved, and 80 to 320 predictors.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS
from pathtemp._types import Array, FloatArray
from pathtemp.engines.paper.engine import compile_adaptation
from pathtemp.engines.paper.trace import PaperTrace, log_z_curve, path_nodes
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import Kernels
from pathtemp.result.draws import draws_dataset
from pathtemp.settings import PAPER
from pathtemp.verdict.draws import rhat_ess

METHODS = {"nuts": "two runs of NUTS", "path_sampling": "one run, the paper's engine", "default": "one run, default"}
OBSERVATIONS, SLAB_SCALE, SLAB_DF = 40, 5.0, 4.0
TRUE_BETA = (1.0, 2.0 / 3.0, 1.0 / 3.0)
BLOCK_CORRELATION = 0.5
"""Of the first three predictors: the largest pairwise correlation, as in the paper."""

FIXED_A_MIN = 0.35
FIXED_DIM = 100
ITERATIONS = (500, 3000)
"""Iterations of a chain in the first and the second adaptation, warm-up included; the second also for NUTS alone."""


@cache
def data(dim: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Predictors (n, dim), and outcomes as signs (n,), from a logit model."""
    rng = np.random.default_rng([seed, dim])
    x = rng.normal(size=(OBSERVATIONS, dim))
    x[:, :3] = np.sqrt(1 - BLOCK_CORRELATION) * x[:, :3] + np.sqrt(BLOCK_CORRELATION) * rng.normal(
        size=(OBSERVATIONS, 1)
    )
    probability = 1.0 / (1.0 + np.exp(-x[:, :3] @ np.array(TRUE_BETA)))
    return x, np.where(rng.uniform(size=OBSERVATIONS) < probability, 1.0, -1.0)


def coefficients(parts: Any, tau_0: float) -> Any:
    """Beta of the non-centred regularised horseshoe, shape (dim,)."""
    tau2, zeta2 = (tau_0 * jnp.exp(parts["log_tau"])) ** 2, jnp.exp(2.0 * parts["log_zeta"])
    slab2 = SLAB_SCALE**2 * jnp.exp(parts["log_slab"])
    return parts["z"] * jnp.sqrt(tau2 * zeta2 * slab2 / (slab2 + tau2 * zeta2))


@cache
def regression(dim: int, seed: int, *, base: str, target: str) -> Model:
    """The posterior with link ``base`` at lam = 0 and ``target`` at lam = 1, each "logit" or "probit"."""
    x, sign = (jnp.asarray(part) for part in data(dim, seed))
    tau_0 = 2.0 / ((dim - 1) * float(np.sqrt(OBSERVATIONS)))
    layout = Layout({"z": (dim,), "log_zeta": (dim,), "log_tau": (), "log_slab": ()})

    def half_cauchy(log_x: Array) -> Array:
        """Log density of the logarithm of a half-Cauchy, less a constant."""
        return jnp.sum(log_x - jnp.log1p(jnp.exp(2.0 * log_x)))

    def log_prior(parts: Any) -> Array:
        # The slab's squared scale is inverse-gamma(df/2, df/2), times SLAB_SCALE^2.
        slab = -0.5 * SLAB_DF * (parts["log_slab"] + jnp.exp(-parts["log_slab"]))
        normal = -0.5 * jnp.sum(parts["z"] ** 2)
        return normal + half_cauchy(parts["log_zeta"]) + half_cauchy(parts["log_tau"]) + slab

    def posterior(link: str) -> Any:
        log_cdf = jax.nn.log_sigmoid if link == "logit" else jax.scipy.stats.norm.logcdf

        def log_density(flat: Array) -> Array:
            parts = layout.unravel(flat)
            return log_prior(parts) + jnp.sum(log_cdf(sign * (x @ coefficients(parts, tau_0))))

        return log_density

    def constrain(flat: FloatArray) -> dict[str, FloatArray]:
        unravelled = jax.vmap(layout.unravel)(jnp.asarray(flat))
        return {"beta": np.asarray(jax.vmap(lambda parts: coefficients(parts, tau_0))(unravelled))}

    return Model(posterior(base), posterior(target), layout, None, constrain, name="horseshoe")


class Sampled(NamedTuple):
    """Coefficients (chain, draw, dim) under logit and under probit, and what both cost."""

    logit: FloatArray
    probit: FloatArray
    seconds: float
    gradients: int


def _two_runs(dim: int, seed: int, quick: bool) -> Sampled:
    """NUTS for each regression by itself."""
    kept = 200 if quick else ITERATIONS[1] // 2
    both = [regression(dim, seed, base=link, target=link) for link in ("logit", "probit")]
    fits = [pt.baselines.nuts(model, draws=kept, warm_up=kept, seed=seed) for model in both]
    logit, probit = (fit.posterior["beta"].values for fit in fits)
    return Sampled(logit, probit, sum(fit.seconds["sample"] for fit in fits), sum(fit.gradients for fit in fits))


def _one_run(dim: int, seed: int, quick: bool, *, a_min: float) -> Sampled:
    """The paper's engine in two adaptations, the first a short one, with its link flat below ``a_min``."""
    model, link = regression(dim, seed, base="logit", target="probit"), CubicLink(a_min, 1.0 - a_min)
    _, grid = path_nodes(PAPER.grid, link)
    curve: FloatArray = np.zeros(len(grid))
    traces: list[PaperTrace] = []
    seconds, gradients = 0.0, 0
    for index, iterations in enumerate((250, 250) if quick else ITERATIONS):
        adaptation, _ = compile_adaptation(model, PAPER.replace(draws=iterations * PAPER.chains), link=link)
        begin = time.perf_counter()
        log_c = Kernels.fit(grid, curve, kernels=PAPER.kernels)
        sampled = adaptation(jax.random.fold_in(jax.random.key(seed), index), log_c)
        seconds += time.perf_counter() - begin
        gradients += int(sampled.gradients.sum())
        traces.append(PaperTrace.of(sampled, link))
        curve = log_z_curve(PaperTrace.join(traces), PAPER.grid).mean
    pooled = PaperTrace.join(traces)
    logit, probit = (draws_dataset(model, pooled.at(lam))["beta"].values for lam in (0.0, 1.0))
    return Sampled(logit, probit, seconds, gradients)


def _default(dim: int, seed: int, quick: bool) -> Sampled:
    model = regression(dim, seed, base="logit", target="probit")
    fit = pt.temper(model, seed=seed, budget=180_000 if quick else None, progress=False)
    seconds = sum(fit.seconds.values()) - fit.seconds.get("compile", 0.0)
    return Sampled(fit.base["beta"].values, fit.posterior["beta"].values, seconds, fit.counts.gradients)


def _row(method: str, dim: int, a_min: float, seed: int, quick: bool) -> Row:
    """Smallest tail-ESS over the coefficients of each regression, and the cost of both."""
    if method == "nuts":
        sampled = _two_runs(dim, seed, quick)
    elif method == "default":
        sampled = _default(dim, seed, quick)
    else:
        sampled = _one_run(dim, seed, quick, a_min=a_min)
    logit, probit = (rhat_ess(beta, most=dim) for beta in (sampled.logit, sampled.probit))
    return {
        "method": method,
        "dim": dim,
        "a_min": a_min,
        "seed": seed,
        "rhat_logit": logit[0],
        "rhat_probit": probit[0],
        "tail_ess_logit": logit[2],
        "tail_ess_probit": probit[2],
        "seconds": sampled.seconds,
        "gradients": sampled.gradients,
    }


def _a_min_cells(quick: bool) -> list[str]:
    """Two runs and the default engine have no a_min: one cell a seed."""
    a_min = {"path_sampling": (0.35,) if quick else (0.1, 0.25, 0.35, 0.45)}
    return [f"{m}/{a}/{seed}" for m in METHODS for a in a_min.get(m, (0.0,)) for seed in range(1 if quick else 2)]


def _by_a_min(cell: str, quick: bool) -> list[Row]:
    method, a_min, seed = cell.split("/")
    return [_row(method, 10 if quick else FIXED_DIM, float(a_min), int(seed), quick)]


def _dim_cells(quick: bool) -> list[str]:
    return [f"{method}/{dim}/0" for method in METHODS for dim in ((10,) if quick else (80, 160, 320))]


def _by_dim(cell: str, quick: bool) -> list[Row]:
    method, dim, seed = cell.split("/")
    return [_row(method, int(dim), FIXED_A_MIN, int(seed), quick)]


def _draw(tables: Tables) -> dict[str, Any]:
    figure, axes = panels(2, 4, width=2.6, height=2.4)
    for line, (cost, unit) in zip(axes, (("seconds", "second"), ("gradients", "1000 gradients")), strict=True):
        scale = 1000.0 if cost == "gradients" else 1.0
        for index, (name, x) in enumerate((("a_min", "a_min"), ("dim", "dim"))):
            for ax, link in zip(line[2 * index : 2 * index + 2], ("logit", "probit"), strict=True):
                for method in METHODS:
                    rows = where(tables[name], method=method)
                    at = sorted(distinct(rows, x))
                    rate = [scale * _rate(where(rows, **{x: value}), link, cost) for value in at]
                    if name == "a_min" and method != "path_sampling":
                        ax.axhline(rate[0], color=COLOURS[method], label=METHODS[method])
                    else:
                        ax.plot(at, rate, "o-", ms=3, color=COLOURS[method], label=METHODS[method])
                ax.set(xlabel="a_min" if name == "a_min" else "predictors", yscale="log")
                ax.set_title(f"{link}: tail-ESS / {unit}", fontsize=8)
    axes[0, 0].legend(fontsize=6)
    return {"ess": figure}


def _rate(rows: list[Row], link: str, cost: str) -> float:
    """Smallest tail-ESS per unit of cost, mean over seeds; NaN where it cannot be told."""
    rate = column(rows, f"tail_ess_{link}") / column(rows, cost)
    return float(np.nanmean(rate)) if np.isfinite(rate).any() else np.nan


EXPERIMENT = Experiment(
    "regularised horseshoe: logit and probit in one run against two",
    {"a_min": Table(_a_min_cells, _by_a_min), "dim": Table(_dim_cells, _by_dim)},
    _draw,
)
