"""The adaptive loop over any path: sample, estimate log z, set c <- z / p_targ, refit the transport, widen, repeat.

After adaptive rounds the kernel is frozen, and the estimates come from the frozen rounds alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, HostArray
from pathtemp.compilation import compiled_once
from pathtemp.errors import InputError
from pathtemp.kernels.walk import Walker, WalkParameters, WalkRecord, WalkShape, make_round
from pathtemp.learner import adapt_step, along_path
from pathtemp.paths.function import FunctionPath
from pathtemp.run import Counts
from pathtemp.settings import Settings
from pathtemp.walk.learn import Chart, refine
from pathtemp.walk.pool import Pool, Slopes
from pathtemp.walk.search import FEWEST_SEARCH
from pathtemp.walk.targets import TargetMarginal

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

CELLS = 128
"""Cells of s for log c and for path sampling."""

PASSES = 2
"""Corrections of the transport in one refit: the second sees draws that the first has made alike along a window."""

LEAST_ACCEPTANCE = 0.05
"""Mean acceptance of HMC in a round below which a chain has not moved: it stands where the search left it, far from
equilibrium, and its one gradient, large as it is, would be taken for a slope of log z."""

TINY_STEP = 0.99
"""Mean acceptance at a position above which its step size grows by a factor of e."""

STEPS = 13
"""Positions at which the step size is tabulated."""


@dataclass
class Walk:
    """One run along a path.

    Parameters
    ----------
    path, args
        log q(theta, lam) and its further arguments.
    chart
        The transport so far, at nodes that span the interval.
    chains
        Where the chains stand: theta (C, dim) and lam (C,).
    ends
        Shares of the circle at either end of the interval, for exact draws there.
    target
        The marginal of lam that is aimed at.
    settings, seed
        How.
    deepest
        Nats below the top of log c at which it ends: of a density there is nothing to be had further down.
    """

    path: FunctionPath
    args: tuple[Array, ...]
    chart: Chart
    start: tuple[FloatArray, FloatArray]
    ends: tuple[float, float]
    target: TargetMarginal
    settings: Settings
    seed: int
    deepest: float = np.inf
    counts: Counts = field(default_factory=Counts)
    rounds: int = 0
    rejected: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"compile": 0.0, "adapt": 0.0, "sample": 0.0})

    def __post_init__(self) -> None:
        self.pool = Pool()
        self.log_z: FloatArray = np.zeros(CELLS + 1)
        self.log_c: FloatArray = np.zeros(CELLS + 1)
        self.log_step: FloatArray = np.full(STEPS, np.log(1.2 * self.dim**-0.25))
        self.parameters = self._parameters(pinned=False)
        theta, lam = self.start
        s = np.clip((lam - self.low) / (self.high - self.low), 1e-6, 1 - 1e-6)
        a = self.ends[0] + (1.0 - sum(self.ends)) * s
        log_q = self.log_densities(theta, self.low + (self.high - self.low) * s)
        self.chains = Walker(jnp.asarray(theta), jnp.asarray(a), jnp.asarray(log_q))
        self._shape = WalkShape(self.settings.iterations, leapfrogs(self.dim, self.settings), self.settings.orbit)
        seeds = (np.uint32(self.seed % 2**32), np.uint32(0))
        self._round, seconds = compiled_once(
            make_round, (self.path, self._shape), (*seeds, self.chains, self.parameters), donate=(2,)
        )
        self.seconds["compile"] += seconds

    @property
    def dim(self) -> int:
        """Dimension of theta."""
        return self.chart.location.shape[1]

    @property
    def low(self) -> float:
        """Lam at the start of the path."""
        return float(self.chart.lam[0])

    @property
    def high(self) -> float:
        """Lam at its end."""
        return float(self.chart.lam[-1])

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""
        return round_gradients(self.dim, self.settings)

    def round(self) -> WalkRecord:
        """Run one round on the current parameters."""
        number = np.uint32(self.rounds)
        self.chains, on_device = self._round(np.uint32(self.seed % 2**32), number, self.chains, self.parameters)
        record: WalkRecord = jax.device_get(on_device)
        self.rounds += 1
        self.rejected += int(record.rejected)
        chains, iterations = self.settings.chains, self.settings.iterations
        gradients = (int(record.leapfrogs.sum()) + iterations) * chains
        self.counts = self.counts + Counts(gradients, iterations * chains * self.settings.orbit)
        return record

    def log_densities(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Log q at theta (n, dim) and lam (n,)."""
        return np.asarray(jax.vmap(lambda x, l: self.path.log_density(x, l, self.args))(theta, lam))

    def inside(self, a: HostArray) -> BoolArray:
        """Whether a lies between the flat ends."""
        r = 1.0 - np.abs(1.0 - np.asarray(a))
        return np.asarray((r >= self.ends[0]) & (r <= 1.0 - self.ends[1]))

    def lam_of(self, a: HostArray) -> FloatArray:
        """Lam of a."""
        r = 1.0 - np.abs(1.0 - np.asarray(a))
        s = np.clip((r - self.ends[0]) / (1.0 - sum(self.ends)), 0.0, 1.0)
        return self.low + (self.high - self.low) * s

    def adapt(self, record: WalkRecord, *, interval: tuple[float, float] | None = None, pinned: bool = False) -> float:
        """Refit everything to the pooled draws, on a new ``interval`` where there is one.

        Returns the largest change of log c that the chains will meet.
        """
        width = self.high - self.low
        moved = np.asarray(record.acceptance).mean(axis=0) >= LEAST_ACCEPTANCE
        if not moved.any():
            moved[:] = True
        inside = self.inside(record.a) & moved
        s, u, plain = (np.asarray(x) for x in (record.s, record.u, record.plain))
        theta, gradient = (np.asarray(x)[:, moved] for x in (record.theta, record.gradient))
        self.pool.add(
            Slopes(self.low + width * s[inside], u[inside] / width, plain[inside] / width),
            self.lam_of(np.asarray(record.theta_a)[:, moved]).ravel(),
            theta.reshape(-1, self.dim),
            gradient.reshape(-1, self.dim),
        )
        gain = max(3.0 / np.sqrt(self.rounds), 0.5)
        self.log_step = self._adapted_step(record, gain)
        old_lam, old_c = np.linspace(self.low, self.high, CELLS + 1), self.log_c
        if interval is not None:
            self._move_to(interval)
        for _ in range(PASSES):
            self.chart = refine(self.chart, *self.pool.draws())
        lam = np.linspace(self.low, self.high, CELLS + 1)
        self.log_z, root, spread = self.pool.curve(lam)
        log_c = self.log_z - self.target.log_density(lam, root, spread)
        self.log_c = np.maximum(log_c, log_c.max() - self.deepest)
        self.parameters = self._parameters(pinned=pinned)
        shared = (old_lam >= self.low) & (old_lam <= self.high)
        change = (np.interp(old_lam, lam, self.log_c) - old_c)[shared]
        return float(np.ptp(change)) if change.size else float("inf")

    def _adapted_step(self, record: WalkRecord, gain: float) -> FloatArray:
        step = adapt_step(self.log_step, record.s, record.acceptance, target=self.settings.acceptance, gain=gain)
        mean, count = along_path(record.s, record.acceptance, STEPS)
        # Near one the acceptance says that a step is far too small, as a chain out of equilibrium may have left it, but
        # not by how much.
        return step + np.interp(np.arange(STEPS), np.flatnonzero(count > 0), mean[count > 0] > TINY_STEP)

    def _move_to(self, interval: tuple[float, float]) -> None:
        """Stretch the path over another interval; every chain keeps its lam as far as it is inside."""
        lam = self.lam_of(np.asarray(self.chains.a))
        positions = np.linspace(self.low, self.high, STEPS)
        old_step = self.log_step
        self.chart = self.chart.at(np.linspace(*interval, len(self.chart.lam)))
        self.log_step = np.interp(np.linspace(self.low, self.high, STEPS), positions, old_step)
        s = np.clip((lam - self.low) / (self.high - self.low), 1e-6, 1 - 1e-6)
        a = self.ends[0] + (1.0 - sum(self.ends)) * s
        self.chains = self.chains._replace(a=jnp.asarray(a))

    def _parameters(self, *, pinned: bool) -> WalkParameters:
        return WalkParameters(
            jnp.asarray([self.low, self.high]),
            jnp.asarray(self.ends, float),
            jnp.asarray(self.log_c),
            self.chart.transport(),
            jnp.asarray(self.log_step),
            jnp.asarray(pinned),
            self.args,
        )

    def renew(self, *, pinned: bool) -> None:
        """Hand what was learned to the kernel."""
        self.parameters = self._parameters(pinned=pinned)

    def pin(self, pinned: bool) -> None:
        """Hold every chain at its lam, or let go."""
        self.parameters = replace(self.parameters, pinned=jnp.asarray(pinned))


def leapfrogs(dim: int, settings: Settings) -> int:
    """Largest number of leapfrogs of one move."""
    return max(2, settings.leapfrogs_in(dim)) if settings.leapfrogs is None else settings.leapfrogs


def round_gradients(dim: int, settings: Settings) -> float:
    """Gradient evaluations that a round costs on average: those of HMC, and one for each gradient by lam.

    >>> round_gradients(9, Settings())
    5120.0
    """
    return settings.chains * settings.iterations * ((leapfrogs(dim, settings) + 1) / 2 + 1)


def check_budget(budget: float, dim: int, settings: Settings) -> None:
    """Raise where a budget does not suffice for the shortest search and eight rounds."""
    least = settings.chains * FEWEST_SEARCH + 8 * round_gradients(dim, settings)
    if not budget > 0:
        raise InputError(f"budget: it must be a positive number of gradient evaluations, and is {budget}")
    if budget < least:
        raise InputError(
            f"budget: {budget:.0f} gradient evaluations are too few for {settings.chains} chains; "
            f"give {least:.0f} at least, or fewer chains"
        )
