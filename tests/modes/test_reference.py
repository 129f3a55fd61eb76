"""A target without a base gets one: near starts decide, units do not matter, and only improper targets are refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import cauchy, norm
from scipy import stats

from pathtemp import testing
from pathtemp.errors import InputError
from pathtemp.io.codec import decode, encode
from pathtemp.io.found_base import kept_base, with_kept_base
from pathtemp.kernels import compilation
from pathtemp.model.bases import Automatic, ProperPart
from pathtemp.model.evaluate import energies_of, exact_draws
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.modes.explore import falls_off
from pathtemp.modes.local import from_covariance
from pathtemp.modes.mixture_base import mixture_base
from pathtemp.modes.reference import Reference, reference, with_found_base
from pathtemp.modes.student_base import StudentSampler, marginal, student_of_law
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import FALSE_ALARM

SEEDS = (0, 1, 2)


def found(log_target: Callable[[Any], Any], dim: int, *, seed: int) -> Reference:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return reference(log_target, dim, seed=seed)


def width(made: Reference) -> np.ndarray:
    """Standard deviations of the normal that the base is a Student-t of."""
    student = made.student
    return np.asarray(student.scale * jnp.sqrt(1.0 + student.basis**2 @ ((1.0 + student.gain) ** 2 - 1.0)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Regression:
    """A normal linear model with a flat prior, its scale on the log axis; all have one shape and share programs."""

    x: Any
    y: Any

    def __call__(self, theta: Any) -> Any:
        beta, log_sigma = theta[:-1], theta[-1]
        return jnp.sum(norm.logpdf(self.y, self.x @ beta, jnp.exp(log_sigma))) + log_sigma

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact posterior means and standard deviations of the coefficients."""
        x, y = np.asarray(self.x), np.asarray(self.y)
        mean = np.linalg.lstsq(x, y, rcond=None)[0]
        variance = np.sum((y - x @ mean) ** 2) / (len(y) - x.shape[1] - 2)
        return mean, np.sqrt(variance * np.diagonal(np.linalg.inv(x.T @ x)))


def regression(x: np.ndarray, coefficients: np.ndarray, noise: float) -> Regression:
    whole = np.column_stack([np.ones(len(x)), x])
    y = whole @ coefficients + noise * np.random.default_rng(5).standard_normal(len(x))
    return Regression(jnp.asarray(whole), jnp.asarray(y))


def precise() -> Regression:
    """Starts with sigma = e^-100 or e^100 do not come far, those nearby arrive."""
    return regression(np.random.default_rng(1).normal(size=(100, 7)), np.ones(8), 0.001)


def collinear() -> Regression:
    """Regressors of unlike scales that are nearly one: the precisions are twelve orders of magnitude apart."""
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(100, 1)) + 0.01 * rng.normal(size=(100, 7))) * 10.0 ** np.linspace(-1.0, 2.0, 7) + 50.0
    return regression(x, np.ones(8), 2.0)


