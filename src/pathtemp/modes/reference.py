"""A base for a target that came without one: a Student-t around the modes that ascents from near and far find.

Starts near the origin decide, as they do for Stan's chains. Far ones only add what they find: out there a density may
lead nowhere, or underflow. Where there is no isolated mode to build on, as in a funnel, a short exploration gives
the base its place and its scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from pathtemp import seeds
from pathtemp._types import FloatArray, LogDensity
from pathtemp.errors import InputError
from pathtemp.model.bases import Automatic, ProperPart
from pathtemp.model.inputs import check_density, naming, nan_in_data
from pathtemp.model.model import Model
from pathtemp.modes.ascent import FIRST_STEPS, LONG, BoolArray, ascend
from pathtemp.modes.explore import explore, falls_off
from pathtemp.modes.find import BATCH
from pathtemp.modes.local import HEAVY_DF, Local, from_covariance
from pathtemp.modes.mixture_base import inflation
from pathtemp.modes.refine import DRAWS, PER_DIMENSION, REFINE_DENSITIES, effective, log_student, refine
from pathtemp.modes.search import NEGLIGIBLE_MASS, Search
from pathtemp.modes.student_base import (
    MOST_DF,
    PartBase,
    PartSampler,
    StudentBase,
    StudentSampler,
    marginal,
    student_of_law,
)
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.run import Counts

NEAR = 2.0
"""Half width of the uniform from which the starts that decide are drawn, as Stan draws its own."""

RADII = (10.0, 100.0)
"""Scales of the normals around the origin from which the other ascents start."""

MOST_GRADIENTS = 16_000
"""Gradient evaluations of the search, where the budget does not say fewer."""

LEAST_GRADIENTS = 3_072
"""Gradient evaluations of the search at least, enough for a few dozen starts."""

SHARE = 0.2
"""Share of the budget for the search."""

FAR_SHARE = 0.2
"""Share of the search for the ascents from each radius; the rest is for those from nearby."""

WIDER = 1.5
"""Scale of the base relative to that of all modes together, at least."""

WIDER_EXPLORED = 2.0
"""The same relative to that of an exploration, which is rougher."""

DF, LEAST_DF, EXPLORED_DF = float(MOST_DF), 1.0, 5.0
"""Degrees of freedom of the base: where tails are light, at least, and of a heavy-tailed population."""

HEAVY = 3.5
"""Width of 96% of a population relative to that of 68%, 2.1 for a normal, from which its tails are heavy."""

TAIL, NO_TAIL = (10.0, 100.0), 30.0
"""Where, in standard deviations, the tails are looked at, and how far below the mode, in nats, there is none."""

SETTLED = 2.0
"""Log mass around a mode beyond that of Laplace's method, in nats, up to which the mode stands for the mass."""

AS_NORMAL = (0.7, 1.5)
"""Fall of the log density at draws of a local law relative to the normal's, between which the law is believed."""

LEAST_LEARNED = 0.2
"""Effective share of the draws of a law from which it is believed in few dimensions."""

MANY_MODES = 8
"""Modes, the largest ones, whose local laws are made better by importance sampling."""


@dataclass(frozen=True)
class Reference:
    """A base, how it was made in words, and what that cost."""

    student: StudentBase
    about: str
    counts: Counts


