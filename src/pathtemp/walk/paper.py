"""The paper's own divide and conquer: Algorithm 2 with joint NUTS, path sampling by the trapezoid, and kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathtemp import diagnostics as gates
from pathtemp._types import Array, FloatArray
from pathtemp.compilation import compiled_once
from pathtemp.curve import LogZ
from pathtemp.draws import draws_dataset
from pathtemp.errors import InputError
from pathtemp.estimators.path_sampling import path_sampling
from pathtemp.fit import LogEvidence, library_versions
from pathtemp.margin_fit import MarginFit
from pathtemp.marginal import Marginal
from pathtemp.model import Model
from pathtemp.paths.margin import MarginLogQ, MarginPath
from pathtemp.pseudoprior import Kernels, PiecewiseLinear
from pathtemp.run import Check, Counts, Diagnostics, RoundRecord
from pathtemp.settings import PaperSettings
from pathtemp.walk.estimates import Curves
from pathtemp.walk.margins import join_flat
from pathtemp.walk.targets import TargetMarginal
from pathtemp.walk.weights import thinned

WINDOWS = 20
"""Windows of the margin in which the root of E U^2 is averaged (end of section 2.3)."""

FEWEST_KEPT = 20
"""Kept draws of a chain below which neither the warm-up nor standard errors make sense."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bias:
    """The bias log p_targ(lam) - log p(lam), over t in [0, 1] between ``low`` and ``high``; constant beyond.

    Parameters
    ----------
    low, high
        Ends of the visited part of the margin.
    log_p
        The marginal, smoothed by kernels (eq. kernel).
    log_target
        The marginal that is aimed at.
    """

    low: Array
    high: Array
    log_p: Kernels
    log_target: PiecewiseLinear

    def __call__(self, lam: Array) -> Array:
        """The bias at lam."""
        t = jnp.clip((lam - self.low) / (self.high - self.low), 0.0, 1.0)
        return self.log_target(t) - self.log_p(t)


class ChainDraws(NamedTuple):
    """Kept draws of a chain: theta (n, dim - 1), lam, U = dlog q/dlam and acceptance (n,); and gradients spent."""

    theta: Array
    lam: Array
    u: Array
    acceptance: Array
    gradients: Array


