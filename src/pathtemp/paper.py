"""The paper's own engine: Algorithm 1, continuous tempering with joint NUTS and path sampling."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, Key, Sampler
from pathtemp.curve import LogZ
from pathtemp.errors import InputError
from pathtemp.kernels.joint_nuts import Draws, joint_log_density, position_of, run_chain
from pathtemp.links import CubicLink
from pathtemp.model import Model
from pathtemp.paper_trace import LINK, PaperTrace, importance_curve, log_z_curve, marginal_khat, path_nodes
from pathtemp.paper_verdict import diagnose, tours
from pathtemp.paths.geometric import GeometricPath
from pathtemp.pseudoprior import Kernels
from pathtemp.run import Counts, RoundRecord, Run
from pathtemp.settings import PAPER, PaperSettings

STUCK_IN_BASE = 0.8
"""Share of draws at lam = 0 above which path sampling learns nothing, since f'(a) = 0 there (section 5.1)."""

STARTS = 16
"""Candidates for the start of a chain; the first with positive density is taken."""

FEWEST_KEPT = 20
"""Kept draws of a chain below which neither the warm-up nor standard errors make sense."""


def run_paper(
    model: Model,
    *,
    seed: int,
    draws: int | None = None,
    settings: PaperSettings = PAPER,
    progress: Callable[[RoundRecord], None] | None = None,
) -> Run:
    """Run Algorithm 1: sample (theta, a), estimate log z, set c <- z, look at k-hat, repeat.

    Parameters
    ----------
    model
        Base and target.
    seed
        Everything random follows from it.
    draws
        Most draws of the target, and of the base, to hand over per chain; all when None. There may be fewer,
        or none: they are the visits of the chains to lam = 1.
    settings
        The paper's choices, see :class:`~pathtemp.settings.PaperSettings`.
    progress
        Called with the record of each adaptation as soon as it is done.

    >>> from pathtemp.bases import normal
    >>> from pathtemp.model import model
    >>> problem = model(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), normal(0.0, 1.0, shape=(1,)))
    >>> run = run_paper(problem, seed=1, settings=PAPER.replace(draws=4000))
    >>> run.a.shape, bool(abs(run.log_z(1.0) - 0.92) < 0.3)
    ((4, 500), True)
    """
    run = PaperRun(model, seed=seed, draws=draws, settings=settings)
    if progress is not None:
        run.progress = progress
    run.carry_out()
    return run.result()


class PaperRun:
    """The adaptations of Algorithm 1, one by one; see :func:`run_paper`.

    ``after_round`` is called between them, where all there is can be kept and taken up again, and may raise to stop
    the run there.
    """

    def __init__(self, model: Model, *, seed: int, draws: int | None, settings: PaperSettings) -> None:
        self._model, self._seed, self._draws, self._settings = model, seed, draws, settings
        self.traces: list[PaperTrace] = []
        self.history: list[RoundRecord] = []
        self.counts, self.rejections = Counts(), 0
        self.seconds = {"compile": 0.0, "adapt": 0.0}
        self.done = False
        self.progress: Callable[[RoundRecord], None] = lambda record: None
        self.after_round: Callable[[], None] = lambda: None

    def carry_out(self) -> None:
        """The adaptations that are left."""
        begin = time.perf_counter()
        adaptation, kept = compile_adaptation(self._model, self._settings)
        self.seconds["compile"] += time.perf_counter() - begin
        while not self.done:
            begin = time.perf_counter()
            self._adapt(adaptation, kept)
            self.seconds["adapt"] += time.perf_counter() - begin
            self.after_round()

    def _adapt(self, adaptation: Adaptation, kept: int) -> None:
        settings, index = self._settings, len(self.traces)
        log_c = self._log_c()
        sampled = adaptation(jax.random.fold_in(jax.random.key(self._seed), index), log_c)
        trace = PaperTrace.of(sampled)
        self.traces.append(trace)
        self.counts = self.counts + Counts(int(sampled.gradients.sum()), settings.chains * (kept + STARTS))
        self.rejections += int(sampled.rejections.sum())
        tail = marginal_khat(trace, log_c, settings.grid)
        self.history.append(_record(trace, self._curve(), tail.value, self.counts))
        self.progress(self.history[-1])
        settled = settings.stop and tail.value < settings.khat and not _stuck(trace)
        self.done = settled or len(self.traces) == settings.adaptations

    def _curve(self) -> LogZ:
        return log_z_curve(PaperTrace.join(self.traces), self._settings.grid)

    def _log_c(self) -> Kernels:
        """The pseudo-prior of the next adaptation; flat at first."""
        settings = self._settings
        if not self.traces:
            _, grid = path_nodes(settings.grid)
            return Kernels.fit(grid, np.zeros(len(grid)), kernels=settings.kernels)
        last, curve = self.traces[-1], self.history[-1].curve
        assert curve is not None
        pooled = PaperTrace.join(self.traces)
        return _next_pseudo_prior(curve, pooled, last, stuck=_stuck(last), kernels=settings.kernels)

    def result(self) -> Run:
        """Hand over what the adaptations so far give."""
        pooled, trace, khat = PaperTrace.join(self.traces), self.traces[-1], self.history[-1].khat
        curve = self.history[-1].curve
        assert curve is not None
        return Run(
            target=pooled.at(1.0, self._draws),
            base=pooled.at(0.0, self._draws),
            a=trace.a,
            lam=trace.lam,
            delta=trace.delta,
            theta0=trace.theta[..., 0],
            log_z=curve,
            history=tuple(self.history),
            diagnostics=diagnose(self.traces, curve, khat, rejections=self.rejections, settings=self._settings),
            counts=self.counts,
            seconds=dict(self.seconds),
        )


def _stuck(trace: PaperTrace) -> bool:
    """Whether the chains hardly leave the base."""
    return bool(np.mean(trace.lam == 0) > STUCK_IN_BASE)


def _record(trace: PaperTrace, curve: LogZ, khat: float, counts: Counts) -> RoundRecord:
    return RoundRecord(
        phase="adapt",
        gradients=counts.gradients,
        tours=int(tours(trace.lam).sum()),
        log_z=float(curve.mean[-1]),
        log_z_se=float(curve.stderr[-1]),
        khat=khat,
        acceptance=float(trace.acceptance.mean()),
        curve=curve,
    )


def _next_pseudo_prior(curve: LogZ, pooled: PaperTrace, last: PaperTrace, *, stuck: bool, kernels: int) -> Kernels:
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
    kept = settings.draws // settings.chains // 2 if settings.chains >= 1 else 0
    if kept < FEWEST_KEPT:
        raise InputError(
            f"settings: draws={settings.draws} over chains={settings.chains} leaves a chain {kept} draws "
            f"after warm-up; give at least {2 * FEWEST_KEPT} draws for each of at least one chain"
        )
    if settings.adaptations < 1:
        raise InputError(f"settings: adaptations must be at least 1, and is {settings.adaptations}")
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
        return Draws(*sampled)

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
    executable: Callable[[Key, Kernels], tuple[Draws, Array]] = jitted.lower(jax.random.key(0), flat).compile()
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
