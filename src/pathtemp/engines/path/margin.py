"""The engine along one margin, from the starts of the chains to its fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.engines.met import Place, Watch, target_at
from pathtemp.engines.path.chains import CELLS, PathChains
from pathtemp.engines.path.engine import Found, PathEngine
from pathtemp.engines.path.evidence import log_evidence
from pathtemp.engines.path.margin_run import MarginRun, margin_fit
from pathtemp.engines.path.plans import MarginPlan
from pathtemp.engines.path.probe import mass_beyond, probes_of
from pathtemp.engines.path.search import bursts_for, search
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.transport import flat_transport, refine
from pathtemp.engines.path.verdict import judge
from pathtemp.engines.path.weights import thinned
from pathtemp.engines.path.widen import shares, tail_masses
from pathtemp.engines.protocol import Host
from pathtemp.errors import InputError
from pathtemp.kernels.rejected import Rejected
from pathtemp.model.blocks import in_blocks
from pathtemp.model.model import Model
from pathtemp.paths.function import FunctionPath, LogPath
from pathtemp.paths.margin import Coordinates, MarginPath
from pathtemp.result.margin_fit import MarginFit
from pathtemp.result.run import Counts, RoundRecord
from pathtemp.settings import Settings
from pathtemp.verdict.travel import check_beyond, check_interval

SEARCH_SHARE = 0.12
"""Share of the budget for the search that comes first."""

PAD = 0.1
"""Widening of the first interval beyond all that the search has seen, as a share of its width."""

RADII = (8.0, 4.0, 2.0, 2.0)
"""Half widths of the windows of the first fit of the transport, in distances of its nodes, from coarse to fine."""

DEEPEST = 60.0
"""Nats below the top of a density that are walked."""


class MarginEngine(PathEngine):
    """The run along one margin.

    Parameters
    ----------
    model, path
        The model, and the margin as a path.
    plan
        What is asked for.
    target
        The marginal that is aimed at.
    interval
        On the unconstrained scale; None to find it.
    starts
        Points (n, dim) from which the chains begin, in turn.
    """

    def __init__(
        self,
        model: Model,
        path: MarginPath,
        plan: MarginPlan,
        *,
        target: TargetMarginal,
        interval: tuple[float, float] | None,
        starts: FloatArray,
    ) -> None:
        assert isinstance(plan.settings, Settings)
        watch = Watch(model, self._place)
        how: dict[str, Any] = {"settings": plan.settings, "seed": plan.seed, "watch": watch, "deepest": DEEPEST}
        chains = PathChains(FunctionPath(path.log_q), (), ends=(0.0, 0.0), target=target, **how)
        super().__init__(chains, dim=model.dim - 1, widen=interval is None)
        self._model, self._margin, self._fixed = model, path, interval
        self._starts = starts[np.arange(plan.settings.chains) % len(starts)]

    def search(self, host: Host) -> Found:
        """HMC on the target from the starts; the interval is what it saw, a little wider, where none is given."""
        bursts = bursts_for(SEARCH_SHARE * host.schedule.planned, len(self._starts), self.price)
        of_target = Watch(self._model, partial(target_at, self._model))

        def note(rejected: Rejected, evaluations: int) -> None:
            self.chains.rejected = self.chains.rejected + of_target.met(rejected, None, evaluations)

        how: dict[str, Any] = {"bursts": bursts, "seed": self.chains.seed, "note": note}
        found = search(self._model.log_target, self._starts, **how)
        flat = np.concatenate([found.draws.reshape(-1, self._model.dim), found.last])
        theta, lam, gradient = _split(self._margin, flat)
        usable = np.isfinite(lam) & np.isfinite(gradient).all(axis=1)
        if np.count_nonzero(usable) < 4:
            raise InputError(f"margin: {self._margin.name!r} or its gradient is not finite where the chains went")
        low, high = float(lam[usable].min()), float(lam[usable].max())
        pad = PAD * (high - low) + 1e-3
        learned = flat_transport((low - pad, high + pad) if self._fixed is None else self._fixed, theta[usable])
        for radius in RADII:
            learned = refine(learned, lam[usable], theta[usable], gradient[usable], radius=radius)
        last = slice(len(flat) - len(found.last), None)
        standing = usable[last]
        begin = np.where(standing, np.arange(len(standing)), np.flatnonzero(standing)[0] if standing.any() else 0)
        return Found(learned, theta[last][begin], lam[last][begin], found.counts + Counts(len(flat), 0))

    def kept_back(self, left: float) -> float:
        """For the bridge, one density for each draw along the margin, and for the look beyond the interval."""
        draws = self.price * self.chains.settings.chains * self.chains.settings.iterations
        beyond = 0 if self._fixed is not None else probes_of(self.chains.settings.chains)
        return left * draws / (self.round_cost + draws) + draws + self.price * beyond

    def _place(self, point: FloatArray) -> Place:
        """Of theta and lam in one array."""
        return target_at(self._model, join_flat(self._margin, point[None, :-1], point[-1:])[0])

    def posterior(self) -> FloatArray:
        """Flat draws of the posterior, shape (chain, draw, dim), thinned from those along the margin."""
        return thinned(*self._along(), seed=self.chains.seed)

    def _along(self) -> tuple[FloatArray, FloatArray]:
        """Flat draws along the margin (iterations, chains, dim), and their log weights to the target."""
        chains = self.chains
        theta, lam = self.trace.stacked("theta"), chains.lam_of(self.trace.stacked("theta_a"))
        log_weight = np.interp(lam, np.linspace(chains.low, chains.high, CELLS + 1), chains.log_c)
        return join_flat(self._margin, theta.reshape(-1, chains.dim), lam.ravel()).reshape(*lam.shape, -1), log_weight

    def outcome(self, history: tuple[RoundRecord, ...]) -> MarginFit:
        """What the frozen rounds give."""
        chains, trace = self.chains, self.trace
        path_sampled, rao_blackwell = trace.curves(chains.log_c)
        along, log_weight = self._along()
        posterior = thinned(along, log_weight, seed=chains.seed)
        checks, looked = [], Counts()
        if self._fixed is None:
            share, where, looked = mass_beyond(chains, path_sampled.mean)
            masses, _ = tail_masses(chains.low, chains.high, path_sampled.mean)
            checks = [check_interval(shares(masses)), check_beyond(share, where)]
        diagnostics = judge(self, (path_sampled, rao_blackwell), posterior, checks)
        evidence, bridged = log_evidence(
            chains,
            path_sampled.mean,
            trace.stacked("s"),
            trace.stacked("log_ratio"),
            chains.inside(trace.stacked("a")),
            trips=diagnostics.tours,
        )
        a = trace.stacked("a").T
        run = MarginRun(
            margin=self._margin,
            restricted=self._fixed is not None,
            posterior=posterior,
            along=along,
            log_weight=log_weight,
            path={"a": a, "lam": chains.lam_of(a), "delta": trace.stacked("u").T / (chains.high - chains.low)},
            lam=np.linspace(chains.low, chains.high, CELLS + 1),
            curves=path_sampled,
            evidence=evidence,
            diagnostics=diagnostics,
            history=history,
            counts=chains.counts + looked + bridged,
            seconds=dict(chains.seconds),
        )
        return margin_fit(run, self._model, seed=chains.seed, settings=chains.settings)


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
