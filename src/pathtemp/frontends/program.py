"""What a probabilistic program gives, whatever its language, and how it becomes a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler, Variables
from pathtemp.errors import InputError
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.bases import Automatic, Base, as_base, is_automatic
from pathtemp.model.layout import Layout
from pathtemp.model.model import AboutBase, Model, Pointwise

PROBES = 4096
"""Prior draws made once to see whether the forward draws and the prior density belong together."""

FEW_PROBES = 256
"""The same above a hundred parameters, where one draw may be a large matrix."""

MOVES = 48
"""Metropolis moves that each of them makes."""

MOST_SCORE = 5.0
"""Standard errors by which those may shift a mean that they should leave as it is."""

LEAST_ACCEPTED = 0.1
"""Forward draws outside the support of a transform are drawn again; rarer acceptance than this costs too much."""


@dataclass(frozen=True)
class Program:
    """A probabilistic program as functions of its flat unconstrained vector.

    Parameters
    ----------
    name
        What summaries call it.
    layout
        Names, unconstrained shapes, dims and coords.
    log_prior, log_joint
        Log densities, Jacobians included. The joint has the likelihood and the potentials too.
    constrain
        Free variables by name, on the constrained scale.
    unconstrain
        Its inverse.
    log_jacobian
        Log absolute Jacobian determinant of ``constrain``.
    constrain_draws
        Host function for output: free variables and deterministics of many draws.
    forward
        One forward draw on the unconstrained scale; None where it cannot be sampled.
    improper
        Why the prior cannot be a base; empty where it can.
    is_prior
        The program has neither data nor potentials.
    pointwise
        Log likelihood of each observation; None where there is none.
    """

    name: str
    layout: Layout
    log_prior: LogDensity
    log_joint: LogDensity
    constrain: Callable[[Array], dict[str, Array]]
    unconstrain: Callable[[Variables], Array]
    log_jacobian: LogDensity
    constrain_draws: Callable[[FloatArray], dict[str, FloatArray]]
    forward: Sampler | None
    improper: str
    is_prior: bool
    pointwise: Pointwise | None


def to_model(program: Program, base: Program | object | None) -> Model:
    """The program tempered from its prior, or from another base.

    A base that is a program gives its joint density, and exact draws where it has neither data nor potentials; the
    log z difference is then a log Bayes factor. A distribution over one flat vector is on the unconstrained scale; a
    dict of distributions by name is on the constrained scale. "auto" leaves it to ``pt.temper`` to find one.
    """
    use_compilation_cache()
    if base is not None and program.improper:
        warnings.warn(
            f"{program.name}: {program.improper}; draws are those of the posterior, but log z is no evidence, as it "
            "holds the arbitrary constant of that prior",
            stacklevel=3,
        )
    if base is None:
        if program.improper:
            raise InputError(f"{program.name}: {program.improper}; give it a proper prior, or a base= to start from")
        psi = Base(program.log_prior, program.layout, exact_draws(program))
    elif isinstance(base, Program):
        psi = _program_base(program, base)
    elif is_automatic(base):
        psi = Base(Automatic(), program.layout)
    else:
        psi = _distribution_base(program, as_base(base))
    return Model(
        psi.log_prob,
        program.log_joint,
        program.layout,
        psi.sample,
        program.constrain_draws,
        program.name,
        program.pointwise,
        about=_about(program, base, psi),
    )


def _about(program: Program, base: object | None, psi: Base) -> AboutBase | None:
    """What there is to say of a base that is the prior, or of a prior that is improper."""
    if base is None:
        drawn = "drawn exactly" if psi.sample is not None else "a density without exact draws"
        return AboutBase(f"the prior of {program.name}, {drawn}", evidence=True)
    if program.improper:
        return AboutBase(f"one that was given, since {program.improper}", evidence=False)
    return None


def exact_draws(program: Program) -> Sampler | None:
    """Forward draws given that they lie in the support of every transform, by drawing again.

    A transform may restrict a prior, as an order does: the density is then that of the prior given the restriction, up
    to a constant that cancels in log z(1) - log z(0). None where that would reject nearly every draw.
    """
    if program.forward is None:
        return None
    forward = program.forward
    keys = jax.random.split(jax.random.key(0), PROBES if program.layout.dim <= 100 else FEW_PROBES)
    probes = np.asarray(jax.jit(lambda k: jax.lax.map(forward, k, batch_size=64))(keys))
    overflow = _first(program.layout, np.isinf(probes).mean(axis=0) > 0.01)
    if overflow:
        raise InputError(
            f"{program.name}: prior draws of {overflow!r} overflow on the unconstrained scale, so its prior is too "
            "vague to start from; give it a tighter prior, or a base="
        )
    probes = probes[np.isfinite(probes).all(axis=1)]
    if len(probes) < LEAST_ACCEPTED * len(keys):
        return None
    density, score = _invariance(program.log_prior, probes)
    if not np.isfinite(density).all():
        raise InputError(
            f"{program.name}: the prior density is not finite at {np.mean(~np.isfinite(density)):.0%} of the prior's "
            "own draws, so the two do not belong together; check its distributions and transforms, or give a base="
        )
    wrong = _first(program.layout, np.abs(score).max(axis=0) > MOST_SCORE)
    if wrong:
        warnings.warn(
            f"{program.name}: random draws of {wrong!r} do not have the density of its prior, so the base is sampled "
            "by HMC from the density; check its random and logp",
            stacklevel=4,
        )
        return None

    def sample(key: Key) -> Array:
        def again(state: tuple[Key, Array]) -> tuple[Key, Array]:
            key, own = jax.random.split(state[0])
            return key, forward(own)

        return jax.lax.while_loop(lambda s: ~jnp.all(jnp.isfinite(s[1])), again, again((key, jnp.zeros(0))))[1]

    return sample


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

    starts = (jax.random.split(jax.random.key(1), len(draws)), jnp.asarray(draws))
    density, shift = map(np.asarray, jax.jit(lambda s: jax.lax.map(one, s, batch_size=64))(starts))
    return density, shift.mean(axis=0) / (shift.std(axis=0) / np.sqrt(len(draws)) + 1e-12)


def _first(layout: Layout, flags: np.ndarray[Any, Any]) -> str:
    """Name of the first variable with a flag set, or nothing."""
    named = layout.unravel(jnp.asarray(flags))
    return next((name for name, x in named.items() if bool(jnp.any(x))), "")


def _program_base(program: Program, base: Program) -> Base:
    _same_variables(program, base.constrain, base.layout)
    sample = exact_draws(base) if base.is_prior and not base.improper else None
    if _same_scale(program, base):
        return Base(base.log_joint, program.layout, sample)

    def log_prob(x: Array) -> Array:
        y = base.unconstrain(program.constrain(x))
        value = base.log_joint(y) - base.log_jacobian(y) + program.log_jacobian(x)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)  # outside the support of the base

    if sample is None:
        return Base(log_prob, program.layout)
    return Base(log_prob, program.layout, _moved(program, lambda key: base.constrain(sample(key))))


def _same_scale(program: Program, base: Program) -> bool:
    """Whether the same flat vector means the same constrained values in both."""
    if program.layout.shapes != base.layout.shapes:
        return False
    points = jax.random.normal(jax.random.key(0), (8, program.layout.dim))
    ours, theirs = (jax.vmap(p.constrain)(points) for p in (program, base))
    return all(ours[k].shape == theirs[k].shape and bool(jnp.allclose(ours[k], theirs[k], rtol=1e-12)) for k in ours)


def _distribution_base(program: Program, base: Base) -> Base:
    if base.layout.single:
        if base.layout.dim != program.layout.dim:
            raise InputError(
                f"base: it has {base.layout.dim} dimensions, and {program.name} has {program.layout.dim} on the "
                "unconstrained scale"
            )
        if base.layout.transforms:
            raise InputError("base: one distribution for all variables must live on the whole real space")
        return Base(base.log_prob, program.layout, base.sample)
    _same_variables(program, lambda x: base.layout.constrain(x)[0], base.layout)

    def log_prob(x: Array) -> Array:
        y = base.layout.unconstrain(program.constrain(x))
        value = base.log_prob(y) - base.layout.constrain(y)[1] + program.log_jacobian(x)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)  # outside the support of the base

    sample = base.sample
    if sample is None:
        return Base(log_prob, program.layout)

    return Base(log_prob, program.layout, _moved(program, lambda key: base.layout.constrain(sample(key))[0]))


def _moved(program: Program, sample: Callable[[Key], Variables]) -> Sampler:
    """Draws of constrained variables on the unconstrained scale of the program."""

    def draw(key: Key) -> Array:
        return program.unconstrain(sample(key))

    draws = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), FEW_PROBES))
    wrong = _first(program.layout, ~np.isfinite(np.asarray(draws)).all(axis=0))
    if wrong:
        raise InputError(f"base: draws of {wrong!r} fall outside the support that {program.name} gives it")
    return draw


def _same_variables(program: Program, constrain: Callable[[Array], dict[str, Array]], layout: Layout) -> None:
    """Raise where a base has other variables, or other shapes, than the program."""

    def shapes(function: Callable[[Array], dict[str, Array]], dim: int) -> dict[str, tuple[int, ...]]:
        return {k: x.shape for k, x in jax.eval_shape(function, jnp.zeros(dim)).items()}

    ours, theirs = shapes(program.constrain, program.layout.dim), shapes(constrain, layout.dim)
    for name in sorted(set(ours) | set(theirs)):
        if ours.get(name) != theirs.get(name):
            here, there = (f"shape {s[name]}" if name in s else "no such variable" for s in (ours, theirs))
            raise InputError(
                f"base: it must have the variables of {program.name}, which has {here} for {name!r}; "
                f"the base has {there}"
            )
