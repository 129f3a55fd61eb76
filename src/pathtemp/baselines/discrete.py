"""Discrete simulated tempering: Gibbs on a ladder, HMC within, and c <- z by visits or Rao-Blackwellised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import a_kind_of
from pathtemp.baselines.ladder import LadderDraws, LadderState, Moves, adaptation, first_state
from pathtemp.baselines.occupancy import occupancy
from pathtemp.baselines.verdict import diagnose
from pathtemp.engines.driver import carry_out
from pathtemp.engines.met import watch_of
from pathtemp.engines.paper.verdict import tours
from pathtemp.engines.progress import Silent
from pathtemp.engines.protocol import Engine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.estimators.estimate import Estimate
from pathtemp.estimators.rao_blackwell import rao_blackwell
from pathtemp.kernels.compilation import compiled_once, use_compilation_cache
from pathtemp.model.inputs import check_model, starts
from pathtemp.model.model import Model
from pathtemp.paths.geometric import LOG_ZERO, GeometricPath
from pathtemp.paths.links import CubicLink
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, PathPoints, Rejections, RoundRecord, Run
from pathtemp.seeds import seed_word
from pathtemp.settings import LADDER, LadderSettings

Update = Literal["importance", "rao_blackwell"]
UPDATES: tuple[Update, ...] = ("importance", "rao_blackwell")


class Trace(NamedTuple):
    """Kept draws: theta (chain, draw, dim), energies (chain, draw, 2), all else (chain, draw)."""

    theta: FloatArray
    rung: np.ndarray
    lam: FloatArray
    delta: FloatArray
    acceptance: FloatArray
    energies: FloatArray

    @property
    def group(self) -> np.ndarray:
        """Index of the half of a chain that a draw belongs to: halves are near enough to independent."""
        chains, draws = self.rung.shape
        return np.asarray(2 * np.arange(chains)[:, None] + (np.arange(draws) >= draws // 2))


def discrete_tempering(
    model: Model, *, update: Update = "importance", seed: int = 0, settings: LadderSettings = LADDER
) -> Fit:
    """Simulated tempering on a ladder, from a flat guess of log z (methods iii and iv of section 4.1).

    Every draw of the rung given theta is followed by HMC on theta. After each adaptation c is set to the estimate of z
    from its own draws: joint draws under different c cannot be pooled by how often they visit a rung. The chains go on
    where they stopped.

    Parameters
    ----------
    model
        Base and target.
    update
        "importance" estimates Pr(rung) by the share of draws; "rao_blackwell" by its mean given theta (Carlson et al.).
    seed
        The same seed gives the same draws.
    settings
        See :class:`~pathtemp.settings.LadderSettings`.

    Returns
    -------
    A fit whose curve has the rungs as nodes and is a straight line between them. The draws and the curve are those of
    the last adaptation, whose records are in ``fit.history``.

    >>> from pathtemp.testing import gaussian_scale
    >>> small = LADDER.replace(draws=600, moves=4, adaptations=3, ladder=(0.0, 0.3, 1.0))
    >>> fit = discrete_tempering(gaussian_scale(1, precision=4.0).model, update="rao_blackwell", settings=small)
    >>> bool(abs(fit.log_z(1.0) + 0.69) < 0.3), fit.log_z.lam.tolist()
    (True, [0.0, 0.3, 1.0])
    """
    if update not in UPDATES:
        raise InputError(f"update: it must be one of {', '.join(UPDATES)}, and is {update!r}")
    a_kind_of("model", model, Model, "a model from a front end, or a pt.Model")
    a_kind_of("settings", settings, LadderSettings, "pt.settings.LADDER or a copy")
    use_compilation_cache()
    named = replace(model, name=f"{model.name} (discrete tempering, {update.replace('_', '-')})")
    plan = LadderPlan(seed, settings, update)
    return carry_out(LadderEngine(named, plan), plan, named, Silent(), None)


@dataclass(frozen=True)
class LadderPlan:
    """A run of discrete tempering as it was asked for; see :func:`discrete_tempering`."""

    seed: int
    settings: LadderSettings
    update: Update
    budget: float | None = None


class LadderEngine(Engine):
    """Gibbs on a ladder, each adaptation from where the chains stopped; see :func:`discrete_tempering`."""

    extended_by: ClassVar[tuple[str, ...]] = ()
    settled: bool = False

    def __init__(self, model: Model, plan: LadderPlan) -> None:
        self._model, self._plan, settings = model, plan, plan.settings
        self._ladder = np.array(settings.ladder)
        self.log_c: FloatArray = np.zeros(len(self._ladder))
        self.adaptations = 0
        self.counts, self.rejected = Counts(0, settings.chains), Rejections()
        self.seconds = {"compile": 0.0, "adapt": 0.0}
        self.trace: Trace
        self.estimates: dict[str, Estimate]

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations of an adaptation on average."""
        settings = self._plan.settings
        return settings.chains * settings.draws * settings.moves * (settings.leapfrogs + 1) / 2

    @property
    def _densities(self) -> int:
        """Density evaluations of an adaptation."""
        settings = self._plan.settings
        return settings.chains * settings.draws * (settings.moves + 1)

    def schedule(self, budget: float | None) -> Schedule:
        """All adaptations."""
        most = float("inf") if budget is None else budget
        return Schedule(most=most, adaptations=self._plan.settings.adaptations, freezes=False)

    def prepare(self, host: Host) -> None:
        """Put the chains at draws of the base."""
        self.states = _first_states(self._model, seed_word(self._plan.seed), self._plan.settings)

    def compile(self) -> None:
        """Compile one adaptation."""
        settings = self._plan.settings
        path = GeometricPath(self._model.log_base, self._model.log_target)
        moves = Moves(settings.moves, settings.leapfrogs, settings.acceptance)
        static = (path, settings.draws, moves)
        arguments = (np.uint32(0), np.uint32(0), self.states, self._ladder, self.log_c)
        self._program, seconds = compiled_once(adaptation, static, arguments)
        self.seconds["compile"] += seconds

    def round(self) -> LadderDraws:
        """One adaptation of all chains."""
        words = np.uint32(seed_word(self._plan.seed)), np.uint32(self.adaptations)
        self.states, sampled = jax.device_get(self._program(*words, self.states, self._ladder, self.log_c))
        self.adaptations += 1
        drawn: LadderDraws = sampled
        self.counts = self.counts + Counts(int(np.sum(drawn.gradients)), self._densities)
        return drawn

    def adapt(self, record: LadderDraws, number: int, *, last: bool) -> Line:
        """Estimate log z from this adaptation alone, and set c <- z."""
        lam = np.asarray(self._ladder)[np.asarray(record.rung)]
        self.rejected = self.rejected + watch_of(self._model).met(record.rejected, lam, self._densities)
        self.trace = _kept(record, self._ladder)
        self.estimates = _estimates(self.trace, self.log_c, self._ladder)
        curve = self._curve()
        self.log_c = curve.mean
        return Line("adapt", curve, int(tours(self.trace.lam).sum()), float(self.trace.acceptance.mean()))

    def _curve(self) -> LogZ:
        estimate = self.estimates[self._plan.update]
        return LogZ(self._ladder, estimate.mean, estimate.stderr)

    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        """What the last adaptation gives."""
        trace, top = self.trace, len(self._ladder) - 1
        a = np.array(CubicLink().inverse(jnp.asarray(trace.lam)))
        run = Run(
            target=_at(trace, top),
            base=_at(trace, 0),
            a=a,
            lam=trace.lam,
            delta=trace.delta,
            theta0=trace.theta[..., 0],
            points=PathPoints.thinned(trace.theta.swapaxes(0, 1), a.T, trace.lam.T),
            log_z=self._curve(),
            history=history,
            diagnostics=diagnose(
                trace, _at(trace, top), self.estimates, update=self._plan.update, rejected=self.rejected
            ),
            counts=self.counts,
            seconds=dict(self.seconds),
        )
        return Fit.from_run(run, self._model, seed=self._plan.seed, settings=self._plan.settings)


