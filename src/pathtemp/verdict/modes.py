"""Gates of the verdict about modes."""

from __future__ import annotations

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.result.run import Check
from pathtemp.verdict.registry import MORE, gate, judged

MATTERS = 0.01
"""Expected share from which a known mode must have been visited."""


@gate(
    "unseen modes",
    question="Is the share of modes that no start has reached small?",
    holds="the unseen share of the basins is at most {limit:g}, with 95% confidence; see [modes.md](modes.md)",
    advice="larger budget: more starts",
    lasts=True,
)
def check_unseen(unseen: float, starts: int, *, limit: float = 0.1) -> Check:
    """The upper bound on the unseen share of the basins, from so many independent starts, is small.

    >>> check_unseen(0.046, 64).passed, check_unseen(0.2, 100).passed
    (True, False)
    """
    message = (
        f"Of {starts} starts from the base several ended in modes that no other reached: up to {100 * unseen:.0f}% of "
        f"the basins may be unseen, and their mass would be missing; {MORE}, or a base that covers fewer of them."
    )
    return judged("unseen modes", unseen, limit, not unseen > limit, message)


@gate(
    "missing mass",
    question="Did the search meet each mode so often that it would have met others like it?",
    holds="modes in whose basins the search evaluated five points or fewer have at most {limit:g} of the mass; modes "
    "that it did not find may hold as much again",
    advice="larger budget, or `settings.effort`: more starts",
    lasts=True,
)
def check_missing(missing: float, *, limit: float = 0.02) -> Check:
    """The estimated mass of modes that were not found is small.

    >>> check_missing(0.01).passed, check_missing(0.05).passed
    (True, False)
    """
    message = (
        f"The search met modes with {100 * missing:.0f}% of the mass five times or less, so that modes that it did not "
        f"meet may hold as much again; {MORE}, or with settings.effort='thorough', or with a base that covers less."
    )
    return judged("missing mass", missing, limit, not missing > limit, message)


@gate(
    "narrower modes",
    question="Would modes somewhat narrower than the known ones have been found?",
    holds="where the widths of four modes or more go down to where the search would miss most, narrower ones are "
    "likely: about {limit:g} of all modes at most",
    advice='larger budget, `settings.effort="thorough"`, or `modes=`; see [modes.md](modes.md)',
    lasts=True,
)
def check_narrower(share: float, *, limit: float = 0.15) -> Check:
    """The known widths do not suggest that there are modes too narrow to be found; ``share`` is that of all modes.

    >>> check_narrower(0.1).passed, check_narrower(0.4).passed
    (True, False)
    """
    message = (
        "The known modes differ in width, down to where the search hardly comes upon such modes: some "
        f"{100 * share:.0f}% of all modes may be narrower and unseen, with their mass; {MORE}, with "
        "settings.effort='thorough', with modes= where you know of one, or with a base that covers less."
    )
    return judged("narrower modes", share, limit, not share > limit, message)


@gate(
    "mass of the modes",
    question="Do the draws hold the mass that lies at the top of each mode?",
    holds="where a mode is much narrower at its top than its draws are spread, importance sampling finds at most "
    "e^{limit:g} times as much mass at the top as around the draws",
    advice="a new run with `modes=` at the top; see [modes.md](modes.md)",
    lasts=True,
)
def check_mass(log_ratio: float, *, limit: float = 1.0) -> Check:
    """The top of no mode has much more mass than lies where its draws are; ``log_ratio`` is the largest, in nats.

    >>> check_mass(-2.0).passed, check_mass(4.6).passed
    (True, False)
    """
    message = (
        f"At the top of a mode lies e^{log_ratio:.1f} times the mass that its draws at the target (lam = 1) stand for: "
        "a spike inside a wider mode, which the chains do not come to; run anew with modes= at the top "
        "(fit.modes.centre), so that the path starts from it."
    )
    return judged("mass of the modes", log_ratio, limit, not log_ratio > limit, message)


@gate(
    "mode visits",
    question="Was every known mode visited often enough to know its share?",
    holds="every known mode with an expected share of 1% or more was visited by {limit:g} tours",
    advice="larger budget",
)
def check_visits(visits: IntArray, expected: FloatArray, *, limit: int = 5) -> Check:
    """Every known mode of some mass was visited by a few tours; ``expected`` are the shares from local masses.

    >>> check_visits(np.array([50, 0]), np.array([0.9, 0.1])).passed
    False
    >>> check_visits(np.array([50, 0]), np.array([1.0, 0.0])).value  # of those that matter
    50
    """
    matter = expected >= MATTERS
    few = np.flatnonzero((visits < limit) & matter)
    worst = int(visits[matter].min()) if matter.any() else limit
    if len(few) == 0:
        return Check("mode visits", worst, limit, True)
    k = int(few[np.argmax(expected[few])])
    message = (
        f"{len(few)} of {len(visits)} known modes were visited by fewer than {limit} tours at the target (lam = 1); "
        f"the largest of them, whose local mass suggests a share of {100 * expected[k]:.0f}%, by {visits[k]}: its "
        f"share is not known; {MORE}."
    )
    return Check("mode visits", worst, limit, False, message)


@gate(
    "unknown modes",
    question="Do the draws hold no mode that the search did not find?",
    holds="ascents from target draws, made once the rounds are done, lead to no mode of 1% or more that the base did "
    "not know when the kernel was frozen",
    advice="a new run, with `modes=` points near it; `fit.extend` does not change the base, so this stays",
    lasts=True,
)
def check_unknown(new: FloatArray, *, limit: int = 0) -> Check:
    """No target draw belongs to a mode that the base does not know; ``new`` are the expected shares of such modes.

    More rounds with the same base do not open this gate: they are no evidence that the base knows all modes.

    >>> check_unknown(np.array([])).passed
    True
    """
    found = new[new >= MATTERS]
    message = (
        f"Target draws (lam = 1) led to {len(found)} modes that were not known while the kernel was adapted, the "
        f"largest with an expected share of {100 * new.max(initial=0.0):.0f}%: others may be hidden as well, and "
        "extending this run does not change its base; run anew with a larger budget, and with modes= points "
        "near the modes that fit.modes says were found by draws."
    )
    return judged("unknown modes", len(found), limit, len(found) <= limit, message)
