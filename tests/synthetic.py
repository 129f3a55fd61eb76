"""Runs made of exact draws of a problem with known answers, for testing what comes after the engine."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.engines.met import Place, Watch
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.transforms import Positive
from pathtemp.paths.links import CubicLink
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Check, Counts, Diagnostics, PathPoints, RoundRecord, Run
from pathtemp.settings import Settings
from pathtemp.testing import Problem, cauchy_pair

PASSED = (Check("tours", 200.0, 10.0, True), Check("acceptance", 0.8, 0.5, True))
FAILED = (
    PASSED[0],
    Check("coverage", 0.2, 0.5, False, "lam between 0.1 and 0.2 was hardly visited; give a larger budget."),
)


def diagnostics(checks: tuple[Check, ...] = PASSED) -> Diagnostics:
    lam = np.linspace(0.05, 0.95, 10)
    return Diagnostics(
        checks=checks,
        khat=0.31,
        rhat=1.004,
        ess_bulk=812.0,
        ess_tail=float("inf"),
        tours=200,
        length=3.2,
        lam=lam,
        local_length=0.9 * np.exp(-5 * lam) + 0.05,
        acceptance=0.8 - 0.2 * lam,
        visits=np.arange(10.0),
        log_z_by_estimator={"mbar": (-8.0, 0.05), "isotonic": (-8.1, float("nan"))},
        rejections=3,
    )


def history(curve: LogZ) -> tuple[RoundRecord, ...]:
    end = float(curve.mean[-1])
    nan = float("nan")
    first = RoundRecord(
        "anneal",
        5_000,
        0,
        end - 0.4,
        nan,
        nan,
        0.75,
        LogZ(curve.lam[::2], curve.mean[::2], curve.stderr[::2]),
    )
    adapt = [RoundRecord("adapt", 5_000 * i, 5 * i, end + 0.3 / i, 0.3 / i, 1.2 / i, 0.8, curve) for i in range(2, 6)]
    sample = [RoundRecord("sample", 5_000 * i, 40, end + 0.02 * (-1) ** i, 0.1 / i, 0.2, 0.81) for i in range(6, 10)]
    return (first, *adapt, *sample)


def run_of(
    problem: Problem,
    *,
    seed: int = 0,
    chains: int = 8,
    draws: int = 100,
    iterations: int = 300,
    se: float = 0.02,
    checks: tuple[Check, ...] = PASSED,
) -> Run:
    """A run as a perfect engine would make it: exact draws, and the exact curve plus noise of size ``se``."""
    assert problem.sample_at is not None
    assert problem.log_z is not None
    rng, dim = np.random.default_rng(seed), problem.model.dim
    a = rng.uniform(0.0, 2.0, (chains, iterations))
    lam = np.asarray(jax.vmap(CubicLink())(jnp.asarray(a.ravel())))
    theta = problem.sample_at(rng, lam)
    target, base = (
        np.asarray(jax.vmap(f)(jnp.asarray(theta))) for f in (problem.model.log_target, problem.model.log_base)
    )
    nodes = np.linspace(0.0, 1.0, 65)
    stderr = se * np.sqrt(nodes)
    curve = LogZ(nodes, problem.log_z(nodes) + stderr * rng.normal(), stderr)
    return Run(
        target=problem.sample_at(rng, np.ones(chains * draws)).reshape(chains, draws, dim),
        base=problem.sample_at(rng, np.zeros(chains * draws)).reshape(chains, draws, dim),
        a=a,
        lam=lam.reshape(a.shape),
        delta=(target - base).reshape(a.shape),
        log_z=curve,
        history=history(curve),
        diagnostics=diagnostics(checks),
        counts=Counts(50_000, 120_000),
        seconds={"compile": 2.5, "anneal": 0.25, "sample": 1.0},
        theta0=theta[:, 0].reshape(a.shape),
        points=PathPoints(theta, a.ravel(), lam.ravel()),
    )


@cache
def cauchy_fit(**options: object) -> Fit:
    """A fit of the Cauchy pair; made once for the same options, so not to be changed."""
    problem = cauchy_pair()
    return Fit.from_run(run_of(problem, **options), problem.model, seed=1, settings=Settings(chains=8))  # type: ignore[arg-type]


def odd_model(names: tuple[str, ...] = ("mu", "theta", "tau"), *, exact_base: bool = True) -> Model:
    """A scalar, a vector of three with names of its own, and a positive scalar."""
    mu, theta, tau = names
    layout = Layout(
        {mu: (), theta: (3,), tau: ()},
        {tau: Positive()},
        dims={theta: ("school",)},
        coords={"school": ["Choate", "a/b", "<script>"]},
    )
    return Model(
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x: -0.5 * jnp.sum((x - 1.0) ** 2),
        layout,
        (lambda key: jax.random.normal(key, (5,))) if exact_base else None,
        name="odd",
    )


def fit_of(
    model: Model, *, seed: int = 0, chains: int = 3, draws: int = 20, log_z: float = -2.0, se: float = 0.1
) -> Fit:
    """A fit of any model with normal draws; its numbers mean nothing."""
    rng = np.random.default_rng(seed)
    curve = LogZ(np.linspace(0, 1, 5), np.linspace(0, log_z, 5), np.linspace(0, se, 5))
    path = rng.uniform(0, 1, (3, chains, 7))
    run = Run(
        rng.normal(size=(chains, draws, model.dim)),
        rng.normal(size=(chains, draws, model.dim)),
        *path,
        curve,
        history(curve),
        diagnostics(),
        Counts(1, 2),
    )
    return Fit.from_run(run, model, seed=seed, settings=Settings())


def nothing_to_tell() -> Watch:
    """Who counts what is no density, for chains that meet none unless it is +inf."""
    return Watch(odd_model(), lambda point: Place(point, np.full(1, np.inf)))
