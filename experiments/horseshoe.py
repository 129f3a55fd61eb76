"""Regularised horseshoe, logit and probit in one run against two runs (section 4.4): tail-ESS per second over beta.

The link is the one of the whole library, flat below .1 and above .8; the paper moves its ends as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS
from pathtemp._types import Array, FloatArray
from pathtemp.diagnostics import rhat_ess
from pathtemp.layout import Layout
from pathtemp.model import Model

METHODS = {"nuts": "two runs of NUTS", "path_sampling": "one run, the paper's engine", "default": "one run, default"}
OBSERVATIONS, SLAB_SCALE, SLAB_DF = 40, 5.0, 4.0
TRUE_BETA = (1.0, 2.0 / 3.0, 1.0 / 3.0)
BLOCK_CORRELATION = 0.5
"""Of the first three predictors; the paper says that there is one and not how large."""


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


def _cells(quick: bool) -> list[str]:
    dims = (10,) if quick else (80, 100, 160, 240, 320)
    return [f"{method}/{dim}/{seed}" for method in METHODS for dim in dims for seed in range(1 if quick else 3)]


def _work(cell: str, quick: bool) -> list[Row]:
    """Smallest tail-ESS over the coefficients of both regressions, and the seconds that both took."""
    method, dim_text, seed_text = cell.split("/")
    dim, seed = int(dim_text), int(seed_text)
    if method == "nuts":
        draws = 200 if quick else 1500
        both = [regression(dim, seed, base=link, target=link) for link in ("logit", "probit")]
        fits = [pt.baselines.nuts(model, draws=draws, warm_up=draws, seed=seed) for model in both]
        beta = [fit.posterior["beta"].values for fit in fits]
        seconds, gradients = sum(fit.seconds["sample"] for fit in fits), sum(fit.gradients for fit in fits)
    else:
        fit = _one_run(method, regression(dim, seed, base="logit", target="probit"), seed, quick)
        beta = [fit.base["beta"].values, fit.posterior["beta"].values]
        seconds = sum(fit.seconds.values()) - fit.seconds.get("compile", 0.0)
        gradients = fit.counts.gradients
    ess = [rhat_ess(draws, most=dim) for draws in beta]
    return [
        {
            "method": method,
            "dim": dim,
            "seed": seed,
            "rhat": max(x[0] for x in ess),
            "tail_ess": min(x[2] for x in ess),
            "seconds": float(seconds),
            "gradients": gradients,
        }
    ]


def _one_run(method: str, model: Model, seed: int, quick: bool) -> pt.Fit:
    """Both regressions along one path."""
    if method == "default":
        return pt.temper(model, seed=seed, budget=60_000 if quick else None, progress=False)
    settings = pt.settings.PAPER.replace(draws=800 if quick else 12_000, adaptations=2, stop=False)
    return pt.temper(model, seed=seed, settings=settings, progress=False)


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["ess"]
    figure, axes = panels(1, 2, width=3.6, height=2.8)
    for ax, cost in zip(axes[0], ("seconds", "gradients"), strict=True):
        for method in distinct(rows, "method"):
            of_method = where(rows, method=method)
            dims = sorted(distinct(of_method, "dim"))
            rate = [np.nanmean(column(cell, "tail_ess") / column(cell, cost)) for cell in _by(of_method, dims)]
            ax.semilogy(dims, rate, "o-", ms=3, color=COLOURS[method], label=METHODS[method])
        ax.set(xlabel="predictors", title=f"smallest tail-ESS over {cost}")
    axes[0, 0].legend()
    return {"ess": figure}


def _by(rows: list[Row], dims: list[Any]) -> list[list[Row]]:
    return [where(rows, dim=dim) for dim in dims]


EXPERIMENT = Experiment(
    "regularised horseshoe: logit and probit in one run against two", {"ess": Table(_cells, _work)}, _draw
)
