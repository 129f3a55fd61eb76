"""Samplers against densities: base samplers and exact draws, checked by identities within standard errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pathtemp._types import LogDensity
from pathtemp.errors import InputError
from pathtemp.testing import ALL, Problem, eight_schools, flower, gaussian_mixture, paper_mixture
from pathtemp.testing.calibration import FALSE_ALARM, assert_close

pytestmark = pytest.mark.slow

# Each function is compiled for one or a few calls.
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}
LAMS = (0.02, 0.2, 0.7, 1.0)
# No score, or one of infinite variance (theta given tau near zero): these have their own tests.
ROUGH = {"uniform_supports", "uniform_supports_reverse", "eight_schools_centred"}
SMOOTH = sorted(set(ALL) - ROUGH)


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {name: make() for name, make in ALL.items()}


def assert_mean(terms: np.ndarray, expected: float | np.ndarray) -> None:
    """The means of ``terms`` (n, ...) are ``expected``, within their standard errors; a constant up to rounding."""
    se = np.maximum(terms.std(axis=0) / np.sqrt(len(terms)), 1e-9 * (1.0 + np.abs(expected)))
    assert_close(terms.mean(axis=0), expected, se)


ROWS = 10_000
"""Points of one evaluation: one program for each problem serves all tests."""


@cache
def compiled(log_base: LogDensity, log_target: LogDensity) -> Callable[..., Any]:
    """Value and gradient of both densities at many points."""
    ends = [jax.value_and_grad(end) for end in (log_base, log_target)]
    return jax.jit(jax.vmap(lambda x: [end(x) for end in ends]), compiler_options=QUICK)


def evaluated(problem: Problem, draws: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(value, gradient) of the base and of the target at points (n, dim), n up to ``ROWS``."""
    padded = np.concatenate([draws, np.repeat(draws[-1:], ROWS - len(draws), axis=0)])
    found = jax.device_get(compiled(problem.model.log_base, problem.model.log_target)(padded))
    return [(value[: len(draws)], gradient[: len(draws)]) for value, gradient in found]


def assert_stein(problem: Problem, draws: np.ndarray, lam: float) -> None:
    """E[d log q / dx] = 0 and E[x d log q / dx] = -1 for every coordinate."""
    (_, of_base), (_, of_target) = evaluated(problem, draws)
    score = (1.0 - lam) * of_base + lam * of_target
    centred = draws - np.median(draws, axis=0)
    terms = np.concatenate([score, centred * score], axis=1)
    assert_mean(terms, np.repeat([0.0, -1.0], draws.shape[1]))


def delta(problem: Problem, draws: np.ndarray) -> np.ndarray:
    (base, _), (target, _) = evaluated(problem, draws)
    return np.asarray(target - base)


@pytest.fixture(scope="module")
def base_draws(problems: dict[str, Problem]) -> dict[str, np.ndarray]:
    keys = jax.random.split(jax.random.key(1), ROWS)
    out = {}
    for name, problem in problems.items():
        assert problem.model.sample_base is not None
        out[name] = np.asarray(jax.jit(jax.vmap(problem.model.sample_base), compiler_options=QUICK)(keys))
    return out