@dataclass(frozen=True)
class PaperMargin:
    """What is to be done along one margin by the paper's engine; see :class:`pathtemp.walk.margins.MarginTask`."""

    model: Model
    path: MarginPath
    target: TargetMarginal
    interval: tuple[float, float] | None
    seed: int
    settings: PaperSettings

    @property
    def kept(self) -> int:
        """Draws that a chain keeps of an adaptation; InputError where they are too few."""
        settings = self.settings
        kept = settings.draws // settings.chains // 2
        if kept < FEWEST_KEPT or settings.adaptations < 1:
            raise InputError(
                f"settings: draws={settings.draws} over chains={settings.chains} leaves a chain {kept} draws after "
                f"warm-up; give at least {2 * FEWEST_KEPT} draws for each of at least one chain, and one adaptation"
            )
        return kept

    def compiled(self, starts: FloatArray) -> tuple[Callable[[int, Bias], ChainDraws], float]:
        """One adaptation as a function of its number and the bias, from ``starts`` (n, dim), and seconds it took."""
        first = starts[np.arange(self.settings.chains) % len(starts)]
        static = (self.path.log_q, self.interval, self.kept, self.settings.max_depth)
        arguments = (np.uint32(0), np.uint32(0), first, self.flat_bias())
        program, seconds = compiled_once(_adaptation, static, arguments)
        word = np.uint32(self.seed % 2**32)
        return lambda number, bias: jax.device_get(program(word, np.uint32(number), first, bias)), seconds

    def flat_bias(self) -> Bias:
        """No bias yet."""
        flat = np.zeros(self.settings.grid + 1)
        return self._bias(*(self.interval or (-1.0, 1.0)), flat, flat)

    def bias_after(self, rounds: list[ChainDraws]) -> Bias:
        """The bias for the adaptation that comes after ``rounds``."""
        if not rounds:
            return self.flat_bias()
        grid, log_p = self.smoothed(rounds)
        return self._bias(grid[0], grid[-1], log_p, self._log_target(rounds, grid))

    def posterior(self, rounds: list[ChainDraws]) -> FloatArray:
        """Flat draws of the posterior, shape (chain, draw, dim), thinned from those of the last adaptation."""
        return thinned(*self._along(rounds), seed=self.seed)

    def _along(self, rounds: list[ChainDraws]) -> tuple[FloatArray, FloatArray]:
        """Flat draws of the last adaptation (iterations, chains, dim), and their log weights to the target."""
        theta, lam = (np.swapaxes(np.asarray(x), 0, 1) for x in (rounds[-1].theta, rounds[-1].lam))
        flat = join_flat(self.path, theta.reshape(-1, theta.shape[-1]), lam.ravel()).reshape(*lam.shape, -1)
        bias = self.bias_after(rounds[:-1])
        return flat, -np.asarray(jax.vmap(bias)(jnp.asarray(lam.ravel()))).reshape(lam.shape)

    def _bias(self, low: float, high: float, log_p: FloatArray, log_target: FloatArray) -> Bias:
        t = np.linspace(0.0, 1.0, self.settings.grid + 1)
        kernels = Kernels.fit(t, log_p - log_p[0], kernels=self.settings.kernels)
        target = PiecewiseLinear.fit(t, log_target - log_target[0])
        return Bias(jnp.asarray(low, float), jnp.asarray(high, float), kernels, target)

    def smoothed(self, rounds: list[ChainDraws]) -> tuple[FloatArray, FloatArray]:
        """Path sampling from the draws of all adaptations (eq. path1) on a grid over what they have seen."""
        lam, u = (
            np.concatenate([np.ravel(x) for x in part]) for part in zip(*((r.lam, r.u) for r in rounds), strict=True)
        )
        low, high = self.interval or (float(lam.min()), float(lam.max()))
        grid = np.linspace(low, high, self.settings.grid + 1)
        return grid, path_sampling(*_tied(lam, u, grid), grid).mean

    def _log_target(self, rounds: list[ChainDraws], grid: FloatArray) -> FloatArray:
        """The target marginal; the efficient one is the root of E U^2, averaged in windows."""
        lam, u = (
            np.concatenate([np.ravel(x) for x in part]) for part in zip(*((r.lam, r.u) for r in rounds), strict=True)
        )
        window = np.clip(((lam - grid[0]) / (grid[-1] - grid[0]) * WINDOWS).astype(int), 0, WINDOWS - 1)
        count = np.bincount(window, minlength=WINDOWS)
        seen = np.flatnonzero(count > 0)
        root = np.sqrt(np.bincount(window, u**2, WINDOWS)[seen] / count[seen])
        cells = np.interp((np.arange(self.settings.grid) + 0.5) / self.settings.grid * WINDOWS, seen + 0.5, root)
        return self.target.log_density(grid, cells, cells)

    def fit(
        self,
        rounds: list[ChainDraws],
        history: tuple[RoundRecord, ...],
        counts: Counts,
        seconds: dict[str, float],
    ) -> MarginFit:
        """What the adaptations give."""
        tail = history[-1].khat
        model, last = self.model, rounds[-1]
        grid, _ = self.smoothed(rounds)
        curves = _curves(rounds, grid)
        flat, log_weight = self._along(rounds)
        posterior = thinned(flat, log_weight, seed=self.seed)
        rhat, bulk, ess_tail = gates.rhat_ess(np.asarray(last.lam)[..., None])
        passed = bool(tail < self.settings.khat)
        message = (
            f"k-hat of the ratio of successive marginals is {tail:.2f}, not below {self.settings.khat}; {gates.MORE}."
        )
        covered = covered_share(rounds, grid)
        unseen = f"Only {100 * covered:.0f}% of the margin was visited; {gates.MORE}."
        checks = (
            Check("coverage", covered, 1.0, covered == 1.0, "" if covered == 1.0 else unseen),
            Check("k-hat", tail, self.settings.khat, passed, "" if passed else message),
            gates.check_rhat(rhat, highest=1.05),
            gates.check_ess(bulk),
        )
        weight = np.exp(curves.mean - curves.mean.max())
        band = curves.se(lambda log_p: log_p - np.average(log_p, weights=weight))
        edges = np.linspace(grid[0], grid[-1], 21)
        visits = np.histogram(np.asarray(last.lam), edges)[0].astype(float)
        unknown = np.full(20, np.nan)
        diagnostics = Diagnostics(
            checks=checks,
            khat=tail,
            rhat=rhat,
            ess_bulk=bulk,
            ess_tail=ess_tail,
            tours=0,
            length=float("nan"),
            lam=0.5 * (edges[1:] + edges[:-1]),
            local_length=unknown,
            acceptance=unknown,
            visits=visits,
            log_z_by_estimator={},
            rejections=0,
        )
        along = np.swapaxes(flat, 0, 1)
        chains = {"chain": np.arange(len(last.lam)), "iteration": np.arange(np.shape(last.lam)[1])}
        return MarginFit(
            posterior=draws_dataset(model, posterior),
            base=draws_dataset(model, posterior[:, :0]),
            path=xr.Dataset(
                {"lam": (("chain", "iteration"), last.lam), "delta": (("chain", "iteration"), last.u)}, chains
            ),
            log_z=LogZ(grid, curves.mean - curves.mean.max(), band),
            diagnostics=diagnostics,
            history=history,
            counts=counts,
            seconds=seconds,
            settings=self.settings,
            seed=self.seed,
            name=model.name,
            exact_base=False,
            versions=library_versions(),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            model=model,
            marginal=Marginal.of(
                self.path.name,
                grid,
                curves.mean,
                curves.without,
                self.path.values,
                restricted=self.interval is not None,
            ),
            draws=draws_dataset(model, along).assign(log_weight=(("chain", "draw"), log_weight.T)),
            evidence=LogEvidence(float("nan"), float("nan")),
        )


