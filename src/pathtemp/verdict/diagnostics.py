"""The numbers behind a verdict, assembled in the same way for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.result.run import Check, Diagnostics, Rejections
from pathtemp.verdict.draws import rhat_ess


class AlongPath(NamedTuple):
    """Diagnostics along the path, one value for each of n bins.

    Parameters
    ----------
    edges
        Edges of the bins in lam, shape (n + 1,); for a ladder, its rungs, shape (n,).
    length, acceptance, visits
        Length of the path inside each bin, mean acceptance, and number of visits; NaN if unknown.
    """

    edges: FloatArray
    length: FloatArray
    acceptance: FloatArray
    visits: FloatArray


class Mixing(NamedTuple):
    """Worst R-hat, bulk and tail effective sample size over the quantities of some draws."""

    rhat: float
    bulk: float
    tail: float

    @classmethod
    def of(cls, draws: FloatArray) -> Mixing:
        """Of draws (chain, draw, quantity)."""
        return cls(*rhat_ess(draws))


def diagnostics(
    checks: Iterable[Check],
    mixing: Mixing,
    along: AlongPath,
    *,
    khat: float,
    tours: int,
    ends: Mapping[str, tuple[float, float]],
    rejected: Rejections,
) -> Diagnostics:
    """The verdict and its numbers; ``ends`` are log z(1) and its standard error by estimator."""
    edges, known = along.edges, np.isfinite(along.length)
    ladder = len(edges) == len(along.visits)
    return Diagnostics(
        checks=tuple(checks),
        khat=khat,
        rhat=mixing.rhat,
        ess_bulk=mixing.bulk,
        ess_tail=mixing.tail,
        tours=tours,
        length=float(along.length[known].sum()) if known.any() else float("nan"),
        lam=edges if ladder else 0.5 * (edges[1:] + edges[:-1]),
        local_length=along.length,
        acceptance=along.acceptance,
        visits=along.visits,
        log_z_by_estimator={name: (float(value), float(se)) for name, (value, se) in ends.items()},
        rejections=rejected.total,
        rejected=rejected,
    )
