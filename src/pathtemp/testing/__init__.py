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
from pathtemp.testing.coin import unidentifiable_coin
from pathtemp.testing.curved import ridge, rosenbrock, shell, sinh_arcsinh, twisted_normal
from pathtemp.testing.eight_schools import eight_schools, eight_schools_tau
from pathtemp.testing.flower import flower
from pathtemp.testing.funnel import funnel
from pathtemp.testing.gaussians import (
    constant_likelihood,
    gaussian_scale,
    harmonic_oscillators,
    high_dimensional_gaussian,
)
from pathtemp.testing.logistic import logistic_regression
from pathtemp.testing.margins import (
    MarginProblem,
    eight_schools_flat,
    eight_schools_prior,
    hierarchical,
    neal_funnel,
    two_mode_scale,
)
from pathtemp.testing.mixtures import gaussian_mixture, mixture_1d, paper_mixture, unequal_modes
from pathtemp.testing.narrow import narrow_mode
from pathtemp.testing.problem import Problem
from pathtemp.testing.quadrature import TabulatedDensity
from pathtemp.testing.regression import conjugate_regression, unknown_scale_regression
from pathtemp.testing.student_modes import student_modes
from pathtemp.testing.supports import uniform_supports

ALL: dict[str, Callable[[], Problem]] = {
    "beta_binomial_easy": partial(beta_binomial, "easy"),
    "beta_binomial_hard": partial(beta_binomial, "hard"),
    "cauchy_pair": cauchy_pair,
    "conjugate_regression": conjugate_regression,
    "constant_likelihood": constant_likelihood,
    "eight_schools": eight_schools,
    "eight_schools_centred": partial(eight_schools, centred=True),
    "flower": flower,
    "flower_printed": partial(flower, variant="printed"),
    "funnel": funnel,
    "gaussian_scale": gaussian_scale,
    "harmonic_oscillators": harmonic_oscillators,
    "mixture_1d": mixture_1d,
    "paper_mixture": paper_mixture,
    "student_modes": student_modes,
    "unequal_modes": unequal_modes,
    "unidentifiable_coin": unidentifiable_coin,
    "uniform_supports": uniform_supports,
    "uniform_supports_reverse": partial(uniform_supports, reverse=True),
    "unknown_scale_regression": unknown_scale_regression,
}
"""Constructors, by the name of the problem they make, of problems with exact draws that take no time to set up."""

__all__ = [
    "ALL",
    "MarginProblem",
    "Problem",
    "TabulatedDensity",
    "beta_binomial",
    "cauchy_pair",
    "conjugate_regression",
    "constant_likelihood",
    "eight_schools",
    "eight_schools_flat",
    "eight_schools_prior",
    "eight_schools_tau",
    "flower",
    "funnel",
    "gaussian_mixture",
    "gaussian_scale",
    "harmonic_oscillators",
    "hierarchical",
    "high_dimensional_gaussian",
    "logistic_regression",
    "mixture_1d",
    "narrow_mode",
    "neal_funnel",
    "paper_mixture",
    "ridge",
    "rosenbrock",
    "shell",
    "sinh_arcsinh",
    "student_modes",
    "twisted_normal",
    "two_mode_scale",
    "unequal_modes",
    "unidentifiable_coin",
    "uniform_supports",
    "unknown_scale_regression",
]
