"""What the frozen rounds of several islands leave, together: as if one run had made all their tours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.trace import Trace
from pathtemp.engines.default.verdict import Frozen, Seen
from pathtemp.estimators.tours import TargetVisits
from pathtemp.kernels.kept import joined
from pathtemp.result.curve import LogZ, unknown
from pathtemp.result.run import Counts, Rejections, RoundRecord
from pathtemp.settings import Settings


def pooled(parts: Sequence[Frozen], settings: Settings, *, same_path: bool) -> Frozen:
    """The tours of all islands as those of one run with the ``settings`` that the user gave.

    Each island counts by its round trips. ``same_path`` says whether all start from the same base: where each has a
    mixture of its own, the curves between lam = 0 and lam = 1 are of different paths, see :func:`joined_curve`.
    """
    first, chains = parts[0], parts[0].chains
    weights = weights_of([part.seen.trips for part in parts])
    asked = None if first.asked is None else sum(part.asked or 0 for part in parts)
    return replace(
        first,
        settings=settings,
        chains=chains * len(parts),
        islands=len(parts),
        asked=asked,
        wanted=sum(part.wanted for part in parts),
        target=joined([part.target for part in parts], chains),
        base=joined([part.base for part in parts], chains),
        seen=_seen([part.seen for part in parts]),
        curve=joined_curve([part.curve for part in parts], weights, same_path=same_path),
        ends={
            name: joined_estimate([part.ends[name] for part in parts], weights)
            for name in first.ends
            if all(name in part.ends for part in parts)
        },
        second=joined_estimate([part.second for part in parts], weights),
        khat=_largest([part.khat for part in parts]),
        nodes=np.mean([part.nodes for part in parts], axis=0),
        edges=np.mean([part.edges for part in parts], axis=0),
        length=np.mean([part.length for part in parts], axis=0),
        reached=min(part.reached for part in parts),
        base_rhat=_largest([part.base_rhat for part in parts]),
        rejected=sum((part.rejected for part in parts), start=Rejections()),
        counts=sum((part.counts for part in parts), start=Counts()),
        seconds=_added([part.seconds for part in parts]),
    )


def weights_of(trips: Sequence[int]) -> FloatArray:
    """Weight of each island in an estimate: its share of the round trips, whatever its own standard error says.

    An error that is itself an estimate is small where by chance the estimate is: weights by it would be biased.

    >>> weights_of([30, 10]).tolist(), weights_of([0, 0]).tolist()
    ([0.75, 0.25], [0.5, 0.5])
    """
    count = np.asarray(trips, float)
    return count / count.sum() if count.sum() > 0 else np.full(len(count), 1.0 / len(count))


def joined_estimate(parts: Sequence[tuple[float, float]], weights: FloatArray) -> tuple[float, float]:
    """Weighted mean of independent estimates, each (value, standard error), and its standard error.

    >>> joined_estimate([(1.0, 0.3), (3.0, 0.4), (float("nan"), float("inf"))], np.array([0.5, 0.5, 0.0]))
    (2.0, 0.25)
    """
    used = [(weight, *part) for weight, part in zip(weights, parts, strict=True) if weight > 0]
    value = sum(weight * value for weight, value, _ in used)
    return float(value), float(np.sqrt(sum((weight * se) ** 2 for weight, _, se in used)))


def joined_curve(curves: Sequence[LogZ], weights: FloatArray, *, same_path: bool) -> LogZ:
    """Weighted mean of independent curves on the nodes of the one with most weight.

    Where islands start from mixtures of their own, their paths differ between the ends, where log z does not: the
    curve there is a mean over paths, and the spread of the paths is a part of its error.
    """
    used = [(weight, curve) for weight, curve in zip(weights, curves, strict=True) if np.isfinite(curve.mean).all()]
    if not used:
        return unknown(curves[0].lam)
    share = np.array([weight for weight, _ in used])
    share = share / share.sum() if share.sum() > 0 else np.full(len(used), 1.0 / len(used))
    lam = used[int(np.argmax(share))][1].lam
    values, errors = (np.array([part(curve) for _, curve in used]) for part in (lambda c: c(lam), lambda c: c.se(lam)))
    mean = share @ values
    variance = share**2 @ errors**2
    if not same_path:
        between = share @ (values - mean) ** 2
        variance = variance + np.where((lam > 0) & (lam < 1), between, 0.0)
    return LogZ(lam, mean, np.sqrt(variance))


def joined_history(parts: Sequence[Sequence[RoundRecord]]) -> tuple[RoundRecord, ...]:
    """The lines of all islands, as if they had gone on side by side: gradients are those of all so far."""
    lines = sorted(
        ((record.gradients, number, k) for number, part in enumerate(parts) for k, record in enumerate(part))
    )
    spent, whole = [0] * len(parts), []
    for gradients, number, k in lines:
        spent[number] = gradients
        whole.append(replace(parts[number][k], gradients=sum(spent)))
    return tuple(whole)


def _seen(parts: Sequence[Seen]) -> Seen:
    return Seen(
        Trace.joined([part.trace for part in parts]),
        sum(part.trips for part in parts),
        TargetVisits.joined([part.early_visits for part in parts]),
        np.concatenate([part.early_targets for part in parts]),
    )


def _largest(values: Sequence[float]) -> float:
    """The largest; NaN where one is."""
    return float(np.max(values))


def _added(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}
