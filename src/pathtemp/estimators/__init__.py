"""Estimators of log z on plain arrays, each a function that cites its equation in the paper."""

from __future__ import annotations

from pathtemp.estimators.estimate import Estimate
from pathtemp.estimators.isotonic import isotonic, pinned
from pathtemp.estimators.khat import Khat, khat, khat_threshold
from pathtemp.estimators.mbar import mbar, mbar_se
from pathtemp.estimators.path_sampling import marginal, path_sampling

__all__ = [
    "Estimate",
    "Khat",
    "isotonic",
    "khat",
    "khat_threshold",
    "marginal",
    "mbar",
    "mbar_se",
    "path_sampling",
    "pinned",
]
