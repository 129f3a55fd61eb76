"""What an engine hands over: plain arrays, before names, xarray and plots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pathtemp._types import FloatArray, IntArray
from pathtemp.modes.table import Modes
from pathtemp.result.curve import LogZ


@dataclass(frozen=True)
class Counts:
    """Evaluations over all chains, the annealing pass and every round included."""

    gradients: int = 0
    densities: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.gradients + other.gradients, self.densities + other.densities)

    def cost(self, price: float) -> float:
        """All of them in gradient equivalents, where a density costs ``price`` gradients.

        >>> Counts(gradients=100, densities=40).cost(0.25)
        110.0
        """
        return self.gradients + price * self.densities


NOWHERE = (float("inf"), float("-inf"))
"""Lowest and highest lam of nothing."""


@dataclass(frozen=True)
class Rejections:
    """Points of the path at which a log density was no number, which count as zero density.

    Parameters
    ----------
    zero, nan
        Points with -inf, and with NaN.
    evaluations
        Points in all.
    nan_lam
        Lowest and highest lam of the chains that met NaN; (inf, -inf) where that is not known, or none did.
    zero_lam
        The same of -inf.
    gradient
        Trajectories that ended because a gradient was no number where the log density is finite.
    gradient_at
        One such point in words, and the log density there; empty where it is not known.
    """

    zero: int = 0
    nan: int = 0
    evaluations: int = 0
    nan_lam: tuple[float, float] = NOWHERE
    zero_lam: tuple[float, float] = NOWHERE
    gradient: int = 0
    gradient_at: str = ""

    def __add__(self, other: Rejections) -> Rejections:
        return Rejections(
            self.zero + other.zero,
            self.nan + other.nan,
            self.evaluations + other.evaluations,
            _both(self.nan_lam, other.nan_lam),
            _both(self.zero_lam, other.zero_lam),
            self.gradient + other.gradient,
            self.gradient_at or other.gradient_at,
        )

    @property
    def total(self) -> int:
        """Points with any of it."""
        return self.zero + self.nan + self.gradient

    @property
    def where_nan(self) -> str:
        """Where on the path NaN was met, in words.

        >>> Rejections(0, 3, 100, (0.0, 0.25)).where_nan, Rejections(0, 1, 100, (1.0, 1.0)).where_nan
        ('at lam between 0 and 0.25', 'at lam = 1')
        """
        return _place(self.nan_lam)

    @property
    def where_zero(self) -> str:
        """Where on the path -inf was met, in words."""
        return _place(self.zero_lam)


def _both(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (min(one[0], other[0]), max(one[1], other[1]))


def _place(ends: tuple[float, float]) -> str:
    low, high = ends
    if low > high:
        return "before the first round"
    return f"at lam = {low:.3g}" if low == high else f"at lam between {low:.3g} and {high:.3g}"


@dataclass(frozen=True)
class RoundRecord:
    """One line of the history.

    Parameters
    ----------
    phase
        "anneal", "modes", "pin", "adapt" or "sample".
    gradients
        Gradient evaluations so far.
    tours
        Round trips base -> target -> base in this round.
    log_z, log_z_se
        log z(1) - log z(0) as estimated after this round, and its standard error (NaN where there is none yet).
    khat
        Pareto k-hat of 1/p(a) (NaN where it was not computed).
    acceptance
        Mean acceptance of the theta moves.
    curve
        The log z curve after this round, None where it did not change.
    """

    phase: str
    gradients: int
    tours: int
    log_z: float
    log_z_se: float
    khat: float
    acceptance: float
    curve: LogZ | None = None


@dataclass(frozen=True)
class Check:
    """One gate of the verdict.

    Parameters
    ----------
    name
        Short name, e.g. "tours".
    value, threshold
        What was measured, and what it was held against.
    passed
        Whether the gate is open.
    message
        Empty when passed; otherwise what happened, where on the path, and what to do next.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class Diagnostics:
    """The numbers behind the verdict.

    Parameters
    ----------
    checks
        The gates; converged means that all passed.
    khat, rhat, ess_bulk, ess_tail
        Of 1/p(a); and worst over the parameters of the target draws.
    tours
        Round trips base -> target -> base in the rounds the estimates come from.
    length
        Thermodynamic length of the path (its difficulty).
    lam, local_length, acceptance, visits
        Along the path, one value per bin: centre of the bin, length inside it, mean acceptance, number of visits.
    log_z_by_estimator
        log z(1) and standard error by estimator, e.g. {"rao_blackwell": (-8.05, .01), "mbar": (-8.06, .03)}.
    rejections
        Density evaluations that gave NaN or -inf.
    rejected
        The same by kind, and where on the path.
    """

    checks: tuple[Check, ...]
    khat: float
    rhat: float
    ess_bulk: float
    ess_tail: float
    tours: int
    length: float
    lam: FloatArray
    local_length: FloatArray
    acceptance: FloatArray
    visits: FloatArray
    log_z_by_estimator: dict[str, tuple[float, float]]
    rejections: int
    rejected: Rejections = Rejections()

    @property
    def converged(self) -> bool:
        """True when every gate passed, and there are gates."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failed(self) -> list[str]:
        """Names of the gates that did not pass."""
        return [check.name for check in self.checks if not check.passed]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end."""
        return FINISHED in self.failed

    @property
    def warnings(self) -> list[str]:
        """Messages of the gates that did not pass; of an interrupted run, those that going on would not change."""
        return [check.message for check in self.checks if not check.passed and check.message]


