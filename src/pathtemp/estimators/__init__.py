"""Estimators of log z on plain arrays, each a function that cites its equation in the paper."""

from __future__ import annotations

from pathtemp.estimators.estimate import Estimate
from pathtemp.estimators.isotonic import isotonic, pinned
from pathtemp.estimators.mbar import mbar, mbar_se

__all__ = ["Estimate", "isotonic", "mbar", "mbar_se", "pinned"]
