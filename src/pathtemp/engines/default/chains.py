"""The chains of the default engine on one path: where they stand, the kernel that moves them, what they learn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from pathtemp._types import FloatArray, HostArray
from pathtemp.engines.default.anneal import Allowance, Level, MovesShape, anneal, chart_of, equilibrate, make_moves
from pathtemp.engines.default.effort import is_cheap
from pathtemp.engines.default.learner import (
    Pool,
    adapt_legs,
    adapt_step,
    cells_for,
    fit_kernel,
    from_level,
    mean_log_scale,
    path_length,
    with_leg_steps,
)
from pathtemp.engines.default.transport import FULL_DIM
from pathtemp.engines.met import watch_of
from pathtemp.estimators.tours import Estimates, Masses, against_whole_base, rao_blackwell
from pathtemp.io.persistent import persistent
from pathtemp.kernels.compilation import begin_compiling, compiled_once
from pathtemp.kernels.legs import Legs
from pathtemp.kernels.rejected import Rejected
from pathtemp.kernels.rounds import (
    Record,
    RoundShape,
    State,
    enlarge,
    initial_state,
    make_round,
    placed,
    restart,
)
from pathtemp.kernels.spread import copied, devices_for, on_device, spread
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters
from pathtemp.model.model import Model
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import BASE_END, TARGET_START, MetricLink, folded_at, host_unit
from pathtemp.result.curve import LogZ
from pathtemp.result.run import Counts, Rejections
from pathtemp.seeds import Stream, rng
from pathtemp.settings import Settings

LONG_PATH = 20.0
"""Length from which chains are pinned, stratified over lam, before they move freely."""

FULL_BYTES = 2**28
"""Largest size of the triangular factors of all chains at once; above it, diagonal plus low rank."""

ANNEALED_ROUNDS = 3
"""Rounds that replace the draws of the annealing pass on a path that is not long; on a long one, the first does."""

ORBIT_LEAST = 0.3
"""Jump along the orbit, relative to that of the draw given theta, below which the orbit is dropped."""

STUCK = 0.1
"""Mean acceptance in a round below which a pinned chain is stuck."""

LEARNERS = 2048
"""Chains whose theta is kept for learning the transport."""


def use_full(dim: int, settings: Settings) -> bool:
    """Whether the transport has a full factor at each position."""
    at_once = settings.chains if settings.batch is None else min(settings.batch, settings.chains)
    return dim <= FULL_DIM and at_once * dim * dim * 8 <= FULL_BYTES


def start_chains(
    levels: list[Level], parameters: KernelParameters, chains: int, rng: np.random.Generator
) -> ChainState:
    """Chains stratified over a, each at a particle of the nearest level."""
    folded = (np.arange(chains) + 0.5) / chains
    position = host_unit(folded)
    lam = parameters.link.host_at(position)
    level_position = parameters.link.host_position(np.array([level.lam for level in levels]))
    nearest = [int(np.argmin(np.abs(level_position - x))) for x in position]
    particle = [int(rng.integers(len(levels[i].theta))) for i in nearest]
    theta = np.stack([levels[i].theta[p] for i, p in zip(nearest, particle, strict=True)])
    energies = np.stack([levels[i].energies[p] for i, p in zip(nearest, particle, strict=True)])
    # A chain keeps its stratum only where its particle has density there.
    possible = (lam <= 0) | np.isfinite(energies[:, 1])
    a = np.where(possible, folded, 0.5 * BASE_END)
    return ChainState(on_device(theta), on_device(a), on_device(energies))


def same_lam(a: FloatArray, old: MetricLink, new: MetricLink) -> FloatArray:
    """The coordinates that have under the new link the lam that ``a`` had under the old: a refit moves no chain.

    >>> links = MetricLink(on_device([0.0, 0.5, 1.0])), MetricLink(on_device([0.0, 0.2, 1.0]))
    >>> same_lam(np.array([0.05, 0.275, 0.9, 1.725]), *links).round(4).tolist()
    [0.05, 0.4531, 0.9, 1.5469]
    """
    folded = 1.0 - np.abs(1.0 - a)
    lam = old.host_at(host_unit(folded))
    inside = (folded > BASE_END) & (folded < TARGET_START)
    moved = np.where(inside, folded_at(new.host_position(lam)), folded)
    return np.where(a > 1.0, 2.0 - moved, moved)


@persistent(
    *("draws", "counts", "seconds", "rounds", "rejected", "reached", "base_rhat"),
    *("pool", "last_level", "length", "cells"),
    device=("parameters", "state"),
)
class Chains:
    """Chains on the path from one base to the target.

    Parameters
    ----------
    model, seed, settings
        What is sampled, and how.
    draws, must_draw
        Target draws kept for each chain, and whether the user asked for that number.
    start
        Starts theta (chains, dim) and their energies (chains, 2).
    """

    def __init__(
        self,
        model: Model,
        *,
        seed: int,
        draws: int,
        must_draw: bool,
        settings: Settings,
        start: tuple[FloatArray, FloatArray],
    ) -> None:
        self.model, self.seed, self.draws, self.settings = model, seed, draws, settings
        self.must_draw = must_draw
        self.path = GeometricPath(model.log_base, model.log_target)
        self.full = use_full(model.dim, settings)
        self.leapfrogs = settings.leapfrogs_in(model.dim)
        self.devices = devices_for(settings.chains, batch=settings.batch)
        self.counts = Counts()
        self.seconds = {"compile": 0.0, "anneal": 0.0, "adapt": 0.0, "sample": 0.0}
        self.rounds = 0
        self.rejected = Rejections()
        self.reached = 0.0
        self.base_rhat = float("nan")
        self._start = start
        self.parameters: KernelParameters
        self.state: State
        self.pool = Pool()
        self.last_level: Level
        self.length, self.cells = np.inf, 0
        self._seed = np.uint32(seed)

    def anneal(
        self,
        most_gradients: float,
        on_level: Callable[[float, int], None],
        *,
        at_base: float = np.inf,
        room: float = np.inf,
        price: float = 0.0,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        """The annealing pass, until it is ``late`` at most, and the first fit of everything.

        ``at_base`` bounds coming to a base that is only a density, ``room`` both, in gradients; a density has a price.
        """
        settings, (theta, energies) = self.settings, self._start
        leapfrogs = max(4, self.leapfrogs)
        shape = MovesShape(settings.anneal_moves, leapfrogs, settings.acceptance, settings.batch, self.devices)
        moves = self._compiled_moves(shape)
        begin = time.perf_counter()
        how: dict[str, Any] = {"full": self.full, "seed": self.seed, "shape": shape}
        if self.model.sample_base is None:
            allowed = Allowance(min(at_base, room), price, late)
            theta, energies, self.base_rhat, spent = equilibrate(moves, theta, energies, allowed=allowed, **how)
            self.counts, room = self.counts + spent, room - spent.cost(price)
        how |= {"ess": settings.anneal_ess, "allowed": Allowance(min(most_gradients, room), price, late)}
        levels, spent = anneal(moves, (theta, energies), on_level=on_level, **how)
        self.counts = self.counts + spent
        self.start_from(levels)
        self.seconds["anneal"] += time.perf_counter() - begin

    def _compiled_moves(self, shape: MovesShape) -> Callable[..., Any]:
        """The moves of one level, with what they meet that is no density counted."""
        theta, energies = spread(tuple(on_device(x) for x in self._start), self.devices)
        others = copied((on_device(0.0), chart_of(self._start[0], full=self.full), on_device(0.0)), self.devices)
        arguments = (np.uint32(0), np.uint32(0), theta, energies, *others)
        compiled, seconds = compiled_once(make_moves, (self.path, shape), arguments, quick=is_cheap(self.settings))
        self.seconds["compile"] += seconds

        def moves(*given: Any) -> Any:
            where = spread(given[2:4], self.devices)
            *moved, rejected = compiled(*given[:2], *where, *copied(given[4:], self.devices))
            self._met(jax.device_get(rejected), np.asarray(given[4]), shape.moves * len(theta))
            return moved

        return moves

    def start_from(self, levels: list[Level]) -> None:
        """Fit the first kernel to the levels of the annealing pass, and let the chains start from them."""
        settings = self.settings
        self.last_level, self.reached = levels[-1], levels[-1].lam
        draws = [from_level(level) for level in levels]
        self.pool = Pool(draws)
        self.length = path_length(*self.pool.lam_delta())
        self.pool.replaced_by = 1 if self.length > LONG_PATH else ANNEALED_ROUNDS
        self.cells = cells_for(self.length)
        self._fit(np.array([level.log_step for level in levels]), np.array([level.lam for level in levels]))
        self.pin(self.length > LONG_PATH)
        chains = start_chains(levels, self.parameters, settings.chains, rng(Stream.FIRST_CHAINS, self.seed))
        exact = self.model.sample_base is not None
        self.state = initial_state(chains, self.draws, self.cells, iterations=settings.iterations, exact_base=exact)

    def begin_compiling(self) -> None:
        """Let the round be compiled in the background, for the shapes that the annealing pass has fixed."""
        begin = time.perf_counter()
        begin_compiling(*self._round_program(), donate=(2,), quick=is_cheap(self.settings))
        self.seconds["compile"] += time.perf_counter() - begin

    def compile(self) -> None:
        """Compile the round for the shapes that the annealing pass has fixed."""
        self._round, seconds = compiled_once(*self._round_program(), donate=(2,), quick=is_cheap(self.settings))
        self.seconds["compile"] += seconds

    def round_made_of(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The round, and what is fixed in it."""
        settings = self.settings
        shape = RoundShape(
            settings.iterations,
            self.leapfrogs,
            settings.orbit,
            settings.batch,
            min(settings.chains, LEARNERS),
            self.devices,
        )
        return make_round, (self.path, self.model.sample_base, shape)

    def _round_program(self) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
        """The same, and arguments of the shapes of the round."""
        self.state = placed(self.state, self.devices)
        return *self.round_made_of(), (self._seed, self._seed, self.state, copied(self.parameters, self.devices))

    def round(self) -> Record:
        """Run one round on the current parameters; the record comes back in one transfer."""
        number = np.uint32(self.rounds)
        # Between rounds the host puts new arrays in the place of some.
        self.state, self.parameters = placed(self.state, self.devices), copied(self.parameters, self.devices)
        self.state, on_device = self._round(self._seed, number, self.state, self.parameters)
        record: Record = jax.device_get(on_device)
        self.rounds += 1
        chains, iterations = self.settings.chains, self.settings.iterations
        lattice = (self.settings.orbit - 1) * (bool(self.parameters.orbit) and not self.parameters.pinned)
        evaluations = iterations * chains * (1 + lattice)
        self.counts = self.counts + Counts(int(record.leapfrogs.sum()) * chains, evaluations)
        if np.any(record.rejected.code):
            self._met(record.rejected, self.parameters.link.host_at(np.asarray(record.position)), evaluations)
        else:
            self.rejected = self.rejected + Rejections(evaluations=evaluations)
        return record

    def _met(self, rejected: Rejected, lam: FloatArray, evaluations: int) -> None:
        """Count the points without density among so many, of chains at ``lam`` (n, C); +inf is an error."""
        self.rejected = self.rejected + watch_of(self.model).met(rejected, lam, evaluations)

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""
        return self.settings.round_gradients_in(self.model.dim)

    @property
    def round_densities(self) -> float:
        """Density evaluations of a round, with the lattice."""
        return self.settings.round_densities

    def adapt_steps(self, record: Record) -> None:
        """Move the step sizes towards the target acceptance, those of all legs of a mixture alike."""
        old, gain = self.parameters, 1.5 / np.sqrt(self.rounds)
        log_step = adapt_step(
            np.asarray(old.log_step), record.position, record.acceptance, target=self.settings.acceptance, gain=gain
        )
        leg_step = old.leg_step
        if leg_step is not None:
            leg_step = on_device(adapt_legs(np.asarray(leg_step), record.leg, record.acceptance, gain=gain))
        self.parameters = replace(old, log_step=on_device(log_step), leg_step=leg_step)

    def refit(self) -> float:
        """Fit everything to the pooled draws; returns the largest change of log c along the path."""
        old = self.parameters
        positions = np.linspace(0.0, 1.0, len(old.log_step))
        along_orbit = self._orbit_curve()
        self.pool.trim(0.5 if bool(old.pinned) else 1 / 3)
        in_theta = 0.0 if old.leg_step is not None else mean_log_scale(old.transport)
        self._fit(np.asarray(old.log_step) + in_theta, old.link.host_at(positions), old)
        if along_orbit is not None:
            log_c = on_device(along_orbit(np.asarray(self.parameters.link.nodes)))
            self.parameters = replace(self.parameters, prior=replace(self.parameters.prior, log_c=log_c))
        new = self.parameters
        self.reset()
        a = same_lam(np.asarray(self.state.chains.a), old.link, new.link)
        self.state = self.state._replace(chains=self.state.chains._replace(a=on_device(a)))
        before = np.interp(new.link.nodes, old.link.nodes, old.prior.log_c)
        return float(np.max(np.abs(np.asarray(new.prior.log_c) - before)))

    def _orbit_curve(self) -> LogZ | None:
        """The Rao-Blackwell curve along the orbit, on a long path, where it reaches from end to end.

        MBAR integrates delta, and its error grows with the length of the path; each lattice sees all of the path, so
        its error does not, however far off the pseudo-prior is.
        """
        if self.length <= LONG_PATH or bool(self.parameters.pinned):
            return None
        link, prior, total = self.parameters.link, self.parameters.prior, np.asarray(self.state.sums.total)[:, 0]
        return against_whole_base(total, np.asarray(link.nodes), np.asarray(prior.log_c), float(prior.at_base))

    def _fit(self, log_step: FloatArray, step_lam: FloatArray, old: KernelParameters | None = None) -> None:
        legs = self.path.log_base
        new = fit_kernel(
            self.pool,
            cells=self.cells,
            full=self.full and not isinstance(legs, Legs),
            log_step=log_step,
            step_lam=step_lam,
            marginal=self.settings.marginal,
        )
        if isinstance(legs, Legs):
            new = with_leg_steps(new, legs.count, old)
        self.parameters = new

    def unstick(self, record: Record) -> HostArray:
        """Put pinned chains whose moves were all but refused where the nearest chain that moves is; mask of the others.

        A chain alone at its lam that does not move would teach the transport its own place, and stay there for good.
        """
        state = self.state.chains
        a, energies = np.asarray(state.a), np.asarray(state.energies)
        moving = np.asarray(record.acceptance).mean(axis=0) >= STUCK
        healthy = np.flatnonzero(moving & np.isfinite(energies[:, 1]))
        if moving.all() or len(healthy) < len(a) / 2:
            return np.ones(len(a), bool)
        folded = 1.0 - np.abs(1.0 - a)
        nearest = healthy[np.argmin(np.abs(folded[:, None] - folded[healthy]), axis=1)]
        source = np.where(moving, np.arange(len(a)), nearest)
        self.state = self.state._replace(
            chains=state._replace(
                theta=on_device(np.asarray(state.theta)[source]), energies=on_device(energies[source])
            )
        )
        return moving

    def pin(self, pinned: bool) -> None:
        """Hold every chain at its lam, or let go."""
        self.parameters = replace(self.parameters, pinned=on_device(pinned))

    def freeze(self, orbit_pays: bool) -> None:
        """End adaptation: keep the orbit or drop it, and start the estimates afresh."""
        self.parameters = replace(self.parameters, orbit=on_device(orbit_pays), frozen=on_device(True))
        self.reset()

    def reset(self) -> None:
        """Start estimates and draws afresh."""
        self.state = restart(self.state, self.cells, iterations=self.settings.iterations)

    def enlarge(self, draws: int) -> None:
        """Make room for more target draws of each chain; the round is compiled once more, for the larger buffers."""
        self.draws += draws
        self.state = enlarge(self.state, self.draws)
        self.compile()

    def orbit_pays(self, record: Record) -> bool:
        """Whether the lattice moves a far enough for its cost.

        Beside the distance it covers, it breaks the dependence of a on theta: on the Cauchy pair it moves a less than
        the draw given theta does, and yet divides the variance of log z by three. So it is dropped only where it
        hardly moves, as between heavy tails.
        """
        return bool(record.orbit_jump > ORBIT_LEAST * record.plain_jump)

    def estimates(self) -> Estimates:
        """Rao-Blackwell estimates of the frozen rounds."""
        link, prior, sums = self.parameters.link, self.parameters.prior, self.state.sums
        total, finished, second = (np.asarray(x) for x in (sums.total, sums.finished, sums.second))
        finished, second = finished.sum(axis=0), second.sum(axis=0)
        masses = Masses(total, finished, second, int(sums.tours))
        return rao_blackwell(masses, np.asarray(link.nodes), np.asarray(prior.log_c), float(prior.at_base))

    def curves(self) -> dict[str, LogZ]:
        """Rao-Blackwell curves of the frozen rounds, by estimator."""
        estimates = self.estimates()
        along_orbit = {"along the orbit": estimates.curve(0)} if bool(self.parameters.orbit) else {}
        return {"given theta": estimates.curve(1)} | along_orbit
