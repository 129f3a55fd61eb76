"""Programs that a run is sure to want, or all but sure, compiled while it still does something else."""

from __future__ import annotations

from copy import copy

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.engines.default.anneal import Level
from pathtemp.engines.default.chains import Chains
from pathtemp.kernels.compilation import is_compiled
from pathtemp.model.model import Model
from pathtemp.modes.ascent import begin_ascents
from pathtemp.modes.local import begin_gradients


def begin_search(model: Model) -> None:
    """Let what the search for modes runs be compiled beside the annealing pass that comes before it."""
    begin_ascents(model.log_target, model.dim)
    begin_gradients(model.log_target, model.dim)


def begin_round(chains: Chains, theta: FloatArray) -> None:
    """Let the round be compiled beside the annealing pass, for the shapes that it has on a path that is not long.

    The path is made of the points ``theta`` (chains, dim) at both of its ends; only the shapes of what is fitted to
    them are used. On a longer path the round is compiled once more.
    """
    make, static = chains.round_made_of()
    if is_compiled(make, static):
        return
    guess, nowhere = copy(chains), np.zeros(len(theta))
    guess.start_from([Level(lam, theta, np.zeros((len(theta), 2)), nowhere, 0.0, 1.0) for lam in (0.0, 1.0)])
    guess.begin_compiling()
