"""Programs of many styles: each builds, and agrees with finite differences; its augmented form has the same density."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from stan_programs import EVERYTHING, EXAMPLES, augmented, data_of, exact_draws, load, path

from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.augment import augmented_data
from pathtemp.frontends.stan.bridge import StanDensity
from pathtemp.frontends.stan.sampler import stein_z
from pathtemp.model.model import Model
from pathtemp.testing.calibration import assert_close

pytestmark = [pytest.mark.stan_full, pytest.mark.usefixtures("toolchain")]
TRUNCATED_BY_SOLVERS = {"stiff_ode": 1e-2, "ode_and_reduce_sum": 1e-4, "algebra_and_integral": 1e-4}
WITHOUT_DRAWS = {"every_type", "lp_functions"}
"""Programs whose base is only a density: its block is no recipe for draws."""

BASES = {"eight_schools_prior": {"data": {"J": 8}}}
AUGMENTED = (
    "cauchy",
    "nasty",
    "truncation",
    "lp_functions",
    "mixed_styles",
    "ode_and_reduce_sum",
)


def agrees_with_finite_differences(model: Model, tolerance: float) -> None:
    points = np.random.default_rng(5).uniform(-0.8, 0.8, (3, model.dim))
    steps = 1e-5 * np.eye(model.dim)
    for density in (model.log_base, model.log_target):
        value, gradient = jax.jit(jax.vmap(jax.value_and_grad(density)))(points)
        assert np.isfinite(value).all()
        for x, g in zip(points, gradient, strict=True):
            difference = (jax.vmap(density)(x + steps) - jax.vmap(density)(x - steps)) / 2e-5
            np.testing.assert_allclose(g, difference, rtol=tolerance, atol=tolerance)
    draws = model.draws(points)
    assert all(len(values) == 3 and np.isfinite(values).all() for values in draws.values())
    assert set(model.layout.shapes) <= set(draws)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.stan")), ids=lambda file: file.stem)
def test_the_examples_build(file: Path) -> None:
    agrees_with_finite_differences(from_stan(file, file.with_suffix(".json")), 5e-6)


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_program_builds_and_agrees_with_finite_differences_and_with_its_draws(name: str) -> None:
    model = load(name, **BASES.get(name, {}))
    agrees_with_finite_differences(model, TRUNCATED_BY_SOLVERS.get(name, 5e-6))
    assert (model.sample_base is None) == (name in WITHOUT_DRAWS)
    if model.sample_base is not None:
        assert_close(stein_z(model.log_base, exact_draws(model, 20_000)), 0.0, 1.0)


@pytest.mark.parametrize("name", AUGMENTED)
def test_the_augmented_program_is_the_joint_density(name: str) -> None:
    file = data_of(name)
    data = {} if file is None else json.loads(file.read_text())
    nodes = {
        "pathtemp_nodes": 3,
        "pathtemp_lam": [0.0, 0.25, 1.0],
        "pathtemp_log_c": [0.0, -1.0, -2.0],
    }
    joint = from_stan(augmented(name), data=data | augmented_data() | nodes).log_target
    model = load(name)
    assert isinstance(model.log_base, StanDensity)
    # A model's densities are divided by the mass of its base, which the program leaves as it is.
    log_mass = model.log_base.log_mass
    theta = np.random.default_rng(2).uniform(-0.8, 0.8, model.dim)
    for u in (-3.5, -1.0, -0.4, 0.0, 0.3, 1.2, 3.5):
        a = 2 / (1 + np.exp(-u))
        s = np.clip((1 - abs(1 - a) - 0.1) / 0.7, 0, 1)
        lam = 3 * s**2 - 2 * s**3
        slopes = [-4.0, (0.75 * -4 + 0.25 * -4 / 3) / 1.0, -4 / 3]
        log_c = hermite(lam, [0.0, 0.25, 1.0], [0.0, -1.0, -2.0], slopes)
        log_jacobian = np.log(a) + np.log(1 - a / 2)
        expected = lam * model.log_target(theta) + (1 - lam) * model.log_base(theta) - log_c + log_jacobian
        expected += log_mass
        assert joint(np.append(theta, u)) == pytest.approx(float(expected), rel=1e-9), u


def hermite(at: float, x: list[float], y: list[float], slope: list[float]) -> float:
    """The curve through the nodes with the given slopes."""
    from scipy.interpolate import CubicHermiteSpline

    return float(CubicHermiteSpline(x, y, slope)(at))


def test_a_program_of_its_own_may_be_the_base() -> None:
    model = load("eight_schools", base_program=path("eight_schools_prior"))
    both = load("eight_schools")
    x = np.random.default_rng(0).normal(size=model.dim)
    assert model.log_base(x) == pytest.approx(float(both.log_base(x)), rel=1e-13)
    assert model.log_target(x) == pytest.approx(float(both.log_target(x)), rel=1e-13)
