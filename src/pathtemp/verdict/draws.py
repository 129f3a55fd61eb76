"""Gates on the target draws: their number, their agreement between chains, and the tours that they come from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.result.run import Check
from pathtemp.verdict.registry import MORE, gate, judged

MOST_JUDGED = 65_536
"""R-hat and effective sample size are computed from at most this many draws: more change nothing."""

ONE_MODE, SEVERAL_MODES = 1.01, 1.02
"""Limits on R-hat of the target draws: for one mode, and for several, between which R-hat falls slowly."""

ENOUGH_ESS = 1000
"""Bulk effective sample size of the target draws that a run needs."""

FEW_DRAWS = 1250
"""With fewer target draws over all chains, R-hat and ESS are too noisy for these limits."""


def rhat_ess(draws: FloatArray, *, most: int = 40) -> tuple[float, float, float]:
    """Worst R-hat, bulk ESS and tail ESS over the last axis of (chain, draw, quantity), rank-normalised (ArviZ).

    Of more than ``most`` quantities, only those whose chain means differ most count. Of more than ``MOST_JUDGED``
    draws, evenly spaced ones are used.
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
    holds="rank-normalised R-hat of the target draws, over eight groups of chains, is below `settings.rhat` "
    "({limit:g}); "
    f"`pt.temper` requires {ONE_MODE:g} for one mode and {SEVERAL_MODES:g} for several, unless you ask for fewer than "
    f"{FEW_DRAWS} draws",
    advice="larger budget",
)
def check_rhat(rhat: float, *, limit: float = 1.05, more: str = MORE) -> Check:
    """R-hat of the target draws over chains."""
    passed = bool(rhat < limit)
    shown = "could not be computed" if np.isnan(rhat) else f"is {rhat:.3f}"
    message = f"R-hat of the target draws (lam = 1) {shown} and should be below {limit}: the chains disagree; {more}."
    return judged("R-hat", rhat, limit, passed, message)


@gate(
    "ESS",
    question="Are there enough effectively independent draws?",
    holds="bulk and tail effective sample size of the target draws are at least {limit:g}; "
    f"`pt.temper` requires {ENOUGH_ESS} in the bulk, unless you ask for fewer than {FEW_DRAWS} draws",
    advice="larger budget",
)
def check_ess(ess: float, *, limit: float = 200.0, more: str = MORE) -> Check:
    """Effective sample size of the target draws."""
    passed = bool(ess >= limit)
    shown = "could not be computed" if np.isnan(ess) else f"is {ess:.0f}"
    message = f"The effective sample size of the target draws {shown} and should be at least {limit:.0f}; {more}."
    return judged("ESS", ess, limit, passed, message)


def rhat_limit(asked: float, draws: int, *, several: bool) -> float:
    """Limit on R-hat for this number of target draws, of one mode or of ``several``; ``asked`` is the user's limit.

    >>> rhat_limit(1.05, 4096, several=False), rhat_limit(1.05, 4096, several=True), rhat_limit(1.05, 500, several=True)
    (1.01, 1.02, 1.05)
    """
    return asked if draws < FEW_DRAWS else min(asked, SEVERAL_MODES if several else ONE_MODE)


def check_both_ess(bulk: float, tail: float, draws: int) -> Check:
    """The gate on the bulk and tail effective sample size of this number of target draws.

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

    It is the number of equally long tours with the same relative variance. One long stay in a region that is hard to
    enter and to leave reduces it to a few.

    >>> effective_tours(np.array([3.0, 3.0, 3.0, 0.0]))
    3.0
    """
    square = float(np.sum(visits**2))
    return float(np.sum(visits)) ** 2 / square if square > 0 else 0.0


@gate(
    "effective tours",
    question="Do the draws come from many independent round trips rather than from a few long ones?",
    holds="the target draws come from at least {limit:g} effective tours: (sum v)² / sum v², with v the number of "
    "target draws in each tour",
    advice="larger budget, or a base that covers the part of the target that is hard to enter and to leave",
)
def check_effective_tours(visits: FloatArray, *, limit: int = 30) -> Check:
    """The target draws are spread over many tours."""
    effective = effective_tours(visits)
    longest = float(visits.max() / max(visits.sum(), 1.0)) if len(visits) else 1.0
    message = (
        f"The target draws come from {effective:.0f} effective tours, and at least {limit} are needed (the longest "
        f"tour has {100 * longest:.0f}% of the draws): some part of the target (lam = 1) is hard to enter "
        f"and to leave; {MORE}, or choose a base that covers it."
    )
    return judged("effective tours", effective, limit, effective >= limit, message)


TINY_SHARE = 0.01
"""Share of the target draws that a few long tours may hold, if all of these tours have ended."""


