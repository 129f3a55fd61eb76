"""Gates on how the chains moved along the path: coverage, round trips, acceptance, agreement of the estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.result.run import FINISHED, Check
from pathtemp.verdict.registry import MORE, gate, gates, judged

NO_MOVES = f"No HMC move was made; {MORE}."

BINS = 20
"""Bins of position along the path for coverage."""


@gate(
    FINISHED,
    question="Did the run come to its end?",
    holds="the run was not interrupted (listed only if it was)",
    advice="`fit.extend(...)`, or `pt.resume` on its checkpoint",
)
def check_finished(
    spent: float, ways: Sequence[str], *, limit: float = float("inf"), unit: str = "gradient evaluations"
) -> Check:
    """The run was interrupted after it had spent this many of ``unit``; ``ways`` lists how to continue it."""
    of = f" of at most {limit:,.0f}" if limit < float("inf") else ""
    again = f"go on with {', or '.join(ways)}" if ways else "run it again, with checkpoint= to be able to resume"
    message = f"The run was interrupted after {spent:,} {unit}{of}; {again}."
    return judged(FINISHED, spent, limit, False, message)


def when_interrupted(stopped: Check, checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks of an interrupted run, ``stopped`` first; checks that more rounds may pass lose their message.

    >>> stopped, few = Check("finished", 1, 9, False, "Go on."), Check("tours", 3, 20, False, "Too few.")
    >>> [check.message for check in when_interrupted(stopped, [few])]
    ['Go on.', '']
    """
    known = gates()

    def stays(check: Check) -> bool:
        return check.passed or (known[check.name].lasts and check.message != NO_MOVES)

    return (stopped, *(check if stays(check) else replace(check, message="") for check in checks))


@gate(
    "reach",
    question="Did the first pass along the path reach the target?",
    holds="the annealing pass reached lam = {limit:g}",
    advice="larger budget, or a base closer to the target",
    lasts=True,
)
def check_reach(lam: float, *, limit: float = 1.0) -> Check:
    """The annealing pass reached the target."""
    message = (
        f"The annealing pass used up its share of the budget at lam = {lam:.3g}, before it reached the target (lam = "
        f"1); {MORE}, or choose a base closer to the target."
    )
    return judged("reach", lam, limit, lam >= limit, message)


@gate(
    "rounds",
    question="Were there enough rounds after adaptation ended?",
    holds="at least {limit:g} rounds after the end of adaptation",
    advice="larger budget",
)
def check_rounds(rounds: int, *, limit: int = 2) -> Check:
    """Enough rounds were left for the frozen kernel."""
    message = f"The budget left {rounds} rounds after adaptation, and at least {limit} are needed; {MORE}."
    return judged("rounds", rounds, limit, rounds >= limit, message)


@gate(
    "coverage",
    question="Was every part of the path visited, both ends included?",
    holds="chains visited each of 20 bins of the path, and its ends (if it has any)",
    advice="larger budget, or a base closer to the target",
)
def check_coverage(
    visits: FloatArray,
    edges: FloatArray,
    *,
    at_ends: tuple[float, float] | None = None,
    limit: float = 1.0,
    more: str = f"{MORE}, or choose a base closer to it",
) -> Check:
    """Chains visited every part of the path.

    Parameters
    ----------
    visits
        Number of visits to each bin, shape (n,).
    edges
        Edges of the bins in lam, shape (n + 1,); for a ladder, its rungs, shape (n,).
    at_ends
        Visits to exactly lam = 0 and lam = 1, if the path has these atoms.
    limit
        Smallest share of bins and ends that must have been visited.
    more
        Advice.
    """
    ends = () if at_ends is None else at_ends
    share = float(np.mean(np.concatenate([np.asarray(visits) > 0, np.asarray(ends) > 0])))
    named = ("the target (lam = 1)", "the base (lam = 0)")
    places = [name for name, seen in zip(named, ends[::-1], strict=False) if not seen]
    if len(edges) == len(visits):
        places += [f"lam = {lam:.3g}" for lam in edges[np.asarray(visits) == 0]]
    else:
        places += [f"lam between {edges[i]:.3g} and {edges[j]:.3g}" for i, j in gaps(np.asarray(visits) == 0)]
    return judged("coverage", share, limit, share >= limit, f"No chain visited {', '.join(places)}; {more}.")


