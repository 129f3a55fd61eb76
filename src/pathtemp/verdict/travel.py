"""Gates on how the chains went along the path: did they reach it all, travel, and agree with themselves?"""

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
    holds="the run was not interrupted (only there where it was)",
    advice="`fit.extend(...)`, or `pt.resume` on its checkpoint",
)
def check_finished(
    spent: float, ways: Sequence[str], *, limit: float = float("inf"), unit: str = "gradient evaluations"
) -> Check:
    """The run was interrupted after it had spent so much, in words of ``unit``; ``ways`` are those to go on."""
    of = f" of at most {limit:,.0f}" if limit < float("inf") else ""
    again = f"go on with {', or '.join(ways)}" if ways else "run it again, with checkpoint= to be able to go on"
    message = f"The run was interrupted after {spent:,} {unit}{of}; {again}."
    return judged(FINISHED, spent, limit, False, message)


def when_interrupted(stopped: Check, checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks of a run that was stopped, ``stopped`` first: what more rounds may open is not complained of.

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
    question="Did the first pass along the path come all the way to the target?",
    holds="the annealing pass came to lam = {limit:g}",
    advice="larger budget, or a base nearer to the target",
    lasts=True,
)
def check_reach(lam: float, *, limit: float = 1.0) -> Check:
    """The annealing pass came to the target."""
    message = (
        f"The annealing pass spent its share of the budget at lam = {lam:.3g}, short of the target; {MORE}, or choose "
        "a base closer to the target."
    )
    return judged("reach", lam, limit, lam >= limit, message)


@gate(
    "rounds",
    question="Were there enough rounds after the sampler had stopped adapting?",
    holds="{limit:g} rounds or more after adaptation ended",
    advice="larger budget",
)
def check_rounds(rounds: int, *, limit: int = 2) -> Check:
    """Enough rounds were left for the frozen kernel."""
    message = f"Only {rounds} rounds were left after adaptation, of {limit} at least; {MORE}."
    return judged("rounds", rounds, limit, rounds >= limit, message)


