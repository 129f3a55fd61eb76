"""What happens between rounds: the checkpoint is written, and a run that the user wants to end is stopped."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pathtemp.checkpoint.file import write
from pathtemp.checkpoint.lock import working


class Stopped(Exception):
    """The user asked to stop; the run stands between two rounds."""


class InRounds(Protocol):
    """A run that calls ``after_round`` between rounds."""

    after_round: Callable[[], None]


class Keeper:
    """Called after every round of a run.

    Parameters
    ----------
    run
        The run.
    record
        Gives all that a checkpoint holds: what the run was asked to do, what is known of its model, its state.
    place
        Where that goes; None keeps none.
    """

    def __init__(self, run: InRounds, record: Callable[[], Mapping[str, Any]], place: Path | None) -> None:
        self._record, self.place = record, place
        self._asked = self._between_rounds_once = self._failed = False
        run.after_round = self.after_round

    def after_round(self) -> None:
        """Write the checkpoint; then raise :class:`Stopped` where the user asked for it."""
        self._between_rounds_once = True
        if self.place is not None:
            self._write(self.place)
        if self._asked:
            raise Stopped

    def _write(self, place: Path) -> None:
        try:
            write(place, self._record())
        except OSError as error:
            # The run is worth more than its checkpoint: it goes on, and tries again after the next round.
            if not self._failed:
                reason = error.strerror or str(error)
                warnings.warn(
                    f"checkpoint: {place} could not be written ({reason}) and is as it was before; the run goes on",
                    stacklevel=2,
                )
            self._failed = True
        else:
            self._failed = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hold the checkpoint, and let Ctrl-C end the run between rounds."""
        with working(self.place), self._hearing():
            yield

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """Let Ctrl-C end the run after the round under way; a second one, or one before any round, ends it at once."""
        ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        self._asked = False
        if not ours:
            yield
            return
        signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._asked or not self._between_rounds_once:
            raise KeyboardInterrupt
        self._asked = True
        print("\nstopping after this round; press Ctrl-C again to stop at once", file=sys.stderr)
