"""The paper's own divide and conquer: Algorithm 2 with joint NUTS, path sampling by cells, and kernels."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.met import Watch, target_at
from pathtemp.engines.path.estimates import Curves
from pathtemp.engines.path.margin import join_flat
from pathtemp.engines.path.margin_run import MarginRun, margin_fit
from pathtemp.engines.path.plans import MarginPlan
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.weights import thinned
from pathtemp.engines.protocol import Engine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.estimators.khat import khat
from pathtemp.estimators.path_sampling import path_sampling
from pathtemp.io.persistent import persistent
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.margin_nuts import Bias, ChainDraws, make_adaptation
from pathtemp.kernels.rejected import Rejected
from pathtemp.model.evaluate import agree
from pathtemp.model.model import Model
from pathtemp.paths.margin import MarginPath
from pathtemp.paths.pseudoprior import Kernels, PiecewiseLinear
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import LogEvidence
from pathtemp.result.margin_fit import MarginFit
from pathtemp.result.run import Counts, Diagnostics, Rejections, RoundRecord
from pathtemp.settings import PaperSettings
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel
from pathtemp.verdict.densities import check_met
from pathtemp.verdict.diagnostics import AlongPath, Mixing, diagnostics
from pathtemp.verdict.registry import MORE

WINDOWS = 20
"""Windows of the margin in which the root of E U^2 is averaged (end of section 2.3)."""


@persistent("rounds", "counts", "rejected", "seconds", "settled", "khat")
class PaperMarginEngine(Engine):
    """The run along a margin by the paper's engine.

    Parameters
    ----------
    model, path
        The model, and the margin as a path.
    plan
        What is asked for.
    target
        The marginal that is aimed at.
    interval
        On the unconstrained scale; None for the whole line.
    starts
        Points (n, dim) from which the chains of every adaptation begin, in turn.
    """

    extended_by: ClassVar[tuple[str, ...]] = ()
    settled: bool = False

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
        assert isinstance(plan.settings, PaperSettings)
        self._model, self._margin, self._plan, self._settings = model, path, plan, plan.settings
        self._target, self._interval = target, interval
        self._first = starts[np.arange(plan.settings.chains) % len(starts)]
        self.rounds: list[ChainDraws] = []
        self.counts, self.rejected = Counts(), Rejections()
        self._watch = Watch(model, lambda point: target_at(model, join_flat(path, point[None, :-1], point[-1:])[0]))
        self.seconds = {"compile": 0.0, "adapt": 0.0}
        self.settled, self.khat = False, float("nan")

    @property
    def round_gradients(self) -> float:
        """Those of an adaptation so far; NUTS says no more."""
        return self.counts.gradients / max(len(self.rounds), 1)

    @property
    def round_densities(self) -> float:
        """Those of an adaptation so far, as few as they are."""
        return self.counts.densities / max(len(self.rounds), 1)

    def schedule(self, budget: float | None) -> Schedule:
        """Adaptations until k-hat is small, within a budget where there is one."""
        most, price = (float("inf"), 0.0) if budget is None else (budget, self.density_price)
        return Schedule(most=most, adaptations=self._settings.adaptations, freezes=False, price=price)

    def prepare(self, host: Host) -> None:
        """Nothing: every adaptation starts anew."""

    def compile(self) -> None:
        """Compile one adaptation."""
        settings = self._settings
        static = (self._margin.log_q, self._interval, settings.kept, settings.max_depth)
        arguments = (np.uint32(0), np.uint32(0), self._first, self._bias_after([]))
        self._program, seconds = compiled_once(make_adaptation, static, arguments)
        self.seconds["compile"] += seconds

    def round(self) -> ChainDraws:
        """One adaptation of all chains."""
        word, number = np.uint32(self._plan.seed % 2**32), np.uint32(len(self.rounds))
        on_device = self._program(word, number, self._first, self._bias_after(self.rounds))
        drawn: ChainDraws
        drawn, met = jax.device_get(on_device)
        met_here = self._watch.met(Rejected(met.code, met.point), met.lam, int(drawn.gradients.sum()))
        self.rejected = self.rejected + met_here
        self.rounds.append(drawn)
        self.counts = self.counts + Counts(int(drawn.gradients.sum()), 0)
        return drawn

    def adapt(self, record: ChainDraws, number: int, *, last: bool) -> Line:
        """Estimate the marginal, and k-hat of its ratio to the one before."""
        settings, rounds = self._settings, self.rounds
        old = self.smoothed(rounds[:-1]) if len(rounds) > 1 else (np.arange(2.0), np.zeros(2))
        grid, log_p = self.smoothed(rounds)
        at = np.asarray(record.lam).ravel()
        self.khat = khat(np.interp(at, grid, log_p) - np.interp(at, *old)).value
        # k-hat does not see what was never visited.
        seen = len(rounds) > 1 and bool(np.all(window_visits(rounds, grid) > 0))
        self.settled = settings.stop and seen and self.khat < settings.khat
        curve = LogZ(grid, log_p, np.full(len(grid), np.nan))
        return Line("adapt", curve, 0, float(np.mean(record.acceptance)), self.khat)

    def restored(self) -> None:
        """Hold the model against the gradients at the last draws that were kept."""
        last = self.rounds[-1]
        now = jax.vmap(jax.grad(self._margin.log_q, argnums=1))(last.theta[:, -1], last.lam[:, -1])
        if not agree(np.asarray(now), np.asarray(last.u[:, -1])):
            raise InputError(
                "model: its gradients at the chains of the checkpoint are not those in the file; give the model, data "
                "and margin that the run was of"
            )

    def posterior(self) -> FloatArray:
        """Flat draws of the posterior, shape (chain, draw, dim), thinned from those of the last adaptation."""
        return thinned(*self._along(), seed=self._plan.seed)

    def _along(self) -> tuple[FloatArray, FloatArray]:
        """Flat draws of the last adaptation (iterations, chains, dim), and their log weights to the target."""
        last = self.rounds[-1]
        theta, lam = (np.swapaxes(np.asarray(x), 0, 1) for x in (last.theta, last.lam))
        flat = join_flat(self._margin, theta.reshape(-1, theta.shape[-1]), lam.ravel()).reshape(*lam.shape, -1)
        bias = self._bias_after(self.rounds[:-1])
        return flat, -np.asarray(jax.vmap(bias)(jnp.asarray(lam.ravel()))).reshape(lam.shape)

    def _bias_after(self, rounds: list[ChainDraws]) -> Bias:
        """The bias for the adaptation that comes after ``rounds``; none at first."""
        if rounds:
            grid, log_p = self.smoothed(rounds)
            log_target = self._log_target(rounds, grid)
        else:
            grid = np.linspace(*(self._interval or (-1.0, 1.0)), self._settings.grid + 1)
            log_p = log_target = np.zeros(len(grid))
        t = np.linspace(0.0, 1.0, len(grid))
        kernels = Kernels.fit(t, log_p - log_p[0], kernels=self._settings.kernels)
        target = PiecewiseLinear.fit(t, log_target - log_target[0])
        return Bias(jnp.asarray(grid[0], float), jnp.asarray(grid[-1], float), kernels, target)

    def smoothed(self, rounds: list[ChainDraws]) -> tuple[FloatArray, FloatArray]:
        """Path sampling from the draws of all adaptations (eq. path1) on a grid over what they have seen."""
        lam, u = pooled(rounds)
        low, high = self._interval or (float(lam.min()), float(lam.max()))
        grid = np.linspace(low, high, self._settings.grid + 1)
        return grid, path_sampling(*tied(lam, u, grid), grid).mean

    def _log_target(self, rounds: list[ChainDraws], grid: FloatArray) -> FloatArray:
        """The target marginal; the efficient one is the root of E U^2, averaged in windows."""
        lam, u = pooled(rounds)
        window = np.clip(((lam - grid[0]) / (grid[-1] - grid[0]) * WINDOWS).astype(int), 0, WINDOWS - 1)
        count = np.bincount(window, minlength=WINDOWS)
        seen = np.flatnonzero(count > 0)
        root = np.sqrt(np.bincount(window, u**2, WINDOWS)[seen] / count[seen])
        cells = np.interp((np.arange(self._settings.grid) + 0.5) / self._settings.grid * WINDOWS, seen + 0.5, root)
        return self._target.log_density(grid, cells, cells)

    def fit(self, history: tuple[RoundRecord, ...]) -> MarginFit:
        """What the adaptations so far give."""
        last, (grid, _) = self.rounds[-1], self.smoothed(self.rounds)
        along, log_weight = self._along()
        lam = np.asarray(last.lam)
        run = MarginRun(
            margin=self._margin,
            restricted=self._interval is not None,
            posterior=thinned(along, log_weight, seed=self._plan.seed),
            along=along,
            log_weight=log_weight,
            path={"a": (lam - grid[0]) / (grid[-1] - grid[0]), "lam": lam, "delta": np.asarray(last.u)},
            lam=grid,
            curves=curves_of(self.rounds, grid),
            evidence=LogEvidence(float("nan"), float("nan")),
            diagnostics=self._diagnostics(grid),
            history=history,
            counts=self.counts,
            seconds=dict(self.seconds),
        )
        return margin_fit(run, self._model, seed=self._plan.seed, settings=self._settings)

    def _diagnostics(self, grid: FloatArray) -> Diagnostics:
        lam = np.asarray(self.rounds[-1].lam)
        mixing = Mixing.of(lam[..., None])
        windows, edges = window_visits(self.rounds, grid), np.linspace(grid[0], grid[-1], WINDOWS + 1)
        unknown = np.full(WINDOWS, np.nan)
        checks = (
            travel.check_coverage(windows, edges, more=MORE),
            travel.check_khat(self.khat, "the ratio of successive marginals", limit=self._settings.khat),
            gates.check_rhat(mixing.rhat),
            gates.check_ess(mixing.bulk),
            *check_met(self.rejected),
        )
        along = AlongPath(edges, unknown, unknown, np.histogram(lam, edges)[0].astype(float))
        return diagnostics(checks, mixing, along, khat=self.khat, tours=0, ends={}, rejected=self.rejected)


def pooled(rounds: list[ChainDraws]) -> tuple[FloatArray, FloatArray]:
    """Lam and its gradient of all draws of some adaptations, shape (n,) each."""
    lam, u = (np.concatenate([np.ravel(getattr(r, name)) for r in rounds]) for name in ("lam", "u"))
    return lam, u


def window_visits(rounds: list[ChainDraws], grid: FloatArray) -> FloatArray:
    """Draws of all adaptations in each of the ``WINDOWS`` windows of the margin."""
    return np.histogram(pooled(rounds)[0], WINDOWS, (grid[0], grid[-1]))[0].astype(float)


def tied(lam: FloatArray, u: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean lam and gradient in each cell of the grid: draws in a cell count as tied (eq. U_gradient)."""
    cells = len(grid) - 1
    cell = np.clip(((lam - grid[0]) / (grid[-1] - grid[0]) * cells).astype(int), 0, cells - 1)
    count = np.bincount(cell, minlength=cells)
    seen = count > 0
    return np.bincount(cell, lam, cells)[seen] / count[seen], np.bincount(cell, u, cells)[seen] / count[seen]


def curves_of(rounds: list[ChainDraws], grid: FloatArray) -> Curves:
    """The curve from all draws, and without each half of a chain."""
    lam = np.concatenate([np.asarray(r.lam) for r in rounds], axis=1)
    u = np.concatenate([np.asarray(r.u) for r in rounds], axis=1)
    chains, count = lam.shape
    group = 2 * np.arange(chains)[:, None] + (np.arange(count) >= count // 2)

    def curve(keep: np.ndarray) -> FloatArray:
        return path_sampling(*tied(lam[keep], u[keep], grid), grid).mean

    without = np.array([curve(group != g) for g in range(2 * chains)])
    return Curves(grid, curve(group >= 0), without)
