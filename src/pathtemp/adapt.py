"""The adaptive loop of section 2.1 with the default kernel: sample, estimate log z, set c <- z, diagnose, repeat.

After the annealing pass come adaptive rounds, in which link, pseudo-prior, transport and step sizes are refitted to
the pooled draws; then the kernel is frozen, and the estimates come from the frozen rounds, where tours are
independent and errors follow from them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import FloatArray
from pathtemp.anneal import Level, anneal, make_moves
from pathtemp.curve import LogZ
from pathtemp.kernels.rounds import Record, RoundShape, State, empty_sums, initial_state, make_round
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters
from pathtemp.learn import FULL_DIM
from pathtemp.learner import Pool, adapt_step, cells_for, fit_kernel, from_level, from_record, path_length
from pathtemp.links import A_MAX, A_MIN
from pathtemp.model import Model
from pathtemp.paths.geometric import GeometricPath
from pathtemp.run import Counts, RoundRecord
from pathtemp.settings import Settings
from pathtemp.tours import Masses, TripCounter, rao_blackwell

LONG_PATH = 20.0
"""Length from which chains are pinned, stratified over lam, before they move freely."""

FULL_BYTES = 2**28
"""Largest size of the triangular factors of all chains at once; above it, diagonal plus low rank."""


def compile_timed(function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> tuple[Any, float]:
    """Ahead-of-time compilation, so that no later call can compile again; returns it and its seconds."""
    start = time.perf_counter()
    compiled = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
    return compiled, time.perf_counter() - start


def masses_of(state: State, estimator: int) -> Masses:
    """Tour sums of one estimator (0 along the orbit, 1 given theta) on the host."""
    sums = state.sums
    return Masses(
        np.asarray(sums.total[:, estimator]),
        np.asarray(sums.square[estimator]),
        np.asarray(sums.cross[estimator]),
        np.asarray(sums.finished[estimator]),
        int(sums.tours),
    )


def use_full(dim: int, settings: Settings) -> bool:
    """Whether the transport has a full factor at each position."""
    at_once = settings.chains if settings.batch is None else min(settings.batch, settings.chains)
    return dim <= FULL_DIM and at_once * dim * dim * 8 <= FULL_BYTES


def start_chains(levels: list[Level], parameters: KernelParameters, chains: int, rng: np.random.Generator) -> ChainState:
    """Chains stratified over a, each at a particle of the nearest level."""
    folded = (np.arange(chains) + 0.5) / chains
    lam = np.asarray(parameters.link(jnp.asarray(folded)))
    level_a = np.asarray(parameters.link.inverse(jnp.asarray([level.lam for level in levels])))
    inner = np.clip(folded, A_MIN, A_MAX)
    nearest = [int(np.argmin(np.abs(level_a - x))) for x in inner]
    particle = [int(rng.integers(len(levels[i].theta))) for i in nearest]
    theta = np.stack([levels[i].theta[p] for i, p in zip(nearest, particle, strict=True)])
    energies = np.stack([levels[i].energies[p] for i, p in zip(nearest, particle, strict=True)])
    # A chain keeps its stratum of a only where its particle has density there.
    possible = (lam <= 0) | np.isfinite(energies[:, 1])
    a = np.where(possible, folded, 0.5 * A_MIN)
    return ChainState(jnp.asarray(theta), jnp.asarray(a), jnp.asarray(energies))


class Engine:
    """One run of the default engine; holds what passes from phase to phase."""

    def __init__(self, model: Model, *, seed: int, draws: int, settings: Settings, start: tuple[FloatArray, FloatArray]) -> None:
        self.model, self.seed, self.draws, self.settings = model, seed, draws, settings
        self.path = GeometricPath(model.log_base, model.log_target)
        self.full = use_full(model.dim, settings)
        self.counts = Counts()
        self.seconds = {"compile": 0.0, "anneal": 0.0, "adapt": 0.0, "sample": 0.0}
        self.pool = Pool()
        self.trips = TripCounter(settings.chains)
        self.rounds = 0
        self._start = start
        self._key = jax.random.key(seed)

    def anneal(self, most_gradients: float, on_level: Callable[[float, int], None]) -> float:
        """The annealing pass and the first fit of everything; returns the lam it reached."""
        settings, (theta, energies) = self.settings, self._start
        moves = make_moves(
            self.path,
            moves=settings.anneal_moves,
            leapfrogs=settings.leapfrogs,
            target=settings.acceptance,
            batch=settings.batch,
        )
        from pathtemp.anneal import chart_of

        arguments = (
            jax.random.key(0),
            jnp.asarray(theta),
            jnp.asarray(energies),
            jnp.zeros(()),
            chart_of(theta, full=self.full),
            jnp.zeros(()),
        )
        compiled, seconds = compile_timed(moves, *arguments)
        self.seconds["compile"] += seconds
        begin = time.perf_counter()
        levels, spent = anneal(
            compiled,
            theta,
            energies,
            full=self.full,
            ess=settings.anneal_ess,
            seed=self.seed,
            most_gradients=most_gradients,
            on_level=on_level,
            density_per_level=settings.anneal_moves,
        )
        self.counts = self.counts + spent
        for level in levels:
            self.pool.add(from_level(level))
        self.length = path_length(*self.pool.lam_delta())
        self.cells = cells_for(self.length)
        self.levels = levels
        self.parameters = fit_kernel(
            self.pool,
            cells=self.cells,
            full=self.full,
            log_step=np.array([level.log_step for level in levels]),
            step_lam=np.array([level.lam for level in levels]),
            frozen_lam=False,
            orbit=True,
        )
        self.parameters = replace(self.parameters, pinned=jnp.asarray(self.length > LONG_PATH))
        chains = start_chains(levels, self.parameters, settings.chains, np.random.default_rng(self.seed))
        self.state = initial_state(chains, self.draws, self.cells)
        self.seconds["anneal"] = time.perf_counter() - begin
        return levels[-1].lam

    def compile_round(self) -> None:
        """Compile the round for the shapes the annealing pass has fixed."""
        settings = self.settings
        shape = RoundShape(
            settings.iterations, settings.leapfrogs, settings.orbit, settings.batch, min(settings.chains, 2048)
        )
        function = make_round(self.path, self.model.sample_base, shape)
        self._round, seconds = compile_timed(function, self._key, self.state, self.parameters, donate=(1,))
        self.seconds["compile"] += seconds

    def round(self) -> Record:
        """Run one round on the current parameters and count it."""
        key = jax.random.fold_in(self._key, self.rounds)
        self.state, record = self._round(key, self.state, self.parameters)
        record = jax.device_get(record)
        self.rounds += 1
        chains, iterations = self.settings.chains, self.settings.iterations
        lattice = (self.settings.orbit - 1) * bool(self.parameters.orbit & ~self.parameters.pinned)
        self.counts = self.counts + Counts(int(record.leapfrogs.sum()) * chains, iterations * chains * (1 + lattice))
        return record

    def adapt(self, record: Record, *, refit: bool, gain: float) -> None:
        """Learn from one round: step sizes always, everything else when ``refit``."""
        log_step = adapt_step(
            np.asarray(self.parameters.log_step), record.position, record.acceptance, target=self.settings.acceptance, gain=gain
        )
        if not refit:
            self.parameters = replace(self.parameters, log_step=jnp.asarray(log_step))
            return
        positions = jnp.linspace(0.0, 1.0, len(log_step))
        self.pool.trim()
        self.parameters = fit_kernel(
            self.pool,
            cells=self.cells,
            full=self.full,
            log_step=log_step,
            step_lam=np.asarray(self.parameters.link.at(positions)),
            frozen_lam=False,
            orbit=True,
        )

    def reset_sums(self) -> None:
        """Start the estimates afresh, as when the kernel is frozen."""
        self.state = self.state._replace(sums=empty_sums(self.settings.chains, self.cells))

    def curves(self) -> dict[str, LogZ]:
        """Rao-Blackwell curves from the sums since the last reset, by estimator."""
        link, prior = self.parameters.link, self.parameters.prior
        arguments = (np.asarray(link.nodes), np.asarray(prior.log_c), float(prior.at_base))
        named = {"given theta": 1} | ({"along the orbit": 0} if bool(self.parameters.orbit) else {})
        return {name: rao_blackwell(masses_of(self.state, index), *arguments) for name, index in named.items()}
