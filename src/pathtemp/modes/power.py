"""How likely a mode would have been noticed: modes are planted on paper among the points that were evaluated.

A planted mode has a share of the mass, and is a copy of the known modes, made narrower (see
:mod:`pathtemp.modes.planted`). An ascent from a point leads to it where its density there exceeds that of all other
modes: where it leads. A point that was only looked at must also have been picked. Two things tell whether that
happened: the points where an elliptical mode would lead most, and the share of the base's draws where the copy leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.local import Local
from pathtemp.modes.planted import WIDTHS, Planted
from pathtemp.modes.scan import Scan, cosine
from pathtemp.modes.shape import Shape

PLACES = 64
"""Planted modes."""

TOP = 8
"""Draws of the base with the largest leads that are kept of each planted mode."""

RANKED = (1.0, 0.5)
"""Widths of the elliptical modes by which points are chosen."""

ENOUGH = 5.0
"""Lead, in nats, beyond which no further point is asked: a mode with a hundredth of the mass has it as well."""

STEPS = 6
"""Widths at which leads are kept, for each of the ``WIDTHS`` but the last."""

LEAST_SQUARE = 0.01
"""Half the squared distance, in units of the widest known mode, within which no point lies for sure."""

BLOCK = 4096
"""Points that are held against all planted modes at a time."""


def _kept() -> FloatArray:
    steps = [np.geomspace(wide, thin, STEPS, endpoint=False) for wide, thin in pairwise(WIDTHS)]
    return np.append(np.concatenate(steps), WIDTHS[-1])


KEPT = _kept()
"""Widths at which leads are kept, (G,), the ``WIDTHS`` among them."""


class Goal(NamedTuple):
    """A planted mode: its width relative to the widest known mode, and its share of the mass."""

    width: float
    share: float


@dataclass(frozen=True)
class Power:
    """By how much planted modes would have led.

    Parameters
    ----------
    lead
        Of each of P planted modes, as heavy as all known ones together, for each of the widths ``KEPT``: its log
        density beyond what it must exceed, at the point where that is most, (P, G).
    common
        The largest leads of each among draws of the base, (P, G, ``TOP``).
    apart
        The same as ``lead`` at the centre of each planted mode, (P, G): where it does not lead, it is a part of a known
        mode, and none of its own. None where it was not looked at.
    draws
        How many draws of the base these were.
    starts
        Ascents from draws of the base.
    dim
        Dimension of the space.
    """

    lead: FloatArray
    common: FloatArray
    draws: int = 0
    starts: int = 0
    dim: int = 1
    apart: FloatArray | None = None

    def __call__(self, *, width: float, share: float) -> float:
        """Probability that a mode of this relative width and share of the mass would have been noticed.

        >>> lead = np.stack([np.where(KEPT > least, 1.0, -9.0) for least in (0.6, 0.9)])
        >>> near = Power(lead, np.full((*lead.shape, TOP), -np.inf))
        >>> near(width=1.0, share=0.5), near(width=0.7, share=0.5), near(width=0.2, share=0.5)
        (1.0, 0.5, 0.0)
        """
        goal = Goal(width, share)
        if not len(self.lead):
            return 0.0
        led = np.count_nonzero(_at(self.common, goal, self.dim) > 0, axis=1)
        missed = missed_by_all(led, self.draws, self.starts)
        found = np.where(_at(self.lead, goal, self.dim) > 0, 1.0, 1.0 - missed)
        if self.apart is None:
            return float(np.mean(found))
        apart = _at(self.apart, goal, self.dim, least_square=0.0) > 0
        return float(np.mean(found[apart])) if apart.any() else 1.0


def _at(lead: FloatArray, goal: Goal, dim: int, *, least_square: float = LEAST_SQUARE) -> FloatArray:
    """Leads (P, G, ...) of modes of this kind, (P, ...): between two widths the lesser of the two.

    Each is that of the best point, and not the same one: so they are not interpolated. Below the least width they fall
    as those of a normal, by a square over that of the width.
    """
    odds = np.log(goal.share) - np.log1p(-goal.share)
    if goal.width >= KEPT[-1]:
        wide = max(int(np.searchsorted(-KEPT, -goal.width * (1.0 - 1e-9), side="right")) - 1, 0)
        thin = min(int(np.searchsorted(-KEPT, -goal.width * (1.0 + 1e-9))), len(KEPT) - 1)
        there = np.minimum(lead[:, wide], lead[:, thin])
    else:
        before, last = KEPT[-1 - STEPS], KEPT[-1]
        volume, square = dim * np.log(before / last), last**-2 - before**-2
        with np.errstate(invalid="ignore"):
            half_square = np.maximum((lead[:, -1 - STEPS] - lead[:, -1] + volume) / square, least_square)
            there = lead[:, -1] + dim * np.log(last / goal.width)
            there = there - half_square * (goal.width**-2 - last**-2)
    return np.asarray(odds + np.where(np.isfinite(there), there, -np.inf))


def _between(leads: FloatArray) -> FloatArray:
    """Leads (P, W, m) of single points at the ``WIDTHS``, at all that are ``KEPT``, (P, G, m), by the log width.

    The fall of a log density from the centre of a mode is concave in the log width: so this is a lower bound.

    >>> _between(np.array([[[0.0], [6.0], [-np.inf], [1.0], [2.0]]]))[0, :8, 0].tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -inf]
    """
    part = (np.arange(STEPS) / STEPS)[:, None]
    size = (len(leads), -1, leads.shape[2])
    with np.errstate(invalid="ignore"):
        steps = (1.0 - part) * leads[:, :-1, None] + part * leads[:, 1:, None]
    steps[:, :, 0] = leads[:, :-1]
    every = np.concatenate([steps.reshape(size), leads[:, -1:]], axis=1)
    return np.where(np.isfinite(every), every, -np.inf)


def missed_by_all(led: IntArray, draws: int, starts: int) -> FloatArray:
    """Probability that no start leads to each planted mode, when ``led`` (P,) of so many draws of the base would.

    The shares of the base that lead to the modes are taken to follow a beta law, whose mean is that of the counts and
    whose spread makes them likeliest.

    >>> missed_by_all(np.array([0, 0, 8]), 100, 500).round(3).tolist()
    [0.743, 0.743, 0.0]
    """
    if draws == 0 or starts == 0 or not led.any():
        return np.ones(len(led))
    mean = float(np.mean(led)) / draws
    a = np.exp(np.linspace(np.log(0.01), np.log(100.0), 40))[:, None]
    b = a * (1.0 - mean) / mean
    likely = np.sum(betaln(a + led, b + draws - led) - betaln(a, b), axis=1)
    k = int(np.argmax(likely))
    after = b[k] + draws - led
    return np.asarray(np.exp(betaln(a[k] + led, after + starts) - betaln(a[k] + led, after)))


@dataclass(frozen=True)
class Plot:
    """Where modes are planted, and among what.

    Parameters
    ----------
    planted
        What the modes are like.
    places
        Where they are, (P, dim).
    log_mass
        That of all known modes.
    """

    planted: Planted
    places: FloatArray
    log_mass: float

    def nothing(self) -> Power:
        """The power of no point at all."""
        size = (len(self.places), len(KEPT))
        power = Power(np.full(size, -np.inf), np.full((*size, TOP), -np.inf), dim=self.places.shape[1])
        centres = np.arange(len(self.places))[:, None]
        leads = _leads(power, self, self.places, self.planted.log_target(self.places), centres)
        return replace(power, apart=leads.max(axis=2))


def noticed_at(power: Power, plot: Plot, points: FloatArray, height: FloatArray, *, most: int) -> Power:
    """The power, with that of ``points`` (n, dim), where a planted mode must exceed ``height`` (n,).

    Each mode is held against ``most`` points, unless its lead so far is enough.

    >>> from pathtemp.modes.local import from_covariance
    >>> from pathtemp.modes.shape import normal_shape
    >>> rng = np.random.default_rng(0)
    >>> law, points = from_covariance(np.zeros(2), np.eye(2), 0.0), 5.0 * rng.normal(size=(2000, 2))
    >>> known = Planted(normal_shape(law), [law], [1.8], lambda x: -0.5 * np.sum(x**2, axis=1))
    >>> plot = Plot(known, 5.0 * rng.normal(size=(100, 2)), 1.8)
    >>> found = noticed_at(plot.nothing(), plot, points, known.log_target(points), most=64)
    >>> found(width=0.5, share=0.1) > 0.5, found(width=1e-3, share=0.1) < 0.2
    (True, True)
    """
    chosen = foremost(plot.planted.shape, plot.places, points, height, most=most)
    return replace(power, lead=np.maximum(power.lead, _leads(power, plot, points, height, chosen).max(axis=2)))


def noticed_by_turn(power: Power, plot: Plot, scan: Scan, laws: Sequence[Local], *, limit: float, most: int) -> Power:
    """The power, with that of gradients that point elsewhere: their cosine is below ``limit``.

    An ascent from the point must lead to the planted mode as well.
    """
    count = len(scan.gradient)
    if not count:
        return power
    points, log_q = scan.theta[:count], scan.log_q[:count]
    chosen = foremost(plot.planted.shape, plot.places, points, log_q, most=most)
    at, to = points[chosen].reshape(-1, points.shape[1]), np.repeat(plot.places, chosen.shape[1], axis=0)
    inverse = np.linalg.inv(plot.planted.shape.law.matrix)
    slope = (to - at) @ inverse.T @ inverse
    turn = np.max([cosine(law, at, slope) for law in laws], axis=0).reshape(chosen.shape)
    chosen = np.where(turn < limit, chosen, -1)
    return replace(power, lead=np.maximum(power.lead, _leads(power, plot, points, log_q, chosen).max(axis=2)))


def led_by_draws(power: Power, plot: Plot, draws: FloatArray, log_q: FloatArray) -> Power:
    """The power, with the leads of the modes that are not noticed for sure among draws of the base (n, dim)."""
    every = np.broadcast_to(np.arange(len(draws)), (len(plot.places), len(draws)))
    leads = _leads(power, plot, draws, log_q, every)
    common = np.full((*power.lead.shape, TOP), -np.inf)
    kept = min(TOP, leads.shape[2])
    common[:, :, :kept] = np.sort(leads, axis=2)[:, :, ::-1][:, :, :kept]
    return replace(power, common=common, draws=len(draws))


def foremost(shape: Shape, places: FloatArray, points: FloatArray, height: FloatArray, *, most: int) -> IntArray:
    """Numbers of the ``most`` points (n, dim) at which elliptical modes at ``places`` (P, dim) exceed ``height`` most.

    Returns (P, m), in the order of the points; -1 where there is none. Half of them are for wide modes, half for
    narrow ones.
    """
    usable = np.flatnonzero(np.isfinite(points).all(axis=1) & (height < np.inf))
    each = max(min(most, len(usable)) // len(RANKED), 1)
    # Single precision: errors of a hundredth of a nat change no answer.
    z = shape.law.standardise(points[usable]).astype(np.float32)
    planted = shape.law.standardise(places).astype(np.float32)
    best = [np.full((len(places), 0), -np.inf, np.float32) for _ in RANKED]
    number = [np.full((len(places), 0), -1) for _ in RANKED]
    for first in range(0, len(z), BLOCK):
        must = np.maximum(height[usable[first : first + BLOCK]], -1e30).astype(np.float32)
        powered = _squares(planted, z[first : first + BLOCK]) ** np.float32(shape.exponent)
        here = np.broadcast_to(usable[first : first + BLOCK], powered.shape)
        for k, width in enumerate(RANKED):
            best[k] = np.hstack([best[k], shape.log_density(powered, width) - must])
            number[k] = np.hstack([number[k], here])
            if best[k].shape[1] > each:
                top = np.argpartition(best[k], -each, axis=1)[:, -each:]
                best[k], number[k] = (np.take_along_axis(x, top, axis=1) for x in (best[k], number[k]))
    found = np.sort(np.hstack(number), axis=1)
    # A point that is among both counts once.
    found[:, 1:][found[:, 1:] == found[:, :-1]] = -1
    return found


def _leads(power: Power, plot: Plot, points: FloatArray, height: FloatArray, chosen: IntArray) -> FloatArray:
    """Leads at the chosen points (P, m), -1 for none, of the modes whose lead so far is not enough, (P, G, m).

    One more is minus infinity, so that there always is one.
    """
    lead = np.full((len(plot.places), len(WIDTHS), chosen.shape[1] + 1), -np.inf)
    standardise = plot.planted.shape.law.standardise
    few, again = np.unique(chosen, return_inverse=True)
    z, centre = standardise(points[few]), standardise(plot.places)
    again = again.reshape(chosen.shape)
    for k, width in enumerate(WIDTHS):
        about = power.lead[:, max(k - 1, 0) * STEPS : (k + 1) * STEPS + 1]
        place, column = np.nonzero((chosen >= 0) & np.any(about < ENOUGH, axis=1, keepdims=True))
        must = height[chosen[place, column]] - plot.log_mass
        u = z[again[place, column]] - centre[place]
        # Where it led when it was wider, how far it falls tells at what width it no longer does.
        need = np.where(lead[place, max(k - 1, 0), column] > 0, -np.inf, must)
        lead[place, k, column] = plot.planted.log_density(u, width, need) - must
    return _between(lead)


def _squares(planted: Any, z: Any) -> Any:
    """Squared distances (P, n) between planted modes (P, dim) and points (n, dim), in single precision or double."""
    square = np.sum(planted**2, axis=1)[:, None] + np.sum(z**2, axis=1) - 2.0 * planted @ z.T
    return np.maximum(square, planted.dtype.type(0.0))