def gaps(empty: np.ndarray) -> list[tuple[int, int]]:
    """First index and end of each run of True.

    >>> gaps(np.array([False, True, True, False, True]))
    [(1, 3), (4, 5)]
    """
    step = np.diff(np.concatenate([[0], empty.astype(int), [0]]))
    first, end = (np.flatnonzero(step == way).tolist() for way in (1, -1))
    return list(zip(first, end, strict=True))


@gate(
    "tours",
    question="Did chains travel from one end of the path to the other and back often enough?",
    holds="at least {limit:g} round trips over all chains, from one end of the path (the base) to the other and back",
    advice="larger budget; see the length of the path",
)
def check_tours(trips: int, *, limit: int = 20) -> Check:
    """Round trips from one end of the path to the other and back, over all chains."""
    message = (
        f"The chains made {trips} round trips from one end of the path to the other, and at least {limit} are needed; "
        f"{MORE}."
    )
    return judged("tours", trips, limit, trips >= limit, message)


@gate(
    "tours by chain",
    question="Did every chain travel from the base to the target and back?",
    holds="every chain made at least {limit:g} round trip in the last adaptation",
    advice="more adaptations, or longer ones",
)
def check_tours_by_chain(trips: IntArray, *, limit: int = 1, more: str = MORE) -> Check:
    """Every chain made a round trip; ``trips`` of each, shape (chains,)."""
    without = int(np.sum(trips < limit))
    message = (
        f"{without} of {len(trips)} chains made no round trip base -> target -> base in the last adaptation, so their "
        f"draws of the target may all come from one mode; {more}."
    )
    return judged("tours by chain", int(trips.min()), limit, without == 0, message)


@gate(
    "stuck chains",
    question="Did nearly all chains return to the base at least once?",
    holds="at most {limit:.0%} of the chains never returned to the base; none if there are fewer than 100 chains",
    advice="a base that covers the part of the target in which these chains are stuck",
)
def check_stuck(returns: IntArray, lam: FloatArray, *, limit: float = 0.01) -> Check:
    """All but a small share of the chains have returned to the base.

    ``returns`` (chains,) counts the returns, and ``lam`` (iterations, chains) is the position of each chain. The limit
    is a share: one slow chain does not fail a run of thousands of short chains.

    >>> check_stuck(np.array([3, 0, 9]), np.zeros((1, 3))).passed
    False
    >>> check_stuck(np.minimum(np.arange(1000), 5), np.zeros((1, 1000))).passed
    True
    """
    stuck = np.flatnonzero(returns == 0)
    shown = lam[:, stuck[stuck < lam.shape[1]]]
    low, high = (shown.min(), shown.max()) if shown.size else (0.0, 1.0)
    message = (
        f"{len(stuck)} of {len(returns)} chains (number {_named(stuck)}) never returned to the base and stayed at lam "
        f"between {low:.3g} and {high:.3g}: they cannot leave a part of the target, or the path is too long for the "
        f"budget; {MORE}, or choose a base that covers the region of these chains."
    )
    share = len(stuck) / max(len(returns), 1)
    return judged("stuck chains", share, limit, share <= limit, message)


@gate(
    "local chains",
    question="Did every chain cover at least half of the path?",
    holds="every chain covered at least half of the path",
    advice="larger budget, or reparametrise: the other parameters hold some chains in place",
)
def check_local(covered: FloatArray, *, limit: int = 0) -> Check:
    """Every chain has covered half of the path; ``covered`` is the share of each, shape (chains,)."""
    few = np.flatnonzero(covered < 0.5)
    message = (
        f"{len(few)} of {len(covered)} chains (number {_named(few)}) covered less than half of the path: the other "
        f"parameters hold them in place; {MORE}, or reparametrise."
    )
    return judged("local chains", len(few), limit, len(few) <= limit, message)


def _named(chains: IntArray) -> str:
    """Numbers of a few chains."""
    return ", ".join(map(str, chains[:5])) + (", ..." if len(chains) > 5 else "")