FINISHED = "finished"
"""Name of the gate that is there where a run was interrupted."""

MOST_POINTS, MOST_NUMBERS = 2**13, 2**19
"""Points of the path that are kept with all of theta, and the numbers that these may be: four megabytes."""


def points_kept(dim: int) -> int:
    """Points of the path that are kept with all of theta.

    >>> points_kept(2), points_kept(1000)
    (8192, 524)
    """
    return max(1, min(MOST_POINTS, MOST_NUMBERS // dim))


class PathPoints(NamedTuple):
    """Some draws of the joint path with all of theta: shapes (n, dim), (n,) and (n,)."""

    theta: FloatArray
    a: FloatArray
    lam: FloatArray

    @classmethod
    def thinned(cls, theta: FloatArray, a: FloatArray, lam: FloatArray) -> PathPoints:
        """Of arrays (iteration, chain, ...) evenly spread iterations of all chains, as many as are kept.

        >>> import numpy as np
        >>> PathPoints.thinned(np.zeros((9000, 2, 3)), np.zeros((9000, 2)), np.zeros((9000, 2))).theta.shape
        (6000, 3)
        """
        rows, chains, dim = theta.shape
        step = max(1, -(-rows * chains // points_kept(dim)))
        return cls(theta[::step].reshape(-1, dim), a[::step].ravel(), lam[::step].ravel())


@dataclass(frozen=True)
class Run:
    """The outcome of an engine.

    Parameters
    ----------
    target, base
        Flat unconstrained draws at lam = 1 and lam = 0, shapes (chain, draw, dim).
    a, lam, delta, theta0
        The joint path of the rounds the estimates come from, shapes (chain, iteration); ``theta0`` is the first
        coordinate of theta.
    points
        Some draws of that path with all of theta, from which figures show any variable; None where they were not kept.
    log_z
        The curve.
    history
        One record a round, the annealing pass first.
    diagnostics
        Gates and numbers.
    counts
        Evaluations spent.
    seconds
        Wall seconds by part: "start" (checking and timing the model), "compile" (annealing pass and rounds), "anneal",
        "search" (for modes), "adapt", "sample", "verdict", and "other"; they add up to the time of the call.
    modes
        What is known of the modes, None where they were not looked for.
    stats
        Of each target draw, shapes (chain, draw), as far as the engine knows: ``lp``, the log target density on the
        unconstrained scale; ``tour``, a number that draws of the same tour share; ``walker``, the chain that made it.
    """

    target: FloatArray
    base: FloatArray
    a: FloatArray
    lam: FloatArray
    delta: FloatArray
    log_z: LogZ
    history: tuple[RoundRecord, ...]
    diagnostics: Diagnostics
    counts: Counts
    seconds: dict[str, float] = field(default_factory=dict)
    theta0: FloatArray | None = None
    points: PathPoints | None = None
    modes: Modes | None = None
    stats: dict[str, FloatArray | IntArray] = field(default_factory=dict)
