"""Gates on what the chains brought: draws of the target that are many, agree, and rest on many tours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.result.run import Check
from pathtemp.verdict.registry import MORE, gate, judged

MOST_JUDGED = 65_536
"""Draws of which R-hat and effective sample size are computed: more show nothing further."""

ONE_MODE, SEVERAL_MODES = 1.01, 1.02
"""R-hat of the target draws below which a run has mixed: within one mode, and between modes, where it falls slowly."""

ENOUGH_ESS = 1000
"""Effective target draws (bulk) from which a run has enough."""

FEW_DRAWS = 1250
"""Target draws over all chains below which R-hat and ESS are too noisy for that: the user asked for so few."""


def rhat_ess(draws: FloatArray, *, most: int = 40) -> tuple[float, float, float]:
    """Worst R-hat, bulk ESS and tail ESS over the last axis of (chain, draw, quantity), rank-normalised (ArviZ).

    Where there are more than ``most`` quantities, over those whose chain means differ most; where there are more than
    ``MOST_JUDGED`` draws, of evenly spaced ones.
    """
    from arviz_stats.base import array_stats

    chains, count, quantities = draws.shape
    if chains < 2 or count < 4:
        return float("nan"), float("nan"), float("nan")
    varying = np.flatnonzero(np.ptp(draws.reshape(-1, quantities), axis=0) > 0)
    if len(varying) == 0:
        return float("nan"), float("nan"), float("nan")
    draws = draws[:, :: -(-chains * count // MOST_JUDGED)]
    between = draws.mean(axis=1).var(axis=0)[varying] / draws.var(axis=(0, 1))[varying]
    x = draws[..., varying[np.argsort(between)[-most:]]]
    rhat = array_stats.rhat(x, chain_axis=0, draw_axis=1)
    bulk = array_stats.ess(x, chain_axis=0, draw_axis=1, method="bulk")
    tail = array_stats.ess(x, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95))
    return float(np.max(rhat)), float(np.min(bulk)), float(np.min(tail))


@gate(
    "R-hat",
    question="Do the chains agree with each other?",
    holds="rank-normalised R-hat of the target draws over eight groups of chains below `settings.rhat` ({limit:g}); "
    f"by `pt.temper` below {ONE_MODE:g}, or {SEVERAL_MODES:g} between modes, unless few draws are asked for",
    advice="larger budget",
)
def check_rhat(rhat: float, *, limit: float = 1.05, more: str = MORE) -> Check:
    """R-hat of the target draws over chains."""
    passed = bool(rhat < limit)
    shown = "could not be computed" if np.isnan(rhat) else f"is {rhat:.3f}"
    message = f"R-hat of the target draws (lam = 1) {shown}, and should be below {limit}: chains disagree; {more}."
    return judged("R-hat", rhat, limit, passed, message)


@gate(
    "ESS",
    question="Are there enough effectively independent draws?",
    holds="bulk and tail effective sample size of the target draws {limit:g} or more; by `pt.temper` bulk "
    f"{ENOUGH_ESS} or more, unless few draws are asked for",
    advice="larger budget",
)
def check_ess(ess: float, *, limit: float = 200.0, more: str = MORE) -> Check:
    """Effective sample size of the target draws."""
    passed = bool(ess >= limit)
    shown = "could not be computed" if np.isnan(ess) else f"is {ess:.0f}"
    message = f"The effective sample size of the target draws {shown}, and should be {limit:.0f} at least; {more}."
    return judged("ESS", ess, limit, passed, message)


def most_rhat(asked: float, draws: int, *, several: bool) -> float:
    """Largest R-hat of so many target draws, of one mode or of ``several``; ``asked`` is what the user allows at most.

    >>> most_rhat(1.05, 4096, several=False), most_rhat(1.05, 4096, several=True), most_rhat(1.05, 500, several=True)
    (1.01, 1.02, 1.05)
    """
    return asked if draws < FEW_DRAWS else min(asked, SEVERAL_MODES if several else ONE_MODE)


def check_both_ess(bulk: float, tail: float, draws: int) -> Check:
    """The gate on the effective size of so many target draws, in the bulk and in the tails.

    >>> check_both_ess(900.0, 900.0, 4096).passed, check_both_ess(1500.0, 900.0, 4096).passed
    (False, True)
    >>> check_both_ess(300.0, 250.0, 500).passed, check_both_ess(1500.0, 150.0, 4096).passed
    (True, False)
    """
    if draws >= FEW_DRAWS and bulk < ENOUGH_ESS:
        return check_ess(bulk, limit=ENOUGH_ESS)
    return check_ess(min(bulk, tail))


def effective_tours(visits: FloatArray) -> float:
    """(sum v)^2 / sum v^2 over tours, v the number of target draws in a tour.

    It is the number of equal tours with the same relative variance: one long stay in a part of the target that is
    hard to find and hard to leave brings it down to a few.

    >>> effective_tours(np.array([3.0, 3.0, 3.0, 0.0]))
    3.0
    """
    square = float(np.sum(visits**2))
    return float(np.sum(visits)) ** 2 / square if square > 0 else 0.0


@gate(
    "effective tours",
    question="Do the draws come from many independent round trips rather than from a few long ones?",
    holds="the target draws come from {limit:g} effective tours or more; (sum v)² / sum v² over the draws v of each "
    "tour",
    advice="a part of the target is hard to enter and to leave: larger budget, a base that covers it",
)
def check_effective_tours(visits: FloatArray, *, limit: int = 30) -> Check:
    """No few tours hold most of the target draws."""
    effective = effective_tours(visits)
    longest = float(visits.max() / max(visits.sum(), 1.0)) if len(visits) else 1.0
    message = (
        f"The target draws come from only {effective:.0f} effective tours of {limit} at least (one alone holds "
        f"{100 * longest:.0f}% of them): some part of the target is hard to enter and to leave at lam near 1; {MORE}, "
        "or choose a base that covers it."
    )
    return judged("effective tours", effective, limit, effective >= limit, message)


TINY_SHARE = 0.01
"""Share of the target draws that may rest on a handful of long tours, if all of them have ended."""


@gate(
    "long tours",
    question="Is there no part of the target that a handful of round trips stayed in far longer than all others?",
    holds="no handful of tours stayed at the target far longer than all others ({limit:g} times what an exponential "
    "tail allows)",
    advice="as above: the share of that part rests on a handful of visits",
)
def check_long_tours(
    visits: FloatArray, under_way: FloatArray | None = None, *, limit: float = 2.0, enough: int = 10
) -> Check:
    """No few tours stay at the target far longer than all others, and hold a part of it that matters.

    ``visits`` are the target draws of each tour that has ended, ``under_way`` those of each that has not. Were their
    tail exponential, the longest of n tours would stay about mean * (log n + 3) at most. A handful of tours beyond
    that hold a part of the target that is hard to enter and hard to leave, whose share rests on that handful; more
    than ``enough`` of them are a sample. Where all of them came back, their share of the draws is an estimate of that
    part, if a poor one: a tiny part is let pass. One that has not come back says nothing of how large it is.
    """
    under_way = np.empty(0) if under_way is None else under_way
    every = np.concatenate([visits, under_way])
    if len(every) == 0:
        return Check("long tours", float("nan"), limit, True)
    scale = float(every.mean()) * (np.log(len(every)) + 3.0)
    ratio = float(every.max()) / scale
    long = every > limit * scale
    count = int(np.count_nonzero(long))
    stuck = bool(np.any(under_way > limit * scale))
    tiny = not stuck and float(every[long].sum()) < TINY_SHARE * float(every.sum())
    passed = count == 0 or count >= enough or tiny
    message = (
        f"{count} of {len(every)} tours stayed at the target (lam = 1) for up to {every.max():.0f} draws, against "
        f"{every.mean():.1f} on average: they hold a part of it that is hard to enter and to leave, and its share "
        f"rests on them alone; {MORE}, or choose a base that covers that part."
    )
    return judged("long tours", ratio, limit, passed, message)


@gate(
    "peak",
    question="Did the chains agree on where the target is densest?",
    holds="no few chains alone saw a part of the target far denser than all that the others saw",
    advice="a narrow mode that is hard to find: larger budget, a base that covers it",
)
def check_peak(log_density: FloatArray, chain: IntArray, *, few: int = 4, limit: float = 0.0) -> Check:
    """No few chains alone have seen a part of the target far higher than all that the others saw.

    ``log_density`` of the target draws and the ``chain`` of each, shape (n,). The highest value of each chain is
    sorted; a gap below one of the first ``few`` that is wider than half the distance from the highest of the remaining
    chains to their median, and than one nat, sets those chains apart: they alone found a narrow mode.
    """
    named = np.unique(chain)
    if len(named) <= 2 * few:
        return Check("peak", float("nan"), limit, True)
    tops = np.full(int(named[-1]) + 1, -np.inf)
    np.maximum.at(tops, chain, log_density)
    order = named[np.argsort(-tops[named], kind="stable")]
    for k in range(1, few + 1):
        highest = float(tops[order[k]])
        gap = float(tops[order[k - 1]]) - highest
        if gap > 1.0 + 0.5 * (highest - np.median(log_density[~np.isin(chain, order[:k])])):
            numbers = ", ".join(str(i) for i in order[:k])
            message = (
                f"Only {k} of {len(named)} chains (number {numbers}) saw a part of the target (lam = 1) whose density "
                f"is e^{gap:.1f} times the highest that all others saw: a narrow mode that is hard to find, and "
                f"its share is not known; {MORE}, or choose a base that covers it."
            )
            return Check("peak", k, limit, False, message)
    return Check("peak", 0.0, limit, True)


@gate(
    "lost",
    question="Was everything that was seen early on seen again later?",
    holds="nothing seen at lam = 1 early on lies where no later draw came",
    advice="a mode was found and lost again: larger budget, a base that covers it",
)
def check_lost(early: FloatArray, final: FloatArray, *, limit: float = 0.0) -> Check:
    """Nothing that was seen at the target early on has been lost since.

    ``early`` and ``final`` are points (n, quantity) at lam = 1 of the annealing pass and the adaptive rounds, and of
    the frozen rounds; the last quantity is the log density. An early point counts as lost when it lies beyond all final
    ones by twice the distance between their extreme and their 95% quantile, or its log density above the highest by
    the distance between highest and median.
    """
    if len(early) == 0 or len(final) < 20:
        return Check("lost", 0.0, limit, True)
    low, lower, upper, high = np.quantile(final, [0.0, 0.05, 0.95, 1.0], axis=0)
    outside = (early > high + 2.0 * (high - upper)) | (early < low - 2.0 * (lower - low))
    outside[:, -1] = early[:, -1] > 2.0 * high[-1] - np.median(final[:, -1]) + 1.0
    lost = int(np.count_nonzero(outside.any(axis=1)))
    message = (
        f"{lost} of {len(early)} early draws at the target (lam = 1), of the annealing pass or the adaptive rounds, "
        f"lie where no later draw came: a part of it was found and lost again; {MORE}, or choose a base that covers it."
    )
    return judged("lost", lost, limit, lost <= limit, message)


@gate(
    "base",
    question="Was the base, which has no sampler of its own, itself explored well?",
    holds="where the base has no sampler: HMC at lam = 0 mixes (R-hat below {limit:g}), and the budget was enough to "
    "tell",
    advice="a larger budget, or a base that can be sampled",
    lasts=True,
)
def check_base(rhat: float, *, limit: float = 1.1) -> Check:
    """The base, where it is only a density, was sampled well by HMC at lam = 0."""
    passed = bool(rhat < limit)
    message = (
        f"The base has no sampler, and its share of the budget was too small for HMC at lam = 0 to show that it mixes; "
        f"{MORE}, or give a base that can be sampled."
        if np.isnan(rhat)
        else f"The base has no sampler, and HMC on it at lam = 0 does not mix (R-hat {rhat:.2f} over starts): it is "
        "multimodal, improper or badly scaled, or the budget is too small to get there; give a base that can be "
        "sampled, or a simpler one, or a larger budget."
    )
    return judged("base", rhat, limit, passed, message)


@gate(
    "early long tours",
    question="The same, while the sampler was still adapting.",
    holds="the same for the adaptive rounds",
    advice="as above",
    lasts=True,
)
def check_early_long_tours(visits: FloatArray, under_way: FloatArray, *, limit: float = 2.0) -> Check:
    """The gate on long tours, for those of the adaptive rounds."""
    check = check_long_tours(visits, under_way, limit=limit)
    message = check.message and f"In the adaptive rounds, {check.message[0].lower()}{check.message[1:]}"
    return replace(check, name="early long tours", message=message)


@gate(
    "R-hat given lam",
    question="Do the chains agree at each place along the margin?",
    holds="R-hat of the other parameters given lam, standardised along the path, below {limit:g}",
    advice="they have several modes at one lam, or a funnel of their own: another margin, or reparametrise",
)
def check_conditional(rhat: float, *, limit: float = 1.1) -> Check:
    """The other parameters given lam, standardised by the transport, have the same law in all chains."""
    message = (
        f"R-hat of the other parameters given lam is {rhat:.3f}, and should be below {limit}: the chains disagree on "
        f"them, as if they had several modes at one lam; {MORE}."
    )
    return judged("R-hat given lam", rhat, limit, rhat < limit, message)


@gate(
    "draws",
    question="Are there as many draws of the target as were asked for?",
    holds="as many target draws as asked for",
    advice="larger budget, or fewer draws",
)
def check_draws(made: int, visits: int, *, limit: int = 1, short: int = 0) -> Check:
    """As many target draws were ``made`` as asked for, ``short`` of so many at most, of so many ``visits``."""
    message = (
        f"{made} target draws were made of {limit} asked for; the chains were at lam = 1 {visits} times; {MORE}, or "
        "ask for fewer draws."
    )
    return judged("draws", made, limit, made > max(limit - short, 0), message)
