"""The paper's own engine: Algorithm 1, continuous tempering with joint NUTS and path sampling."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, Key, Sampler
from pathtemp.engines.met import watch_of
from pathtemp.engines.paper.plan import PaperPlan
from pathtemp.engines.paper.trace import LINK, PaperTrace, importance_curve, log_z_curve, marginal_khat, path_nodes
from pathtemp.engines.paper.verdict import diagnose, tours
from pathtemp.engines.protocol import Engine, Host, Line, Schedule
from pathtemp.errors import InputError
from pathtemp.io.persistent import persistent
from pathtemp.kernels.joint_nuts import Draws, joint_log_density, position_of, run_chain
from pathtemp.kernels.rejected import Rejected
from pathtemp.model.evaluate import agree, energies_of
from pathtemp.model.model import Model
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import Kernels
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, PathPoints, Rejections, RoundRecord, Run
from pathtemp.seeds import probe_key, round_key, seed_word
from pathtemp.settings import PaperSettings

STUCK_IN_BASE = 0.8
"""Share of draws at lam = 0 above which path sampling learns nothing, since f'(a) = 0 there (section 5.1)."""

STARTS = 16
"""Candidates for the start of a chain; the first with positive density is taken."""

Rule = Callable[[Sequence[PaperTrace], Kernels], LogZ]
"""log z from the traces of all adaptations so far, the last of which was drawn under the given log c."""

NextPrior = Callable[[LogZ | None, Sequence[PaperTrace]], Kernels]
"""The next log c given the estimate of log z and the traces, None before the first adaptation."""


@persistent("traces", "counts", "rejected", "seconds", "settled", "curve", "khat", device=("log_c",))
class PaperEngine(Engine):
    """Algorithm 1: sample (theta, a) by joint NUTS, estimate log z, set c <- z, look at k-hat, repeat.

    Parameters
    ----------
    model, plan
        Base and target, and what is asked for.
    estimate, prior
        How log z is estimated and log c is set; by path sampling and by kernels (eq. estimation_beta) where None.
    """

    extended_by: ClassVar[tuple[str, ...]] = ()
    settled: bool = False

    def __init__(
        self, model: Model, plan: PaperPlan, *, estimate: Rule | None = None, prior: NextPrior | None = None
    ) -> None:
        self._model, self._plan = model, plan
        self._watch = watch_of(model)
        self._estimate = estimate or self._path_sampled
        self._prior = prior or self._kernels
        self.traces: list[PaperTrace] = []
        self.counts, self.rejected = Counts(), Rejections()
        self.seconds = {"compile": 0.0, "adapt": 0.0}
        self.settled = False
        self.curve: LogZ | None = None
        self.khat = float("nan")
        self.log_c = self._prior(None, ())

    @property
    def round_gradients(self) -> float:
        """Those of an adaptation so far; NUTS says no more."""
        return self.counts.gradients / max(len(self.traces), 1)

    @property
    def round_densities(self) -> float:
        """Those of an adaptation so far, as few as they are."""
        return self.counts.densities / max(len(self.traces), 1)

    def schedule(self, budget: float | None) -> Schedule:
        """Adaptations until k-hat is small, within a budget where there is one."""
        most, price = (float("inf"), 0.0) if budget is None else (budget, self.density_price)
        return Schedule(most=most, adaptations=self._plan.settings.adaptations, freezes=False, price=price)

    def prepare(self, host: Host) -> None:
        """Nothing: every adaptation starts anew from the base."""

    def compile(self) -> None:
        """Compile one adaptation."""
        begin = time.perf_counter()
        self._adaptation, self._kept = compile_adaptation(self._model, self._plan.settings)
        self.seconds["compile"] += time.perf_counter() - begin

    def round(self) -> Draws:
        """One adaptation of all chains."""
        key = round_key(jnp.uint32(seed_word(self._plan.seed)), jnp.uint32(len(self.traces)))
        drawn = self._adaptation(key, self.log_c)
        self.traces.append(PaperTrace.of(drawn))
        densities = self._plan.settings.chains * (3 * self._kept + STARTS)
        self.counts = self.counts + Counts(int(drawn.gradients.sum()), densities)
        return drawn

    def adapt(self, record: Draws, number: int, *, last: bool) -> Line:
        """Estimate log z, set c <- z."""
        settings, trace = self._plan.settings, self.traces[-1]
        met, steps = record.met, int(record.gradients.sum())
        self.rejected = self.rejected + self._watch.met(Rejected(met.code, met.point), np.asarray(met.lam), steps)
        self.curve = self._estimate(self.traces, self.log_c)
        self.khat = marginal_khat(trace, self.log_c, settings.grid).value
        self.settled = settings.stop and self.khat < settings.khat and not _stuck(trace)
        self.log_c = self._prior(self.curve, self.traces)
        return Line("adapt", self.curve, int(tours(trace.lam).sum()), float(trace.acceptance.mean()), self.khat)

    def outcome(self, history: tuple[RoundRecord, ...]) -> Run:
        """What the adaptations so far give, as arrays."""
        pooled, trace, draws = PaperTrace.join(self.traces), self.traces[-1], self._plan.draws
        assert self.curve is not None
        return Run(
            target=pooled.at(1.0, draws),
            base=pooled.at(0.0, draws),
            a=trace.a,
            lam=trace.lam,
            delta=trace.delta,
            theta0=trace.theta[..., 0],
            points=PathPoints.thinned(trace.theta.swapaxes(0, 1), trace.a.T, trace.lam.T),
            log_z=self.curve,
            history=history,
            diagnostics=diagnose(
                self.traces, self.curve, self.khat, rejections=self.rejected, settings=self._plan.settings
            ),
            counts=self.counts,
            seconds=dict(self.seconds),
        )

    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        """Of the adaptations so far."""
        return Fit.from_run(self.outcome(history), self._model, seed=self._plan.seed, settings=self._plan.settings)

    def restored(self) -> None:
        """Hold the model against the log densities at the last draws that were kept."""
        last = self.traces[-1]
        base, target = energies_of(GeometricPath(self._model.log_base, self._model.log_target), last.theta[:, -1]).T
        with np.errstate(invalid="ignore"):
            now = target - base
        if not agree(now, last.delta[:, -1]):
            raise InputError(
                "model: its log densities at the chains of the checkpoint are not those in the file; give the model, "
                "data and base that the run was of"
            )

    def _path_sampled(self, traces: Sequence[PaperTrace], log_c: Kernels) -> LogZ:
        """Path sampling from the draws of all adaptations (eq. path1)."""
        return log_z_curve(PaperTrace.join(traces), self._plan.settings.grid)

    def _kernels(self, curve: LogZ | None, traces: Sequence[PaperTrace]) -> Kernels:
        """The pseudo-prior of the next adaptation; flat at first."""
        settings = self._plan.settings
        if curve is None:
            _, grid = path_nodes(settings.grid)
            return Kernels.fit(grid, np.zeros(len(grid)), kernels=settings.kernels)
        last, pooled = traces[-1], PaperTrace.join(traces)
        return next_pseudo_prior(curve, pooled, last, stuck=_stuck(last), kernels=settings.kernels)


