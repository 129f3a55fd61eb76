"""Everything that can be tuned, with defaults that were measured; see docs and benchmarks."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from pathtemp.api.arguments import finite_array, positive_number, share, shown, whole_number, yes_or_no
from pathtemp.errors import InputError
from pathtemp.io.printable import printable

S = TypeVar("S", "Settings", "PaperSettings", "LadderSettings")

Marginal = Literal["balanced", "uniform", "constant-kl", "min-variance"]
"""How chains spend their time along the path, see :class:`Settings`."""


Effort = Literal["auto", "light", "full", "thorough"]
"""How much a run does beside its gradients, see :class:`Settings`."""

FEW_ROUNDS = 16
"""Rounds in a budget below which they are halved."""

USUAL_PRICE = 0.25
"""Gradients that a density costs where nothing was measured: automatic differentiation takes three to five times."""


@dataclass(frozen=True)
class Settings:
    """The default engine: annealing pass, transported HMC, lam drawn along the orbit, regeneration at lam = 0.

    Parameters
    ----------
    chains
        Chains side by side.
    iterations
        Iterations of one compiled round; half as many where a budget holds fewer than sixteen rounds, and 16 at most
        where the effort is light.
    leapfrogs
        Largest number of leapfrog steps of one HMC move, of which each iteration draws 1..leapfrogs; None for the
        fourth root of the dimension.
    acceptance
        Target acceptance of HMC, to which step sizes adapt at each lam.
    orbit
        Points of the lattice on which lam moves along the orbit; one less is evaluated. More of them make log z more
        precise, above all multiples of eight, of which the same number lies at each end of the path, wherever the
        lattice is; draws gain little.
    anneal_moves, anneal_ess
        HMC moves per level of the annealing pass, and the conditional effective sample size that spaces its levels.
    adapt_least, adapt_share
        Shares of the budget between which the kernel is frozen, as soon as it has settled; without a given budget,
        from the eighth round, or the third where the effort is light.
    log_z_se
        Without a given budget: standard error of log z(1) at which a run may stop.
    rhat
        Largest R-hat of the target draws, over groups of chains (see :mod:`pathtemp.result.grouping`). Tempering asks
        for 1.01, or 1.02 between modes, at least; this is its limit where fewer than 1250 draws are asked for.
    marginal
        Where on the path chains spend their time: "uniform" in a under the paper's link; "constant-kl", in proportion
        to sqrt(Var U), the length of the path; "min-variance", to sqrt(E U^2); "balanced", half uniform and half
        constant-kl.
    batch
        Chains evaluated at once; None for all. Bounds memory; does not change any chain's draws.
    effort
        "full" scans up to 16,384 draws of the base for modes, moves lam on a lattice of ``orbit`` points, and brings
        some 4000 target draws; "thorough" scans up to 131,072 and makes up to 16,384 starts where that helps; "light"
        scans 1024, moves on two points whatever ``orbit`` is, in rounds of 16 iterations at most, and brings some 1300.
        "auto" times the density at the start and takes "thorough" up to 8 us and "light" from 0.2 ms on. The fit says
        which it was.
    density_price
        Gradient equivalents that one density costs in a ``budget``, at most 1. None is 1/4, unless the effort is "auto"
        and a density takes 0.2 ms or more: then both are timed at the start, and their ratio is rounded to 1/16, 1/4 or
        1. The fit says which it was, and ``settings=fit.settings`` gives the same draws on any machine.
    """

    chains: int = 64
    iterations: int = 32
    leapfrogs: int | None = None
    acceptance: float = 0.8
    orbit: int = 4
    anneal_moves: int = 3
    anneal_ess: float = 0.5
    adapt_least: float = 0.2
    adapt_share: float = 0.5
    log_z_se: float = 0.02
    rhat: float = 1.05
    marginal: Marginal = "balanced"
    batch: int | None = None
    effort: Effort = "auto"
    density_price: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.effort, str) or self.effort not in get_args(Effort):
            raise InputError(f"effort: it must be one of {', '.join(get_args(Effort))}, and is {shown(self.effort)}")
        if not isinstance(self.marginal, str) or self.marginal not in get_args(Marginal):
            raise InputError(
                f"marginal: it must be one of {', '.join(get_args(Marginal))}, and is {shown(self.marginal)}"
            )
        _check_whole(self, chains=1, iterations=1, leapfrogs=1, anneal_moves=1, orbit=2, batch=1)
        if self.iterations % 4:
            raise InputError(f"iterations: it must be a multiple of 4, and is {self.iterations}")
        for name in ("acceptance", "anneal_ess", "adapt_least", "adapt_share"):
            object.__setattr__(self, name, share(name, getattr(self, name)))
        for name in ("log_z_se", "rhat"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))
        if self.density_price is not None:
            object.__setattr__(self, "density_price", positive_number("density_price", self.density_price))
            if self.density_price > 1:
                raise InputError(
                    f"density_price: a density costs no more than a gradient, 1, and it is {self.density_price}"
                )
        if self.rhat <= 1:
            raise InputError(f"rhat: chains that agree have 1, so that it must be more, and is {self.rhat}")
        if self.adapt_least > self.adapt_share:
            raise InputError(
                f"adapt_least: it is {self.adapt_least}, and adapt_share, {self.adapt_share}, may not be less"
            )

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

    @property
    def price(self) -> float:
        """Gradient equivalents that one density costs.

        >>> Settings().price, Settings(density_price=1).price
        (0.25, 1.0)
        """
        return USUAL_PRICE if self.density_price is None else self.density_price

    @property
    def round_densities(self) -> int:
        """Density evaluations that a round costs: one at the end of each move, and the rest of the lattice."""
        return self.chains * self.iterations * self.orbit

    def round_cost_in(self, dim: int) -> float:
        """Gradient equivalents that a round costs on average in ``dim`` dimensions.

        >>> Settings().round_cost_in(10)
        4096.0
        """
        return self.round_gradients_in(dim) + self.price * self.round_densities

    def within(self, budget: float, dim: int) -> Settings:
        """A copy whose rounds are short enough for a ``budget`` in gradient equivalents: some for each phase of a run.

        >>> Settings().within(1e5, dim=10).iterations, Settings().within(6e4, dim=10).iterations
        (32, 16)
        """
        short = budget < FEW_ROUNDS * self.round_cost_in(dim) and self.iterations >= 32
        # Half of them, and a multiple of four.
        return self.replace(iterations=self.iterations // 8 * 4) if short else self

    def replace(self, **changes: Any) -> Settings:
        """A copy with some fields changed.

        >>> Settings().replace(chains=8).chains
        8
        """
        return _replaced(self, changes)


FEWEST_KEPT = 20
"""Kept draws of a chain below which neither the warm-up nor standard errors of the paper's engine make sense."""


