"""Two normals in one dimension, adaptation by adaptation (figure GMM_1d)."""

from __future__ import annotations

from experiments.panels_1d import panels_of
from pathtemp.testing import Problem, gaussian_mixture


def problem() -> Problem:
    """Two equal normals at -8 and 8: the paper does not state its centres."""
    return gaussian_mixture([0.5, 0.5], [[-8.0], [8.0]], scales=1.0, base_scale=10.0)


EXPERIMENT = panels_of("two normals, adaptation by adaptation", problem, (1, 2, 4, 6, 10), 20.0)
