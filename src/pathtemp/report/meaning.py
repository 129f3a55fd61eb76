"""What each check of the verdict asks, in plain words."""

from __future__ import annotations

MEANING = {
    "finished": "Did the run come to its end?",
    "reach": "Did the first pass along the path come all the way to the target?",
    "rounds": "Were there enough rounds after the sampler had stopped adapting?",
    "coverage": "Was every part of the path visited, both ends included?",
    "tours": "Did chains travel from the base to the target and back often enough?",
    "stuck chains": "Did every chain come back to the base at least once?",
    "effective tours": "Do the draws come from many independent journeys rather than from a few long ones?",
    "long tours": "Is there no part of the target that a handful of journeys stayed in far longer than all others?",
    "early long tours": "The same, while the sampler was still adapting.",
    "lost": "Was everything that was seen early on seen again later?",
    "peak": "Did the chains agree on where the target is densest?",
    "acceptance": "Were enough moves accepted everywhere on the path?",
    "R-hat": "Do the chains agree with each other?",
    "ESS": "Are there enough effectively independent draws?",
    "agreement": "Do two different estimates of log z agree within their errors?",
    "k-hat": "Is the sampled coordinate spread evenly enough along the path?",
    "R-hat given lam": "Do the chains agree at each place along the margin?",
    "interval": "Does hardly any mass lie beyond the interval that was sampled?",
    "precision": "Is the marginal known well enough at every place?",
    "log z error": "Is the standard error of log z small enough to mean something?",
    "draws": "Are there as many draws of the target as were asked for?",
    "base": "Was the base, which has no sampler of its own, itself explored well?",
    "unseen modes": "Is the share of modes that no start has reached small?",
    "mode visits": "Was every known mode visited often enough to know its share?",
    "NaN": "Were the densities numbers nearly everywhere?",
    "unknown modes": "Do the draws hold no mode that the search did not find?",
}
"""One question for each check; a check that is not listed speaks by its name."""
