"""Which base the path starts from: the user's, or one that knows the modes. Measured, by the length of the path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import values_of
from pathtemp.model.model import Model
from pathtemp.modes.adapted import MISSED, MOST_DENSITIES, adapted_law
from pathtemp.modes.bent import BentLaw
from pathtemp.modes.bent_base import bent_base, draws_of
from pathtemp.modes.beside import beside, left_out
from pathtemp.modes.core import is_wider
from pathtemp.modes.local import DENSE_DIM
from pathtemp.modes.mixture_base import SAFETY, inflation, mixture_base
from pathtemp.modes.refine import effective, log_normal
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath

SHORTER = 0.9
"""Length relative to that of the user's path from which the mixture is chosen."""

SHORT = 5.0
"""Length of the user's path up to which it is kept without a trial, where its annealing pass came to every mode: it is
easy already, and log z along it is what the user expects to see."""

VAGUE = 15.0
"""Length of the user's path from which one mode alone is worth a leg: a prior so vague is hardly ever come back to."""

MATTERS = 0.01
"""Estimated share from which a mode has to be led to."""

LEAST_SHARE = 1e-6
"""Estimated share below which a mode gets no leg of the mixture."""

EASY = 2.0
"""Length of the user's path up to which nothing shortens it by much."""

CURVED, CURVED_DRAWS = 0.25, 512
"""Effective share of draws of the local law below which a mode is not as a normal, and how many tell."""

BENT_DIM = 32
"""Largest dimension in which a bent law is fitted: each coordinate is held against each other one."""

FAR_DRAWS = 4096
"""Draws of a bent law at all of which the user's base has a finite density: else it leads to where numbers end."""

NEAR = 0.1
"""Effective share of the draws of a bent law from which it is tried."""

LOST = 0.03
"""Share of the annealed draws that a bent law may miss: where it settled in one of several parts, it misses others."""

WITH_RIDGE = 0.5
"""Weight of the user's base beside isolated modes where it alone leads to a ridge."""

SPIKE, SPIKE_DRAWS, MOST_SPIKES = 3.0, 128, 8
"""Log density around the top of a mode, relative to a bent law, from which that misses a spike; draws that show it, and
modes that are looked at."""


def legs(search: Search) -> list[int]:
    """Numbers of the modes that are worth a leg of their own: isolated, and of some mass."""
    if search.ridges:
        return beside(search, search.annealed)
    shares = search.shares()
    return [k for k, mode in enumerate(search.modes) if not mode.law.flat and shares[k] > LEAST_SHARE]


def fair(search: Search, theta: FloatArray) -> bool:
    """Whether the user's path leads to every mode: by its basin in the base, and by the annealing pass.

    A mode of some mass must have drawn a fifth of its due of the starts from the base; else it is narrow, and appears
    late on the path, where few chains find it. One that should hold four or more of the target draws ``theta``
    (n, dim) of the annealing pass must hold a quarter of its due. Beside a ridge they alone tell.
    """
    if search.ridges:
        return not len(left_out(search, search.annealed, theta))
    shares = search.shares()
    starts = np.array([mode.from_base for mode in search.modes])
    in_base = (starts >= 0.2 * shares * search.base_starts) | (shares < MATTERS)
    due = len(theta) * shares
    held = np.bincount(search.labels(theta), minlength=len(due))
    return bool(np.all(in_base) and np.all((held >= 0.25 * due) | (due < 4.0)))


def why_not(model: Model, search: Search, user: tuple[float, float], theta: FloatArray, *, vague: float = VAGUE) -> str:
    """Why no mixture is tried, in words; empty where one is.

    ``user`` is (lam reached, length) of the annealing pass of the user's path, ``theta`` (n, dim) its last draws. One
    mode is worth a leg where the path is longer than ``vague``, or where those draws are spread wider than the mode is
    at its top.
    """
    if search.crowded:
        return f"the base as given: more than {len(search.modes)} modes, too many to list"
    if search.without_list and not (search.ridges and legs(search)):
        return "the base as given: the starts found no isolated modes"
    if search.ridges and fair(search, theta):
        return "the base as given: the starts found ridges, and its path reaches the modes beside them"
    spike = any(is_wider(law, theta) for law in search.laws if not law.flat)
    count, far = len(legs(search)), user[0] < 1.0 or user[1] > vague or spike or search.ridges
    if count < (1 if far else 2):
        return "the base as given: the starts found one mode"
    if model.sample_base is None:
        return "the base as given: it cannot be sampled, so a mixture with it would not be normalised"
    if model.dim > DENSE_DIM:
        return f"the base as given: beyond {DENSE_DIM} dimensions no local laws are made"
    if user[0] >= 1.0 and user[1] <= SHORT and fair(search, theta):
        return f"the base as given: its path is short, {user[1]:.2g}"
    return ""


