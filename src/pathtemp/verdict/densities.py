"""Gates on the log densities themselves: whether they, and their gradients, were numbers."""

from __future__ import annotations

from pathtemp.result.run import Check, Rejections
from pathtemp.verdict.registry import gate, judged


@gate(
    "NaN",
    question="Were the log densities free of NaN nearly everywhere?",
    holds="at most {limit:.1%} of the log densities were NaN (listed only if any were)",
    advice="correct the density, or let it return -inf where it is zero",
    lasts=True,
)
def check_nan(rejected: Rejections, *, limit: float = 1e-3) -> Check:
    """The log densities were numbers, or -inf, almost everywhere."""
    share = rejected.nan / max(rejected.evaluations, 1)
    message = (
        f"The log density was NaN at {rejected.nan:,} of {rejected.evaluations:,} points ({100 * share:.2g}%), "
        f"{rejected.where_nan}: such points count as zero density, and any mass there is missing; correct the density, "
        "or let it return -inf where it is zero."
    )
    return judged("NaN", share, limit, share <= limit, message)


@gate(
    "NaN gradient",
    question="Were the gradients free of NaN wherever the density is finite?",
    holds="at most {limit:.1%} of the points had a NaN gradient and a finite log density (listed only if any had)",
    advice="correct the gradient: JAX differentiates both branches of jnp.where; sqrt and norm have no gradient at "
    "zero",
    lasts=True,
)
def check_gradient(rejected: Rejections, *, limit: float = 1e-3) -> Check:
    """The gradients were numbers almost everywhere."""
    share = rejected.gradient / max(rejected.evaluations, 1)
    where = f", for instance at {rejected.gradient_at}" if rejected.gradient_at else ""
    message = (
        f"The gradient was NaN where the log density is finite, on {rejected.gradient:,} trajectories in "
        f"{rejected.evaluations:,} evaluations{where}: no move crosses such points, and mass beyond them may be "
        "missing; correct the gradient (JAX differentiates both branches of jnp.where; sqrt and norm have none at "
        "zero)."
    )
    return judged("NaN gradient", share, limit, share <= limit, message)


@gate(
    "normalisable",
    question="Does the density of the target fall off along every coordinate?",
    holds="far from the draws, the density falls faster than distance^-{limit:g} along every coordinate (listed only "
    "if another gate failed)",
    advice="give every parameter a proper distribution",
    lasts=True,
)
def check_normalisable(slope: float, where: str, *, limit: float = 0.5) -> Check:
    """The density falls off along every coordinate; ``slope`` is the smallest power, found at ``where``."""
    message = (
        f"The target cannot be normalised: far from the draws its density does not fall off in {where} (it is "
        f"proportional to distance^{-slope:.2g}, and must fall faster than distance^-1); give every parameter a proper "
        "distribution."
    )
    return judged("normalisable", slope, limit, not slope < limit, message)


def check_met(rejected: Rejections) -> list[Check]:
    """The gates on NaN densities and NaN gradients, for those that occurred."""
    checks = [check_nan(rejected)] if rejected.nan else []
    return [*checks, *([check_gradient(rejected)] if rejected.gradient else [])]