@dataclass(frozen=True)
class PaperSettings:
    """The paper's own engine: joint NUTS on (theta, a), path sampling, kernels, k-hat stop (sections 2.1, 2.2).

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

    def __post_init__(self) -> None:
        # With kernels or grid points fewer than two there is no curve to fit.
        _check_whole(self, chains=1, draws=8, adaptations=1, kernels=1, grid=2, max_depth=1)
        object.__setattr__(self, "khat", positive_number("khat", self.khat))
        object.__setattr__(self, "stop", yes_or_no("stop", self.stop))
        if self.kept < FEWEST_KEPT:
            raise InputError(
                f"settings: draws={self.draws} over chains={self.chains} leaves a chain {self.kept} draws "
                f"after warm-up; give at least {2 * FEWEST_KEPT} draws for each chain"
            )

    @property
    def kept(self) -> int:
        """Draws that a chain keeps of an adaptation.

        >>> PAPER.kept
        375
        """
        return self.draws // self.chains // 2

    def replace(self, **changes: Any) -> PaperSettings:
        """A copy with some fields changed."""
        return _replaced(self, changes)


@dataclass(frozen=True)
class LadderSettings:
    """Discrete simulated tempering: Gibbs over the rungs of a ladder, HMC within each (section 4.1).

    Parameters
    ----------
    chains
        Chains side by side.
    draws
        Draws of lam of one adaptation, for each chain; the first half is warm-up (150 in the paper).
    moves
        HMC updates of theta after each draw of lam (100 in the paper).
    adaptations
        Adaptations, each of which sets c <- z.
    ladder
        Rungs lam, increasing from 0 to 1.
    leapfrogs
        Largest number of leapfrog steps of one HMC update, of which each draws 1..leapfrogs.
    acceptance
        Target acceptance, to which the step size of each rung adapts in the warm-up.
    """

    chains: int = 4
    draws: int = 150
    moves: int = 100
    adaptations: int = 10
    ladder: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    leapfrogs: int = 4
    acceptance: float = 0.8

    def __post_init__(self) -> None:
        _check_whole(self, chains=1, draws=4, moves=1, adaptations=1, leapfrogs=1)
        object.__setattr__(self, "acceptance", share("acceptance", self.acceptance))
        rungs = finite_array("ladder", self.ladder)
        if rungs.ndim != 1 or len(rungs) < 2 or min(np.diff(rungs)) <= 0 or rungs[0] != 0 or rungs[-1] != 1:
            raise InputError(f"ladder: it must increase from 0 to 1, and is {shown(self.ladder)}")
        object.__setattr__(self, "ladder", tuple(rungs.tolist()))

    def replace(self, **changes: Any) -> LadderSettings:
        """A copy with some fields changed.

        >>> LadderSettings().replace(chains=1).chains
        1
        """
        return _replaced(self, changes)


def _replaced(settings: S, changes: Mapping[str, Any]) -> S:
    """A copy with some fields changed; InputError where there is no such field."""
    known = [field.name for field in fields(settings)]
    for name in changes:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"is {near[0]} meant?" if near else f"there are {', '.join(known[:6])} and others"
            raise InputError(f"{printable(name)}: the settings have no such field; {hint}")
    return replace(settings, **changes)


def _check_whole(settings: Any, **least: int) -> None:
    """Raise unless fields are whole numbers of at least so much, or None where their default is; make them ints."""
    for name, lowest in least.items():
        value = getattr(settings, name)
        if not (value is None and getattr(type(settings), name) is None):
            object.__setattr__(settings, name, whole_number(name, value, least=lowest))


DEFAULT = Settings()
PAPER = PaperSettings()
LADDER = LadderSettings()