def _first_states(model: Model, seed: int, settings: LadderSettings) -> LadderState:
    """Chains at starts that have density under the base."""
    theta = starts(model, count=max(settings.chains, 64), seed=seed)
    energies = check_model(model, theta)
    good = theta[np.isfinite(energies[:, 0])]
    chosen = jnp.asarray(good[np.arange(settings.chains) % len(good)])
    states: LadderState = jax.vmap(lambda x: first_state(x, len(settings.ladder)))(chosen)
    return states


def _kept(sampled: LadderDraws, ladder: FloatArray) -> Trace:
    """The second half of the draws."""
    half = sampled.rung.shape[1] // 2
    theta, rung, energies, acceptance = (np.asarray(x)[:, half:] for x in sampled[:4])
    with np.errstate(invalid="ignore"):
        delta = np.maximum(energies[..., 1], LOG_ZERO) - energies[..., 0]
    return Trace(theta, rung, ladder[rung], np.where(delta < 0.5 * LOG_ZERO, -np.inf, delta), acceptance, energies)


def _estimates(trace: Trace, log_c: FloatArray, ladder: FloatArray) -> dict[str, Estimate]:
    """Curves of log z on the ladder by both updates."""
    energies = trace.energies.reshape(-1, 2)
    base, target = energies[:, :1], energies[:, 1:]
    with np.errstate(invalid="ignore"):
        log_q = np.where(ladder < 1, (1 - ladder) * base, 0.0) + np.where(ladder > 0, ladder * target, 0.0)
    group = trace.group.ravel()
    return {
        "importance": occupancy(trace.rung.ravel(), log_c, at=ladder, groups=group),
        "rao_blackwell": rao_blackwell(log_q, log_c, at=ladder, groups=group),
    }


def _at(trace: Trace, rung: int) -> FloatArray:
    """Draws at a rung, shape (chain, draw, dim): the last of each chain, as many of each."""
    here = trace.rung == rung
    count = int(here.sum(axis=1).min())
    return np.stack([theta[mask][mask.sum() - count :] for theta, mask in zip(trace.theta, here, strict=True)])