def reference(
    log_target: LogDensity,
    dim: int,
    *,
    seed: int,
    most_gradients: float = MOST_GRADIENTS,
    price: float = 0.0,
    proper: ProperPart | None = None,
) -> Reference:
    """A wide base for ``log_target`` on R^dim, from the modes that ascents around the origin find; warns how far.

    Where a proper part of a prior is kept, the base is of the rest of the coordinates alone. ``most_gradients`` bound
    the search, in which a density costs ``price`` of them.

    >>> import jax.numpy as jnp
    >>> made = reference(lambda x: -0.5 * jnp.sum((x - 50.0) ** 2), 2, seed=0)
    >>> made.student.centre.round(1).tolist(), bool(jnp.all((made.student.scale > 1.2) & (made.student.scale < 2.2)))
    ([50.0, 50.0], True)
    """
    rng = seeds.rng(seeds.Stream.REFERENCE, seed)
    anywhere = student_of_law(from_covariance(np.zeros(dim), np.eye(dim), 0.0), wider=RADII[-1], df=DF)
    search = Search(GeometricPath(anywhere, log_target), scale=np.ones(dim), seed=seed)
    search.room, search.price = most_gradients, price
    near_gradients = (1.0 - len(RADII) * FAR_SHARE) * most_gradients
    near = rng.uniform(-NEAR, NEAR, size=(BATCH, dim))
    search.climb(near, found_by="near", random=True, most_gradients=near_gradients, most_steps=LONG)
    known = [law for law in search.laws if not law.flat]
    if known:
        search.scale = np.sqrt(np.max([_variance(law) for law in known], axis=0))
    begin = [near]
    if known or search.starts == 0:
        for radius in RADII:
            far = radius * rng.standard_normal((BATCH, dim))
            begin.append(far)
            # Half of them around what is known and in its units, which may be far from those of the origin.
            if known:
                far[::2] = known[0].centre + far[::2] * search.scale
            search.climb(
                far,
                found_by="far",
                random=False,
                most_gradients=FAR_SHARE * most_gradients,
                most_steps=FIRST_STEPS if not known else FIRST_STEPS // 2,
            )
    laws = _representative(search, rng)
    law = laws[0] if len(laws) == 1 else _together(laws)
    if law is None or not falls_off(search.log_target, law.centre, np.sqrt(_variance(law))):
        starts = near if search.starts else np.concatenate(begin)
        return _explored(log_target, starts, search, seed=seed, proper=proper)
    df = _degrees_of_freedom(law, search)
    student = _of_rest(student_of_law(law, wider=max(WIDER, inflation(dim)), df=df), proper)
    about = (
        f"{_what_lacks(proper)}: starts within about {RADII[-1] * np.sqrt(dim):.3g} of the origin found {len(laws)} "
        f"{'mode' if len(laws) == 1 else 'modes'}, and a Student-t of scale {_range(student)} around "
        f"{'it' if len(laws) == 1 else 'them'} is the base"
    )
    warnings.warn(f"{about}; a mode far outside would be missed: give base= if there may be one", stacklevel=4)
    return Reference(student, about, search.counts)


def _representative(search: Search, rng: np.random.Generator) -> list[Local]:
    """Laws of the isolated modes to join, made better; none where most of the mass is not around them.

    Modes of negligible mass are left out. The near ones are kept whatever is found far away.
    """
    if len(search.modes) > 1:
        search.isolate()
    shares = search.shares()
    near = np.array([mode.found_by == "near" for mode in search.modes], bool)
    among = np.where(near, shares / max(float(np.sum(shares[near])), 1e-300), shares)
    kept = [k for k in np.argsort(-among) if among[k] > NEGLIGIBLE_MASS and not search.modes[k].law.flat]
    laws, believed = [], 0.0
    for place, k in enumerate(kept):
        law = search.modes[k].law
        looked_at = place == 0 or (place < MANY_MODES and search.affords(REFINE_DENSITIES + DRAWS))
        better = _settled(law, search, int(k), rng) if looked_at else None
        believed += float(among[k]) * (better is not None or not looked_at)
        laws.append(law if better is None else better)
    return laws if believed > 0.5 * float(np.sum(among[kept])) else []


def _settled(law: Local, search: Search, k: int, rng: np.random.Generator) -> Local | None:
    """The law of mode ``k`` made better by importance sampling; None where it does not stand for the mass there.

    The top of a funnel holds far less than its surroundings, and one law cannot follow a bent ridge.
    """
    own = partial(search.belong, k)
    better, log_mass, _ = refine(law, search.log_target_anywhere, own, rng)
    if better is law or not _learned(better, search, own, rng):
        return law if _fits(law, search, rng) else None
    return better if log_mass < law.log_evidence + SETTLED else None


