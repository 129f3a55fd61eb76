"""The engine along any smooth q(theta, lam), from the starts of the chains to its fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.engines.met import Place, Watch
from pathtemp.engines.path.chains import CELLS, PathChains
from pathtemp.engines.path.engine import Found, PathEngine
from pathtemp.engines.path.plans import PathPlan
from pathtemp.engines.path.search import bursts_for, search
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.transport import flat_transport, refine
from pathtemp.engines.path.verdict import judge
from pathtemp.engines.path.weights import thinned
from pathtemp.engines.protocol import Host
from pathtemp.errors import InputError
from pathtemp.kernels.rejected import Rejected, code_of
from pathtemp.model.blocks import in_blocks
from pathtemp.model.evaluate import BLOCK
from pathtemp.model.inputs import check_repeatable
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.model.price import density_price, told_if_slow, told_of_waiting
from pathtemp.paths.function import FunctionPath, LogPath
from pathtemp.paths.links import BASE_END, TARGET_START
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, PathPoints, RoundRecord, Run
from pathtemp.seeds import Stream, rng
from pathtemp.settings import Settings

SEARCH_SHARE = 0.15
"""Share of the budget for the search that comes first, each chain at its own lam."""

RADII = (8.0, 4.0, 2.0, 2.0)
"""Half widths of the windows of the first fit of the transport, in distances of its nodes, from coarse to fine."""

PINNED = 2
"""First rounds in which every chain keeps its lam."""

MARGINALS = {"uniform": "uniform", "min-variance": "optimal", "constant-kl": "constant-kl"}
"""What the user calls a target marginal, and what it is called here."""


class FunctionEngine(PathEngine):
    """The run along a function of (theta, lam).

    Parameters
    ----------
    log_q, args
        Log density ``(theta (dim,), lam (), *args) -> ()``, and its further arguments.
    plan
        What is asked for.
    starts
        Points (chains, dim) from which the chains begin.
    """

    def __init__(self, log_q: LogPath, args: tuple[Any, ...], plan: PathPlan, *, starts: FloatArray) -> None:
        target = TargetMarginal(MARGINALS[plan.target_marginal])
        self.model = _model(log_q, args, plan)
        how: dict[str, Any] = {
            "settings": plan.settings,
            "seed": plan.seed,
            "watch": Watch(self.model, self._place, held=1),
        }
        chains = PathChains(FunctionPath(log_q), args, ends=(BASE_END, 1.0 - TARGET_START), target=target, **how)
        super().__init__(chains, dim=plan.dim, widen=False, pinned=PINNED)
        self._log_q, self._plan, self._starts = log_q, plan, starts

    def _place(self, point: FloatArray) -> Place:
        """Of theta and lam in one array."""
        theta, lam = point[:-1], float(point[-1])
        return Place(theta, self.chains.values(theta[None], np.array([lam])), lam)

    def search(self, host: Host) -> Found:
        """HMC with every chain held at its own lam."""
        plan = self._plan
        lam = _strata(*plan.interval, plan.settings.chains)
        self._check_starts(lam)
        found = search(
            self._log_q,
            self._starts,
            bursts=bursts_for(SEARCH_SHARE * host.schedule.planned, len(self._starts), self.price),
            seed=plan.seed,
            each=(lam,),
            shared=self.chains.args,
            give_up=False,
            note=lambda rejected, evaluations: self.chains.met(rejected, lam, evaluations),
        )
        draws = found.draws.reshape(-1, plan.dim)
        at = np.tile(lam, len(found.draws))
        gradient = in_blocks(_gradient, (self._log_q,), self.chains.args, (draws, at))[0]
        learned = flat_transport(plan.interval, draws)
        for radius in RADII:
            learned = refine(learned, at, draws, gradient, radius=radius)
        return Found(learned, found.last, lam, found.counts + Counts(len(draws), 0))

    def _check_starts(self, lam: FloatArray) -> None:
        """Raise where log q is +inf at a start, or has no density at any."""
        with told_of_waiting("log_q"):
            values = self.chains.values(self._starts, lam)
        again = told_if_slow("log_q", lambda: self.chains.values(self._starts, lam), count=len(lam))
        self.chains.counts = self.chains.counts + Counts(0, 2 * len(lam))
        check_repeatable("log_q", values, again)
        code = code_of(jnp.asarray(values)[:, None])[:, None]
        met = Rejected(code, jnp.column_stack([self._starts, lam]))
        self.chains.met(met, lam[:, None], len(lam))
        if not np.isfinite(values).any():
            kinds = "NaN" if np.isnan(values).all() else "-inf or NaN"
            raise InputError(
                f"log_q: it is {kinds} at all {len(lam)} starts; give starts= where it has density, or mend it"
            )

    def outcome(self, history: tuple[RoundRecord, ...]) -> Fit:
        """What the frozen rounds give."""
        chains, trace = self.chains, self.trace
        curves = trace.curves(chains.log_c)
        theta, a = trace.stacked("theta"), trace.stacked("theta_a")
        r = 1.0 - np.abs(1.0 - a)
        at_end, at_start = (
            thinned(theta, np.where(here, 0.0, -np.inf), seed=chains.seed)
            for here in (r > 1.0 - chains.ends[1], r < chains.ends[0])
        )
        every_a, mean = trace.stacked("a").T, curves[0].mean
        lam = np.linspace(chains.low, chains.high, CELLS + 1)
        run = Run(
            target=at_end,
            base=at_start,
            a=every_a,
            lam=chains.lam_of(every_a),
            delta=trace.stacked("plain").T / (chains.high - chains.low),
            points=PathPoints.thinned(theta, a, chains.lam_of(a)),
            log_z=LogZ(lam, mean - mean[0], curves[0].se(lambda curve: curve - curve[0])),
            history=history,
            diagnostics=judge(self, curves, at_end),
            counts=chains.counts,
            seconds=dict(chains.seconds),
        )
        return Fit.from_run(run, self.model, seed=chains.seed, settings=chains.settings)


def _model(log_q: LogPath, args: tuple[Any, ...], plan: PathPlan) -> Model:
    """The two ends of the path as base and target."""
    low, high = plan.interval
    layout = Layout({"theta": (plan.dim,)})
    return Model(lambda x: log_q(x, low, *args), lambda x: log_q(x, high, *args), layout, name=plan.name)


def _strata(low: float, high: float, chains: int) -> FloatArray:
    """Lam of each chain while it is held: equispaced, in an order that spreads neighbours in the list of starts."""
    order = rng(Stream.TIES).permutation(chains)
    return np.asarray(low + (high - low) * (order + 0.5) / chains)


def price_of(
    log_q: LogPath, args: tuple[Any, ...], settings: Settings, starts: FloatArray, interval: tuple[float, float]
) -> float:
    """Gradients that a density costs: as the settings have it, or timed at starts (n, dim) all along the interval."""
    if settings.density_price is not None or settings.effort != "auto":
        return settings.price
    points = np.resize(starts, (BLOCK, starts.shape[1])), _strata(*interval, BLOCK)
    return density_price(
        *(partial(in_blocks, make, (log_q,), args, points, block=BLOCK) for make in (_value, _gradient))
    )


def _value(log_q: LogPath) -> Callable[[tuple[Any, ...], Array, Array], tuple[Array]]:
    return lambda args, theta, lam: (log_q(theta, lam, *args),)


def _gradient(log_q: LogPath) -> Callable[[tuple[Any, ...], Array, Array], tuple[Array]]:
    return lambda args, theta, lam: (jax.grad(log_q)(theta, lam, *args),)
