"""The Cauchy pair, adaptation by adaptation: the output panels of the paper's software appendix."""

from __future__ import annotations

from experiments.panels_1d import panels_of
from pathtemp.testing import cauchy_pair

EXPERIMENT = panels_of("the Cauchy pair, adaptation by adaptation", cauchy_pair, (1, 2, 4, 6), 20.0)
