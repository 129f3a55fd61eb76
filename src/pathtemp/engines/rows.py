"""What is kept of many rounds in bounded memory: rows of several arrays, evenly thinned."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathtemp._types import HostArray
from pathtemp.io.persistent import persistent


@persistent("stride", "seen", "fields")
class Rows:
    """Every ``stride``-th row of all that were added; the stride doubles whenever there are more than ``most``.

    So what is kept is spread evenly over the whole run, and costs the same in any round.

    >>> rows = Rows(most=4)
    >>> for part in range(3):
    ...     rows.add(x=np.arange(3 * part, 3 * part + 3))
    >>> rows.stride, rows.fields["x"].tolist()
    (4, [0, 4, 8])
    """

    def __init__(self, most: int) -> None:
        self.most, self.stride, self.seen = most, 1, 0
        self.fields: dict[str, np.ndarray[Any, Any]] = {}

    def add(self, **arrays: HostArray) -> None:
        """Add rows of each array, the same number of each, under names that are always the same."""
        first = -self.seen % self.stride
        new = {name: np.asarray(x)[first :: self.stride] for name, x in arrays.items()}
        self.seen += len(next(iter(arrays.values())))
        self.fields = {name: np.concatenate([self.fields[name], x]) if self.fields else x for name, x in new.items()}
        while len(next(iter(self.fields.values()))) > self.most:
            self.stride *= 2
            self.fields = {name: x[::2] for name, x in self.fields.items()}
