"""A mode that the search has found, and which of them the end of an ascent belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pathtemp._types import FloatArray
from pathtemp.io.persistent import storable
from pathtemp.modes.dedupe import same_mode
from pathtemp.modes.local import Local
from pathtemp.modes.parts import Parts


@storable
@dataclass(frozen=True)
class Mode:
    """A mode that was found: its local law, log mass, how it was found, and how many random starts ended in it.

    ``from_base`` are those of them that were draws of the base, and ``held`` the points of the scan in its basin;
    ``parts`` cover a mode that one law does not. ``top`` is the law by the curvature alone, of a mode that was refined.
    """

    law: Local
    log_mass: float
    found_by: str
    starts: int
    from_base: int = 0
    held: int = 0
    refined: bool = False
    tested: bool = False
    parts: Parts = ()
    top: Local | None = None

    @property
    def by_curvature(self) -> Local:
        """The law by the curvature at the top: for a normal mode it holds as far out as one looks."""
        return self.law if self.top is None else self.top


def known_mode(
    modes: Sequence[Mode], theta: FloatArray, height: float, log_target: Callable[[FloatArray], FloatArray]
) -> int | None:
    """Which of the modes an end (dim,) of an ascent of this ``height`` belongs to; None for a new one.

    Ascents end at the top, and importance sampling may move the centre of a refined law far from it, where tails are
    heavy: so the law by the curvature is asked first, and the refined one then.
    """
    k = same_mode([mode.by_curvature for mode in modes], theta, height, log_target)
    if k is None and any(mode.top is not None for mode in modes):
        k = same_mode([mode.law for mode in modes], theta, height, log_target)
    return k
