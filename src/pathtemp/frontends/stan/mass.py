"""Stan code for the mass that a distribution has within bounds: a declared bound does not divide the density by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathtemp.frontends.stan.canonical import distributions

LOG_MASS = "pathtemp_log_mass"
"""Log of what the block's density would integrate to if no draw of the recipe were refused."""

_POSITIVE = (
    *("gamma", "inv_gamma", "exponential", "lognormal", "weibull", "chi_square", "inv_chi_square"),
    *("scaled_inv_chi_square", "frechet", "rayleigh", "pareto", "pareto_type_2", "loglogistic"),
)


@dataclass(frozen=True)
class Interval:
    """Bounds as code, each empty where there is none."""

    low: str = ""
    high: str = ""

    def within(self, other: Interval) -> Interval:
        """The part that both hold."""
        return Interval(_join("fmax", self.low, other.low), _join("fmin", self.high, other.high))


def _join(function: str, one: str, other: str) -> str:
    return one or other if not (one and other) or one == other else f"{function}({one}, {other})"


def log_mass_within(distribution: str, arguments: Sequence[str], inside: Interval) -> str:
    """Code of the log of the mass inside; "0" where it is one for sure, infinity where Stan has no such function.

    >>> log_mass_within("normal", ("0", "s"), Interval(low="0"))
    'normal_lccdf(0 | 0, s)'
    >>> log_mass_within("gamma", ("2", "1"), Interval(low="0"))
    '0'
    """
    low, high = inside.low, inside.high
    if distribution in _POSITIVE and low == "0":
        low = ""
    if not (low or high) or (distribution in ("beta", "beta_proportion") and (low, high) == ("0", "1")):
        return "0"
    if not {"cdf", "ccdf"} <= distributions().get(distribution, set()):
        return "positive_infinity()"

    def call(kind: str, at: str) -> str:
        given = f" | {', '.join(arguments)}" if arguments else ""
        return f"{distribution}_{kind}({at}{given})"

    if low and high:
        return f"log_diff_exp({call('lcdf', high)}, {call('lcdf', low)})"
    return call("lccdf", low) if low else call("lcdf", high)


def log_mass_of_bounds(distribution: str, arguments: Sequence[str], declared: Interval, stated: Interval) -> str:
    """Code of the log mass that the density of an element has: ``stated`` bounds, of ``T[,]``, divide, others do not.

    >>> log_mass_of_bounds("normal", ("0", "1"), Interval("0"), Interval("0"))
    '0'
    """
    both, divided = declared.within(stated), stated
    if both == divided:
        return "0"
    top, below = (log_mass_within(distribution, arguments, part) for part in (both, divided))
    return top if below == "0" else f"{top} - {below}"
