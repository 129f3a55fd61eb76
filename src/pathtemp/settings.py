"""Everything that can be tuned, with defaults that were measured; see docs and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pathtemp.errors import InputError


@dataclass(frozen=True)
class Settings:
    """The default engine: annealing pass, transported HMC, lam drawn along the orbit, regeneration at lam = 0.

    Parameters
    ----------
    chains
        Chains side by side.
    iterations
        Iterations of one compiled round.
    leapfrogs
        Largest number of leapfrog steps of one HMC move, of which each iteration draws 1..leapfrogs; None for the
        fourth root of the dimension.
    acceptance
        Target acceptance of HMC, to which step sizes adapt at each lam.
    orbit
        Points of the lattice on which lam moves along the orbit; one less is evaluated.
    anneal_moves, anneal_ess
        HMC moves per level of the annealing pass, and the conditional effective sample size that spaces its levels.
    adapt_least, adapt_share
        Shares of the budget between which the kernel is frozen, as soon as it has settled.
    log_z_se
        Without a given budget: standard error of log z(1) at which a run may stop.
    rhat
        Largest R-hat of the target draws; chains are many and short, so it is larger than for four long ones.
    batch
        Chains evaluated at once; None for all. Bounds memory; does not change any chain's draws.
    """

    chains: int = 64
    iterations: int = 32
    leapfrogs: int | None = None
    acceptance: float = 0.8
    orbit: int = 8
    anneal_moves: int = 3
    anneal_ess: float = 0.5
    adapt_least: float = 0.2
    adapt_share: float = 0.5
    log_z_se: float = 0.02
    rhat: float = 1.1
    batch: int | None = None

    def __post_init__(self) -> None:
        for name in ("chains", "iterations", "leapfrogs", "anneal_moves"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"settings: {name} must be at least 1, and is {value}")
        if self.iterations % 4:
            raise InputError(f"settings: iterations must be a multiple of 4, and is {self.iterations}")
        if self.orbit < 2:
            raise InputError(f"settings: orbit must be at least 2, and is {self.orbit}")
        for name in ("acceptance", "anneal_ess", "adapt_least", "adapt_share"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"settings: {name} must lie between 0 and 1, and is {getattr(self, name)}")

    def leapfrogs_in(self, dim: int) -> int:
        """Largest number of leapfrog steps in ``dim`` dimensions.

        >>> Settings().leapfrogs_in(10), Settings().leapfrogs_in(2000)
        (1, 6)
        """
        return int(dim**0.25) if self.leapfrogs is None else self.leapfrogs

    def round_gradients_in(self, dim: int) -> float:
        """Gradient evaluations that a round costs on average in ``dim`` dimensions.

        >>> Settings().round_gradients_in(10)
        2048.0
        """
        return self.chains * self.iterations * (self.leapfrogs_in(dim) + 1) / 2

    def replace(self, **changes: Any) -> Settings:
        """A copy with some fields changed.

        >>> Settings().replace(chains=8).chains
        8
        """
        return replace(self, **changes)


@dataclass(frozen=True)
class PaperSettings:
    """The paper's own engine: joint NUTS on (theta, a), trapezoid, kernels, k-hat stop (sections 2.1, 2.2).

    Parameters
    ----------
    chains
        NUTS chains.
    draws
        Draws of one adaptation over all chains, the discarded first half included (3000 in the paper).
    adaptations
        Largest number of adaptations.
    kernels
        J, the number of Gaussian and of logit kernels (eq. kernel).
    grid
        I, the number of points at which the curve is smoothed (eq. estimation_beta).
    khat
        Stop when k-hat of 1/p(a) falls below this.
    stop
        False runs all the adaptations whatever k-hat says, for the paper's figures.
    max_depth
        Largest NUTS tree depth.
    """

    chains: int = 4
    draws: int = 3000
    adaptations: int = 10
    kernels: int = 10
    grid: int = 100
    khat: float = 0.7
    stop: bool = True
    max_depth: int = 10

    def replace(self, **changes: Any) -> PaperSettings:
        """A copy with some fields changed."""
        return replace(self, **changes)


DEFAULT = Settings()
PAPER = PaperSettings()