def covered_share(rounds: list[ChainDraws], grid: FloatArray) -> float:
    """Share of the windows of the margin that any draw has come to."""
    lam = np.concatenate([np.ravel(r.lam) for r in rounds])
    return float(np.mean(np.histogram(lam, WINDOWS, (grid[0], grid[-1]))[0] > 0))


def _tied(lam: FloatArray, u: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean lam and gradient in each cell of the grid: draws in a cell count as tied (eq. U_gradient)."""
    cells = len(grid) - 1
    cell = np.clip(((lam - grid[0]) / (grid[-1] - grid[0]) * cells).astype(int), 0, cells - 1)
    count = np.bincount(cell, minlength=cells)
    seen = count > 0
    return np.bincount(cell, lam, cells)[seen] / count[seen], np.bincount(cell, u, cells)[seen] / count[seen]


def _curves(rounds: list[ChainDraws], grid: FloatArray) -> Curves:
    """The curve from all draws, and without each half of a chain."""
    lam = np.concatenate([np.asarray(r.lam) for r in rounds], axis=1)
    u = np.concatenate([np.asarray(r.u) for r in rounds], axis=1)
    chains, count = lam.shape
    group = 2 * np.arange(chains)[:, None] + (np.arange(count) >= count // 2)

    def curve(keep: np.ndarray) -> FloatArray:
        return path_sampling(*_tied(lam[keep], u[keep], grid), grid).mean

    without = np.array([curve(group != g) for g in range(2 * chains)])
    return Curves(grid, curve(group >= 0), without)


def _adaptation(
    log_q: MarginLogQ, bounds: tuple[float, float] | None, kept: int, max_depth: int
) -> Callable[[Array, Array, Array, Bias], ChainDraws]:
    """NUTS on the flat vector with the bias, for all chains: ``(seed, adaptation, starts (chains, dim), bias)``."""

    def lam_of(b: Array) -> tuple[Array, Array]:
        """The margin of the sampled coordinate b, and the log Jacobian."""
        if bounds is None:
            return b, jnp.zeros(())
        low, high = bounds
        jacobian = jnp.log(high - low) + jax.nn.log_sigmoid(b) + jax.nn.log_sigmoid(-b)
        return low + (high - low) * jax.nn.sigmoid(b), jacobian

    def chain(key: Array, start: Array, bias: Bias) -> ChainDraws:
        def joint(position: Array) -> Array:
            lam, jacobian = lam_of(position[-1])
            value = log_q(position[:-1], lam) + bias(lam) + jacobian
            return jnp.where(jnp.isnan(value), -jnp.inf, value)

        theta, lam = log_q.coordinates.split(start)
        if bounds is not None:
            share = jnp.clip((lam - bounds[0]) / (bounds[1] - bounds[0]), 0.01, 0.99)
            lam = jnp.log(share) - jnp.log1p(-share)
        warm_key, sample_key = jax.random.split(key)
        warm_up = blackjax.window_adaptation(
            blackjax.nuts,
            joint,
            adaptation_info_fn=lambda _state, info, _adaptation: info.num_integration_steps,
            max_num_doublings=max_depth,
        )
        (state, tuned), warm_spent = warm_up.run(warm_key, jnp.append(theta, lam), kept)
        kernel = blackjax.nuts.build_kernel()

        def keep(state: Any, key: Array) -> tuple[Any, Any]:
            state, info = kernel(key, state, joint, tuned["step_size"], tuned["inverse_mass_matrix"], max_depth)
            return state, (state.position, info.acceptance_rate, info.num_integration_steps)

        _, (position, acceptance, spent) = jax.lax.scan(keep, state, jax.random.split(sample_key, kept))
        at = jax.vmap(lambda b: lam_of(b)[0])(position[:, -1])
        u = jax.vmap(jax.grad(log_q, argnums=1))(position[:, :-1], at)
        return ChainDraws(position[:, :-1], at, u, acceptance, 1 + kept + warm_spent.sum() + spent.sum())

    def whole(seed: Array, number: Array, starts: Array, bias: Bias) -> ChainDraws:
        key = jax.random.fold_in(jax.random.key(seed), number)
        return jax.vmap(chain, (0, 0, None))(jax.random.split(key, starts.shape[0]), starts, bias)

    return whole
