"""What an engine is: an object that samples, learns and estimates, and leaves the loop to the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from pathtemp.engines.progress import Progress
from pathtemp.errors import InputError
from pathtemp.io.persistent import storable
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import Counts, RoundRecord


@storable
@dataclass(frozen=True)
class Schedule:
    """How far a run goes, in gradient equivalents over all chains unless said otherwise.

    Parameters
    ----------
    most
        Of the whole run; infinite where the engine stops by itself.
    planned
        Of which the shares of preparing are taken; as many as ``most`` where the user gave a budget.
    adapt_least, adapt_most
        Between these the kernel is frozen, as soon as it has settled.
    adaptations
        Adaptive rounds at most; None for any number.
    freezes
        Whether frozen rounds follow, from which the estimates come.
    until_done
        Whether the frozen rounds end as soon as everything asked for is there.
    price
        Gradient equivalents that one density costs: zero where nobody gave a budget, and gradients alone count.
    """

    most: float
    planned: float = float("inf")
    adapt_least: float = 0.0
    adapt_most: float = float("inf")
    adaptations: int | None = None
    freezes: bool = True
    until_done: bool = False
    price: float = 0.0


class Line(NamedTuple):
    """What an engine says of a round, or of a step before the rounds.

    Parameters
    ----------
    phase
        As in :class:`pathtemp.result.run.RoundRecord`.
    curve
        The log z curve so far.
    tours, acceptance, khat
        Of the round.
    changed
        Whether the curve is another than before.
    """

    phase: str
    curve: LogZ
    tours: int = 0
    acceptance: float = float("nan")
    khat: float = float("nan")
    changed: bool = True


class Host(Protocol):
    """The loop, as an engine sees it while it prepares."""

    progress: Progress
    schedule: Schedule

    def note(self, line: Line) -> None:
        """Add a line to the history."""
        ...

    def timed(self, phase: str) -> AbstractContextManager[None]:
        """Add the time that passes inside to the seconds of a phase."""
        ...

    def spent_on(self, phase: str) -> list[int]:
        """Gradient evaluations of each line of the history of that phase."""
        ...

    @property
    def max_seconds(self) -> float:
        """Wall seconds that the run may take."""
        ...

    def late(self, share: float) -> bool:
        """Whether this share of the seconds that the run may take is over."""
        ...


class Keep(Protocol):
    """Keeps the state between two rounds in a file."""

    def __call__(self, state: Mapping[str, Any]) -> None:
        """Keep a state."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Hold the file, so that no other run writes it."""
        ...


class Engine(ABC):
    """One way to sample along a path and to learn from it.

    A subclass names its state, see :mod:`pathtemp.io.persistent`. Between rounds all of it is in those fields.
    """

    extended_by: ClassVar[tuple[str, ...]] = ("budget",)
    """What a run may be extended by; nothing where it cannot be."""

    counts: Counts
    """Evaluations so far."""

    seconds: dict[str, float]
    """Wall seconds by part."""

    price: float = 0.0
    """What a density costs in the schedule that the driver keeps to."""

    density_price: float = 1.0
    """What a density costs in a budget: as much as a gradient, unless an engine says otherwise."""

    @property
    def charged(self) -> float:
        """Gradient equivalents so far that count for the schedule: all, unless an engine says otherwise."""
        return self.counts.cost(self.price)

    @property
    @abstractmethod
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""

    @property
    def round_densities(self) -> float:
        """Density evaluations that a round costs on average."""
        return 0.0

    @property
    def round_cost(self) -> float:
        """Gradient equivalents that a round costs on average."""
        return self.round_gradients + self.price * self.round_densities

    @property
    def gradient_share(self) -> float:
        """Share of what rounds cost that is gradients."""
        return 1.0

    @abstractmethod
    def schedule(self, budget: float | None) -> Schedule:
        """How far a run goes that may spend ``budget`` gradient equivalents; None where nobody said."""

    @abstractmethod
    def prepare(self, host: Host) -> None:
        """All that comes before the first round; called once more after :meth:`restarts`."""

    @abstractmethod
    def compile(self) -> None:
        """Compile the round."""

    @abstractmethod
    def round(self) -> Any:
        """Run one round on the kernel as it is, and give back its record."""

    @abstractmethod
    def adapt(self, record: Any, number: int, *, last: bool) -> Line:
        """Learn from the adaptive round with this ``number``, counted from one; ``last`` where none will follow."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether the kernel is as good as adapting will make it."""

    @abstractmethod
    def fit(self, history: tuple[RoundRecord, ...]) -> Fit:
        """What the rounds so far give; asking changes nothing."""

    def restarts(self, record: Any, host: Host) -> bool:
        """Whether this adaptive round showed that everything is to be prepared again."""
        return False

    def freeze(self) -> None:
        """End adaptation."""
        return None

    def burnt_in(self) -> None:
        """The first frozen round is over; it does not count."""
        return None

    def keep(self, record: Any) -> Line:
        """Count a frozen round among those that the estimates come from."""
        raise NotImplementedError(f"{type(self).__name__} freezes its kernel, and so has to count frozen rounds")

    def complete(self) -> bool:
        """Whether all that was asked for is there."""
        return False

    def kept_back(self, left: float) -> float:
        """Gradient equivalents that :meth:`finish` and the fit may take of the ``left`` ones."""
        return 0.0

    def finish(self, host: Host, room: float) -> bool:
        """What comes after the last round, within ``room`` gradient equivalents; whether anything did."""
        return False

    def begins_again(self, host: Host) -> bool:
        """Make ready to be prepared again, where what came after the last round asks for it; whether it does."""
        return False

    def make_room(self, draws: int) -> float:
        """Make room for ``draws`` more target draws of each chain; the gradient equivalents that they may take."""
        raise InputError(f"extend: draws={draws} cannot be asked for; give budget= alone")


class Sampled(Protocol):
    """The chains of an engine, which count what they spend."""

    counts: Counts
    seconds: dict[str, float]

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""
        ...

    @property
    def round_densities(self) -> float:
        """Density evaluations that a round costs on average."""
        ...


class ChainsEngine(Engine):
    """An engine whose chains count evaluations and seconds."""

    chains: Sampled

    @property
    def counts(self) -> Counts:  # type: ignore[override]
        """Evaluations so far."""
        return self.chains.counts

    @property
    def seconds(self) -> dict[str, float]:  # type: ignore[override]
        """Wall seconds by part."""
        return self.chains.seconds

    @property
    def round_gradients(self) -> float:
        """Gradient evaluations that a round costs on average."""
        return self.chains.round_gradients

    @property
    def round_densities(self) -> float:
        """Density evaluations that a round costs on average."""
        return self.chains.round_densities
