"""How modes are looked for: ascents until little is unseen, a scan of the base, and more ascents for more power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from pathtemp._types import FloatArray
from pathtemp.model.evaluate import exact_draws
from pathtemp.modes.ascent import FIRST_STEPS
from pathtemp.modes.beside import search_beside
from pathtemp.modes.limits import Limits, stages_of
from pathtemp.modes.planted import Planted
from pathtemp.modes.power import PLACES, Goal, Plot, Power, led_by_draws, noticed_at, noticed_by_turn
from pathtemp.modes.scan import AWAY, BoolArray, Scan
from pathtemp.modes.search import MOST_MODES, NEGLIGIBLE_MASS, Search
from pathtemp.modes.shape import Shape, learned_shape
from pathtemp.modes.unseen import FEW_MODES, narrower_modes
from pathtemp.seeds import Draws

BATCH = 32
"""Starts of one kind at a time."""

FEW_UNSEEN = 0.05
"""Bound on the unseen share of the basins at which no further start is made for its sake."""

FAR = (4.0, 32.0)
"""How far beyond its draws, in units of the base's spread, the search looks for modes that the base does not cover."""

GOALS, GOAL_POWER = (Goal(width=0.7, share=0.05), Goal(width=0.5, share=0.1)), 0.95
"""Such modes are to be noticed with this probability."""

SECOND_POWER = 0.9
"""Power to notice a mode narrower than all known ones below which there is a second scan."""

MOST_HELD = 32_768
"""Coordinates of the draws of the base that planted modes are held against, at most: matrices make these dear."""

NEAREST = 0.25
"""How near to a known mode others are planted, relative to a draw of the base."""


TAIL_POINTS = 4096
"""Points of a scan from which tails are learned."""

MISSING = 0.02
"""Estimated mass of modes that were not found from which more starts are made."""

NARROWER = 0.15
"""Estimated share of the modes that are too narrow to have been found from which more starts are made."""

SCAN_WORTH = 0.05
"""Gain of power that a second scan must promise, which is about two thirds of what it gives."""


def find_modes(
    search: Search,
    base_draws: Callable[[int], FloatArray],
    levels: tuple[FloatArray, FloatArray],
    limits: Limits,
    *,
    rng: np.random.Generator,
    after_first: Callable[[], None] = lambda: None,
) -> None:
    """Climb from base draws and from draws (lam, theta) of the annealing pass until little is unseen; then scan.

    ``base_draws(n)`` gives fresh draws of the base (n, dim). The scan looks at the density of base draws, and of some
    further out, and climbs from those that the modes known so far explain least. Where a mode might still be missed
    easily, and starts help, more are made. ``after_first`` is called once it is known about how many modes there are.
    """
    limit = search.spent + limits.gradients
    along = spread_over_levels(*levels, rng)

    def left() -> float:
        return limit - search.spent

    while search.unseen > FEW_UNSEEN or search.starts < 2 * BATCH:
        for found_by, draw in (("base", base_draws), ("annealing", along)):
            search.climb(draw(BATCH), found_by=found_by, random=True, most_gradients=left())
            search.isolate()
            if search.ridges:
                search_beside(search, base_draws, most=limits.starts)
            if search.without_list:
                return
        if left() < 0.25 * limits.gradients:
            break
    after_first()
    few = FIRST_STEPS // 2
    search.climb(outwards(base_draws(BATCH)), found_by="far", random=False, most_gradients=left(), most_steps=few)
    at_target = levels[1][levels[0] >= 1.0]
    if limits.colder and len(at_target):
        before = search.spent
        search.colder(at_target, seed=int(rng.integers(2**31)), count=BATCH, most_gradients=np.inf)
        limit += search.spent - before
    _scan_in_stages(search, base_draws, levels[1], limits, left(), rng)


