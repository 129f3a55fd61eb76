"""Where islands run: in this process, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

from pathtemp.engines.interrupts import Interrupts
from pathtemp.engines.islands.board import Board
from pathtemp.engines.islands.island import Done, Task, carry_out
from pathtemp.model.model import Model


class Workers(Protocol):
    """What does the steps of islands; the outcome of a step does not depend on where it is done."""

    aside: ClassVar[bool]
    """Whether the seconds of the steps are of other processes."""

    def do(self, tasks: Sequence[Task]) -> list[Done]:
        """Do one step of each island."""
        ...

    def heard(self) -> AbstractContextManager[None]:
        """Let Ctrl-C end the steps under way, where they can be."""
        ...


class Here:
    """Does the steps of all islands in this process.

    Parameters
    ----------
    model
        What is sampled.
    board
        Who is told.
    """

    aside: ClassVar[bool] = False

    def __init__(self, model: Model, board: Board) -> None:
        self._model, self._board = model, board
        self._interrupts = Interrupts()

    def do(self, tasks: Sequence[Task]) -> list[Done]:
        """Do one step of each island in turn."""
        return [self._do(task) for task in tasks]

    def _do(self, task: Task) -> Done:
        if self._interrupts.asked and task.state is not None:
            return Done(dict(task.state), finished=False)
        return carry_out(self._model, task, self._board.of(task.island), self._interrupts)

    def heard(self) -> AbstractContextManager[None]:
        """Let Ctrl-C end every island after the round under way."""
        return self._interrupts.heard()
