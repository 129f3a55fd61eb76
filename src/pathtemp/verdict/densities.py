"""Gates on the log densities themselves: whether they, and their gradients, were numbers."""

from __future__ import annotations

from pathtemp.result.run import Check, Rejections
from pathtemp.verdict.registry import gate, judged


@gate(
    "NaN",
    question="Were the densities numbers nearly everywhere?",
    holds="the log densities were NaN at a share of {limit:g} of the points at most (only there where some were)",
    advice="mend the density, or let it return -inf where it is zero",
    lasts=True,
)
def check_nan(rejected: Rejections, *, limit: float = 1e-3) -> Check:
    """The log densities were numbers, or -inf, almost everywhere."""
    share = rejected.nan / max(rejected.evaluations, 1)
    message = (
        f"The log density was NaN at {rejected.nan:,} of {rejected.evaluations:,} points ({100 * share:.2g}%), "
        f"{rejected.where_nan}: such points count as zero density, and what mass they should hold is missing; mend the "
        "density, or let it return -inf where it is zero."
    )
    return judged("NaN", share, limit, share <= limit, message)


@gate(
    "NaN gradient",
    question="Were the gradients numbers wherever the densities are?",
    holds="a gradient was NaN where the log density is finite at a share of {limit:g} of the points at most (only "
    "there where one was)",
    advice="mend the gradient: both branches of jnp.where are differentiated, and sqrt and norm have none at zero",
    lasts=True,
)
def check_gradient(rejected: Rejections, *, limit: float = 1e-3) -> Check:
    """The gradients were numbers almost everywhere."""
    share = rejected.gradient / max(rejected.evaluations, 1)
    where = f", for instance at {rejected.gradient_at}" if rejected.gradient_at else ""
    message = (
        f"The gradient was NaN where the log density is finite, on {rejected.gradient:,} trajectories in "
        f"{rejected.evaluations:,} evaluations{where}: no move crosses such points, and what mass lies beyond may be "
        "missing; mend the gradient (both branches of jnp.where are differentiated; sqrt and norm have none at zero)."
    )
    return judged("NaN gradient", share, limit, share <= limit, message)


@gate(
    "normalisable",
    question="Does the target fall off in every direction?",
    holds="far from the draws the density falls faster than the distance to the power of -{limit:g} along every "
    "coordinate (only there where another gate failed)",
    advice="give every parameter a proper distribution",
    lasts=True,
)
def check_normalisable(slope: float, where: str, *, limit: float = 0.5) -> Check:
    """The density falls off along every coordinate; ``slope`` is the least power, that of ``where``."""
    message = (
        f"The target cannot be normalised: far from the draws its density does not fall off in {where} (it goes as the "
        f"distance to the power of {-slope:.2g}, and must fall faster than that of -1); give every parameter a proper "
        "distribution."
    )
    return judged("normalisable", slope, limit, not slope < limit, message)


def check_met(rejected: Rejections) -> list[Check]:
    """The gates on what was met, of those kinds of which there was any."""
    checks = [check_nan(rejected)] if rejected.nan else []
    return [*checks, *([check_gradient(rejected)] if rejected.gradient else [])]