@gate(
    "acceptance",
    question="Were enough moves accepted everywhere on the path?",
    holds="HMC accepts at least {limit:.0%} of its moves everywhere on the path",
    advice="`settings.acceptance` closer to 1, reparametrise, or `pt.divide_and_conquer` along the scale of a funnel",
    lasts=True,
)
def check_acceptance(acceptance: FloatArray, weight: FloatArray, lam: FloatArray, *, limit: float = 0.3) -> Check:
    """HMC accepts often enough everywhere; the arrays run along the path, ``weight`` is the number of moves there."""
    used = weight > 0
    if not used.any():
        return judged("acceptance", 0.0, limit, False, NO_MOVES)
    worst = int(np.argmin(np.where(used, acceptance, np.inf)))
    value = float(acceptance[worst])
    message = (
        f"HMC accepts only {100 * value:.0f}% of its moves near lam = {lam[worst]:.3g}: the density is rougher there "
        "than the step size; run with settings.acceptance closer to 1, reparametrise, or, for a funnel, sample along "
        "its scale with pt.divide_and_conquer(model, margin=...)."
    )
    return judged("acceptance", value, limit, value >= limit, message)


@gate(
    "agreement",
    question="Do two different estimates of log z agree within their errors?",
    holds="the Rao-Blackwell and MBAR estimates of log z(1) agree within {limit:g} standard errors",
    advice="larger budget: lam has not reached equilibrium",
)
def check_agreement(
    first: tuple[float, float], second: tuple[float, float], names: tuple[str, str], *, limit: float = 4.0
) -> Check:
    """Two estimates of log z(1), each (value, standard error), agree within their errors."""
    error = float(np.hypot(first[1], second[1])) + 0.01
    z = abs(first[0] - second[0]) / error if np.isfinite(error) else float("inf")
    message = (
        f"Two estimates of log z(1) disagree: {names[0]} gives {first[0]:.4g} ± {first[1]:.2g}, {names[1]} "
        f"{second[0]:.4g} ± {second[1]:.2g}: lam has not reached equilibrium, or the chains lost a part of the target "
        f"between rounds; {MORE}."
    )
    return judged("agreement", z, limit, z <= limit, message)


@gate(
    "islands",
    question="Do the islands, which searched and adapted independently, agree on log z?",
    holds="with `islands=`: log z(1) of each island agrees with that of the others within {limit:g} standard errors",
    advice="larger budget, or `modes=` points near the part of the target that some islands lack",
)
def check_islands(value: FloatArray, se: FloatArray, *, limit: float = 4.0) -> Check:
    """Log z(1) of each island, (n,), agrees with the mean of the others within their standard errors ``se`` (n,).

    >>> check_islands(np.array([1.0, 1.02]), np.array([0.02, 0.02])).passed
    True
    >>> check_islands(np.array([1.0, 1.5, 1.0]), np.array([0.02, 0.02, 0.02])).message.split(",")[0]
    'Island 1 gives log z(1) = 1.5 ± 0.02'
    """
    z = np.zeros(len(value))
    rest, error = np.zeros(len(value)), np.zeros(len(value))
    for k in range(len(value)):
        others = np.arange(len(value)) != k
        rest[k], error[k] = value[others].mean(), np.sqrt(np.sum(se[others] ** 2)) / others.sum()
        z[k] = abs(value[k] - rest[k]) / (np.hypot(se[k], error[k]) + 0.01) if np.isfinite(se).all() else np.inf
    unknown = np.flatnonzero(~np.isfinite(se))
    worst = int(np.argmax(z)) if len(unknown) == 0 else int(unknown[0])
    message = (
        f"Island {worst} gives log z(1) = {value[worst]:.4g} ± {se[worst]:.2g}, and the others {rest[worst]:.4g} ± "
        f"{error[worst]:.2g}: one of them lacks a part of the target, or has not reached equilibrium; {MORE}."
        if len(unknown) == 0
        else f"Of {len(value)} islands {len(unknown)} (number {_named(unknown)}) crossed the path too rarely to know "
        f"log z(1); {MORE}."
    )
    return judged("islands", z.max(), limit, bool(z.max() <= limit), message)


