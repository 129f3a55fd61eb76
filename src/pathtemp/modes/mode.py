"""A mode that the search has found."""

from __future__ import annotations

from dataclasses import dataclass

from pathtemp.io.persistent import storable
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
