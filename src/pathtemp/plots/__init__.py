"""Figures of a fit, with matplotlib (``pip install 'pathtemp[plots]'``), imported only when one is drawn.

``plot(fit)`` is the figure to look at first and ``diagnose(fit)`` the one to look at when something is wrong;
every panel is also a function of a fit and an axes, which it makes where none is given.
"""

from __future__ import annotations

from pathtemp.plots.figures import diagnose, plot
from pathtemp.plots.marginals import marginals
from pathtemp.plots.modes import mode_shares, pairs
from pathtemp.plots.path import joint_path, log_z, marginal_a
from pathtemp.plots.running import acceptance, hardness, history, tours
from pathtemp.plots.variables import base_draws, tails, target_draws

__all__ = [
    "acceptance",
    "base_draws",
    "diagnose",
    "hardness",
    "history",
    "joint_path",
    "log_z",
    "marginal_a",
    "marginals",
    "mode_shares",
    "pairs",
    "plot",
    "tails",
    "target_draws",
    "tours",
]