def _stuck(trace: PaperTrace) -> bool:
    """Whether the chains hardly leave the base."""
    return bool(np.mean(trace.lam == 0) > STUCK_IN_BASE)


def next_pseudo_prior(curve: LogZ, pooled: PaperTrace, last: PaperTrace, *, stuck: bool, kernels: int) -> Kernels:
    """Set c <- z, smoothed by kernels (eq. estimation_beta).

    While the chains sit in the base and none has reached the target, z is the importance-sampling estimate
    instead (section 5.1): inaccurate, but enough to leave the base.
    """
    log_z: Any = curve.mean
    if stuck and not np.any(pooled.lam == 1):
        guess = importance_curve(last, curve.lam)
        log_z = log_z if guess is None else guess
    return Kernels.fit(curve.lam, log_z, kernels=kernels)


Adaptation = Callable[[Key, Kernels], Draws]


def compile_adaptation(model: Model, settings: PaperSettings, *, link: CubicLink = LINK) -> tuple[Adaptation, int]:
    """One adaptation of all chains, compiled, as a function of (key, log c), and the draws a chain keeps."""
    kept = settings.kept
    path = GeometricPath(model.log_base, model.log_target)
    shape = (model.dim, settings.chains, kept, settings.kernels, settings.max_depth)
    executable = _compile(path, link, model.sample_base, *shape)

    def adaptation(key: Key, log_c: Kernels) -> Draws:
        sampled, started = jax.device_get(executable(key, log_c))
        if not np.all(started):
            source = "draws of the base" if model.sample_base else "standard normal points"
            raise InputError(
                f"base: {int(np.sum(~started))} of {settings.chains} chains found no start of positive "
                f"density among {STARTS} {source}; give a base whose support and scale cover the target's"
            )
        drawn: Draws = sampled
        return drawn

    return adaptation, kept


@lru_cache(maxsize=4)
def _compile(
    path: GeometricPath,
    link: CubicLink,
    sample: Sampler | None,
    dim: int,
    chains: int,
    kept: int,
    kernels: int,
    max_depth: int,
) -> Callable[[Key, Kernels], tuple[Draws, Array]]:
    """Compile once for a model: log c is an argument, so no adaptation and no seed compiles again."""
    start = partial(_start, path=path, link=link, sample=sample, dim=dim)
    chain = partial(run_chain, path=path, draws=kept, max_depth=max_depth, link=link)

    def program(key: Key, log_c: Kernels) -> tuple[Draws, Array]:
        start_keys, chain_keys = jax.random.split(key, (2, chains))
        starts, found = jax.vmap(start, in_axes=(0, None))(start_keys, log_c)
        return jax.vmap(chain, in_axes=(0, 0, None))(chain_keys, starts, log_c), found

    flat = Kernels.fit(np.linspace(0.0, 1.0, 3), np.zeros(3), kernels=kernels)
    jitted: Any = jax.jit(program)
    executable: Callable[[Key, Kernels], tuple[Draws, Array]] = jitted.lower(probe_key(), flat).compile()
    return executable


def _start(
    key: Key, log_c: Kernels, *, path: GeometricPath, link: CubicLink, sample: Sampler | None, dim: int
) -> tuple[Array, Array]:
    """A start of positive density, theta from the base and a uniform, and whether there was one."""
    theta_key, a_key = jax.random.split(key)
    keys = jax.random.split(theta_key, STARTS)
    theta = jax.random.normal(theta_key, (STARTS, dim)) if sample is None else jax.vmap(sample)(keys)
    a = jax.random.uniform(a_key, (STARTS,), minval=1e-6, maxval=2.0 - 1e-6)
    candidates = jax.vmap(position_of)(theta, a)
    joint = joint_log_density(path, link)
    finite = jnp.isfinite(jax.vmap(lambda x: joint(x, log_c))(candidates))
    return candidates[jnp.argmax(finite)], jnp.any(finite)