def bent_law(
    model: Model, search: Search, user: tuple[float, float], theta: FloatArray, rng: np.random.Generator
) -> BentLaw | None:
    """A law that bends as the target does, where the law is near to it; None where every mode is as a normal.

    ``user`` and ``theta`` are as in :func:`why_not`. There is none where a mode has a spike that it does not cover.
    """
    if search.crowded or model.sample_base is None or model.dim > BENT_DIM or user[0] < 1.0 or user[1] <= EASY:
        return None
    if not search.affords(MOST_DENSITIES) or not (search.without_list or is_curved(search, theta, rng)):
        return None
    found = adapted_law(theta, search.log_target_anywhere, rng)
    if found is None or found.share < NEAR or found.missed(theta, search.log_target_anywhere) > LOST:
        return None
    if leads_astray(model, found.law, rng):
        return None
    if search.ridges and not fair(search, theta):
        return None
    for k in [] if search.without_list else legs(search)[:MOST_SPIKES]:
        around = search.laws[k].spread_out(rng.standard_normal((SPIKE_DRAWS, model.dim)))
        if np.median(found.log_weight(around, search.log_target_anywhere)) > SPIKE:
            return None
    return found.law


def leads_astray(model: Model, law: BentLaw, rng: np.random.Generator) -> bool:
    """Whether draws of a bent law lie where the user's base has no finite density: where numbers end."""
    base_alone = GeometricPath(model.log_base, model.log_base)
    return not np.all(np.isfinite(values_of(base_alone, draws_of(law, FAR_DRAWS, rng))))


def is_curved(search: Search, theta: FloatArray, rng: np.random.Generator) -> bool:
    """Whether the local laws of the modes that matter are far from the target around them.

    Of laws that are too narrow to see the target, the annealed draws ``theta`` (n, dim) tell. Draws of a normal law,
    inflated as in a base, have an effective share of a half as a sample of that law itself: that tells of one mode.
    """
    chosen = legs(search)
    if not chosen:
        return False
    laws = [replace(search.laws[k], scale=search.laws[k].scale * inflation(theta.shape[1])) for k in chosen]
    parts = [search.modes[k].log_mass + log_normal(law, theta) for k, law in zip(chosen, laws, strict=True)]
    if np.mean(search.log_target(theta) - logsumexp(parts, axis=0) > MISSED) > LOST:
        return True
    if len(chosen) > 1:
        return False
    theta = laws[0].spread_out(rng.standard_normal((CURVED_DRAWS, theta.shape[1])))
    with np.errstate(invalid="ignore"):
        log_weight = search.log_target_anywhere(theta) - log_normal(laws[0], theta)
    log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
    if not np.isfinite(log_weight).any():
        return False
    return effective(np.exp(log_weight - logsumexp(log_weight))) < CURVED * CURVED_DRAWS


def with_bent(model: Model, law: BentLaw) -> Model:
    """The model with a bent law and its base as base, equally normalised."""
    assert model.sample_base is not None
    base, sample = bent_base(law, model.log_base, model.sample_base)
    return replace(model, log_base=base, sample_base=sample)


def safety(search: Search) -> float:
    """Weight of the user's base in a mixture."""
    return WITH_RIDGE if search.ridges else SAFETY


def with_mixture(model: Model, search: Search) -> Model:
    """The model with a mixture of its modes and of its base as base, equally normalised.

    Half of the weight is shared out by the local masses, half equally.
    """
    assert model.sample_base is not None
    chosen = legs(search)
    mass = search.shares()[chosen]
    weights = 0.5 * mass / mass.sum() + 0.5 / len(chosen)
    laws, shares = [], []
    for k, weight in zip(chosen, weights, strict=True):
        for part, law in search.modes[k].parts or ((1.0, search.modes[k].law),):
            laws.append(law)
            shares.append(weight * part)
    base, sample = mixture_base(laws, np.array(shares), model.log_base, model.sample_base, safety=safety(search))
    return replace(model, log_base=base, sample_base=sample)


def verdict(
    count: int,
    user: tuple[float, float],
    mixture: tuple[float, float],
    *,
    all_reached: bool,
    bent: bool = False,
    safety: float = SAFETY,
) -> tuple[bool, str]:
    """Whether to take the mixture of ``count`` modes, and why; each path is (lam reached, length).

    Of one mode that is ``bent`` it is a law that bends. The user's base has the weight ``safety`` in it.

    ``all_reached`` says whether the annealing pass of the user's path came to every mode: a path that leaves some out
    is short for that reason.

    >>> verdict(3, (1.0, 12.0), (1.0, 2.0), all_reached=True)
    (True, 'a mixture of 3 modes and 10% of the base as given: path length 2 against 12')
    >>> verdict(2, (1.0, 3.0), (1.0, 4.0), all_reached=True)
    (False, 'the base as given: path length 3 against 4 of a mixture of 2 modes')
    """
    named = "a bent law" if bent else f"a mixture of {count} modes" if count > 1 else "a mixture of one mode"
    chosen = f"{named} and {100 * safety:.0f}% of the base as given"
    if mixture[0] < 1.0:
        return False, f"the base as given: the annealing pass from {named} did not reach the target"
    if user[0] < 1.0:
        return True, f"{chosen}: the annealing pass from the base alone did not reach the target"
    if mixture[1] < SHORTER * user[1]:
        return True, f"{chosen}: path length {mixture[1]:.3g} against {user[1]:.3g}"
    if not all_reached:
        return True, f"{chosen}: the annealing pass from the base alone left modes out"
    return False, f"the base as given: path length {user[1]:.3g} against {mixture[1]:.3g} of {named}"
