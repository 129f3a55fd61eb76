"""The verdict: gates that must all pass before a run may call itself converged.

Each gate is one function from plain arrays to a :class:`pathtemp.run.Check`; its message says what happened, where on
the path, and what to do next. k-hat is reported beside them and is no gate: it sees only the visited part of the path.
"""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.run import Check, Rejections

BINS = 20
"""Bins of position along the path for coverage."""

MORE = "run longer (a larger budget)"


def rhat_ess(draws: FloatArray, *, most: int = 40) -> tuple[float, float, float]:
    """Worst R-hat, bulk ESS and tail ESS over the last axis of (chain, draw, quantity), rank-normalised (ArviZ).

    Where there are more than ``most`` quantities, over those whose chain means differ most.
    """
    from arviz_stats.base import array_stats

    chains, count, quantities = draws.shape
    if chains < 2 or count < 4:
        return float("nan"), float("nan"), float("nan")
    varying = np.flatnonzero(np.ptp(draws.reshape(-1, quantities), axis=0) > 0)
    if len(varying) == 0:
        return float("nan"), float("nan"), float("nan")
    between = draws.mean(axis=1).var(axis=0)[varying] / draws.var(axis=(0, 1))[varying]
    x = draws[..., varying[np.argsort(between)[-most:]]]
    rhat = array_stats.rhat(x, chain_axis=0, draw_axis=1)
    bulk = array_stats.ess(x, chain_axis=0, draw_axis=1, method="bulk")
    tail = array_stats.ess(x, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95))
    return float(np.max(rhat)), float(np.min(bulk)), float(np.min(tail))


def check_reach(lam: float) -> Check:
    """The annealing pass came to the target."""
    message = (
        f"The annealing pass spent its share of the budget at lam = {lam:.3g}, short of the target; {MORE}, or choose "
        "a base closer to the target."
    )
    return Check("reach", lam, 1.0, lam >= 1.0, "" if lam >= 1.0 else message)


def check_rounds(rounds: int, *, fewest: int = 2) -> Check:
    """Enough rounds were left for the frozen kernel."""
    message = f"Only {rounds} rounds were left after adaptation, of {fewest} at least; {MORE}."
    return Check("rounds", rounds, fewest, rounds >= fewest, "" if rounds >= fewest else message)


def check_coverage(lam: FloatArray, position: FloatArray, lam_edges: FloatArray) -> Check:
    """Every part of the path was visited: both atoms, and each of the bins between ``lam_edges``."""
    inside = (lam > 0) & (lam < 1)
    count = np.histogram(position[inside], bins=len(lam_edges) - 1, range=(0.0, 1.0))[0]
    seen = np.concatenate([[np.any(lam <= 0)], count > 0, [np.any(lam >= 1)]])
    share = float(seen.mean())
    if seen.all():
        return Check("coverage", share, 1.0, True)
    if not seen[-1]:
        where = "the target (lam = 1)"
    elif not seen[0]:
        where = "the base (lam = 0)"
    else:
        gap = int(np.flatnonzero(~seen[1:-1])[0])
        where = f"lam between {lam_edges[gap]:.3g} and {lam_edges[gap + 1]:.3g}"
    return Check(
        "coverage",
        share,
        1.0,
        False,
        f"No chain visited {where}; {MORE}, or a base closer to it.",
    )


def check_tours(trips: int, *, fewest: int = 20) -> Check:
    """Round trips base -> target -> base."""
    message = f"The chains made {trips} round trips between base and target, of {fewest} at least; {MORE}."
    return Check("tours", trips, fewest, trips >= fewest, "" if trips >= fewest else message)


def check_stuck(returns: FloatArray, lam: FloatArray) -> Check:
    """Every chain has been back at the base; ``returns`` counts it, ``lam`` (iterations, chains) says where it was."""
    stuck = np.flatnonzero(returns == 0)
    if len(stuck) == 0:
        return Check("stuck chains", 0, 0, True)
    shown = lam[:, stuck[stuck < lam.shape[1]]]
    low, high = (shown.min(), shown.max()) if shown.size else (0.0, 1.0)
    named = ", ".join(map(str, stuck[:5])) + (", ..." if len(stuck) > 5 else "")
    message = (
        f"{len(stuck)} of {len(returns)} chains (number {named}) never came back to the base and stayed at lam between "
        f"{low:.3g} and {high:.3g}: a part of the target they cannot leave, or a path too long for the budget; {MORE}, "
        "or choose a base that covers what these chains hold."
    )
    return Check("stuck chains", len(stuck), 0, False, message)


