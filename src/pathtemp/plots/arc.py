"""The axis along the path, spaced by its thermodynamic length: most of what is hard lies near lam = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.result.hardness import bin_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pathtemp.result.fit import Fit

TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Values of lam that the axis may show between 0 and 1."""

ROOM = 0.09
"""Share of the axis that a tick label needs."""


@dataclass(frozen=True)
class Scale:
    """A map from lam to places on the axis: piecewise linear through nodes, (n,) each."""

    lam: FloatArray
    place: FloatArray
    by_length: bool

    def __call__(self, lam: FloatArray) -> FloatArray:
        """Places of some values of lam."""
        return np.asarray(np.interp(lam, self.lam, self.place))

    def label(self, ax: Axes) -> None:
        """Limits, ticks and the name of the axis."""
        ax.set_xlim(self.place[0], self.place[-1])
        if not self.by_length:
            ax.set_xlabel("λ")
            return
        ticks = self.ticks()
        ax.set_xticks(self(np.array(ticks)), [f"{x:g}" for x in ticks])
        ax.set_xlabel("λ, spaced by the length of the path")

    def ticks(self) -> list[float]:
        """Values of lam, each with room for its label; the ends always."""
        whole = self.place[-1] - self.place[0]
        room = ROOM * whole
        last = self.place[0]
        kept = [0.0]
        for value in TICKS:
            at = float(self(np.array([value]))[0])
            if at - last >= room and self.place[-1] - at >= room:
                kept.append(value)
                last = at
        return [*kept, 1.0]


def along(fit: Fit) -> Scale:
    """The axis of a fit: by length where that was measured between lam = 0 and 1, else lam itself."""
    diagnostics = fit.diagnostics
    length = np.nan_to_num(np.asarray(diagnostics.local_length, float))
    ends = float(fit.log_z.lam[0]), float(fit.log_z.lam[-1])
    if ends != (0.0, 1.0) or length.sum() <= 0:
        return Scale(np.array(ends), np.array(ends), by_length=False)
    edges = bin_edges(np.asarray(diagnostics.lam, float))
    return Scale(edges, np.concatenate([[0.0], np.cumsum(length)]), by_length=True)
