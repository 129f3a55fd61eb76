"""The chains along any path: where they stand, the kernel that moves them, and what they learn."""

from __future__ import annotations

import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, HostArray
from pathtemp.engines.default.learner import adapt_step, along_path
from pathtemp.engines.met import Watch
from pathtemp.engines.path.pool import Pool, Slopes
from pathtemp.engines.path.search import FEWEST_DENSITIES, FEWEST_SEARCH
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.transport import NodalTransport, refine
from pathtemp.errors import InputError
from pathtemp.io.persistent import persistent
from pathtemp.kernels.compilation import compiled_once
from pathtemp.kernels.path_rounds import PathParameters, PathRecord, PathShape, PathState, make_round
from pathtemp.kernels.rejected import Rejected
from pathtemp.model.price import lowest_price
from pathtemp.paths.function import FunctionPath
from pathtemp.paths.geometric import as_energies
from pathtemp.result.run import Counts, Rejections
from pathtemp.settings import DEFAULT, Settings

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


@persistent(
    *("learned", "pool", "counts", "rounds", "rejected", "seconds", "log_z", "log_c", "log_step", "pinned"),
    device=("state",),
)
class PathChains:
    """Chains along one path.

    Parameters
    ----------
    path, args
        log q(theta, lam) and its further arguments.
    ends
        Shares of the circle at either end of the interval, for exact draws there.
    target
        The marginal of lam that is aimed at.
    settings, seed
        How.
    watch
        Counts what is no density; its points are theta and then lam.
    deepest
        Nats below the top of log c at which it ends: of a density there is nothing to be had further down.
    """

    def __init__(
        self,
        path: FunctionPath,
        args: tuple[Array, ...],
        *,
        ends: tuple[float, float],
        target: TargetMarginal,
        settings: Settings,
        seed: int,
        watch: Watch,
        deepest: float = np.inf,
    ) -> None:
        self.path, self.args, self.ends, self.target = path, args, ends, target
        self.settings, self.seed, self.watch, self.deepest = settings, seed, watch, deepest
        self.counts, self.rounds, self.rejected = Counts(), 0, Rejections()
        self.seconds = {"compile": 0.0, "adapt": 0.0, "sample": 0.0}
        self.pool = Pool()
        self.log_z: FloatArray = np.zeros(CELLS + 1)
        self.log_c: FloatArray = np.zeros(CELLS + 1)
        self.log_step: FloatArray = np.zeros(STEPS)
        self.pinned = False
        self.learned: NodalTransport
        self.state: PathState
        self.parameters: PathParameters

    def begin(self, learned: NodalTransport, theta: FloatArray, lam: FloatArray) -> None:
        """Put the chains at theta (C, dim) and lam (C,), on a transport whose nodes span the interval."""
        self.learned = learned
        self.log_step = np.full(STEPS, np.log(1.2 * self.dim**-0.25))
        s = np.clip((lam - self.low) / (self.high - self.low), 1e-6, 1 - 1e-6)
        a = self.ends[0] + (1.0 - sum(self.ends)) * s
        log_q = self.log_densities(theta, self.low + (self.high - self.low) * s)
        self.state = PathState(jnp.asarray(theta), jnp.asarray(a), jnp.asarray(log_q))
        self.renew()

    def compile(self) -> None:
        """Compile the round."""
        shape = PathShape(self.settings.iterations, leapfrogs(self.dim, self.settings), self.settings.orbit)
        arguments = (np.uint32(0), np.uint32(0), self.state, self.parameters)
        self._round, seconds = compiled_once(make_round, (self.path, shape), arguments, donate=(2,))
        self.seconds["compile"] += seconds

    def restored(self) -> None:
        """Hand what was learned to the kernel."""
        self.renew()

    @property
    def dim(self) -> int:
        """Dimension of theta."""
        return self.learned.location.shape[1]

    @property
    def low(self) -> float:
        """Lam at the start of the path."""
        return float(self.learned.lam[0])

    @property
    def high(self) -> float:
        """Lam at its end."""
        return float(self.learned.lam[-1])

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""
        return round_gradients(self.dim, self.settings)

    @property
    def round_densities(self) -> float:
        """Density evaluations that a round costs, those of the lattice."""
        return self.settings.round_densities

    def round(self) -> PathRecord:
        """Run one round on the current parameters."""
        number = np.uint32(self.rounds)
        self.state, on_device = self._round(np.uint32(self.seed % 2**32), number, self.state, self.parameters)
        record: PathRecord = jax.device_get(on_device)
        self.rounds += 1
        chains, iterations = self.settings.chains, self.settings.iterations
        self.met(record.rejected, self.lam_of(record.a), iterations * chains * self.settings.orbit)
        gradients = (int(record.leapfrogs.sum()) + iterations) * chains
        self.counts = self.counts + Counts(gradients, iterations * chains * self.settings.orbit)
        return record

    def met(self, rejected: Rejected, lam: FloatArray | None, evaluations: int) -> None:
        """Count the points without density among so many, of chains at ``lam`` (n, C); +inf is an error."""
        self.rejected = self.rejected + self.watch.met(rejected, lam, evaluations)

    def log_densities(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Log q at theta (n, dim) and lam (n,); NaN and +inf count as zero density."""
        return np.asarray(as_energies(self.values(theta, lam)))

    def values(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """The same as the function gives it."""
        return np.asarray(jax.vmap(lambda x, l: self.path.value(x, l, self.args))(theta, lam))

    def inside(self, a: HostArray) -> BoolArray:
        """Whether a lies between the flat ends."""
        r = 1.0 - np.abs(1.0 - np.asarray(a))
        return np.asarray((r >= self.ends[0]) & (r <= 1.0 - self.ends[1]))

    def lam_of(self, a: HostArray) -> FloatArray:
        """Lam of a."""
        r = 1.0 - np.abs(1.0 - np.asarray(a))
        s = np.clip((r - self.ends[0]) / (1.0 - sum(self.ends)), 0.0, 1.0)
        return self.low + (self.high - self.low) * s

    def adapt(self, record: PathRecord, *, interval: tuple[float, float] | None = None, pinned: bool = False) -> float:
        """Refit everything to the pooled draws, on a new ``interval`` where there is one; then pin the chains or not.

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
            self.learned = refine(self.learned, *self.pool.draws())
        lam = np.linspace(self.low, self.high, CELLS + 1)
        self.log_z, root, spread = self.pool.curve(lam)
        log_c = self.log_z - self.target.log_density(lam, root, spread)
        self.log_c = np.maximum(log_c, log_c.max() - self.deepest)
        self.pinned = pinned
        self.renew()
        shared = (old_lam >= self.low) & (old_lam <= self.high)
        change = (np.interp(old_lam, lam, self.log_c) - old_c)[shared]
        return float(np.ptp(change)) if change.size else float("inf")

    def _adapted_step(self, record: PathRecord, gain: float) -> FloatArray:
        step = adapt_step(self.log_step, record.s, record.acceptance, target=self.settings.acceptance, gain=gain)
        mean, count = along_path(record.s, record.acceptance, STEPS)
        # Near one the acceptance says that a step is far too small, as a chain out of equilibrium may have left it, but
        # not by how much.
        return step + np.interp(np.arange(STEPS), np.flatnonzero(count > 0), mean[count > 0] > TINY_STEP)

    def _move_to(self, interval: tuple[float, float]) -> None:
        """Stretch the path over another interval; every chain keeps its lam as far as it is inside."""
        lam = self.lam_of(np.asarray(self.state.a))
        positions = np.linspace(self.low, self.high, STEPS)
        old_step = self.log_step
        self.learned = self.learned.at(np.linspace(*interval, len(self.learned.lam)))
        self.log_step = np.interp(np.linspace(self.low, self.high, STEPS), positions, old_step)
        s = np.clip((lam - self.low) / (self.high - self.low), 1e-6, 1 - 1e-6)
        a = self.ends[0] + (1.0 - sum(self.ends)) * s
        self.state = self.state._replace(a=jnp.asarray(a))

    def renew(self) -> None:
        """Hand what was learned to the kernel."""
        self.parameters = PathParameters(
            jnp.asarray([self.low, self.high]),
            jnp.asarray(self.ends, float),
            jnp.asarray(self.log_c),
            self.learned.transport(),
            jnp.asarray(self.log_step),
            jnp.asarray(self.pinned),
            self.args,
        )

    def pin(self, pinned: bool) -> None:
        """Hold every chain at its lam, or let go."""
        self.pinned = pinned
        self.parameters = replace(self.parameters, pinned=jnp.asarray(pinned))

    def copy(self) -> PathChains:
        """The same chains on the same kernel, which may move without these."""
        other = copy.copy(self)
        # A round donates its chains.
        other.state = jax.tree.map(jnp.array, self.state)
        other.seconds = dict(self.seconds)
        return other


def leapfrogs(dim: int, settings: Settings) -> int:
    """Largest number of leapfrogs of one move."""
    return max(2, settings.leapfrogs_in(dim)) if settings.leapfrogs is None else settings.leapfrogs


def round_gradients(dim: int, settings: Settings) -> float:
    """Gradient evaluations that a round costs on average: those of HMC, and one for each gradient by lam.

    >>> round_gradients(9, Settings())
    5120.0
    """
    return settings.chains * settings.iterations * ((leapfrogs(dim, settings) + 1) / 2 + 1)


ONLY_TEMPERING = ("anneal_moves", "anneal_ess", "log_z_se", "marginal", "batch")
"""Settings that mean nothing along a path."""


def check_settings(settings: Settings) -> None:
    """Raise where a setting was changed that only ``pt.temper`` knows.

    >>> check_settings(Settings(chains=8))
    """
    changed = [name for name in ONLY_TEMPERING if getattr(settings, name) != getattr(DEFAULT, name)]
    if changed:
        raise InputError(f"settings: {changed[0]} is of pt.temper alone and would change nothing here; leave it out")


def check_budget(budget: float, dim: int, settings: Settings, *, settled: bool) -> None:
    """Raise where a budget does not suffice for the shortest search and eight rounds, or the settings do not fit.

    While the price of a density is not ``settled``, a budget is let through where it may be enough.
    """
    check_settings(settings)

    def least_at(price: float) -> float:
        search = settings.chains * (FEWEST_SEARCH + price * FEWEST_DENSITIES)
        return search + 8 * (round_gradients(dim, settings) + price * settings.round_densities)

    least = least_at(settings.price)
    if budget < (least if settled else least_at(lowest_price(settings))):
        raise InputError(
            f"budget: {budget:.0f} gradient equivalents are too few for {settings.chains} chains; "
            f"give {np.ceil(least):.0f} at least, or fewer chains"
        )