def effective_tours(visits: FloatArray) -> float:
    """(sum v)^2 / sum v^2 over tours, v the number of target draws in a tour.

    It is the number of equal tours with the same relative variance: one long stay in a part of the target that is
    hard to find and hard to leave brings it down to a few.

    >>> effective_tours(np.array([3.0, 3.0, 3.0, 0.0]))
    3.0
    """
    square = float(np.sum(visits**2))
    return float(np.sum(visits)) ** 2 / square if square > 0 else 0.0


def check_effective_tours(visits: FloatArray, *, fewest: int = 30) -> Check:
    """No few tours hold most of the target draws."""
    effective = effective_tours(visits)
    longest = float(visits.max() / max(visits.sum(), 1.0)) if len(visits) else 1.0
    message = (
        f"The target draws come from only {effective:.0f} effective tours of {fewest} at least (one alone holds "
        f"{100 * longest:.0f}% of them): some part of the target is hard to enter and to leave at lam near 1; {MORE}, "
        "or choose a base that covers it."
    )
    return Check("effective tours", effective, fewest, effective >= fewest, "" if effective >= fewest else message)


TINY_SHARE = 0.01
"""Share of the target draws that may rest on a handful of long tours, if all of them have ended."""


def check_long_tours(
    visits: FloatArray, under_way: FloatArray | None = None, *, most: float = 2.0, enough: int = 10
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
        return Check("long tours", float("nan"), most, True)
    scale = float(every.mean()) * (np.log(len(every)) + 3.0)
    ratio = float(every.max()) / scale
    long = every > most * scale
    count = int(np.count_nonzero(long))
    stuck = bool(np.any(under_way > most * scale))
    tiny = not stuck and float(every[long].sum()) < TINY_SHARE * float(every.sum())
    passed = count == 0 or count >= enough or tiny
    message = (
        f"{count} of {len(every)} tours stayed at the target (lam = 1) for up to {every.max():.0f} draws, against "
        f"{every.mean():.1f} on average: they hold a part of it that is hard to enter and to leave, and its share "
        f"rests on them alone; {MORE}, or choose a base that covers that part."
    )
    return Check("long tours", ratio, most, passed, "" if passed else message)


def check_peak(log_density: FloatArray, chain: IntArray, *, few: int = 4) -> Check:
    """No few chains alone have seen a part of the target far higher than all that the others saw.

    ``log_density`` of the target draws and the ``chain`` of each, shape (n,). The highest value of each chain is
    sorted; a gap below one of the first ``few`` that is wider than half the distance from the highest of the remaining
    chains to their median, and than one nat, sets those chains apart: they alone found a narrow mode.
    """
    named = np.unique(chain)
    if len(named) <= 2 * few:
        return Check("peak", float("nan"), 0.0, True)
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
            return Check("peak", k, 0.0, False, message)
    return Check("peak", 0.0, 0.0, True)


def check_lost(early: FloatArray, final: FloatArray) -> Check:
    """Nothing that was seen at the target early on has been lost since.

    ``early`` and ``final`` are points (n, quantity) at lam = 1 of the annealing pass and the adaptive rounds, and of
    the frozen rounds; the last quantity is the log density. An early point counts as lost when it lies beyond all final
    ones by twice the distance between their extreme and their 95% quantile, or its log density above the highest by
    the distance between highest and median.
    """
    if len(early) == 0 or len(final) < 20:
        return Check("lost", 0.0, 0.0, True)
    low, lower, upper, high = np.quantile(final, [0.0, 0.05, 0.95, 1.0], axis=0)
    outside = (early > high + 2.0 * (high - upper)) | (early < low - 2.0 * (lower - low))
    outside[:, -1] = early[:, -1] > 2.0 * high[-1] - np.median(final[:, -1]) + 1.0
    lost = int(np.count_nonzero(outside.any(axis=1)))
    message = (
        f"{lost} of {len(early)} early draws at the target (lam = 1), of the annealing pass or the adaptive rounds, "
        f"lie where no later draw came: a part of it was found and lost again; {MORE}, or choose a base that covers it."
    )
    return Check("lost", lost, 0.0, lost == 0, "" if lost == 0 else message)


def check_acceptance(acceptance: FloatArray, weight: FloatArray, lam: FloatArray, *, lowest: float = 0.3) -> Check:
    """HMC accepts often enough everywhere; arrays along the path, ``weight`` the number of moves at each position."""
    used = weight > 0
    if not used.any():
        return Check("acceptance", 0.0, lowest, False, f"No HMC move was made; {MORE}.")
    worst = int(np.argmin(np.where(used, acceptance, np.inf)))
    value = float(acceptance[worst])
    message = (
        f"HMC accepts only {100 * value:.0f}% of its moves near lam = {lam[worst]:.3g}: the density is rougher there "
        "than the step size; run with settings.acceptance nearer 1, or reparametrise."
    )
    return Check("acceptance", value, lowest, value >= lowest, "" if value >= lowest else message)


def check_rhat(rhat: float, *, highest: float) -> Check:
    """R-hat of the target draws over chains."""
    passed = bool(rhat < highest)
    shown = "could not be computed" if np.isnan(rhat) else f"is {rhat:.3f}"
    message = f"R-hat of the target draws (lam = 1) {shown}, and should be below {highest}: chains disagree; {MORE}."
    return Check("R-hat", rhat, highest, passed, "" if passed else message)


def check_ess(ess: float, *, lowest: float = 200.0) -> Check:
    """Effective sample size of the target draws."""
    passed = bool(ess >= lowest)
    shown = "could not be computed" if np.isnan(ess) else f"is {ess:.0f}"
    message = f"The effective sample size of the target draws {shown}, and should be {lowest:.0f} at least; {MORE}."
    return Check("ESS", ess, lowest, passed, "" if passed else message)


def check_agreement(first: tuple[float, float], second: tuple[float, float], names: tuple[str, str]) -> Check:
    """Two estimates of log z(1), each (value, standard error), agree within their errors."""
    error = float(np.hypot(first[1], second[1])) + 0.01
    z = abs(first[0] - second[0]) / error if np.isfinite(error) else float("inf")
    passed = bool(z <= 4.0)
    message = (
        f"Two estimates of log z(1) disagree: {names[0]} gives {first[0]:.4g} ± {first[1]:.2g}, {names[1]} "
        f"{second[0]:.4g} ± {second[1]:.2g}; lam has not reached equilibrium, or a part of the target was lost between "
        f"rounds; {MORE}."
    )
    return Check("agreement", z, 4.0, passed, "" if passed else message)


def check_precision(se: float, *, highest: float = 1.0) -> Check:
    """The standard error of log z(1) is finite and not absurd."""
    passed = bool(se <= highest)
    shown = f"is {se:.2g}, more than {highest}" if np.isfinite(se) else "is not known"
    message = f"The standard error of log z(1) {shown}: the path has hardly been crossed; {MORE}."
    return Check("log z error", se, highest, passed, "" if passed else message)


def check_nan(rejected: Rejections, *, most: float = 1e-3) -> Check:
    """The log densities were numbers, or -inf, almost everywhere."""
    share = rejected.nan / max(rejected.evaluations, 1)
    message = (
        f"The log density was NaN at {rejected.nan:,} of {rejected.evaluations:,} points ({100 * share:.2g}%), "
        f"{rejected.where_nan}: such points count as zero density, and what mass they should hold is missing; mend the "
        "density, or let it return -inf where it is zero."
    )
    return Check("NaN", share, most, share <= most, "" if share <= most else message)


def check_base(rhat: float, *, highest: float = 1.1) -> Check:
    """The base, where it is only a density, was sampled well by HMC at lam = 0."""
    passed = bool(rhat < highest)
    message = (
        f"The base has no sampler, and its share of the budget was too small for HMC at lam = 0 to show that it mixes; "
        f"{MORE}, or give a base that can be sampled."
        if np.isnan(rhat)
        else f"The base has no sampler, and HMC on it at lam = 0 does not mix (R-hat {rhat:.2f} over starts): it is "
        "multimodal, improper or badly scaled, or the budget is too small to get there; give a base that can be "
        "sampled, or a simpler one, or a larger budget."
    )
    return Check("base", rhat, highest, passed, "" if passed else message)
