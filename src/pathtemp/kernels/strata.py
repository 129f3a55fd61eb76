"""Bins of folded a in which masses are summed, and what each is compared with at the base.

The atom at lam = 0 is flat in a, so it may be cut: here into strata as wide as the cells between the ends. A lattice of
eight points that has one in a given cell always has one in the same stratum of the base. So a cell is compared with its
stratum, and the two masses rise and fall together: whether a lattice happens to have a point in a cell is no noise.
For any other lattice the comparison holds as well, only with the noise. Long paths have more and narrower cells,
several to a stratum, since strata as narrow would each be visited too seldom.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, IntArray
from pathtemp.kernels.lam_given_theta import bins
from pathtemp.paths.links import BASE_END, TARGET_START, fold, unit

MOST_STRATA = 12
"""Strata of the base at most."""


def cells_in_base(cells: int) -> int:
    """Width of the atom at lam = 0 in cells, exact where ``cells`` is a multiple of five.

    >>> cells_in_base(60), cells_in_base(3)
    (12, 1)
    """
    return max(1, round(cells * BASE_END / (TARGET_START - BASE_END)))


def strata(cells: int) -> int:
    """Number of strata S of the atom at lam = 0.

    >>> strata(60), strata(480), strata(3)
    (12, 12, 1)
    """
    return min(cells_in_base(cells), MOST_STRATA)


def count_bins(cells: int) -> int:
    """Number of bins: the S strata, the K cells, and the atom at lam = 1.

    >>> count_bins(60)
    73
    """
    return strata(cells) + cells + 1


def bin_of(a: Array, cells: int) -> Array:
    """Index of the bin that holds ``a``."""
    r, count = fold(a), strata(cells)
    stratum = jnp.clip(jnp.floor(r / BASE_END * count).astype(int), 0, count - 1)
    cell = count + jnp.clip(jnp.floor(unit(a) * cells).astype(int), 0, cells - 1)
    return jnp.where(r <= BASE_END, stratum, jnp.where(r >= TARGET_START, count + cells, cell))


def cut(probability: Array, cells: int) -> Array:
    """Masses of the bins from those of the atom at lam = 0, the cells and the atom at lam = 1, shape (K + 2,)."""
    count = strata(cells)
    return jnp.concatenate([jnp.broadcast_to(probability[:1] / count, (count,)), probability[1:]])


def stratum_of_cell(cells: int) -> IntArray:
    """The stratum of the base that a lattice with a point in a cell has a point in, shape (K,).

    Lattice points are two base ends apart, and folding mirrors the bins on the way back.

    >>> stratum_of_cell(10).tolist()
    [1, 0, 0, 1, 1, 0, 0, 1, 1, 0]
    """
    wide = cells_in_base(cells)
    place = (wide + np.arange(cells)) % (2 * wide)
    return np.minimum(place, 2 * wide - 1 - place) * strata(cells) // wide


def compared_with(x: Any, cells: int) -> Any:
    """The mass at the base to compare each bin of ``x`` (..., bins) with: its stratum; all of it for lam = 1.

    On the host or on the device, as ``x`` is.
    """
    count, array = strata(cells), np if isinstance(x, np.ndarray) else jnp
    base = x[..., :count]
    whole = base.sum(axis=-1, keepdims=True)
    return array.concatenate([base, x[..., stratum_of_cell(cells)], whole], axis=-1)


def relative_width(cells: int) -> FloatArray:
    """Width of the K cells and of the atom at lam = 1 relative to what they are compared with, shape (K + 1,)."""
    above = bins(cells)[1:] / bins(cells)[0]
    return np.append(strata(cells) * above[:-1], above[-1])
