"""Path sampling along any smooth q(theta, lam) (section 2.1): log z(lam), and draws at both ends of the path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from pathtemp._types import Array, FloatArray
from pathtemp.arguments import a_kind_of, finite_array, interval_of, positive_number, shown, text, whole_number
from pathtemp.checkpoint.file import new_place
from pathtemp.checkpoint.plan import PathPlan
from pathtemp.checkpoint.steps import carry_out
from pathtemp.compilation import use_compilation_cache
from pathtemp.curve import LogZ
from pathtemp.errors import InputError
from pathtemp.fit import Fit
from pathtemp.layout import Layout
from pathtemp.links import BASE_END, TARGET_START
from pathtemp.model import Model
from pathtemp.paths.function import FunctionPath, LogPath
from pathtemp.progress import Progress, display
from pathtemp.run import Counts, Run
from pathtemp.seeds import seed_word
from pathtemp.settings import DEFAULT, Settings
from pathtemp.walk.blocks import in_blocks
from pathtemp.walk.engine import CELLS, Walk, check_budget
from pathtemp.walk.learn import Chart, flat_chart, refine
from pathtemp.walk.run import WalkRun
from pathtemp.walk.search import search
from pathtemp.walk.steps import WalkSteps
from pathtemp.walk.targets import TargetMarginal
from pathtemp.walk.verdict import judge
from pathtemp.walk.weights import thinned

BUDGET = 100_000.0
"""Gradient evaluations where the user does not say."""

SEARCH_SHARE = 0.15
"""Share of the budget for the search that comes first, each chain at its own lam."""

RADII = (8.0, 4.0, 2.0, 2.0)
"""Half widths of the windows of the first fit of the transport, in distances of its nodes, from coarse to fine."""

PINNED = 2
"""First rounds in which every chain keeps its lam."""

MARGINALS = {"uniform": "uniform", "min-variance": "optimal", "constant-kl": "constant-kl"}


def path_sample(
    log_q: LogPath,
    dim: int,
    interval: tuple[float, float] = (0.0, 1.0),
    *,
    args: tuple[Any, ...] = (),
    starts: ArrayLike | None = None,
    target_marginal: Literal["uniform", "min-variance", "constant-kl"] = "uniform",
    budget: float = BUDGET,
    chains: int | None = None,
    seed: int = 0,
    settings: Settings = DEFAULT,
    progress: bool | Progress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    name: str = "path",
) -> Fit:
    """Sample jointly along a path of densities and estimate its normalising constant as a function of lam.

    Parameters
    ----------
    log_q
        Log density, not necessarily normalised, of one point at one lam, traceable by JAX and smooth in both:
        ``(theta (dim,), lam (), *args) -> ()``. Theta is on the whole of R^dim.
    dim
        Dimension of theta.
    interval
        Where lam runs; log z is relative to its lower end.
    args
        Arrays handed to ``log_q``: other values of the same shapes compile nothing anew.
    starts
        Points (n, dim) from which the chains begin; standard normals where None.
    target_marginal
        How densely to sample along lam: ``"uniform"``; ``"min-variance"``, proportional to the root of E U^2, which
        minimises the variance of log z; ``"constant-kl"``, proportional to the standard deviation of dlog q/dlam, so
        that the densities change equally fast (appendix A). The last two are half uniform.
    budget
        Gradient evaluations to spend, over all chains and everything included.
    chains, seed, settings, progress, checkpoint
        As for :func:`pathtemp.temper`; ``pt.resume(path, log_q=..., args=...)`` goes on from a checkpoint.
    name
        What summaries call it.

    Returns
    -------
    A fit whose ``log_z`` is the curve over the interval, ``posterior`` and ``base`` draws at its upper and lower end.

    >>> import pathtemp as pt
    >>> def log_q(theta, lam):  # a normal whose scale goes from 1 to e
    ...     return -0.5 * jnp.sum(theta**2) * jnp.exp(-2 * lam)
    >>> fit = pt.path_sample(log_q, 3, (0.0, 1.0), budget=60_000, progress=False)
    >>> bool(abs(fit.log_z(1.0) - 3.0) < 6 * fit.log_z.stderr[-1] < 0.1)  # log z = 3 lam
    True
    """
    a_kind_of("settings", settings, Settings, "pt.settings.DEFAULT or a copy (the paper's engine has no such path)")
    budget = positive_number("budget", budget, "number of gradient evaluations")
    text("name", name)
    settings = settings if chains is None else settings.replace(chains=chains)
    if settings.chains < 2:
        raise InputError("chains: two at least are needed along a path, as its errors come from comparing chains")
    check_path(log_q, dim, interval, args, target_marginal)
    check_budget(budget, dim, settings)
    args = tuple(jax.tree.map(jnp.asarray, args))
    seed = seed_word(seed)
    interval = float(interval[0]), float(interval[1])
    theta = _begin(starts, dim, settings.chains, seed)
    place = None if checkpoint is None else new_place(checkpoint)
    use_compilation_cache()
    told = display(progress)
    task = PathTask(log_q, args, dim, interval, target_marginal, budget, seed, settings, name)
    return carry_out(WalkSteps(task, theta, told), task.plan, task.model, told, place)


@dataclass(frozen=True)
class PathTask:
    """What is to be done along one path; see :func:`path_sample`."""

    log_q: LogPath
    args: tuple[Any, ...]
    dim: int
    interval: tuple[float, float]
    target_marginal: str
    budget: float
    seed: int
    settings: Settings
    name: str

    @property
    def plan(self) -> PathPlan:
        """What a checkpoint keeps of it."""
        return PathPlan(
            seed=self.seed,
            settings=self.settings,
            dim=self.dim,
            interval=self.interval,
            target_marginal=self.target_marginal,
            budget=self.budget,
            name=self.name,
        )

    @property
    def model(self) -> Model:
        """The two ends of the path as base and target."""
        low, high = self.interval
        return Model(
            lambda x: self.log_q(x, low, *self.args),
            lambda x: self.log_q(x, high, *self.args),
            Layout({"theta": (self.dim,)}),
            name=self.name,
        )

    def walk_from(self, starts: FloatArray, progress: Progress) -> Walk:
        """Search with every chain held at its own lam, and fit the first transport."""
        progress.compile("search")
        lam = _strata(*self.interval, self.settings.chains)
        found = search(
            self.log_q,
            starts,
            gradients=SEARCH_SHARE * self.budget,
            seed=self.seed,
            each=(lam,),
            shared=self.args,
            give_up=False,
        )
        draws = found.draws.reshape(-1, self.dim)
        at = np.tile(lam, len(found.draws))
        gradient = in_blocks(_gradient, (self.log_q,), self.args, (draws, at))[0]
        chart = flat_chart(self.interval, draws)
        for radius in RADII:
            chart = refine(chart, at, draws, gradient, radius=radius)
        progress.compile("round")
        walk = self.walk_at(chart, (found.last, lam))
        walk.counts = found.counts + Counts(len(draws), 0)
        return walk

    def walk_at(self, chart: Chart, start: tuple[FloatArray, FloatArray]) -> Walk:
        """The walk on a transport, from theta (chains, dim) and lam (chains,)."""
        target = TargetMarginal(MARGINALS[self.target_marginal])
        ends = (BASE_END, 1.0 - TARGET_START)
        return Walk(FunctionPath(self.log_q), self.args, chart, start, ends, target, self.settings, self.seed)

    def run_of(self, walk: Walk, progress: Progress) -> WalkRun:
        """The rounds of the walk, before the first."""
        return WalkRun(walk, progress, widen=False, pinned=PINNED)

    def fit(self, run: WalkRun) -> Fit:
        """What the frozen rounds give."""
        return Fit.from_run(_outcome(run), self.model, seed=self.seed, settings=self.settings)


def _outcome(run: WalkRun) -> Run:
    walk = run.walk
    path_sampled, rao_blackwell = run.curves()
    theta, a = run.stacked("theta"), run.stacked("theta_a")
    r = 1.0 - np.abs(1.0 - a)
    at_end, at_start = (
        thinned(theta, np.where(here, 0.0, -np.inf), seed=walk.seed)
        for here in (r > 1.0 - walk.ends[1], r < walk.ends[0])
    )
    every_a = run.stacked("a").T
    return Run(
        target=at_end,
        base=at_start,
        a=every_a,
        lam=walk.lam_of(every_a),
        delta=run.stacked("plain").T / (walk.high - walk.low),
        log_z=LogZ(
            np.linspace(walk.low, walk.high, CELLS + 1),
            path_sampled.mean - path_sampled.mean[0],
            path_sampled.se(lambda curve: curve - curve[0]),
        ),
        history=tuple(run.history),
        diagnostics=judge(run, path_sampled, rao_blackwell, at_end, margin=False),
        counts=walk.counts,
        seconds=dict(walk.seconds),
    )


def check_path(log_q: Any, dim: int, interval: Any, args: tuple[Any, ...], target_marginal: str) -> None:
    """Raise where the arguments of :func:`path_sample` make no path."""
    if not callable(log_q):
        raise InputError(f"log_q: expected a function of (theta, lam), got a {type(log_q).__name__}")
    whole_number("dim", dim, least=1)
    interval_of("interval", interval)
    a_kind_of("args", args, tuple, "a tuple of arrays, such as (y,)")
    if not isinstance(target_marginal, str) or target_marginal not in MARGINALS:
        raise InputError(f"target_marginal: expected one of {', '.join(MARGINALS)}, got {shown(target_marginal)}")
    point = jax.ShapeDtypeStruct((dim,), jnp.float64)
    try:
        out = jax.eval_shape(log_q, point, jax.ShapeDtypeStruct((), jnp.float64), *args)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"log_q: it fails on a point with {dim} coordinates ({type(error).__name__}: {reason})"
        ) from error
    if getattr(out, "shape", None) != () or out.dtype != jnp.float64:
        raise InputError("log_q: it must return one float64 number (sum over data; make data after importing pathtemp)")


def _begin(starts: ArrayLike | None, dim: int, chains: int, seed: int) -> FloatArray:
    if starts is None:
        return np.random.default_rng(seed).normal(size=(chains, dim))
    points = finite_array("starts", starts)
    if points.ndim != 2 or points.shape[1] != dim or len(points) == 0 or not np.isfinite(points).all():
        raise InputError(f"starts: expected finite points of shape (n, {dim}), and it has shape {points.shape}")
    return np.asarray(points[np.arange(chains) % len(points)])


def _strata(low: float, high: float, chains: int) -> FloatArray:
    """Lam of each chain while it is held: equispaced, in an order that spreads neighbours in the list of starts."""
    order = np.random.default_rng(0).permutation(chains)
    return np.asarray(low + (high - low) * (order + 0.5) / chains)


def _gradient(log_q: LogPath) -> Callable[[tuple[Any, ...], Array, Array], tuple[Array]]:
    return lambda args, theta, lam: (jax.grad(log_q)(theta, lam, *args),)
