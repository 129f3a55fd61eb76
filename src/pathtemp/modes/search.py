"""The search for modes: ascents from many starts, until those still unseen are few."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from pathtemp._types import FloatArray, IntArray
from pathtemp.io.persistent import persistent
from pathtemp.model.evaluate import energies_of, values_of
from pathtemp.modes.ascent import FIRST_STEPS, LONG, WHITENED, Ascents, BoolArray, ascend
from pathtemp.modes.colder import colder
from pathtemp.modes.core import EXCESS_DENSITIES, log_excess
from pathtemp.modes.dedupe import near, nearest_mode
from pathtemp.modes.local import Local, law_gradients, local_law, values_and_gradients
from pathtemp.modes.mode import Mode, known_mode
from pathtemp.modes.parts import PARTS_DENSITIES, in_parts
from pathtemp.modes.power import Power
from pathtemp.modes.refine import REFINE_DENSITIES, log_student, refine
from pathtemp.modes.scan import Scan
from pathtemp.modes.unseen import missing_mass, unseen_bound
from pathtemp.paths.geometric import HUGE, GeometricPath
from pathtemp.result.run import Counts
from pathtemp.seeds import Stream, rng

CROWDED = 0.05
"""Share of the starts from the base that end in modes that are not listed from which there are too many modes."""

MOST_MODES = 128

NEGLIGIBLE_MASS, NEXT_TO_NOTHING = 1e-4, 1e-6
"""Estimated share below which a mode does not count as unseen, missing or few; and up to which it makes place for
another in a full list."""

SAME_HEIGHT, HIGHEST_RISE = 0.01, 0.1
"""Nats within which two ends may lie on one ridge; and that curvature may promise beyond an end that has arrived."""

MOST_POLISHED = 8
"""Ends on a slope of one batch that are led to the top that curvature promises."""

WORTH_PARTS, MOST_IN_PARTS = 0.01, 16
"""Share of a mode from which it may be covered by parts, and how many of them there may be."""


@persistent(
    *("modes", "starts", "base_starts", "unlisted", "given_up", "scanned", "counts", "scale", "power"),
    *("annealed", "_rng"),
)
class Search:
    """All that is known of the modes of one target.

    Parameters
    ----------
    path
        The user's base and the target.
    scale
        Spread of the base in each coordinate, (dim,).
    seed
        Of the local importance sampling.

    ``room`` are the gradient equivalents that may still be spent, whatever a single call allows, where a density costs
    ``price`` gradients. ``unlisted`` are the starts from the base that ended in modes for which there was no room in
    the list, and ``annealed`` is the log mass of what the annealing pass came to, NaN where that is not known.
    """

    def __init__(self, path: GeometricPath, *, scale: FloatArray, seed: int) -> None:
        self.path, self.scale = path, scale
        self.modes: list[Mode] = []
        self.starts = 0
        self.base_starts = 0
        self.unlisted = 0
        self.given_up = 0
        self.scanned = 0
        self.power: Power | None = None
        self.counts = Counts()
        self.room, self.price, self.annealed = np.inf, 0.0, np.nan
        self._rng = rng(Stream.LOCAL_LAWS, seed)

    def log_target(self, theta: FloatArray) -> FloatArray:
        """Log density of the target at points (n, dim), counted."""
        self._spend(0, len(theta))
        return energies_of(self.path, theta)[:, 1]

    def log_target_anywhere(self, theta: FloatArray) -> FloatArray:
        """The same at points that no model has drawn: they may lie where numbers end, and +inf is no density there."""
        self._spend(0, len(theta))
        values = values_of(self.path, theta)[:, 1]
        return np.where(values < HUGE, values, -np.inf)

    def _spend(self, gradients: int, densities: int = 0) -> None:
        spent = Counts(gradients, densities)
        self.counts, self.room = self.counts + spent, self.room - spent.cost(self.price)

    @property
    def spent(self) -> float:
        """Gradient equivalents so far."""
        return self.counts.cost(self.price)

    def affords(self, densities: float) -> bool:
        """Whether there is room for so many densities; always where they cost nothing."""
        return self.price == 0.0 or self.price * densities <= self.room

    def climb(
        self,
        theta: FloatArray,
        *,
        found_by: str,
        random: bool,
        most_gradients: float,
        most_steps: int | None = None,
    ) -> list[int]:
        """Ascend from points (n, dim) and note where they end; returns the numbers of modes that are new.

        ``random`` starts count for the estimate of what is unseen; starts picked for a reason do not. Of those given up
        only the nearer half count, the starts of higher density: far out a density may lead nowhere. In many dimensions
        random starts take longer. Where none arrives, the highest end is looked at all the same: its curvature tells
        whether it is at a mode, or on the way to one. Then those that came near count too.
        """
        wide = len(self.scale) > WHITENED
        most_steps = most_steps or (LONG if random and wide else FIRST_STEPS)
        ends = ascend(
            self.path.log_target,
            theta,
            scale=self.scale,
            most_gradients=most_gradients,
            most_steps=most_steps,
            room=self.room,
            laws=self.laws if random else (),
        )
        self._spend(ends.gradients)
        made = np.isfinite(ends.first)
        found = np.zeros(len(theta), bool)
        rows = [int(i) for i in np.argsort(-ends.height) if ends.arrived[i]]
        if random and not rows and made.any() and wide:
            rows = [int(np.argmax(ends.height))]
        new, slopes, later = self._note(ends, rows, found, found_by=found_by, random=random)
        if slopes:
            tops = self._climb_on(list(slopes.values()), most_steps)
            at_top, still = np.zeros(len(slopes), bool), np.flatnonzero(tops.arrived)
            new += self._note(tops, [int(i) for i in still], at_top, found_by=found_by, random=random)[0]
            found[list(slopes)] = at_top
            new += self._note(ends, later, found, found_by=found_by, random=random)[0]
        self._join_near(ends, list(np.flatnonzero(made & ~found)), found, from_base=found_by == "base", random=random)
        if random:
            self.starts += int(np.count_nonzero(made))
            self.base_starts += int(np.count_nonzero(made)) * (found_by == "base")
            close_by = made & (ends.first >= (np.median(ends.first[made]) if made.any() else 0.0))
            self.given_up += int(np.count_nonzero(close_by & ~found))
        return new

    def _note(
        self, ends: Ascents, rows: list[int], found: BoolArray, *, found_by: str, random: bool
    ) -> tuple[list[int], dict[int, Mode], list[int]]:
        """Join the ends in ``rows`` to the modes known so far, or add them, and mark them in ``found`` (n,).

        Returns the numbers of the new modes, what was found at ends on a slope, and the rows left when these were many.
        """
        new: list[int] = []
        slopes: dict[int, Mode] = {}
        rows = self._join_near(ends, rows, found, from_base=found_by == "base", random=random)
        for place, i in enumerate(rows):
            if len(slopes) == MOST_POLISHED:
                return new, slopes, rows[place:]
            end, height = ends.theta[i], float(ends.height[i])
            k = known_mode(self.modes, end, height, self.log_target)
            matters = True
            if k is None and law_gradients(len(end)) <= self.room:
                mode = self._describe(ends, i, found_by)
                if mode.law.rise > HIGHEST_RISE:
                    slopes[i] = mode
                    continue
                k, matters = self._listed(mode), self._share_of(mode) > NEGLIGIBLE_MASS
                new += [] if k is None else [k]
            found[i] = True
            if k is None:
                self.unlisted += matters and random and found_by == "base"
            elif random:
                mode = self.modes[k]
                from_base = mode.from_base + (found_by == "base")
                self.modes[k] = replace(mode, starts=mode.starts + 1, from_base=from_base)
        return new, slopes, []

    def _share_of(self, mode: Mode) -> float:
        """Share of a mode beside those that are listed, by the log masses known so far."""
        return float(np.exp(mode.log_mass - np.logaddexp(mode.log_mass, self.log_mass))) if self.modes else 1.0

    def _listed(self, mode: Mode) -> int | None:
        """The place of a new mode in the list, in a full one that of a mode of next to no mass; None without one."""
        if len(self.modes) < MOST_MODES:
            self.modes.append(mode)
            return len(self.modes) - 1
        least = int(np.argmin([other.log_mass for other in self.modes]))
        if self._share_of(self.modes[least]) > NEXT_TO_NOTHING or self.modes[least].log_mass >= mode.log_mass:
            return None
        self.modes[least] = mode
        return least

    def _join_near(
        self, ends: Ascents, rows: list[int], found: BoolArray, *, from_base: bool, random: bool
    ) -> list[int]:
        """Join the ends in ``rows`` that lie at the centre of a known mode to it, all at once; returns the others."""
        which = nearest_mode(self.laws, ends.theta[rows])
        for k in np.unique(which[which >= 0]):
            mode, many = self.modes[k], int(np.count_nonzero(which == k)) * random
            self.modes[k] = replace(mode, starts=mode.starts + many, from_base=mode.from_base + many * from_base)
        found[np.array(rows, int)[which >= 0]] = True
        return [i for i, k in zip(rows, which, strict=True) if k < 0]

    def _climb_on(self, slopes: list[Mode], most_steps: int) -> Ascents:
        """Go on from ends below their modes, where curvature promises the top, in units of their local laws.

        An ascent may take a direction that is wide beyond its memory for flat, and stop far from the top.
        """
        laws = [mode.law for mode in slopes]
        tops = np.stack([law.centre for law in laws])
        own = len(self.scale) <= WHITENED
        ends = ascend(
            self.path.log_target,
            tops,
            scale=np.stack([law.matrix for law in laws]) if own else self.scale,
            most_gradients=np.inf,
            most_steps=most_steps,
            room=self.room,
        )
        self._spend(ends.gradients)
        return ends

    def _describe(self, ends: Ascents, i: int, found_by: str) -> Mode:
        law, gradients = local_law(
            self.path.log_target,
            ends.theta[i],
            float(ends.height[i]),
            scale=self.scale,
            spread=float(ends.spread[i]),
            unit=ends.unit.get(i),
        )
        self._spend(gradients)
        return Mode(law, law.log_evidence, found_by, 0)

    def colder(self, theta: FloatArray, *, seed: int, count: int, most_gradients: float) -> None:
        """Climb from ``count`` points of a colder search that begins at target draws (n, dim)."""
        found = colder(self.path.log_target, theta, seed=seed)
        self._spend(found.gradients)
        self.climb(found.theta[-count:], found_by="colder", random=False, most_gradients=most_gradients)

    def isolate(self) -> None:
        """Tell isolated modes from points of a ridge: draws of the local law lead back to the one, not to the other.

        Both of two draws end elsewhere at the same height on a ridge.
        """
        fresh = [k for k, mode in enumerate(self.modes) if not (mode.tested or mode.law.flat)]
        if len(self.modes) < 2 or not fresh:
            return
        around = [self.modes[k].law.spread_out(self._rng.standard_normal((2, len(self.scale)))) for k in fresh]
        starts = np.concatenate(around)
        ends = ascend(self.path.log_target, starts, scale=self.scale, most_gradients=np.inf, room=self.room)
        self._spend(ends.gradients)
        for i, k in enumerate(fresh):
            law, pair = self.modes[k].law, slice(2 * i, 2 * i + 2)
            level = np.abs(ends.height[pair] - law.height) < SAME_HEIGHT
            away = [near(law, theta) > 1.0 for theta in ends.theta[pair]]
            flat = bool(np.all(level) and all(away))
            self.modes[k] = replace(self.modes[k], law=replace(law, flat=flat), tested=True)

    def belong(self, k: int, theta: FloatArray) -> BoolArray:
        """Which of the points (n, dim) most likely belong to mode k."""
        return np.asarray(self.labels(theta) == k)

    def excess(self, theta: FloatArray) -> float:
        """Log of the mass at the top of a mode relative to that around its draws, of target draws (n, dim), at most."""
        labels, ratio = self.labels(theta) if self.modes and len(theta) else np.zeros(0, np.int64), -np.inf
        for k, mode in enumerate(self.modes):
            if not mode.law.flat and self.affords(EXCESS_DENSITIES):
                ratio = max(ratio, log_excess(mode.law, theta[labels == k], self.log_target_anywhere, self._rng))
        return ratio

    def refine(self) -> None:
        """Learn spread, tails and mass of the modes found since the last time, now that their neighbours are known.

        Where there is no room for it, they stay as Laplace's method has them.
        """
        for k, mode in enumerate(self.modes):
            if mode.refined or mode.law.flat or not self.affords(REFINE_DENSITIES):
                continue
            own = partial(self.belong, k)
            law, log_mass, _ = refine(mode.law, self.log_target_anywhere, own, self._rng)
            self.modes[k] = replace(mode, law=law, log_mass=log_mass, refined=True, top=mode.law)

    def divide(self) -> None:
        """Cover the modes of some mass, while they are few, by parts where one law does not."""
        shares = self.shares()
        if np.count_nonzero(shares > WORTH_PARTS) > MOST_IN_PARTS:
            return
        for k, mode in enumerate(self.modes):
            worth = shares[k] > WORTH_PARTS and not (mode.parts or mode.law.flat)
            if worth and self.affords(PARTS_DENSITIES):
                parts = in_parts(mode.law, self.log_target_anywhere, partial(self.belong, k), self._rng)
                self.modes[k] = replace(mode, parts=parts)

    @property
    def laws(self) -> list[Local]:
        """Local laws of all modes."""
        return [mode.law for mode in self.modes]

    def shares(self) -> FloatArray:
        """Estimated share of each mode, from its own log mass."""
        log_mass = np.array([mode.log_mass for mode in self.modes])
        return np.exp(log_mass - logsumexp(log_mass)) if len(log_mass) else log_mass

    @property
    def log_mass(self) -> float:
        """Log mass of all known modes."""
        return float(logsumexp([mode.log_mass for mode in self.modes]))

    @property
    def widest(self) -> Mode:
        """The mode of the largest volume among the isolated ones of some mass; at least one is known."""
        shares = self.shares()
        listed = [m for m, s in zip(self.modes, shares, strict=True) if s > NEGLIGIBLE_MASS and not m.law.flat]
        return max(listed or self.modes, key=lambda mode: mode.law.log_det)

    @property
    def ridges(self) -> bool:
        """Whether most ends are no isolated points."""
        return not self.modes or bool(np.mean([law.flat for law in self.laws]) > 0.5)

    @property
    def without_list(self) -> bool:
        """Whether there is no list of modes to complete: ridges, a density that rises on and on, or too many modes."""
        return self.ridges or self.crowded or self.rises

    @property
    def rises(self) -> bool:
        """Whether most of the nearer half of the starts were given up: the density rises without end."""
        return self.given_up > 0.25 * self.starts

    @property
    def crowded(self) -> bool:
        """Whether so many starts from the base end in isolated modes that are not listed that a list is of no use."""
        return self.unlisted > CROWDED * self.base_starts and not self.ridges

    @property
    def unseen(self) -> float:
        """Upper bound on the unseen share of the basins, from draws of the base, modes of negligible mass left out.

        Starts along the annealing pass do not count: its particles are kin. A start that ended in a mode that is not
        listed might as well have been the first there.
        """
        matters = self.shares() > NEGLIGIBLE_MASS
        counts = np.array([mode.from_base for mode in self.modes], int)[matters]
        return unseen_bound(np.concatenate([counts, np.ones(self.unlisted, int)]), self.base_starts)

    @property
    def missing(self) -> float:
        """About how much of the mass is in modes that were not found, from how often the known ones were come upon.

        Modes that the user or another island knows of, and those that chains came to by themselves, say nothing of it.
        """
        searched = np.array([mode.found_by not in ("given", "draws", "island") for mode in self.modes], bool)
        counts = np.array([mode.starts + mode.held for mode in self.modes], int)
        return missing_mass(counts[searched], self.shares()[searched])

    def labels(self, theta: FloatArray) -> IntArray:
        """The mode that each of the points (n, dim) most likely belongs to."""
        scores = [mode.log_mass + log_student(mode.law, theta) for mode in self.modes]
        return np.asarray(np.argmax(scores, axis=0), np.int64)

    def scan(self, theta: FloatArray, *, gradients: float, drawn: int) -> Scan:
        """Look at the density of points (n, dim), and at the gradient of so many of them at most, the first ones.

        Where there is no room for all points, the last ones are left out. At the first ``drawn`` points, which the base
        drew, a density of +inf is an error; the others may lie where numbers end.
        """
        count = int(np.clip(min(gradients, self.room), 0, len(theta)))
        if not self.affords(len(theta) - count):
            theta = theta[: count + int(max(self.room - count, 0.0) / self.price)]
        first, slopes = values_and_gradients(self.path.log_target, theta[:count])
        self._spend(count)
        for place in np.flatnonzero(first[:drawn] > HUGE)[:1]:
            energies_of(self.path, theta[place : place + 1])  # It says where the density is infinite.
        near, far = (self.log_target(theta[count:drawn]), self.log_target_anywhere(theta[max(count, drawn) :]))
        return Scan(theta, np.concatenate([np.where(first < HUGE, first, -np.inf), near, far]), slopes)

    def least_explained(self, scan: Scan, count: int, *, far_out: bool = False) -> IntArray:
        """Numbers of the ``count`` points of a scan, ``far_out`` or among the draws, that known modes explain least."""
        laws = [mode.by_curvature for mode in self.modes] if far_out else self.laws
        scan.explain(laws, [law.log_evidence for law in laws] if far_out else [mode.log_mass for mode in self.modes])
        return scan.pick(count)

    def count_held(self, scan: Scan, among: BoolArray) -> None:
        """Note how many points of a scan, of those ``among`` them (n,), each mode has around it."""
        laws = [mode.by_curvature for mode in self.modes]
        scan.explain(laws, [law.log_evidence for law in laws])
        held = scan.held(len(self.modes), among)
        self.modes = [replace(m, held=int(n)) for m, n in zip(self.modes, held, strict=True)]