def _scan_in_stages(
    search: Search,
    base_draws: Callable[[int], FloatArray],
    annealed: FloatArray,
    limits: Limits,
    left: float,
    rng: np.random.Generator,
) -> None:
    """Scan the base and the ``annealed`` draws (n, dim), and climb, until the power is there.

    ``left`` are the gradient equivalents for climbing from what the scan shows.
    """
    seen: Scan | None = None
    by_chance = np.zeros(0, bool)
    stages = stages_of(limits, len(search.scale))
    for size, limits_here in stages:
        if limits_here.further:
            if not _is_doubtful(search):
                return
            search.room = limits_here.further
        elif seen is not None and not scan_pays(search, size / search.scanned):
            # A batch, for what further starts promise.
            size = BATCH
        along, annealed = annealed[: size or BATCH], annealed[size or BATCH :]
        theta = np.concatenate([base_draws(size), outwards(base_draws(size // 4)), along])
        slopes = _slopes(limits, left) if len(stages) == 1 else len(theta)
        new = search.scan(theta, gradients=slopes, drawn=size)
        left -= len(new.gradient) if limits.slopes is None else 0.0
        if not len(new.theta):
            return
        seen = new if seen is None else seen.joined(new)
        by_chance = np.append(by_chance, np.arange(len(new.theta)) < len(theta) - len(along))
        search.scanned += min(size, len(new.theta))
        all_climbed, before = False, search.spent
        while left > search.spent - before and not all_climbed:
            picked, most = search.least_explained(seen, BATCH, far_out=True), left - (search.spent - before)
            all_climbed = not search.climb(seen.theta[picked], found_by="scan", random=False, most_gradients=most)
        # A second scan has some of its own to climb from.
        left = max(left - (search.spent - before), 0.25 * limits.gradients)
        search.refine()
        levels = seen.levels(BATCH) if all_climbed else (np.inf, -1.0)
        _climb_for_power(search, base_draws, (seen, by_chance), levels, limits_here, rng)
        if search.without_list or search.power is None or _is_enough(search, search.power):
            return


def _slopes(limits: Limits, left: float) -> float:
    """Points of a scan in one stage whose gradient is looked at, at most, with so many gradient equivalents left."""
    return 0.5 * max(left, 0.0) if limits.slopes is None else limits.slopes


def _is_enough(search: Search, power: Power) -> bool:
    """Whether nothing is left to look for: little is unseen, and a mode narrower than all known ones would be noticed.

    Where the known modes are of unlike widths, others may be narrower than these.
    """
    if _is_doubtful(search):
        return False
    wanted = GOALS[0]._replace(width=GOALS[0].width * min(_relative_widths(search), default=1.0))
    return all(power(**goal._asdict()) >= SECOND_POWER for goal in (wanted, *_goals(search)[len(GOALS) :]))


def _is_doubtful(search: Search) -> bool:
    """Whether modes may be missing: some were come upon rarely, or others may be narrower than the known ones."""
    return search.unseen > FEW_UNSEEN or search.missing > MISSING or narrower(search) > NARROWER


def scan_pays(search: Search, more: float) -> bool:
    """Whether ``more`` times as many points as were scanned promise a gain of power, beside that of starts."""
    power = search.power
    if power is None or _is_doubtful(search):
        return True
    alone = replace(power, starts=0)
    for goal in _goals(search):
        now, by_scan = power(**goal._asdict()), alone(**goal._asdict())
        rise = with_more_points(alone, goal, 1.0 + more) - by_scan
        if now < GOAL_POWER and rise * (1.0 - now) > SCAN_WORTH * (1.0 - by_scan):
            return True
    return False


def with_more_points(power: Power, goal: Goal, times: float) -> float:
    """The power of a scan of so many ``times`` as many points, without starts, about.

    The nearest point to a mode comes nearer by the root of the number of points in so many dimensions, as if the mode
    were wider by it and no less high.
    """
    share = times * goal.share / (1.0 + (times - 1.0) * goal.share)
    return power(width=goal.width * times ** (1.0 / power.dim), share=share)


def _climb_for_power(
    search: Search,
    base_draws: Callable[[int], FloatArray],
    scan: tuple[Scan, BoolArray],
    levels: tuple[float, float],
    limits: Limits,
    rng: np.random.Generator,
) -> None:
    """Make further starts, in batches that double, until the power is as great as it should be.

    ``scan`` are the points that were scanned, and which of them (n,) lie where they do by chance alone: from how many
    of these lie in its basin a mode counts as come upon rarely. ``levels`` are those at which points were picked.
    """
    seen, by_chance = scan
    draws, normals = base_draws(PLACES), rng.normal(size=(PLACES, MOST_MODES))
    made, batch, known = 0, 8 * BATCH, -1
    while not search.without_list:
        if known != len(_of_mass(search)):
            # There are other modes to copy.
            known = len(_of_mass(search))
            plot = Plot(_planted(search, seen), _places(search, draws, normals), search.log_mass)
            search.power = _power(plot, search, seen, levels, limits)
        if search.power is None:
            break
        search.power = replace(search.power, starts=search.base_starts)
        search.count_held(seen, by_chance)
        wanted = _is_doubtful(search)
        if made >= limits.starts or not (wanted or _gain(search, search.power, limits.starts - made) > limits.worth):
            break
        search.climb(base_draws(batch), found_by="base", random=True, most_gradients=np.inf)
        search.isolate()
        search.refine()
        made, batch = made + batch, min(2 * batch, max(limits.starts - made - batch, 1))


def _of_mass(search: Search) -> list[int]:
    """Numbers of the modes whose share is not negligible."""
    return [k for k, share in enumerate(search.shares()) if share > NEGLIGIBLE_MASS]


def _places(search: Search, draws: FloatArray, normals: FloatArray) -> FloatArray:
    """Where modes are planted, (P, dim): as the known ones lie, where these are some; else between them and the base.

    The draws (P, dim) are of the base, the normals (P, at least the number of modes) choose among the known modes.
    """
    centres = np.stack([search.modes[k].law.centre for k in _of_mass(search)])
    count = len(centres)
    if count >= FEW_MODES:
        return np.asarray(centres.mean(axis=0) + normals[:, :count] @ (centres - centres.mean(axis=0)) / np.sqrt(count))
    nearest = centres[np.argmax(normals[:, :count], axis=1)]
    part = NEAREST + (1.0 - NEAREST) * ndtr(normals[:, -1:])
    return np.asarray(nearest + part * (draws - nearest))


def _goals(search: Search) -> list[Goal]:
    """What is to be noticed: a mode that is not narrow, and others like the lesser half of those that are known."""
    matter = _of_mass(search)
    if len(matter) < FEW_MODES:
        return list(GOALS)
    shares = search.shares()[matter]
    return [*GOALS, Goal(float(np.quantile(_relative_widths(search), 0.25)), float(np.quantile(shares, 0.25)))]


def _relative_widths(search: Search) -> list[float]:
    """Widths of the modes of some mass relative to the widest, each a mean over all directions."""
    laws, widest = search.laws, search.widest.law
    return [float(np.exp((laws[k].log_det - widest.log_det) / len(search.scale))) for k in _of_mass(search)]


def narrower(search: Search) -> float:
    """About what share of all modes is too narrow to have been found, as the widths of the known ones suggest.

    Narrow modes of less than half of the average mass do not count: a skewed mode may be listed twice, and its lesser
    part is narrow.
    """
    if search.crowded or search.without_list:
        return 0.0
    known, shares = np.array(_of_mass(search)), search.shares()[_of_mass(search)]
    widths, matter = np.array(_relative_widths(search)), shares >= 0.5 / len(shares)
    matter |= widths >= np.min(widths[matter], initial=1.0)
    counts = np.array([search.modes[k].starts + search.modes[k].held for k in known[matter]])
    return narrower_modes(widths[matter], counts, len(search.scale))


def _gain(search: Search, power: Power, starts: int) -> float:
    """How much so many further starts would add to the power of the goals that are not reached."""
    more = replace(power, starts=power.starts + starts)
    powers = [(power(**goal._asdict()), more(**goal._asdict())) for goal in _goals(search)]
    return max((then - now for now, then in powers if now < GOAL_POWER), default=0.0)


def _planted(search: Search, seen: Scan) -> Planted:
    """Copies of the modes of some mass."""
    modes = [search.modes[k] for k in _of_mass(search) if not search.modes[k].law.flat] or [search.widest]
    modes = sorted(modes, key=lambda mode: -mode.log_mass)
    laws, log_mass = [mode.law for mode in modes], [mode.log_mass for mode in modes]
    return Planted(_shape(search, seen), laws, log_mass, search.log_target_anywhere)


def _shape(search: Search, scan: Scan) -> Shape:
    """The shape of the widest mode, with tails as the points of a scan show them around their modes."""
    theta, log_q, widest = scan.theta[:TAIL_POINTS], scan.log_q[:TAIL_POINTS], search.widest
    labels, square, fall = search.labels(theta), np.zeros(len(theta)), np.zeros(len(theta))
    for k, law in enumerate(search.laws):
        own = labels == k
        square[own], fall[own] = np.sum(law.standardise(theta[own]) ** 2, axis=1), law.height - log_q[own]
    return learned_shape(widest.law, widest.log_mass - widest.law.height, square, fall)


def _power(plot: Plot, search: Search, seen: Scan, levels: tuple[float, float], limits: Limits) -> Power | None:
    """The power of the scan, by both of its measures, and how often starts lead to planted modes.

    None where its densities cannot be paid for.
    """
    near, often = limits.held
    often = min(often, limits.scan, len(seen.theta), MOST_HELD // seen.theta.shape[1])
    if search.price:
        most = min(limits.power, search.room / search.price)
        part = min(most / (len(plot.places) * plot.planted.densities * (2 * near + often)), 1.0)
        near, often = int(part * near), int(part * often)
        if not near:
            return None
    # Where not all that was picked was climbed from, the scan shows nothing.
    picked = np.isfinite(levels[0])
    must = np.maximum(seen.log_q, seen.known + levels[0]) if picked else np.full(len(seen.log_q), np.inf)
    power = noticed_at(plot.nothing(), plot, seen.theta, must, most=near)
    laws = [mode.by_curvature for mode in search.modes]
    power = noticed_by_turn(power, plot, seen, laws, limit=min(levels[1], AWAY), most=near)
    return led_by_draws(power, plot, seen.theta[:often], seen.log_q[:often])


def outwards(theta: FloatArray) -> FloatArray:
    """Draws (n, dim) of the base moved away from their centre, each by one of the factors ``FAR``.

    >>> outwards(np.array([[-1.0], [0.0], [0.0], [1.0]])).ravel().tolist()
    [-5.0, 0.0, 0.0, 33.0]
    """
    if len(theta) == 0:
        return theta
    factor = np.asarray(FAR)[np.arange(len(theta)) % len(FAR)]
    return np.asarray(theta + factor[:, None] * (theta - np.median(theta, axis=0)))


def spread_over_levels(lam: FloatArray, theta: FloatArray, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """A function that picks so many points (n, dim), evenly over the levels of the annealing pass above the base."""
    order = rng.permutation(np.flatnonzero(lam > 0)) if np.any(lam > 0) else rng.permutation(len(lam))
    # Rank within the level first: every level is used before any is used twice.
    rank = np.empty(len(order), int)
    for level in np.unique(lam[order]):
        here = np.flatnonzero(lam[order] == level)
        rank[here] = np.arange(len(here))
    queue = order[np.argsort(rank, kind="stable")]
    taken = 0

    def pick(count: int) -> FloatArray:
        nonlocal taken
        chosen = queue[np.arange(taken, taken + count) % len(queue)]
        taken += count
        return theta[chosen]

    return pick


def base_stream(sample: Callable[..., object], seed: int) -> Callable[[int], FloatArray]:
    """A function of n that gives n fresh exact draws of the base each time, from streams of their own."""
    used = 0

    def draw(count: int) -> FloatArray:
        nonlocal used
        used += 1
        return exact_draws(sample, seed=seed, stream=Draws.MODES + used, count=count)  # type: ignore[arg-type]

    return draw


def among(theta: FloatArray, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """A function of n that gives n of the points (m, dim) each time, for a base without a sampler."""
    return lambda count: theta[rng.integers(len(theta), size=count)]
