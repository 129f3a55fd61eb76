"""Ctrl-C between rounds: a run ends after the round under way, and what there is comes back."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger("pathtemp")


class Stopped(Exception):
    """The user asked to stop; the run stands between two rounds."""


class Interrupts:
    """Hears Ctrl-C while a run is under way."""

    def __init__(self) -> None:
        self._asked = self._any_round = False

    @property
    def asked(self) -> bool:
        """Whether the user asked to stop."""
        return self._asked

    def round_ended(self) -> None:
        """Note that there is a round whose draws count."""
        self._any_round = True

    def stop_if_asked(self) -> None:
        """Raise :class:`Stopped` where the user asked for it."""
        if self._asked:
            raise Stopped

    @contextmanager
    def heard(self) -> Iterator[None]:
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
        if self._asked or not self._any_round:
            raise KeyboardInterrupt
        self._asked = True
        log.warning("stopping after this round; press Ctrl-C again to stop at once")
