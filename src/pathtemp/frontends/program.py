"""What a probabilistic program gives, whatever its language, and how it becomes a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler, Variables
from pathtemp.errors import InputError
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.bases import Automatic, Base, as_base, is_automatic
from pathtemp.model.layout import Layout
from pathtemp.model.model import AboutBase, Model, Pointwise, Predictive

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
    data
        Observed and constant data by group of ArviZ.
    predictive
        New data at draws of the posterior; None where the program observes nothing.
    log_mass
        Log of the integral of ``log_prior``, but for what its forward draws fail to meet.
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
    data: Mapping[str, xr.Dataset]
    predictive: Predictive | None
    log_mass: float = 0.0


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
        prior = exact_draws(program)
        psi = Base(divided(program.log_prior, prior.log_mass), program.layout, prior.sample)
    else:
        prior = Prior(None, mass_of_prior(program))
        psi = _given_base(program, base)
    nothing_observed = base is None and program.is_prior
    return Model(
        psi.log_prob,
        # The very same density says that there is nothing to temper.
        psi.log_prob if nothing_observed else divided(program.log_joint, prior.log_mass),
        program.layout,
        psi.sample,
        program.constrain_draws,
        program.name,
        program.pointwise,
        about=_about(program, base, psi, prior),
        data=program.data,
        predictive=program.predictive,
        unconstrain=program.unconstrain,
    )


def _given_base(program: Program, base: object) -> Base:
    if isinstance(base, Program):
        return _program_base(program, base)
    if is_automatic(base):
        return Base(Automatic(), program.layout)
    return _distribution_base(program, as_base(base))


def divided(log_density: LogDensity, log_mass: float) -> LogDensity:
    """The density over its mass; as it is where the mass is 1 or not known."""
    if log_mass == 0.0 or not np.isfinite(log_mass):
        return log_density
    return lambda x: log_density(x) - log_mass


def _about(program: Program, base: object | None, psi: Base, prior: Prior) -> AboutBase:
    """What the base is, and whether log z is the evidence."""
    drawn = "drawn exactly" if psi.sample is not None else "a density without exact draws"
    if base is None:
        return AboutBase(f"the prior of {program.name}, {drawn}", evidence=True, prior=True)
    if program.improper:
        text = f"one that was given, since {program.improper}"
        return AboutBase(text, evidence=False, remedy="give every parameter a proper prior")
    if isinstance(base, Program) and not base.is_prior:
        remedy = "it is the log Bayes factor over the model that is the base"
        return AboutBase(f"the joint density of {base.name}, {drawn}", evidence=False, remedy=remedy)
    automatic = is_automatic(base)
    text = f"one that pt.temper finds, in place of the prior of {program.name}" if automatic else "the base as given"
    known = bool(np.isfinite(prior.log_mass)) and (automatic or psi.sample is not None)
    remedy = "" if known else "leave base= out, and the prior is the base"
    return AboutBase(text if automatic else f"{text}, {drawn}", evidence=known, remedy=remedy)


def exact_draws(program: Program) -> Prior:
    """Forward draws given that they lie in the support of every transform, by drawing again.

    A transform may restrict a prior, as an order does: the density is then that of the prior given the restriction,
    times the share of the prior that meets it. No draws where that would reject nearly every one.
    """
    if program.forward is None:
        return Prior()
    forward = program.forward
    probes = _probes(program)
    overflow = _first(program.layout, np.isinf(probes).mean(axis=0) > 0.01)
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
    wrong = _first(program.layout, np.abs(score).max(axis=0) > MOST_SCORE)
    if wrong:
        warnings.warn(
            f"{program.name}: random draws of {wrong!r} do not have the density of its prior, so the base is sampled "
            "by HMC from the density; check its random and logp",
            stacklevel=4,
        )
        return Prior()

    def sample(key: Key) -> Array:
        def again(state: tuple[Key, Array]) -> tuple[Key, Array]:
            key, own = jax.random.split(state[0])
            return key, forward(own)

        return jax.lax.while_loop(lambda s: ~jnp.all(jnp.isfinite(s[1])), again, again((key, jnp.zeros(0))))[1]

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
    return np.asarray(_many(program.forward)(jax.random.split(jax.random.key(0), count)))


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
        accepted += int(many(jax.random.split(jax.random.key(made), BATCH)))
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

    starts = (jax.random.split(jax.random.key(1), len(draws)), jnp.asarray(draws))
    density, shift = map(np.asarray, jax.jit(lambda s: jax.lax.map(one, s, batch_size=64))(starts))
    return density, shift.mean(axis=0) / (shift.std(axis=0) / np.sqrt(len(draws)) + 1e-12)


def _first(layout: Layout, flags: np.ndarray[Any, Any]) -> str:
    """Name of the first variable with a flag set, or nothing."""
    named = layout.unravel(jnp.asarray(flags))
    return next((name for name, x in named.items() if bool(jnp.any(x))), "")


def _program_base(program: Program, base: Program) -> Base:
    _same_variables(program, base.constrain, base.layout)
    law = exact_draws(base) if base.is_prior and not base.improper else Prior()
    sample, log_joint = law.sample, divided(base.log_joint, law.log_mass)
    if _same_scale(program, base):
        return Base(log_joint, program.layout, sample)

    def log_prob(x: Array) -> Array:
        y = base.unconstrain(program.constrain(x))
        value = log_joint(y) - base.log_jacobian(y) + program.log_jacobian(x)
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