@gate(
    "long tours",
    question="Is every part of the target known from more than a few very long round trips?",
    holds="no small group of tours (fewer than ten) stayed at the target more than {limit:g} times as long as an "
    "exponential tail allows",
    advice="larger budget, or a base that covers the part of the target in which these tours stayed",
)
def check_long_tours(
    visits: FloatArray, under_way: FloatArray | None = None, *, limit: float = 2.0, enough: int = 10
) -> Check:
    """No small group of tours stays at the target far longer than all others with a share of the draws that matters.

    ``visits`` is the number of target draws of each tour that has ended, ``under_way`` that of each unfinished tour.
    With an exponential tail, the longest of n tours would stay at most about mean * (log n + 3). Tours far beyond that
    are in a region that is hard to enter and to leave. If there are only a few of them, the share of that region is
    poorly known; ``enough`` of them are a sample. If all of them have ended, their share of the draws estimates the
    share of the region, and a tiny one passes. An unfinished tour gives no such estimate.
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
        f"{every.mean():.1f} on average: they were in a part of it that is hard to enter and to leave, whose share is "
        f"poorly known; {MORE}, or choose a base that covers that part."
    )
    return judged("long tours", ratio, limit, passed, message)


@gate(
    "peak",
    question="Did the chains agree on where the target is densest?",
    holds="no small group of chains (four at most) saw far denser points of the target than all other chains",
    advice="larger budget, or a base that covers the narrow mode that these chains found",
)
def check_peak(log_density: FloatArray, chain: IntArray, *, few: int = 4, limit: float = 0.0) -> Check:
    """No small group of chains has seen far denser points of the target than all other chains.

    ``log_density`` of the target draws and the ``chain`` of each, shape (n,). The highest values of the chains are
    sorted. A large gap after one of the first ``few`` fails the gate: these chains alone found a narrow mode. A gap is
    large if it exceeds one nat plus half the distance between maximum and median of the remaining chains' draws.
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
                f"Only {k} of {len(named)} chains (number {numbers}) saw points of the target (lam = 1) that are "
                f"e^{gap:.1f} times denser than any that the others saw: a narrow mode that is hard to find, with an "
                f"unknown share; {MORE}, or choose a base that covers it."
            )
            return Check("peak", k, limit, False, message)
    return Check("peak", 0.0, limit, True)


@gate(
    "lost",
    question="Did later draws return to every region seen early in the run?",
    holds="later draws returned to every region that early draws at lam = 1 had reached",
    advice="larger budget, or a base that covers the region that was lost",
)
def check_lost(early: FloatArray, final: FloatArray, *, limit: float = 0.0) -> Check:
    """No region of the target that early draws reached has been lost.

    ``early`` are points (n, quantity) at lam = 1 of the annealing pass and the adaptive rounds, ``final`` those of the
    frozen rounds; the last quantity is the log density. An early point counts as lost if it lies beyond all final ones
    by twice the distance between their extreme and their 5% or 95% quantile, or if its log density exceeds their
    maximum by more than the distance from maximum to median, plus one nat.
    """
    if len(early) == 0 or len(final) < 20:
        return Check("lost", 0.0, limit, True)
    low, lower, upper, high = np.quantile(final, [0.0, 0.05, 0.95, 1.0], axis=0)
    outside = (early > high + 2.0 * (high - upper)) | (early < low - 2.0 * (lower - low))
    outside[:, -1] = early[:, -1] > 2.0 * high[-1] - np.median(final[:, -1]) + 1.0
    lost = int(np.count_nonzero(outside.any(axis=1)))
    message = (
        f"{lost} of {len(early)} target draws (lam = 1) of the annealing pass or the adaptive rounds lie where no "
        f"later draw was: the chains found a part of the target and lost it again; {MORE}, or choose a base that "
        "covers it."
    )
    return judged("lost", lost, limit, lost <= limit, message)


@gate(
    "base",
    question="Did HMC sample the base well? (The base has no sampler of its own.)",
    holds="if the base has no sampler: HMC at lam = 0 mixes (R-hat below {limit:g}), and the budget sufficed to show "
    "it",
    advice="a larger budget, or a base that can be sampled",
    lasts=True,
)
def check_base(rhat: float, *, limit: float = 1.1) -> Check:
    """HMC at lam = 0 sampled a base well that is only a density."""
    passed = bool(rhat < limit)
    message = (
        f"The base has no sampler, and its share of the budget was too small to check that HMC at lam = 0 mixes; "
        f"{MORE}, or give a base that can be sampled."
        if np.isnan(rhat)
        else f"The base has no sampler, and HMC on it at lam = 0 does not mix (R-hat {rhat:.2f}): the base is "
        "multimodal, improper or badly scaled, or the budget is too small; give a base that can be sampled, a simpler "
        "base, or a larger budget."
    )
    return judged("base", rhat, limit, passed, message)


@gate(
    "early long tours",
    question="Were there no such long round trips during adaptation?",
    holds="as long tours, for the tours of the adaptive rounds",
    advice="as for long tours",
    lasts=True,
)
def check_early_long_tours(visits: FloatArray, under_way: FloatArray, *, limit: float = 2.0) -> Check:
    """The gate on long tours, for the tours of the adaptive rounds."""
    check = check_long_tours(visits, under_way, limit=limit)
    message = check.message and f"In the adaptive rounds, {check.message[0].lower()}{check.message[1:]}"
    return replace(check, name="early long tours", message=message)


@gate(
    "R-hat given lam",
    question="Do the chains agree on the other parameters at each point of the path?",
    holds="R-hat of the other parameters given lam, standardised along the path, is below {limit:g}",
    advice="another margin, or reparametrise: the other parameters have several modes at one lam, or a funnel",
)
def check_conditional(rhat: float, *, limit: float = 1.1) -> Check:
    """The other parameters given lam, standardised by the transport, have the same law in all chains."""
    message = (
        f"R-hat of the other parameters given lam is {rhat:.3f} and should be below {limit}: the chains disagree on "
        f"them, which suggests several modes at one lam; {MORE}."
    )
    return judged("R-hat given lam", rhat, limit, rhat < limit, message)


@gate(
    "draws",
    question="Are there as many draws of the target as you asked for?",
    holds="the run made as many target draws as you asked for",
    advice="larger budget, or fewer draws",
)
def check_draws(made: int, visits: int, *, limit: int = 1, short: int = 0) -> Check:
    """The run ``made`` the ``limit`` target draws asked for, or at most ``short`` fewer, in this many ``visits``."""
    message = (
        f"The run made {made} of the {limit} target draws asked for, as the chains visited lam = 1 only {visits} "
        f"times; {MORE}, or ask for fewer draws."
    )
    return judged("draws", made, limit, made > max(limit - short, 0), message)