def _learned(law: Local, search: Search, own: Callable[[FloatArray], BoolArray], rng: np.random.Generator) -> bool:
    """Whether fresh draws of a law are enough to learn a covariance from, so that it could be."""
    dim = len(law.centre)
    z = rng.standard_normal((DRAWS, dim)) * np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, (DRAWS, 1)))
    theta = law.spread_out(z)
    log_weight = np.where(own(theta), search.log_target_anywhere(theta), -np.inf) - log_student(law, theta)
    if not np.isfinite(log_weight).any():
        return False
    return effective(np.exp(log_weight - logsumexp(log_weight))) >= max(PER_DIMENSION * dim, LEAST_LEARNED * DRAWS)


def _fits(law: Local, search: Search, rng: np.random.Generator) -> bool:
    """Whether the target falls around its mode as the normal law does, in many dimensions too, and along each axis."""
    dim = len(law.centre)
    z = rng.standard_normal((4 * BATCH, dim))
    # Two standard deviations out along each axis a normal falls by two nats.
    steps = 2.0 * np.concatenate([np.eye(dim), -np.eye(dim)])
    fall = law.height - search.log_target(law.spread_out(np.concatenate([z, steps])))
    fall = np.nan_to_num(fall, posinf=1e300)
    like = fall[: len(z)] / (0.5 * np.sum(z**2, axis=1))
    low, middle, high = np.quantile(like, [0.16, 0.5, 0.84])
    axes = np.mean(fall[len(z) :].reshape(2, dim), axis=0)
    return bool(AS_NORMAL[0] < middle < AS_NORMAL[1] and high - low < 1.0 and np.all(axes > 0.5))


def _together(laws: list[Local]) -> Local | None:
    """One law over several modes, equally: coordinates apart, as wide as their centres and the widest of them."""
    if not laws:
        return None
    centres = np.stack([law.centre for law in laws])
    within = np.max([_variance(law) for law in laws], axis=0)
    variance = within + np.mean((centres - centres.mean(axis=0)) ** 2, axis=0)
    return from_covariance(centres.mean(axis=0), np.diag(variance), max(law.height for law in laws))


def _degrees_of_freedom(law: Local, search: Search) -> float:
    """Degrees of freedom with which a Student-t falls no faster than the target along any axis of some mass."""
    axes = np.diag(np.sqrt(_variance(law)))
    rays = np.concatenate([axes, -axes])
    top = search.log_target(law.centre[None])[0]
    near, far = (search.log_target(law.centre + r * rays) for r in TAIL)
    heavy = np.isfinite(far) & (near > max(top, law.height) - NO_TAIL)
    power = (near - far)[heavy] / np.log(TAIL[1] / TAIL[0])
    return float(np.clip(np.min(power, initial=np.inf) - 1.0, LEAST_DF, DF))


def _of_rest(student: StudentBase, proper: ProperPart | None) -> StudentBase:
    return student if proper is None else marginal(student, proper.rest)


def _what_lacks(proper: ProperPart | None) -> str:
    """What a base is found for, in words."""
    return "no base was given" if proper is None else f"no base was given for {', '.join(proper.names)}"


