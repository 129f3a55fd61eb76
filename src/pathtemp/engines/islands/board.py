"""One display for all islands: gradients are those of all so far."""

from __future__ import annotations

from dataclasses import replace

from pathtemp.engines.progress import Progress
from pathtemp.result.run import RoundRecord


class Board:
    """Tells one display of the rounds of several islands.

    Parameters
    ----------
    shown
        Who is told.
    islands
        Their number.
    """

    def __init__(self, shown: Progress, islands: int) -> None:
        self.shown = shown
        self._spent = [0] * islands

    def of(self, island: int) -> Progress:
        """Whom an island tells."""
        return _Part(self, island)

    def spent(self, island: int, gradients: int) -> int:
        """Note what an island has spent so far; what all of them have."""
        self._spent[island] = max(self._spent[island], gradients)
        return sum(self._spent)


class _Part:
    """Hears one island."""

    def __init__(self, board: Board, island: int) -> None:
        self._board, self._island = board, island

    def start(self, budget: int) -> None:
        """Nothing: the bar is that of all islands."""

    def compile(self, name: str) -> None:
        """Say what is being compiled."""
        self._board.shown.compile(name)

    def anneal(self, lam: float, gradients: int) -> None:
        """Show how far an annealing pass has come."""
        self._board.shown.anneal(lam, self._board.spent(self._island, gradients))

    def round(self, record: RoundRecord) -> None:
        """Show a round."""
        self._board.shown.round(replace(record, gradients=self._board.spent(self._island, record.gradients)))

    def finish(self) -> None:
        """Nothing: other islands go on."""