@gate(
    "coverage",
    question="Was every part of the path visited, both ends included?",
    holds="both ends, where the path has any, and each of 20 bins between them were visited",
    advice="larger budget, or a base nearer to the target",
)
def check_coverage(
    visits: FloatArray,
    edges: FloatArray,
    *,
    at_ends: tuple[float, float] | None = None,
    limit: float = 1.0,
    more: str = f"{MORE}, or choose a base closer to it",
) -> Check:
    """Every part of the path was visited.

    Parameters
    ----------
    visits
        To each bin, shape (n,).
    edges
        Of the bins in lam, shape (n + 1,); or the places themselves, shape (n,), where the path is a ladder.
    at_ends
        Visits to the atoms at lam = 0 and lam = 1, where the path has them.
    limit
        Share of the places that were visited.
    more
        What to do.
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
    holds="{limit:g} round trips or more from one end of the path (the base) to the other and back, over all chains",
    advice="larger budget; see the length of the path",
)
def check_tours(trips: int, *, limit: int = 20) -> Check:
    """Round trips from one end of the path to the other and back, over all chains."""
    message = f"The chains made {trips} round trips from one end of the path to the other, of {limit} at least; {MORE}."
    return judged("tours", trips, limit, trips >= limit, message)


@gate(
    "tours by chain",
    question="Did every chain travel from the base to the target and back?",
    holds="every chain made {limit:g} round trip or more in the last adaptation",
    advice="more adaptations, or longer ones",
)
def check_tours_by_chain(trips: IntArray, *, limit: int = 1, more: str = MORE) -> Check:
    """Every one of a few chains made a round trip; ``trips`` of each, shape (chains,)."""
    without = int(np.sum(trips < limit))
    message = (
        f"{without} of {len(trips)} chains made no round trip base -> target -> base in the last adaptation, so their "
        f"draws of the target may all come from one mode; {more}."
    )
    return judged("tours by chain", int(trips.min()), limit, without == 0, message)


@gate(
    "stuck chains",
    question="Did all but very few chains come back to the base at least once?",
    holds="a share of {limit:g} of the chains at most never came back to the base; of fewer than 100 chains, none",
    advice="some hold a part of the target that they cannot leave: a base that covers it",
)
def check_stuck(returns: IntArray, lam: FloatArray, *, limit: float = 0.01) -> Check:
    """All but a small share of the chains have been back at the base.

    ``returns`` (chains,) counts how often, ``lam`` (iterations, chains) says where each was. A share, so that a run of
    very many chains, each of them short, is not judged by the slowest of all.

    >>> check_stuck(np.array([3, 0, 9]), np.zeros((1, 3))).passed
    False
    >>> check_stuck(np.minimum(np.arange(1000), 5), np.zeros((1, 1000))).passed
    True
    """
    stuck = np.flatnonzero(returns == 0)
    shown = lam[:, stuck[stuck < lam.shape[1]]]
    low, high = (shown.min(), shown.max()) if shown.size else (0.0, 1.0)
    message = (
        f"{len(stuck)} of {len(returns)} chains (number {_named(stuck)}) never came back to the base and stayed at lam "
        f"between {low:.3g} and {high:.3g}: a part of the target they cannot leave, or a path too long for the budget; "
        f"{MORE}, or choose a base that covers what these chains hold."
    )
    share = len(stuck) / max(len(returns), 1)
    return judged("stuck chains", share, limit, share <= limit, message)


@gate(
    "local chains",
    question="Did every chain cover half of the path at least?",
    holds="every chain covered half of the path at least",
    advice="the other parameters hold it where it is: larger budget, or reparametrise",
)
def check_local(covered: FloatArray, *, limit: int = 0) -> Check:
    """Every chain has covered half of the path; ``covered`` is the share of each, shape (chains,)."""
    few = np.flatnonzero(covered < 0.5)
    message = (
        f"{len(few)} of {len(covered)} chains (number {_named(few)}) covered less than half of the path: a part of the "
        f"other parameters that they cannot leave; {MORE}, or reparametrise."
    )
    return judged("local chains", len(few), limit, len(few) <= limit, message)


def _named(chains: IntArray) -> str:
    """Numbers of a few chains."""
    return ", ".join(map(str, chains[:5])) + (", ..." if len(chains) > 5 else "")


@gate(
    "acceptance",
    question="Were enough moves accepted everywhere on the path?",
    holds="HMC accepts a share of {limit:g} or more at every position of the path",
    advice="`settings.acceptance` nearer to 1, reparametrise, or `pt.divide_and_conquer` along the scale of a funnel",
    lasts=True,
)
def check_acceptance(acceptance: FloatArray, weight: FloatArray, lam: FloatArray, *, limit: float = 0.3) -> Check:
    """HMC accepts often enough everywhere; arrays along the path, ``weight`` the number of moves at each position."""
    used = weight > 0
    if not used.any():
        return judged("acceptance", 0.0, limit, False, NO_MOVES)
    worst = int(np.argmin(np.where(used, acceptance, np.inf)))
    value = float(acceptance[worst])
    message = (
        f"HMC accepts only {100 * value:.0f}% of its moves near lam = {lam[worst]:.3g}: the density is rougher there "
        "than the step size; run with settings.acceptance nearer 1, reparametrise, or, if a scale makes it a funnel, "
        "sample along that scale: pt.divide_and_conquer(model, margin=...)."
    )
    return judged("acceptance", value, limit, value >= limit, message)


@gate(
    "agreement",
    question="Do two different estimates of log z agree within their errors?",
    holds="the Rao-Blackwell estimate of log z(1) and MBAR agree within {limit:g} standard errors",
    advice="lam has not reached equilibrium: larger budget",
)
def check_agreement(
    first: tuple[float, float], second: tuple[float, float], names: tuple[str, str], *, limit: float = 4.0
) -> Check:
    """Two estimates of log z(1), each (value, standard error), agree within their errors."""
    error = float(np.hypot(first[1], second[1])) + 0.01
    z = abs(first[0] - second[0]) / error if np.isfinite(error) else float("inf")
    message = (
        f"Two estimates of log z(1) disagree: {names[0]} gives {first[0]:.4g} ± {first[1]:.2g}, {names[1]} "
        f"{second[0]:.4g} ± {second[1]:.2g}; lam has not reached equilibrium, or a part of the target was lost between "
        f"rounds; {MORE}."
    )
    return judged("agreement", z, limit, z <= limit, message)


@gate(
    "islands",
    question="Do the islands, which searched and adapted apart, agree on log z?",
    holds="with `islands=`: log z(1) of each island agrees with that of the others within {limit:g} standard errors",
    advice="some islands lack a part of the target: larger budget, or `modes=` points near it",
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
    holds="path sampling and Rao-Blackwell give the same curve within {limit:g} standard errors, at 16 places",
    advice="lam has not reached equilibrium: larger budget",
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
    question="Is the standard error of log z small enough to mean something?",
    holds="the standard error of log z(1) is known and at most {limit:g}; without a round trip log z is NaN, and its "
    "error infinite",
    advice="larger budget",
)
def check_precision(se: float, *, limit: float = 1.0) -> Check:
    """The standard error of log z(1) is finite and not absurd."""
    shown = f"is {se:.2g}, more than {limit}" if np.isfinite(se) else "is not known"
    message = f"The standard error of log z(1) {shown}: the path has hardly been crossed; {MORE}."
    return judged("log z error", se, limit, se <= limit, message)


@gate(
    "precision",
    question="Is the marginal known well enough at every place?",
    holds="of a margin: the standard error of its log density is at most {limit:g} wherever there is mass",
    advice="larger budget",
)
def check_density(se: float, *, limit: float = 0.3) -> Check:
    """The largest standard error of a log density where its mass is."""
    message = f"The standard error of the log density is {se:.2g} where the mass is, more than {limit}; {MORE}."
    return judged("precision", se, limit, se <= limit, message)


@gate(
    "interval",
    question="Does hardly any mass lie beyond the interval that was sampled?",
    holds="of a margin without `interval=`: at most {limit:g} of the mass lies beyond either end",
    advice="larger budget, or a wider `interval=`",
)
def check_interval(beyond: tuple[float, float], *, limit: float = 1e-4) -> Check:
    """Hardly any mass lies ``beyond`` the lower and the upper end of the interval, as shares of that inside."""
    tail, where = max(beyond), "lower" if beyond[0] > beyond[1] else "upper"
    message = (
        f"About {tail:.2g} of the mass lies beyond the {where} end of the interval, where the density is only "
        f"extrapolated; {MORE}, or give a wider interval."
    )
    return judged("interval", tail, limit, tail <= limit, message)


@gate(
    "beyond",
    question="Is there no second mode beyond the interval?",
    holds="of a margin without `interval=`: the density does not rise again up to a whole width further out, along the "
    "orbits of the chains (mass at most {limit:g})",
    advice="there may be a second mode: an `interval=` that holds it, or a larger budget",
)
def check_beyond(share: float, where: float, *, limit: float = 1e-3) -> Check:
    """No mass shows beyond the interval; the ``share`` of it, and ``where`` most of that is."""
    message = (
        f"The density rises again beyond the interval, near {where:.3g} on the unconstrained scale, where "
        f"no chain has been; give an interval that holds it, or {MORE}."
    )
    return judged("beyond", share, limit, share <= limit, message)


@gate(
    "k-hat",
    question="Is the sampled coordinate spread evenly enough along the path?",
    holds="of the paper's engine: k-hat of 1/p(a), or of the ratio of successive marginals, below {limit:g}",
    advice="more adaptations",
)
def check_khat(khat: float, what: str, *, limit: float = 0.7, more: str = MORE) -> Check:
    """k-hat of ``what`` is small; one that could not be computed does not pass."""
    shown = "cannot be told from so few draws" if np.isnan(khat) else f"is {khat:.2f}, not below {limit:.2g}"
    message = f"k-hat of {what} {shown}: log z is not to be trusted; {more}."
    return judged("k-hat", khat, limit, khat < limit, message)