@gate(
    "curve agreement",
    question="Do two different estimates of the whole curve agree within their errors?",
    holds="path sampling and Rao-Blackwell give the same curve at 16 points, within {limit:g} standard errors",
    advice="larger budget: lam has not reached equilibrium",
)
def check_curves(difference: FloatArray, error: FloatArray, *, limit: float = 5.0) -> Check:
    """Two estimates of a curve agree at some places; their ``difference`` there, and its standard ``error``."""
    z, worst = float(np.max(np.abs(difference) / error)), float(np.max(np.abs(difference)))
    message = (
        f"Two estimates of the curve differ by up to {worst:.2g} nats, {z:.1f} standard errors: lam has not reached "
        f"equilibrium; {MORE}."
    )
    return judged("curve agreement", z, limit, z <= limit, message)


@gate(
    "log z error",
    question="Is the standard error of log z small enough to be useful?",
    holds="the standard error of log z(1) is at most {limit:g}; without a round trip it is infinite, and log z is NaN",
    advice="larger budget",
)
def check_precision(se: float, *, limit: float = 1.0) -> Check:
    """The standard error of log z(1) is finite and not too large."""
    shown = f"is {se:.2g}, more than {limit}" if np.isfinite(se) else "is not known"
    message = f"The standard error of log z(1) {shown}: the chains crossed the path too rarely; {MORE}."
    return judged("log z error", se, limit, se <= limit, message)


@gate(
    "precision",
    question="Is the marginal density precise enough everywhere?",
    holds="for a margin: the standard error of its log density is at most {limit:g} wherever it has mass",
    advice="larger budget",
)
def check_density(se: float, *, limit: float = 0.3) -> Check:
    """The standard error of a log density is small wherever it has mass; ``se`` is the largest."""
    message = f"The standard error of the log density is up to {se:.2g} where it has mass, more than {limit}; {MORE}."
    return judged("precision", se, limit, se <= limit, message)


@gate(
    "interval",
    question="Is there almost no mass beyond the interval that was sampled?",
    holds="for a margin without `interval=`: at most {limit:g} of the mass lies beyond each end",
    advice="larger budget, or a wider `interval=`",
)
def check_interval(beyond: tuple[float, float], *, limit: float = 1e-4) -> Check:
    """Almost no mass lies ``beyond`` the lower and the upper end of the interval, as shares of the mass inside."""
    tail, where = max(beyond), "lower" if beyond[0] > beyond[1] else "upper"
    message = (
        f"About {tail:.2g} of the mass lies beyond the {where} end of the interval, where the density is only "
        f"extrapolated; {MORE}, or give a wider interval."
    )
    return judged("interval", tail, limit, tail <= limit, message)


@gate(
    "beyond",
    question="Is there no second mode beyond the interval?",
    holds="for a margin without `interval=`: along the orbits of the chains, the density does not rise again within "
    "one interval width beyond each end (at most {limit:g} of the mass)",
    advice="an `interval=` that contains the possible second mode, or a larger budget",
)
def check_beyond(share: float, where: float, *, limit: float = 1e-3) -> Check:
    """The density does not rise again beyond the interval; ``share`` is the mass there, ``where`` its place."""
    message = (
        f"The density rises again beyond the interval, near {where:.3g} on the unconstrained scale, where no chain has "
        f"been; give an interval that contains this point, or {MORE}."
    )
    return judged("beyond", share, limit, share <= limit, message)


@gate(
    "k-hat",
    question="Is the sampled coordinate spread evenly enough along the path?",
    holds="k-hat of 1/p(a), or of the ratio of successive marginals, is below {limit:g}",
    advice="more adaptations",
)
def check_khat(khat: float, what: str, *, limit: float = 0.7, more: str = MORE) -> Check:
    """k-hat of ``what`` is small; a NaN does not pass."""
    shown = "cannot be computed from so few draws" if np.isnan(khat) else f"is {khat:.2f}, not below {limit:.2g}"
    message = f"k-hat of {what} {shown}: log z cannot be trusted; {more}."
    return judged("k-hat", khat, limit, khat < limit, message)