def _explored(
    log_target: LogDensity, starts: FloatArray, search: Search, *, seed: int, proper: ProperPart | None
) -> Reference:
    """A base from a short exploration; raises where the target is flat, or rises without end."""
    dim = starts.shape[1]
    # Up to where the slope is as in the bulk of a normal, and not further: a funnel's neck is no place to start.
    few = max(LEAST_GRADIENTS, search.room)
    ends = ascend(log_target, starts, scale=np.ones(dim), most_gradients=FAR_SHARE * few, close=float(dim))
    search.counts = search.counts + Counts(ends.gradients, 0)
    alive = np.flatnonzero(np.isfinite(ends.height))
    ends_somewhere = len(alive) > 0
    if ends_somewhere:
        start = ends.theta[np.resize(alive[np.argsort(-ends.height[alive])], BATCH)]
        found = explore(log_target, start, scale=np.ones(dim), seed=seed, most_gradients=few)
        search.counts = search.counts + Counts(found.gradients, 0)
        centre, width = np.median(found.theta, axis=0), np.std(found.theta, axis=0)
        ends_somewhere = not found.rises and falls_off(search.log_target, centre, np.maximum(width, 1e-10))
    if not ends_somewhere:
        raise InputError(
            f"base: none was given, and ascents from around the origin (scales {NEAR:g} to {RADII[-1]:g}) "
            "found no isolated mode of the target to build one from: it is flat, or rises without end; give base= "
            "(for a Stan program, or an alternative model block)"
        )
    lowest, low, centre, high, highest = np.quantile(found.theta, [0.02, 0.16, 0.5, 0.84, 0.98], axis=0)
    inner, outer = np.maximum(high - low, 1e-10), highest - lowest
    # Of a normal the two widths are 2 and 4.1 standard deviations.
    law = from_covariance(centre, np.diag(np.maximum(inner / 2.0, outer / 4.1) ** 2), 0.0)
    df = EXPLORED_DF if np.any(outer > HEAVY * inner) else DF
    student = _of_rest(student_of_law(law, wider=WIDER_EXPLORED, df=df), proper)
    about = (
        f"{_what_lacks(proper)}: ascents found no isolated mode that holds the mass, as in a funnel or on a ridge, and "
        f"a Student-t of scale {_range(student)} around a short exploration from near the origin is the base"
    )
    warnings.warn(f"{about}; it is rough: give base= if you know better", stacklevel=5)
    return Reference(student, about, search.counts)


def with_reference(
    model: Model, *, seed: int, budget: float | None = None, price: float = 0.0
) -> tuple[Model, Reference | None]:
    """The model with a base: its own, or, where that is automatic, the one that is found now.

    ``budget`` are the gradient equivalents of the whole run, a density at ``price``; None where nobody said.
    """
    if not isinstance(model.log_base, Automatic):
        return model, None
    check_density("target", model.log_target, model.dim)
    most = MOST_GRADIENTS if budget is None else float(np.clip(SHARE * budget, LEAST_GRADIENTS, MOST_GRADIENTS))
    try:
        with naming(model):
            counted, proper = 0.0 if budget is None else price, model.log_base.proper
            found = reference(model.log_target, model.dim, seed=seed, most_gradients=most, price=counted, proper=proper)
    except InputError as error:
        field = nan_in_data(model)
        raise error if not field else InputError(f"data: {field}; leave those out, or mend them") from None
    return with_found_base(model, found.student), found


def with_found_base(model: Model, student: StudentBase) -> Model:
    """The model with a Student-t as its base, beside the proper part of its prior where there is one."""
    proper = model.log_base.proper if isinstance(model.log_base, Automatic) else None
    if proper is not None:
        return replace(model, log_base=PartBase(student, proper), sample_base=PartSampler(student, proper))
    return replace(model, log_base=student, sample_base=StudentSampler(student))


def _variance(law: Local) -> FloatArray:
    """Diagonal of the covariance of a law."""
    return np.asarray(law.scale**2 * (1.0 + law.basis**2 @ ((1.0 + law.gain) ** 2 - 1.0)))


def _range(student: StudentBase) -> str:
    """Least and largest standard deviation of the normal that a Student-t comes from, in words."""
    square = np.asarray(student.basis) ** 2 @ ((1.0 + np.asarray(student.gain)) ** 2 - 1.0)
    wide = np.asarray(student.scale) * np.sqrt(1.0 + square)
    return f"{wide.min():.3g} to {wide.max():.3g}"
