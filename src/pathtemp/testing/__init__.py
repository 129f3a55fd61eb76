"""Analytic problems with exact answers: for tests, for benchmarks, and for trying a sampler out.

Every constructor returns a :class:`Problem`: a model, its curve log z(lam), its modes and their shares, exact
draws at any lam, and moments, as far as they are known. ``ALL`` maps names to constructors of the cheap ones.

>>> problem = ALL["cauchy_pair"]()
>>> problem.model.dim, round(problem.log_z_end, 4)
(1, -8.0529)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pathtemp.testing.beta_binomial import beta_binomial
from pathtemp.testing.cauchy_pair import cauchy_pair
from pathtemp.testing.eight_schools import eight_schools, eight_schools_tau
from pathtemp.testing.flower import flower
from pathtemp.testing.gaussians import (
    constant_likelihood,
    gaussian_scale,
    harmonic_oscillators,
    high_dimensional_gaussian,
)
from pathtemp.testing.logistic import logistic_regression
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import TabulatedDensity

ALL: dict[str, Callable[[], Problem]] = {
    "beta_binomial_easy": partial(beta_binomial, "easy"),
    "beta_binomial_hard": partial(beta_binomial, "hard"),
    "cauchy_pair": cauchy_pair,
    "constant_likelihood": constant_likelihood,
    "eight_schools": eight_schools,
    "eight_schools_centred": partial(eight_schools, centred=True),
    "flower": flower,
    "flower_printed": partial(flower, variant="printed"),
    "gaussian_scale": gaussian_scale,
    "harmonic_oscillators": harmonic_oscillators,
}
"""Constructors, by the name of the problem they make, of all problems that take no time to set up."""

__all__ = [
    "ALL",
    "Problem",
    "TabulatedDensity",
    "beta_binomial",
    "cauchy_pair",
    "constant_likelihood",
    "eight_schools",
    "eight_schools_tau",
    "flower",
    "gaussian_scale",
    "harmonic_oscillators",
    "high_dimensional_gaussian",
    "logistic_regression",
]
