"""Exact draws of the prior of a probabilistic program, whatever its language, and the mass of its density."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.seeds import probe_key

if TYPE_CHECKING:
    from pathtemp.frontends.program import Program

PROBES = 4096
"""Prior draws made once to see whether the forward draws and the prior density belong together."""

FEW_PROBES = 256
"""The same above a hundred parameters, where one draw may be a large matrix."""

MOVES = 48
"""Metropolis moves that each of them makes."""

MOST_SCORE = 5.0
"""Standard errors by which those may shift a mean that they should leave as it is."""

BATCH = 16384
"""Draws that are added at a time to know the mass of a restricted prior."""

MOST_DRAWS = 400_000
"""Draws after which its mass is taken as it is known by then."""

PRECISE = 0.004
"""Relative error of that mass which is small beside that of log z."""

LEAST_ACCEPTED = 0.1
"""Forward draws outside the support of a transform are drawn again; rarer acceptance than this costs too much."""


@dataclass(frozen=True)
class Prior:
    """Draws of a prior, and what its density integrates to.

    Parameters
    ----------
    sample
        One exact draw, given the restrictions of the transforms; None where there is none.
    log_mass
        Log of the integral of the density: below 0 where a transform restricts the prior, as an order does; infinite
        where it is not known.
    """

    sample: Sampler | None = None
    log_mass: float = np.inf


def exact_draws(program: Program) -> Prior:
    """Forward draws given that they lie in the support of every transform, by drawing again.

    A transform may restrict a prior, as an order does: the density is then that of the prior given the restriction,
    times the share of the prior that meets it. No draws where that would reject nearly every one. Of a prior that is
    proper in part they are of that part.
    """
    if program.forward is None:
        return Prior()
    forward = program.forward
    probes = _probes(program)
    overflow = first_flagged(program.layout, np.isinf(probes).mean(axis=0) > 0.01)
    if overflow:
        raise InputError(
            f"{program.name}: prior draws of {overflow!r} overflow on the unconstrained scale, so its prior is too "
            "vague to start from; give it a tighter prior, or a base="
        )
    inside = np.asarray(np.isfinite(probes).all(axis=1))
    if inside.mean() < LEAST_ACCEPTED:
        return Prior()
    probes = probes[inside]
    density, score = _invariance(program.log_prior, probes)
    if not np.isfinite(density).all():
        raise InputError(
            f"{program.name}: the prior density is not finite at {np.mean(~np.isfinite(density)):.0%} of the prior's "
            "own draws, so the two do not belong together; check its distributions and transforms, or give a base="
        )
    score[:, program.columns(program.rest)] = 0.0
    wrong = first_flagged(program.layout, np.abs(score).max(axis=0) > MOST_SCORE)
    if wrong:
        warnings.warn(
            f"{program.name}: random draws of {wrong!r} do not have the density of its prior, so the base is sampled "
            "by HMC from the density; check its random and logp",
            stacklevel=4,
        )
        return Prior()

    def sample(key: Key) -> Array:
        def next_draw(state: tuple[Key, Array]) -> tuple[Key, Array]:
            key, own = jax.random.split(state[0])
            return key, forward(own)

        return jax.lax.while_loop(lambda s: ~jnp.all(jnp.isfinite(s[1])), next_draw, next_draw((key, jnp.zeros(0))))[1]

    return Prior(sample, program.log_mass + _log_mass(forward, inside))


def mass_of_prior(program: Program) -> float:
    """Log of what the density of the prior integrates to; infinite where it is not known."""
    if program.forward is None or program.improper:
        return np.inf
    inside = np.asarray(np.isfinite(_probes(program)).all(axis=1))
    if inside.mean() < LEAST_ACCEPTED:
        return np.inf
    return program.log_mass + _log_mass(program.forward, inside)


def _probes(program: Program) -> FloatArray:
    """Forward draws of the prior, NaN outside the support of a transform."""
    assert program.forward is not None
    count = PROBES if program.layout.dim <= 100 else FEW_PROBES
    return np.asarray(_many(program.forward)(jax.random.split(probe_key(), count)))


def _many(forward: Sampler) -> Callable[[Key], Array]:
    return jax.jit(lambda keys: jax.lax.map(forward, keys, batch_size=64))


def _log_mass(forward: Sampler, inside: np.ndarray[Any, Any]) -> float:
    """Log of the share of forward draws inside every support: what the restricted density integrates to.

    Draws are added until the relative error of that share p, which of n draws is sqrt((1 - p) / (n p)), is small.
    """
    made, accepted = len(inside), int(inside.sum())
    if accepted == made:
        return 0.0
    many = jax.jit(lambda keys: jnp.isfinite(jax.lax.map(forward, keys, batch_size=64)).all(axis=1).sum())
    while made < MOST_DRAWS and made - accepted > PRECISE**2 * accepted * made:
        accepted += int(many(jax.random.split(probe_key(made), BATCH)))
        made += BATCH
    return float(np.log(accepted / made))


def _invariance(log_prob: LogDensity, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log density of draws (n, dim), and z-scores (2, dim) of how far Metropolis moves shift their distribution.

    Moves that leave a density invariant shift no expectation over draws that have it; the two functions are bounded,
    so the scores are sound whatever the tails, and wherever the density ends abruptly.
    """
    low, middle, high = np.quantile(draws, [0.25, 0.5, 0.75], axis=0)
    scale = jnp.asarray((high - low) / 1.35 + 1e-12)

    def features(x: Array) -> Array:
        y = (x - middle) / scale
        return jnp.stack([jnp.tanh(y), 1 / jnp.cosh(y)])

    def one(start: tuple[Key, Array]) -> tuple[Array, Array]:
        key, x = start

        def move(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            x, density = state
            own = jax.random.split(jax.random.fold_in(key, step), 3)
            width = jnp.exp(jax.random.uniform(own[0], minval=-3.0, maxval=1.0)) / np.sqrt(draws.shape[1])
            candidate = x + width * scale * jax.random.normal(own[1], x.shape)
            proposed = log_prob(candidate)
            accept = jnp.log(jax.random.uniform(own[2])) < proposed - density
            return jnp.where(accept, candidate, x), jnp.where(accept, proposed, density)

        density = log_prob(x)
        moved, _ = jax.lax.fori_loop(0, MOVES, move, (x, density))
        return density, features(moved) - features(x)

    starts = (jax.random.split(probe_key(1), len(draws)), jnp.asarray(draws))
    density, shift = map(np.asarray, jax.jit(lambda s: jax.lax.map(one, s, batch_size=64))(starts))
    return density, shift.mean(axis=0) / (shift.std(axis=0) / np.sqrt(len(draws)) + 1e-12)


def first_flagged(layout: Layout, flags: np.ndarray[Any, Any]) -> str:
    """Name of the first variable with a flag set, or nothing."""
    named = layout.unravel(jnp.asarray(flags))
    return next((name for name, x in named.items() if bool(jnp.any(x))), "")
