"""Figures of a fit, with matplotlib (``pip install '.[plots]'`` in the source tree), imported only when one is drawn.

``plot(fit)`` is the figure to look at first and ``diagnose(fit)`` the one to look at when something is wrong;
every panel is also a function of a fit and an axes, which it makes where none is given. Text and lines have the colours
of the style of matplotlib, so that ``plt.style.use("dark_background")`` makes figures for dark pages.
"""

from __future__ import annotations

from pathtemp.plots.comparing import comparison
from pathtemp.plots.figures import diagnose, plot
from pathtemp.plots.marginals import marginals
from pathtemp.plots.mode_panels import mode_shares, modes
from pathtemp.plots.path import joint_path, log_z, marginal_a
from pathtemp.plots.running import acceptance, hardness, history, tours
from pathtemp.plots.scatter import pairs
from pathtemp.plots.traces import trace
from pathtemp.plots.variables import base_draws, tails, target_draws

__all__ = [
    "acceptance",
    "base_draws",
    "comparison",
    "diagnose",
    "hardness",
    "history",
    "joint_path",
    "log_z",
    "marginal_a",
    "marginals",
    "mode_shares",
    "modes",
    "pairs",
    "plot",
    "tails",
    "target_draws",
    "tours",
    "trace",
]
