"""What a probabilistic program gives, whatever its language, and how it becomes a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathtemp._types import Array, FloatArray, Key, LogDensity, Sampler, Variables
from pathtemp.errors import InputError
from pathtemp.frontends.prior_draws import FEW_PROBES, Prior, exact_draws, first_flagged, mass_of_prior
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.bases import Automatic, Base, ProperPart, as_base, is_automatic
from pathtemp.model.layout import Layout
from pathtemp.model.model import AboutBase, Model, Pointwise, Predictive
from pathtemp.seeds import probe_key

PROPER = "give every parameter a proper prior"


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
    rest
        Variables whose prior is improper, or depends on one that is. Where there are any, ``log_prior``, ``forward``
        and ``log_mass`` are those of the other variables alone: the rest has no influence, and its draws mean nothing.
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
    rest: frozenset[str] = frozenset()

    @property
    def kept(self) -> list[str]:
        """Variables whose prior is proper, and depends on none that is not."""
        return [name for name in self.layout.shapes if name not in self.rest]

    def columns(self, names: Container[str]) -> tuple[int, ...]:
        """Places of some variables in the flat vector."""
        flags = [np.full(math.prod(shape), name in names) for name, shape in self.layout.shapes.items()]
        return tuple(np.flatnonzero(np.concatenate(flags)).tolist())


def to_model(program: Program, base: Program | object | None) -> Model:
    """The program tempered from its prior, or from another base.

    A base that is a program gives its joint density, and exact draws where it has neither data nor potentials; the
    log z difference is then a log Bayes factor. A distribution over one flat vector is on the unconstrained scale; a
    dict of distributions by name is on the constrained scale. "auto" leaves it to ``pt.temper`` to find one, as does a
    prior that is improper, but for what is proper of it.
    """
    use_compilation_cache()
    if base is not None and program.improper:
        warnings.warn(
            f"{program.name}: {program.improper}; draws are those of the posterior, but log z is no evidence, as it "
            "holds the arbitrary constant of that prior",
            stacklevel=3,
        )
    if base is None and program.improper:
        prior, psi = Prior(), Base(Automatic(_proper_part(program)), program.layout)
    elif base is None:
        prior = exact_draws(program)
        psi = Base(divided(program.log_prior, prior.log_mass), program.layout, prior.sample)
    else:
        prior = Prior(None, mass_of_prior(program))
        psi = _given_base(program, base)
    nothing_observed = base is None and program.is_prior and not program.improper
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


def _proper_part(program: Program) -> ProperPart | None:
    """What is proper of an improper prior; None where nothing is, or it cannot be drawn."""
    if not program.kept:
        return None
    prior, columns = exact_draws(program), program.columns(program.rest)
    if prior.sample is None:
        return None
    log_prior, at = divided(program.log_prior, prior.log_mass), jnp.array(columns)
    names = tuple(name for name in program.layout.shapes if name in program.rest)
    # What has no influence may overflow, and its derivative then is NaN instead of 0.
    return ProperPart(lambda x: log_prior(x.at[at].set(0.0)), prior.sample, columns, names)


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
    if base is None and program.improper:
        part = psi.log_prob.proper if isinstance(psi.log_prob, Automatic) else None
        head = f"the prior of {', '.join(program.kept)}, drawn exactly; " if part else "no base in the model: "
        found = "pt.temper finds a law of the rest" if part else "pt.temper finds one"
        return AboutBase(f"{head}{program.improper}; {found}", evidence=False, remedy=PROPER)
    if base is None:
        return AboutBase(f"the prior of {program.name}, {drawn}", evidence=True, prior=True)
    if program.improper:
        text = f"one that was given, since {program.improper}"
        return AboutBase(text, evidence=False, remedy=PROPER)
    if isinstance(base, Program) and not base.is_prior:
        remedy = "it is the log Bayes factor over the model that is the base"
        return AboutBase(f"the joint density of {base.name}, {drawn}", evidence=False, remedy=remedy)
    automatic = is_automatic(base)
    text = f"one that pt.temper finds, in place of the prior of {program.name}" if automatic else "the base as given"
    known = bool(np.isfinite(prior.log_mass)) and (automatic or psi.sample is not None)
    remedy = "" if known else "leave base= out, and the prior is the base"
    return AboutBase(text if automatic else f"{text}, {drawn}", evidence=known, remedy=remedy)


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
    points = jax.random.normal(probe_key(), (8, program.layout.dim))
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

    draws = jax.jit(jax.vmap(draw))(jax.random.split(probe_key(), FEW_PROBES))
    wrong = first_flagged(program.layout, ~np.isfinite(np.asarray(draws)).all(axis=0))
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
