"""One margin from the starts of the chains to its fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import jax
import numpy as np
import xarray as xr

from pathtemp._types import Array, FloatArray
from pathtemp.curve import LogZ
from pathtemp.draws import draws_dataset
from pathtemp.errors import InputError
from pathtemp.fit import library_versions
from pathtemp.margin_fit import MarginFit
from pathtemp.marginal import Marginal
from pathtemp.model import Model
from pathtemp.paths.function import FunctionPath, LogPath
from pathtemp.paths.margin import Coordinates, MarginPath
from pathtemp.progress import Progress
from pathtemp.run import Counts
from pathtemp.settings import Settings
from pathtemp.walk.blocks import in_blocks
from pathtemp.walk.engine import CELLS, Walk
from pathtemp.walk.estimates import Curves
from pathtemp.walk.evidence import log_evidence
from pathtemp.walk.learn import Chart, flat_chart, refine
from pathtemp.walk.probe import check_beyond
from pathtemp.walk.run import WalkRun
from pathtemp.walk.search import search
from pathtemp.walk.targets import TargetMarginal
from pathtemp.walk.verdict import judge
from pathtemp.walk.weights import thinned

SEARCH_SHARE = 0.12
"""Share of the budget for the search that comes first."""

PAD = 0.1
"""Widening of the first interval beyond all that the search has seen, as a share of its width."""

RADII = (8.0, 4.0, 2.0, 2.0)
"""Half widths of the windows of the first fit of the transport, in distances of its nodes, from coarse to fine."""

DEEPEST = 60.0
"""Nats below the top of a density that are walked."""

MOST_DRAWS = 20_000_000
"""Numbers in the draws that are kept (160 MB)."""


@dataclass(frozen=True)
class MarginTask:
    """What is to be done along one margin.

    Parameters
    ----------
    model, path
        The model, and the margin as a path.
    target
        The marginal that is aimed at.
    interval
        On the unconstrained scale; None to find it.
    budget, seed, settings
        How.
    """

    model: Model
    path: MarginPath
    target: TargetMarginal
    interval: tuple[float, float] | None
    budget: float
    seed: int
    settings: Settings

    def walk_from(self, starts: FloatArray, progress: Progress) -> Walk:
        """Search, find the interval, fit the first transport; chains begin at ``starts`` (n, dim), in turn."""
        progress.compile("search")
        return self._begin(starts[np.arange(self.settings.chains) % len(starts)], progress)

    def walk_at(self, chart: Chart, start: tuple[FloatArray, FloatArray]) -> Walk:
        """The walk on a transport, from theta (chains, dim - 1) and lam (chains,)."""
        return Walk(
            FunctionPath(self.path.log_q),
            (),
            chart,
            start,
            (0.0, 0.0),
            self.target,
            self.settings,
            self.seed,
            deepest=DEEPEST,
        )

    def run_of(self, walk: Walk, progress: Progress) -> WalkRun:
        """The rounds of the walk, before the first."""
        return WalkRun(walk, progress, widen=self.interval is None)

    def _begin(self, starts: FloatArray, progress: Progress) -> Walk:
        found = search(self.model.log_target, starts, gradients=SEARCH_SHARE * self.budget, seed=self.seed)
        flat = np.concatenate([found.draws.reshape(-1, self.model.dim), found.last])
        theta, lam, gradient = _split(self.path, flat)
        usable = np.isfinite(lam) & np.isfinite(gradient).all(axis=1)
        if np.count_nonzero(usable) < 4:
            raise InputError(f"margin: {self.path.name!r} or its gradient is not finite where the chains went")
        low, high = float(lam[usable].min()), float(lam[usable].max())
        pad = PAD * (high - low) + 1e-3
        interval = (low - pad, high + pad) if self.interval is None else self.interval
        chart = flat_chart(interval, theta[usable])
        for radius in RADII:
            chart = refine(chart, lam[usable], theta[usable], gradient[usable], radius=radius)
        last = slice(len(flat) - len(found.last), None)
        begin = np.where(
            usable[last], np.arange(len(starts)), np.flatnonzero(usable[last])[0] if usable[last].any() else 0
        )
        progress.compile("round")
        walk = self.walk_at(chart, (theta[last][begin], lam[last][begin]))
        walk.counts = found.counts + Counts(len(flat), 0)
        return walk

    def posterior(self, run: WalkRun) -> FloatArray:
        """Flat draws of the posterior, shape (chain, draw, dim), thinned from those along the margin."""
        return thinned(*self._along(run), seed=self.seed)

    def _along(self, run: WalkRun) -> tuple[FloatArray, FloatArray]:
        """Flat draws along the margin (iterations, chains, dim), and their log weights to the target."""
        walk = run.walk
        theta, a = run.stacked("theta"), run.stacked("theta_a")
        thin = max(1, -(-theta.size // MOST_DRAWS))
        theta, lam = theta[::thin], walk.lam_of(a[::thin])
        log_weight = np.interp(lam, np.linspace(walk.low, walk.high, CELLS + 1), walk.log_c)
        return join_flat(self.path, theta.reshape(-1, walk.dim), lam.ravel()).reshape(*lam.shape, -1), log_weight

    def fit(self, run: WalkRun) -> MarginFit:
        """What the frozen rounds give."""
        walk = run.walk
        path_sampled, rao_blackwell = run.curves()
        lam = np.linspace(walk.low, walk.high, CELLS + 1)
        flat, log_weight = self._along(run)
        posterior = thinned(flat, log_weight, seed=self.seed)
        open_ends = self.interval is None
        beyond = check_beyond(walk, path_sampled.mean) if open_ends else None
        diagnostics = judge(
            run, path_sampled, rao_blackwell, posterior, margin=True, open_ends=open_ends, beyond=beyond
        )
        along = np.swapaxes(flat, 0, 1)
        return MarginFit(
            posterior=draws_dataset(self.model, posterior),
            base=draws_dataset(self.model, posterior[:, :0]),
            path=_path(run),
            log_z=LogZ(lam, path_sampled.mean - path_sampled.mean.max(), _band(path_sampled)),
            diagnostics=diagnostics,
            history=tuple(run.history),
            counts=walk.counts,
            seconds=dict(walk.seconds),
            settings=self.settings,
            seed=self.seed,
            name=self.model.name,
            exact_base=False,
            versions=library_versions(),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            model=self.model,
            marginal=Marginal.of(
                self.path.name,
                lam,
                path_sampled.mean,
                path_sampled.without,
                self.path.values,
                restricted=self.interval is not None,
            ),
            draws=draws_dataset(self.model, along).assign(log_weight=(("chain", "draw"), log_weight.T)),
            evidence=log_evidence(
                walk,
                path_sampled.mean,
                run.stacked("s"),
                run.stacked("log_ratio"),
                walk.inside(run.stacked("a")),
                trips=diagnostics.tours,
            ),
        )


def _band(curves: Curves) -> FloatArray:
    """Standard error of log p about its mean over the mass."""
    weight = np.exp(curves.mean - curves.mean.max())
    return curves.se(lambda log_p: log_p - np.average(log_p, weights=weight))


def _path(run: WalkRun) -> xr.Dataset:
    a, u = run.stacked("a").T, run.stacked("u").T
    variables = {"a": a, "lam": run.walk.lam_of(a), "delta": u / (run.walk.high - run.walk.low)}
    coords = {"chain": np.arange(a.shape[0]), "iteration": np.arange(a.shape[1])}
    return xr.Dataset({name: (("chain", "iteration"), x) for name, x in variables.items()}, coords=coords)


def _split(path: MarginPath, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Theta, lam and the gradient of log q by theta at flat points (n, dim)."""
    theta, lam, gradient = in_blocks(_split_one, (path.coordinates, path.log_q), (), (flat,))
    return theta, lam, gradient


def _split_one(coordinates: Coordinates, log_q: LogPath) -> Callable[[tuple[()], Array], tuple[Array, Array, Array]]:
    def one(_: tuple[()], flat: Array) -> tuple[Array, Array, Array]:
        theta, lam = coordinates.split(flat)
        return theta, lam, jax.grad(log_q)(theta, lam)

    return one


def join_flat(path: MarginPath, theta: FloatArray, lam: FloatArray) -> FloatArray:
    """Flat points (n, dim) of theta (n, dim - 1) and lam (n,)."""
    return in_blocks(_join_one, (path.coordinates,), (), (theta, lam))[0]


def _join_one(coordinates: Coordinates) -> Callable[[tuple[()], Array, Array], tuple[Array]]:
    return lambda _, theta, lam: (coordinates.join(theta, lam),)
