"""Stan's flat names, such as ``theta.1.2``, as variables with shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathtemp._types import FloatArray


@dataclass(frozen=True)
class Variable:
    """A variable of a Stan program.

    Parameters
    ----------
    name
        As the program has it; parts of a tuple are ``t:1``, of a complex number ``z.real`` and ``z.imag``.
    shape
        Its shape; empty for a scalar.
    columns
        Position in the flat list of names of each element, in C order.
    """

    name: str
    shape: tuple[int, ...]
    columns: tuple[int, ...]

    def take(self, flat: FloatArray) -> FloatArray:
        """Values of the variable from rows of flat values: ``(n, width) -> (n, *shape)``."""
        return flat[:, self.columns].reshape(len(flat), *self.shape)


def variables(names: Sequence[str]) -> list[Variable]:
    """Group flat names into variables, in order of first appearance; indices may come in any order.

    Variables of size zero have no flat names and so do not appear.

    >>> [(v.name, v.shape, v.columns) for v in variables(["mu", "M.1.1", "M.2.1", "M.1.2", "M.2.2"])]
    [('mu', (), (0,)), ('M', (2, 2), (1, 3, 2, 4))]
    """
    groups: dict[str, dict[tuple[int, ...], int]] = {}
    for column, flat in enumerate(names):
        name, index = _parse(flat)
        groups.setdefault(name, {})[index] = column
    found = []
    for name, places in groups.items():
        shape = tuple(int(n) for n in np.max(list(places), axis=0)) if () not in places else ()
        columns = tuple(places[index] for index in sorted(places))
        found.append(Variable(name, shape, columns))
    return found


def _parse(flat: str) -> tuple[str, tuple[int, ...]]:
    """Name without indices, and the indices: ``a.2:1.3`` is element (2, 3) of ``a:1``."""
    name, index = [], []
    for part in flat.split(":"):
        words = part.split(".")
        kept = [word for k, word in enumerate(words) if k == 0 or not word.isdigit()]
        index += [int(word) for word in words[1:] if word.isdigit()]
        name.append(".".join(kept))
    return ":".join(name), tuple(index)
