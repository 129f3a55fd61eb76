"""The methods that the paper compares with, on the same models and compiled: fair comparisons in one call each.

Their ladders are engines of the same driver. Nothing outside of this folder uses them.
"""

from __future__ import annotations

from pathtemp.baselines.discrete import discrete_tempering
from pathtemp.baselines.empirical import empirical_tempering
from pathtemp.baselines.log_linear import log_linear_tempering
from pathtemp.baselines.nuts import NutsFit, nuts

__all__ = ["NutsFit", "discrete_tempering", "empirical_tempering", "log_linear_tempering", "nuts"]