def slope(problem: Problem, lam: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Numerical d log z / d lam, one-sided at the ends."""
    assert problem.log_z is not None
    low, high = np.maximum(lam - h, 0.0), np.minimum(lam + h, 1.0)
    return (problem.log_z(high) - problem.log_z(low)) / (high - low)


@pytest.mark.parametrize("name", SMOOTH)
def test_base_sampler_draws_from_the_base_density(
    name: str, problems: dict[str, Problem], base_draws: dict[str, np.ndarray]
) -> None:
    assert_stein(problems[name], base_draws[name], 0.0)


@pytest.mark.parametrize("name", SMOOTH)
def test_exact_draws_have_the_density_of_their_lam(name: str, problems: dict[str, Problem]) -> None:
    problem, rng = problems[name], np.random.default_rng(2)
    if problem.sample_at is None:
        assert_stein(problem, problem.sample_target(rng, 10_000), 1.0)
        return
    for lam in LAMS:
        assert_stein(problem, problem.sample_at(rng, np.full(10_000, lam)), lam)


def test_the_identities_can_fail(problems: dict[str, Problem]) -> None:
    """Draws made for one lam and taken for those of another are found out."""
    wrong = {}
    for name in ("cauchy_pair", "flower", "eight_schools", "unequal_modes", "unidentifiable_coin"):
        sample_at = problems[name].sample_at
        assert sample_at is not None
        wrong[name] = sample_at(np.random.default_rng(2), np.full(10_000, 0.2))
    # The score of the flower is so large across its petals that only the mean of delta tells its lams apart.
    flower_draws = wrong.pop("flower")
    expected = slope(problems["flower"], np.array([0.15]))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean(delta(problems["flower"], flower_draws), expected)
    for name, draws in wrong.items():
        with pytest.raises(AssertionError, match="standard errors"):
            assert_stein(problems[name], draws, 0.1)


@pytest.mark.parametrize("name", sorted(set(ALL) - {"student_modes", "paper_mixture", "unequal_modes"}))
def test_mean_delta_is_the_slope_of_the_curve(name: str, problems: dict[str, Problem]) -> None:
    """E[delta | lam] = d log z / d lam, at fixed lams and with a different lam for every draw."""
    problem, rng = problems[name], np.random.default_rng(3)
    assert problem.sample_at is not None
    for lam in LAMS:
        at = np.full(10_000, lam)
        if name == "uniform_supports_reverse" and lam == 1.0:
            continue
        expected = slope(problem, np.array([lam]))
        assert_mean(delta(problem, problem.sample_at(rng, at)), expected[0])
    at = rng.uniform(0.01, 0.999, size=300)
    assert_mean(delta(problem, problem.sample_at(rng, at)) - slope(problem, at), 0.0)


@pytest.mark.parametrize("name", ["paper_mixture", "unequal_modes"])
def test_mixture_curve_ends_at_zero_by_stepping_stones(name: str, problems: dict[str, Problem]) -> None:
    """No curve is given: importance sampling from each lam to the next must still add up to log z(1) = 0."""
    problem, rng, n = problems[name], np.random.default_rng(4), 1000
    assert problem.sample_at is not None
    # Even steps at the end too: a narrow mode wins its share only there.
    lam = np.linspace(0.0, 1.0, 61) ** 2
    total, variance = 0.0, 0.0
    for low, high in pairwise(lam):
        log_w = (high - low) * delta(problem, problem.sample_at(rng, np.full(n, low)))
        w = np.exp(log_w - log_w.max())
        total += log_w.max() + np.log(w.mean())
        variance += w.var() / w.mean() ** 2 / n
    assert np.sqrt(variance) < 0.1
    assert_close(total, problem.log_z_end, np.sqrt(variance))


@pytest.mark.parametrize("name", sorted(ALL))
def test_target_moments(name: str, problems: dict[str, Problem]) -> None:
    problem = problems[name]
    draws = problem.sample_target(np.random.default_rng(5), 20_000)
    assert draws.shape == (20_000, problem.model.dim)
    assert (problem.target_mean is None) == (problem.target_var is None)
    if problem.target_mean is not None and problem.target_var is not None:
        assert_mean(draws, problem.target_mean)
        square = (draws - problem.target_mean) ** 2
        # Where a few draws make up the sum, as along a funnel, nothing is known of its error.
        known = square.max(axis=0) < 0.02 * square.sum(axis=0)
        assert known.any()
        assert_mean(square[:, known], np.broadcast_to(problem.target_var, known.shape)[known])


def test_label_shares(problems: dict[str, Problem]) -> None:
    labelled, n = [problem for problem in problems.values() if problem.labels is not None], 100_000
    assert len(labelled) > 5
    for problem in labelled:
        assert problem.labels is not None
        assert problem.shares is not None
        labels = problem.labels(problem.sample_target(np.random.default_rng(6), n))
        count = np.bincount(labels, minlength=len(problem.shares))
        assert len(count) == len(problem.shares)
        se = np.sqrt(problem.shares * (1.0 - problem.shares) / n)
        assert problem.shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert_close(count / n, problem.shares, se)


@pytest.mark.parametrize("name", sorted(set(ALL) - {"uniform_supports", "uniform_supports_reverse"}))
def test_gradients_are_finite_everywhere(
    name: str, problems: dict[str, Problem], base_draws: dict[str, np.ndarray]
) -> None:
    problem = problems[name]
    points = [
        base_draws[name][:500],
        problem.sample_target(np.random.default_rng(7), 500),
        np.zeros((1, problem.model.dim)),
        np.full((1, problem.model.dim), 50.0),
    ]
    for value, gradient in evaluated(problem, np.concatenate(points)):
        assert value.dtype == np.float64
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(gradient))


def test_uniform_supports_draws_and_infinities(problems: dict[str, Problem], base_draws: dict[str, np.ndarray]) -> None:
    problem = problems["uniform_supports"]
    assert problem.sample_at is not None
    assert stats.kstest(base_draws[problem.name][:, 0], "uniform", args=(-2, 4)).pvalue > FALSE_ALARM
    part = problem.sample_at(np.random.default_rng(0), np.full(5000, 0.3))
    assert stats.kstest(part[:, 0], "uniform", args=(0, 2)).pvalue > FALSE_ALARM
    values = [float(problem.model.log_target(jnp.array([x]))) for x in (-1.0, 1.0, 3.0)]
    assert values == [-np.inf, -np.log(4.0), -np.inf]


def test_both_ways_of_writing_eight_schools_are_one_model() -> None:
    plain, centred = eight_schools(), eight_schools(centred=True)
    assert plain.sample_at is not None
    assert centred.sample_at is not None
    lam = np.repeat([0.0, 0.3, 1.0], 50)
    x = plain.sample_at(np.random.default_rng(8), lam)
    y = centred.sample_at(np.random.default_rng(8), lam)
    for name in ("mu", "tau", "theta"):
        np.testing.assert_allclose(plain.model.draws(x)[name], centred.model.draws(y)[name], rtol=1e-9)
    assert set(plain.model.draws(x)) == {"mu", "tau", "theta", "eta"}
    # theta = mu + tau eta: the densities differ by tau^8.
    for kind in ("log_base", "log_target"):
        first = np.asarray(jax.vmap(getattr(plain.model, kind))(x))
        second = np.asarray(jax.vmap(getattr(centred.model, kind))(y))
        np.testing.assert_allclose(first, second + 8 * x[:, 1], rtol=1e-8, atol=1e-8)
    key = jax.random.key(3)
    assert plain.model.sample_base is not None
    assert centred.model.sample_base is not None
    one, other = plain.model.sample_base(key), centred.model.sample_base(key)
    np.testing.assert_allclose(one[0] + jnp.exp(one[1]) * one[2:], other[2:], rtol=1e-12)


def test_beta_sampler_does_not_underflow_where_p_is_next_to_one(base_draws: dict[str, np.ndarray]) -> None:
    """The hard prior, beta(9, .75), puts mass where 1 - p is below the smallest float64."""
    logit = base_draws["beta_binomial_hard"][:, 0]
    assert np.all(np.isfinite(logit))
    assert stats.kstest(logit, lambda t: stats.beta(9.0, 0.75).cdf(1.0 / (1.0 + np.exp(-t)))).pvalue > FALSE_ALARM


def test_petal_of_a_draw_is_the_nearest_by_angle() -> None:
    problem = flower(6)
    angles = np.linspace(0.0, 2 * np.pi, 6, endpoint=False)
    tips = 16.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert problem.labels is not None
    np.testing.assert_array_equal(problem.labels(tips), np.arange(6))
    assert float(problem.model.log_target(jnp.asarray(tips[2]))) == pytest.approx(0.0, abs=1e-20)


def test_same_seed_same_draws(problems: dict[str, Problem]) -> None:
    for problem in problems.values():
        first, second = (problem.sample_target(np.random.default_rng(9), 20) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_paper_mixture_in_many_dimensions_can_be_drawn_from() -> None:
    problem = paper_mixture(100, centre_scale=5.0)
    assert problem.sample_at is not None
    draws = problem.sample_at(np.random.default_rng(10), np.full(2000, 0.5))
    assert_stein(problem, draws, 0.5)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"weights": [1.0], "centres": [[0.0]]}, "either scales"),
        ({"weights": [1.0, 1.0], "centres": [[0.0]], "scales": 1.0}, "K positive weights"),
        ({"weights": [1.0], "centres": [[0.0]], "scales": -1.0, "base_scale": -1.0}, "base_scale"),
        ({"weights": [1.0], "centres": [[0.0]], "scales": 0.0}, "positive"),
    ],
)
def test_mixture_says_what_is_wrong(arguments: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        gaussian_mixture(**arguments)  # type: ignore[arg-type]
