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
    question="Is the share of basins that no start has reached small?",
    holds="at most {limit:.0%} of the basins are unseen, with 95% confidence; see [modes.md](modes.md)",
    advice="larger budget: more starts",
    lasts=True,
)
def check_unseen(unseen: float, starts: int, *, limit: float = 0.1) -> Check:
    """The upper bound on the unseen share of the basins, from so many independent starts, is small.

    >>> check_unseen(0.046, 64).passed, check_unseen(0.2, 100).passed
    (True, False)
    """
    message = (
        f"Several of {starts} starts from the base ended in modes that no other start reached: up to "
        f"{100 * unseen:.0f}% of the basins may be unseen, and their mass would be missing; {MORE}, or choose a base "
        "closer to the target."
    )
    return judged("unseen modes", unseen, limit, not unseen > limit, message)


@gate(
    "missing mass",
    question="Did the search evaluate enough points in the basin of each mode to find others like it?",
    holds="modes with at most five evaluated points in their basins hold at most {limit:.0%} of the mass; undetected "
    "modes may hold as much again",
    advice='larger budget, or `settings.effort="thorough"`: more starts',
    lasts=True,
)
def check_missing(missing: float, *, limit: float = 0.02) -> Check:
    """The estimated mass of modes that were not found is small.

    >>> check_missing(0.01).passed, check_missing(0.05).passed
    (True, False)
    """
    message = (
        f"The search evaluated five points or fewer in the basins of modes with {100 * missing:.0f}% of the mass: "
        f"modes that it missed may hold as much again; {MORE}, with settings.effort='thorough', or with a base closer "
        "to the target."
    )
    return judged("missing mass", missing, limit, not missing > limit, message)


@gate(
    "narrower modes",
    question="Would the search have found modes somewhat narrower than the known ones?",
    holds="of four modes or more, the widths do not suggest that over {limit:.0%} of all modes are narrower ones that "
    "the search missed",
    advice='larger budget, `settings.effort="thorough"`, or `modes=`; see [modes.md](modes.md)',
    lasts=True,
)
def check_narrower(share: float, *, limit: float = 0.15) -> Check:
    """The known widths do not suggest that there are modes too narrow to be found; ``share`` is that of all modes.

    >>> check_narrower(0.1).passed, check_narrower(0.4).passed
    (True, False)
    """
    message = (
        "The widths of the known modes reach down to where the search misses most modes: about "
        f"{100 * share:.0f}% of all modes may be narrower ones that it missed; {MORE}, with "
        "settings.effort='thorough', with modes= near modes that you know of, or with a base closer to the target."
    )
    return judged("narrower modes", share, limit, not share > limit, message)


@gate(
    "mass of the modes",
    question="Do the draws of each mode represent the mass at its top?",
    holds="if the draws of a mode spread much wider than its top, importance sampling finds at most e^{limit:g} times "
    "as much mass at the top as around the draws",
    advice="a new run with `modes=` at the top; see [modes.md](modes.md)",
    lasts=True,
)
def check_mass(log_ratio: float, *, limit: float = 1.0) -> Check:
    """No mode has much more mass at its top than around its draws; ``log_ratio`` is the largest ratio, in nats.

    >>> check_mass(-2.0).passed, check_mass(4.6).passed
    (True, False)
    """
    message = (
        f"The top of a mode has e^{log_ratio:.1f} times the mass that its target draws (lam = 1) represent: it is a "
        "spike inside a wider mode, which the chains do not reach; start a new run with modes= at the top "
        "(fit.modes.centre)."
    )
    return judged("mass of the modes", log_ratio, limit, not log_ratio > limit, message)


@gate(
    "mode visits",
    question="Was every known mode visited often enough to know its share?",
    holds="at least {limit:g} tours visited every known mode with an expected share of 1% or more",
    advice="larger budget",
)
def check_visits(visits: IntArray, expected: FloatArray, *, limit: int = 5) -> Check:
    """Enough tours visited every mode that matters; ``expected`` are the shares estimated from local masses.

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
        f"Fewer than {limit} tours visited {len(few)} of {len(visits)} known modes at the target (lam = 1), so that "
        f"their shares are not known; {visits[k]} visited the largest of them, with an expected share of "
        f"{100 * expected[k]:.0f}%; {MORE}."
    )
    return Check("mode visits", worst, limit, False, message)


@gate(
    "modes apart",
    question="Do the draws hold the isolated modes that the search found beside a ridge?",
    holds="beside a ridge, the draws hold at least a fifth of the due of every isolated mode of 1% of the mass or more "
    "that the search found (listed only where most modes are ridges)",
    advice="a base that covers these modes",
    lasts=True,
)
def check_apart(shares: FloatArray, *, limit: int = 0) -> Check:
    """No isolated mode beside a ridge is left out; ``shares`` are the expected ones of those that are.

    >>> check_apart(np.array([])).passed, check_apart(np.array([0.4])).passed
    (True, False)
    """
    message = (
        f"The search found {len(shares)} isolated modes beside a ridge that the target draws (lam = 1) leave out, the "
        f"largest with an expected share of {100 * shares.max(initial=0.0):.0f}%: choose a base that covers it."
    )
    return judged("modes apart", len(shares), limit, len(shares) <= limit, message)


@gate(
    "unknown modes",
    question="Are all modes among the draws known to the base?",
    holds="ascents from the target draws after the last round lead to no mode of 1% or more that the base does not "
    "include",
    advice="a new run with `modes=` points near the new mode; `fit.extend` keeps the base, so it cannot pass this gate",
    lasts=True,
)
def check_unknown(new: FloatArray, *, limit: int = 0) -> Check:
    """No target draw belongs to a mode that the base lacks; ``new`` are the expected shares of such modes.

    More rounds with the same base cannot pass this gate: they are no evidence that the base includes all modes.

    >>> check_unknown(np.array([])).passed
    True
    """
    found = new[new >= MATTERS]
    message = (
        f"Target draws (lam = 1) led to {len(found)} modes that the base does not include, the largest with an "
        f"expected share of {100 * new.max(initial=0.0):.0f}%: there may be more, and fit.extend keeps the base; start "
        "a new run with a larger budget, and with modes= points near the modes that fit.modes lists as found by draws."
    )
    return judged("unknown modes", len(found), limit, len(found) <= limit, message)