def earnings() -> Regression:
    """A large outcome on a regressor far from zero: coefficients of tens of thousands, wider than 300 units."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(66.0, 4.0, size=100), rng.normal(size=(100, 6))])
    return regression(x, np.array([-60_000.0, 1_300.0, *np.full(6, 500.0)]), 2e4)


@pytest.mark.parametrize("make", [precise, collinear, earnings])
def test_linear_regressions_are_accepted_as_they_are(make: Callable[[], Regression]) -> None:
    model = make()
    mean, sd = model.moments()
    for seed in SEEDS:
        made = found(model, 9, seed=seed)
        wide = width(made)[:-1] / sd
        assert np.all(np.abs(np.asarray(made.student.centre)[:-1] - mean) < sd)
        assert np.all((wide > 1.0) & (wide < 3.0))


def bump_of_no_mass(x: Any) -> Any:
    """Beyond 37 the density is flat, as by underflow, but for a broad bump far out that most far starts climb."""
    return jnp.logaddexp(jnp.maximum(-0.5 * jnp.sum(x**2), -700.0), -60.0 - 0.5 * jnp.sum((x / 10.0 - 9.0) ** 2))


def far_modes(x: Any) -> Any:
    return jnp.logaddexp(-0.5 * jnp.sum((x + 60.0) ** 2), -0.5 * jnp.sum((x - 60.0) ** 2))


def student(df: float) -> Callable[[Any], Any]:
    return lambda x: -0.5 * (df + 1.0) * jnp.log1p(x[0] ** 2 / df) - 0.5 * x[1] ** 2


PLANE: dict[str, Callable[[Any], Any]] = {
    "normal": lambda x: -0.5 * jnp.sum((x / 3.0) ** 2),
    "bump of no mass": bump_of_no_mass,
    "far modes": far_modes,
    "cauchy": student(1.0),
    "student": student(5.0),
    "rises": jnp.sum,
    "overflows": lambda x: jnp.exp(x[0]) - 0.5 * x[1] ** 2,
    "flat": lambda x: -0.5 * x[1] ** 2,
    "half flat": lambda x: -jnp.exp(-x[0]) - 0.5 * x[1] ** 2,
    "nan": lambda x: jnp.nan * x[0],
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OnPlane:
    """One of the densities of two variables; the number is an array, so that all of them share programs."""

    number: Any

    def __call__(self, x: Any) -> Any:
        return jax.lax.switch(self.number, list(PLANE.values()), x)


def on_plane(name: str) -> Callable[[Any], Any]:
    return OnPlane(jnp.asarray(list(PLANE).index(name)))


def test_a_far_flat_tail_does_not_widen_the_base() -> None:
    for seed in SEEDS:
        made = found(on_plane("bump of no mass"), 2, seed=seed)
        assert np.all(np.abs(made.student.centre) < 0.5)
        assert np.all(width(made) < 3.0)


def test_a_far_mode_of_some_mass_is_covered() -> None:
    for seed in SEEDS:
        wide = width(found(on_plane("far modes"), 2, seed=seed))
        assert np.all((wide > 60.0) & (wide < 180.0))


@pytest.mark.parametrize(("name", "df"), [("cauchy", 1.0), ("student", 5.0)])
def test_the_base_falls_no_faster_than_a_heavy_tailed_target(name: str, df: float) -> None:
    for seed in SEEDS:
        made = found(on_plane(name), 2, seed=seed)
        assert abs(float(made.student.df) - df) < 0.2
        assert width(made)[0] * stats.t.isf(1e-3, float(made.student.df)) > stats.t.isf(1e-3, df)


def test_the_base_of_a_normal_is_light_and_not_wide() -> None:
    for seed in SEEDS:
        made = found(on_plane("normal"), 2, seed=seed)
        assert float(made.student.df) == 30.0
        assert np.all((width(made) > 3.0) & (width(made) < 7.5))
        assert made.counts.gradients < 2000


def centred_schools(theta: Any) -> Any:
    """Eight schools in their centred form: the density rises without end towards tau = 0."""
    y, se = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12]), jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mu, log_tau, effect = theta[0], theta[1], theta[2:]
    tau = jnp.exp(log_tau)
    prior = norm.logpdf(mu, 0.0, 5.0) + cauchy.logpdf(tau, 0.0, 5.0) + log_tau
    return prior + jnp.sum(norm.logpdf(effect, mu, tau)) + jnp.sum(norm.logpdf(y, effect, se))


FUNNELS: dict[str, tuple[Callable[[Any], Any], int, tuple[float, float]]] = {
    # Mean and standard deviation of the first coordinate: of mu by long runs, of the funnel's y exactly.
    "centred eight schools": (centred_schools, 10, (4.4, 3.3)),
    # Ascents do arrive at the neck of this one, three standard deviations down and a hundred times as narrow.
    "funnel": (testing.funnel(2).model.log_target, 3, (0.0, 3.0)),
}


@pytest.mark.parametrize("name", FUNNELS)
def test_funnels_get_a_base_with_a_warning(name: str) -> None:
    log_q, dim, (mean, sd) = FUNNELS[name]
    for seed in SEEDS:
        with pytest.warns(UserWarning, match="short exploration"):
            made = reference(log_q, dim, seed=seed)
        # The exploration is rough: half its 32 chains would have to be astray for these bounds to fail.
        assert abs(float(made.student.centre[0]) - mean) < 2.0 * sd
        assert 0.5 * sd < width(made)[0] < 6.0 * sd
        assert np.all(width(made) > 0.05)


@pytest.mark.parametrize("improper", ["rises", "overflows", "flat", "half flat", "nan"])
def test_improper_targets_are_refused(improper: str) -> None:
    for seed in SEEDS:
        with pytest.raises(InputError, match=r"no isolated mode.*give base="):
            found(on_plane(improper), 2, seed=seed)


def test_a_target_that_ends_before_the_far_points_falls_off_without_a_warning() -> None:
    """Where both points of a ray have no density, their difference is no number."""

    def within_one(x: Any) -> Any:
        return np.where(np.abs(x[:, 0]) < 1.0, 0.0, -np.inf)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert falls_off(within_one, np.zeros(1), np.ones(1))


def test_the_cover_is_normalised_and_its_draws_are_exact() -> None:
    law = from_covariance(np.array([1.0, -2.0]), np.array([[4.0, 1.8], [1.8, 1.0]]), 0.0)
    student = student_of_law(law, wider=1.5, df=7.0)
    exact = stats.multivariate_t([1.0, -2.0], 2.25 * np.array([[4.0, 1.8], [1.8, 1.0]]), df=7.0)
    draws = exact_draws(StudentSampler(student), seed=3, stream=1, count=4096)
    log_density = energies_of(GeometricPath(student, student), draws)[:, 0]
    np.testing.assert_allclose(log_density, exact.logpdf(draws), rtol=1e-9)
    z = np.linalg.solve(np.linalg.cholesky(exact.shape), (draws - exact.loc).T)
    assert stats.kstest(z[0], stats.t(7.0).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(np.sum(z**2, axis=0) / 2.0, stats.f(2, 7.0).cdf).pvalue > FALSE_ALARM


def test_a_checkpoint_keeps_the_base_that_was_found() -> None:
    bare = Model(Automatic(), lambda x: -jnp.sum(x**2), Layout({"x": (2,)}))
    law = from_covariance(np.array([1.0, -2.0]), np.array([[4.0, 1.8], [1.8, 1.0]]), 0.0)
    student = student_of_law(law, wider=1.5, df=7.0)
    again = with_kept_base(bare, decode(*encode(kept_base(with_found_base(bare, student)))))
    x = jnp.array([0.3, 0.7])
    assert float(again.log_base(x)) == float(student(x))
    key = jax.random.key(1)
    assert again.sample_base is not None
    np.testing.assert_array_equal(again.sample_base(key), StudentSampler(student)(key))


def test_another_cover_compiles_nothing() -> None:
    def log_q(x: Any) -> Any:
        return -jnp.sum(x**2)

    def use(covariance: np.ndarray, df: float) -> None:
        student = student_of_law(from_covariance(np.zeros(2), covariance, 0.0), wider=1.5, df=df)
        sample = StudentSampler(student)
        mixture, draw = mixture_base([from_covariance(np.ones(2), np.eye(2), 0.0)], np.ones(1), student, sample)
        for base, sampler in ((student, sample), (mixture, draw)):
            energies_of(GeometricPath(base, log_q), exact_draws(sampler, seed=0, stream=1, count=8))

    use(np.eye(2), 30.0)
    before = set(compilation._programs)
    use(np.array([[2.0, 1.0], [1.0, 3.0]]), 5.0)
    assert set(compilation._programs) <= before


def log_half_known(theta: Any) -> Any:
    return norm.logpdf(theta[1], 1.0, 2.0)


def draw_half_known(key: Any) -> Any:
    return jnp.array([jnp.nan, 1.0, jnp.nan]) + jnp.array([0.0, 2.0, 0.0]) * jax.random.normal(key)


def test_what_is_proper_of_a_prior_is_kept_and_the_rest_is_covered() -> None:
    part = ProperPart(log_half_known, draw_half_known, (0, 2), ("x",))
    bare = Model(Automatic(part), lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), Layout({"x": (3,)}))
    law = from_covariance(np.array([3.0, 3.0, 4.0]), np.array([[1.0, 0.2, 0.8], [0.2, 1.0, 0.3], [0.8, 0.3, 2.0]]), 0.0)
    whole = with_found_base(bare, marginal(student_of_law(law, wider=1.5, df=4.0), part.rest))
    x = np.array([2.0, -1.0, 5.0])
    rest = stats.multivariate_t(law.centre[[0, 2]], 1.5**2 * np.array([[1.0, 0.8], [0.8, 2.0]]), df=4.0)
    exact = rest.logpdf(x[[0, 2]]) + stats.norm.logpdf(x[1], 1.0, 2.0)
    assert float(whole.log_base(x)) == pytest.approx(exact, rel=1e-12)
    again = with_kept_base(bare, decode(*encode(kept_base(whole))))
    assert float(again.log_base(x)) == float(whole.log_base(x))
    assert whole.sample_base is not None
    draws = np.asarray(jax.vmap(whole.sample_base)(jax.random.split(jax.random.key(3), 4000)))
    root = np.linalg.cholesky(1.5**2 * np.array([[1.0, 0.8], [0.8, 2.0]]))
    u = stats.t(4.0).cdf(np.linalg.solve(root, (draws[:, [0, 2]] - law.centre[[0, 2]]).T))
    for probability in (*u, stats.norm.cdf(draws[:, 1], 1.0, 2.0)):
        assert stats.kstest(probability, "uniform").pvalue > FALSE_ALARM
