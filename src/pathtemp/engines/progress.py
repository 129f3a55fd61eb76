"""How far a run has come, told to whoever listens: a bar in the terminal, nobody, or a user's own display."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from pathtemp.api.arguments import shown
from pathtemp.errors import InputError
from pathtemp.result.run import RoundRecord
from pathtemp.result.summary import with_error


class Progress(Protocol):
    """What an engine calls while it runs; any object with these methods will do."""

    def start(self, budget: int) -> None:
        """The run begins, with about so many gradient evaluations to spend."""
        ...

    def compile(self, name: str) -> None:
        """A function is about to be compiled, which may take seconds."""
        ...

    def anneal(self, lam: float, gradients: int) -> None:
        """The annealing pass has reached lam, after so many gradient evaluations."""
        ...

    def round(self, record: RoundRecord) -> None:
        """A round has ended."""
        ...

    def finish(self) -> None:
        """The run has ended, well or not; called once or more."""
        ...


class Silent:
    """Says nothing."""

    def start(self, budget: int) -> None:
        """Nothing."""

    def compile(self, name: str) -> None:
        """Nothing."""

    def anneal(self, lam: float, gradients: int) -> None:
        """Nothing."""

    def round(self, record: RoundRecord) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


LONGEST_COMPILING = 120.0
"""Seconds that nothing takes to compile: where more pass, it is the densities that take them."""


class TimeLeft:
    """Seconds left of a run, from the gradients and the seconds spent so far, those of compiling left out.

    Parameters
    ----------
    budget
        Gradient evaluations to spend.
    clock
        Gives the time in seconds.

    >>> left = TimeLeft(1_000, clock=iter([0.0, 2.0, 90.0, 92.0]).__next__)
    >>> left.after(100)
    18.0
    >>> left.skip()
    >>> left.after(110), left.after(210)
    (17.8, 15.8)
    """

    def __init__(self, budget: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget, self._clock = budget, clock
        self._last, self._gradients = clock(), 0
        self._seconds, self._counted = 0.0, 0
        self._skip = False

    def skip(self) -> None:
        """Do not count the time until the next call of :meth:`after`, nor its gradients, where it may be compiling."""
        self._skip = True

    def after(self, gradients: int) -> float | None:
        """Seconds left after so many gradients; None while it cannot be said."""
        now = self._clock()
        if not self._skip or now - self._last > LONGEST_COMPILING:
            self._seconds += now - self._last
            self._counted += gradients - self._gradients
        self._last, self._gradients, self._skip = now, gradients, False
        if self._counted <= 0:
            return None
        return max(0, self._budget - gradients) * self._seconds / self._counted


class _Clock(ProgressColumn):
    """The time left, which runs down between rounds however long one takes; before it is known, the time so far.

    A run without a budget mostly ends sooner.
    """

    def render(self, task: Task) -> Text:
        """As the display draws it, some times a second."""
        end, now = task.fields["end"], task.get_time()
        if end is None:
            return Text(f"{duration(task.elapsed or 0.0)} so far")
        return Text(f"at most {duration(max(0.0, end - now))} left")


class RichProgress:
    """One line in the terminal: phase, bar, time left, round, round trips, log z and k-hat.

    Written to standard error, and not at all where that is no terminal and no notebook: logs stay clean.

    Parameters
    ----------
    console
        Where to write; standard error where None.

    >>> with RichProgress(Console(quiet=True)) as progress:
    ...     progress.start(budget=50_000)
    ...     progress.anneal(lam=0.3, gradients=2_000)
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console(stderr=True) if console is None else console
        self._bar: Bar | None = None
        self._task = TaskID(0)
        self._left = TimeLeft(0)
        self._rounds = self._tours = 0
        self._sampling = False

    def start(self, budget: int) -> None:
        """Show the bar, where there is a terminal to show it in."""
        self.finish()
        self._rounds = self._tours = 0
        self._sampling = False
        self._left = TimeLeft(budget)
        if not (self._console.is_terminal or self._console.is_jupyter):
            return
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%", markup=False),
            _Clock(),
            TextColumn("{task.fields[state]}", markup=False),
            console=self._console,
        )
        self._task = self._bar.add_task("start", total=max(budget, 1), state="", end=None)
        self._bar.start()

    def compile(self, name: str) -> None:
        """Say what is being compiled."""
        self._left.skip()
        if self._bar is not None:
            self._bar.update(self._task, description=f"compile {name}")

    def anneal(self, lam: float, gradients: int) -> None:
        """Show how far the annealing pass has come."""
        self._show("anneal", gradients, f"lam {lam:.3g}")

    def round(self, record: RoundRecord) -> None:
        """Show the round, the round trips so far, and the newest estimates."""
        self._rounds += 1
        if record.phase == "sample" and not self._sampling:
            # From here on they count for the fit, as its summary does.
            self._sampling, self._tours = True, 0
        self._tours += record.tours
        self._show(record.phase, record.gradients, round_line(self._rounds, self._tours, record))

    def finish(self) -> None:
        """Leave the last line standing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish()

    def _show(self, description: str, gradients: int, state: str) -> None:
        seconds = self._left.after(gradients)
        if self._bar is not None:
            end = None if seconds is None else self._bar.get_time() + seconds
            self._bar.update(self._task, description=description, completed=gradients, end=end, state=state)


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> duration(7.2), duration(754), duration(7203)
    ('0:07', '12:34', '2:00:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def round_line(rounds: int, tours: int, record: RoundRecord) -> str:
    """The newest estimates in one line; what is not known yet is left out.

    >>> round_line(3, 120, RoundRecord("adapt", 9_000, 40, -8.05312, 0.0213, 0.31, 0.8))
    'round 3   round trips 120   log z -8.053 ± 0.021   k-hat 0.31'
    >>> nan = float("nan")
    >>> round_line(1, 0, RoundRecord("adapt", 9_000, 0, -8.05312, nan, nan, 0.8))
    'round 1   round trips 0   log z -8.05'
    """
    parts = [f"round {rounds}", f"round trips {tours:,}"]
    if not math.isnan(record.log_z_se):
        parts.append(f"log z {with_error(record.log_z, record.log_z_se)}")
    elif not math.isnan(record.log_z):
        parts.append(f"log z {record.log_z:.3g}")
    if not math.isnan(record.khat):
        parts.append(f"k-hat {record.khat:.2f}")
    return "   ".join(parts)


def display(progress: bool | Progress) -> Progress:
    """The bar, silence, or the user's own display."""
    if isinstance(progress, bool):
        return RichProgress() if progress else Silent()
    lacking = [name for name in ("start", "compile", "anneal", "round", "finish") if not hasattr(progress, name)]
    if lacking or isinstance(progress, type):
        raise InputError(
            f"progress: it must be True, False or an object with start, compile, anneal, round and finish, and is "
            f"{shown(progress)}"
        )
    return progress
