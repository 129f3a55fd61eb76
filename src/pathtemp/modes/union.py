"""Lists of modes of several searches of one target, united."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.ascent import BoolArray
from pathtemp.modes.mode import Mode, known_mode
from pathtemp.modes.search import Search


class Union(NamedTuple):
    """What several searches know together.

    Parameters
    ----------
    search
        One with the modes of all; starts are added up.
    place
        The place of each mode in the list of each search, shape (searches, modes); -1 where it is not in it.
    """

    search: Search
    place: IntArray

    def lacking(self, number: int, *, least: float) -> FloatArray:
        """Centres (n, dim) of the isolated modes of a share of ``least`` or more that a search does not list."""
        shares, modes = self.search.shares(), self.search.modes
        wanted = [k for k in range(len(modes)) if shares[k] >= least and not modes[k].law.flat]
        centres = [modes[k].law.centre for k in wanted if self.place[number, k] < 0]
        return np.array(centres).reshape(len(centres), len(self.search.scale))

    def known_to_all(self, known: Sequence[int]) -> BoolArray:
        """Which modes, (modes,), every search had among its first ``known``."""
        first = np.array(known)[:, None]
        return np.asarray(np.all((self.place >= 0) & (self.place < first), axis=0))

    def ordered(self, first: BoolArray) -> Search:
        """The search with the modes of a mask (modes,) before the others."""
        whole = copy(self.search)
        whole.modes = [self.search.modes[k] for k in np.argsort(~first, kind="stable")]
        return whole


def united(searches: Sequence[Search]) -> Union:
    """The lists of modes of several searches as one."""
    whole = copy(searches[0])
    whole.modes = []
    for name in ("starts", "base_starts", "unlisted", "given_up", "scanned"):
        setattr(whole, name, sum(getattr(search, name) for search in searches))
    places: list[dict[int, int]] = []
    for search in searches:
        place: dict[int, int] = {}
        for number, mode in enumerate(search.modes):
            k = known_mode(whole.modes, mode.by_curvature.centre, mode.law.height, whole.log_target)
            if k is None:
                k = len(whole.modes)
                whole.modes.append(mode)
            else:
                # Where a search lists one mode twice, both are counted and the first place stands.
                whole.modes[k] = _together(whole.modes[k], mode)
            place.setdefault(k, number)
        places.append(place)
    count = len(whole.modes)
    return Union(whole, np.array([[place.get(k, -1) for k in range(count)] for place in places], np.int64))


def _together(one: Mode, other: Mode) -> Mode:
    """A mode that two searches list: described by the first that weighed it, with the starts of both."""
    chosen = other if other.refined and not one.refined else one
    counts = {name: getattr(one, name) + getattr(other, name) for name in ("starts", "from_base", "held")}
    return replace(chosen, found_by=other.found_by if one.found_by == "island" else one.found_by, **counts)
