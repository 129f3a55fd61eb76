"""Estimators of log z on plain arrays, each a function that cites its equation in the paper.

Those from tours, the independent stretches between regenerations, are in ``tours``. No estimator knows an engine.
"""

from __future__ import annotations

from pathtemp.estimators.annealed import annealed_importance
from pathtemp.estimators.bridge import bridge, multistate_bridge
from pathtemp.estimators.estimate import Estimate
from pathtemp.estimators.importance import importance, ladder_importance, taylor
from pathtemp.estimators.isotonic import isotonic, pinned
from pathtemp.estimators.khat import Khat, khat, khat_threshold
from pathtemp.estimators.mbar import mbar, mbar_se
from pathtemp.estimators.path_sampling import marginal, path_sampling
from pathtemp.estimators.rao_blackwell import rao_blackwell
from pathtemp.estimators.thermodynamic import thermodynamic

__all__ = [
    "Estimate",
    "Khat",
    "annealed_importance",
    "bridge",
    "importance",
    "isotonic",
    "khat",
    "khat_threshold",
    "ladder_importance",
    "marginal",
    "mbar",
    "mbar_se",
    "multistate_bridge",
    "path_sampling",
    "pinned",
    "rao_blackwell",
    "taylor",
    "thermodynamic",
]
