"""Links, their derivatives and inverses, and thermodynamic length against closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.paths.links import (
    A_MAX,
    A_MIN,
    BASE_END,
    TARGET_START,
    CubicLink,
    MetricLink,
    fold,
    folded_at,
    host_unit,
    interpolate,
    metric_nodes,
    thermodynamic_length,
    unit,
)

METRIC = MetricLink(jnp.array([0.0, 0.02, 0.1, 0.5, 0.6, 1.0]))
LINKS = [CubicLink(), METRIC]
EVERYWHERE = np.linspace(0.0, 2.0, 401)[:-1]
# Between the nodes of the metric link, where it has a derivative, on the way out and on the way back.
INSIDE = BASE_END + (TARGET_START - BASE_END) * (np.arange(25) + 0.5) / 25 + 1e-3
INSIDE = np.concatenate([INSIDE, 2.0 - INSIDE])


def at(function: object, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(function))(points))  # type: ignore[arg-type]


@pytest.mark.parametrize("link", LINKS, ids=["cubic", "metric"])
class TestBothLinks:
    def test_flat_at_both_ends(self, link: CubicLink | MetricLink) -> None:
        low, high = (A_MIN, A_MAX) if isinstance(link, CubicLink) else (BASE_END, TARGET_START)
        base, target = np.array([0.0, 0.05, low, 2.001 - low, 1.95]), np.array([high, 0.9, 1.0, 1.1, 2.0 - high])
        np.testing.assert_array_equal(at(link, base), 0.0)
        np.testing.assert_array_equal(at(link, target), 1.0)
        ends = np.concatenate([base[[0, 1, 4]], target[1:4]])
        np.testing.assert_array_equal(at(link.derivative, ends), 0.0)

    def test_symmetric_and_monotone(self, link: CubicLink | MetricLink) -> None:
        np.testing.assert_allclose(at(link, EVERYWHERE), at(link, 2.0 - EVERYWHERE), atol=1e-12)
        assert np.all(np.diff(at(link, EVERYWHERE[EVERYWHERE <= 1])) >= 0)
        np.testing.assert_allclose(at(link.derivative, INSIDE), -at(link.derivative, 2.0 - INSIDE), rtol=1e-9)

    def test_derivative_against_differences(self, link: CubicLink | MetricLink) -> None:
        h = 1e-6
        numeric = (at(link, INSIDE + h) - at(link, INSIDE - h)) / (2 * h)
        np.testing.assert_allclose(at(link.derivative, INSIDE), numeric, rtol=1e-5, atol=1e-8)

    def test_inverse(self, link: CubicLink | MetricLink) -> None:
        lam = np.linspace(0.0, 1.0, 101)
        a = at(link.inverse, lam)
        np.testing.assert_allclose(at(link, a), lam, atol=1e-12)
        low, high = (A_MIN, A_MAX) if isinstance(link, CubicLink) else (BASE_END, TARGET_START)
        np.testing.assert_allclose(a[[0, -1]], [low, high], atol=1e-12)
        forth = INSIDE[INSIDE < 1]
        np.testing.assert_allclose(at(link.inverse, at(link, forth)), forth, atol=1e-9)


def test_cubic_link_is_the_papers() -> None:
    a = 0.3
    s = (a - A_MIN) / (A_MAX - A_MIN)
    assert float(CubicLink()(jnp.asarray(a))) == pytest.approx(3 * s**2 - 2 * s**3)


def test_metric_link_passes_through_its_nodes_on_host_and_device() -> None:
    positions = np.linspace(0.0, 1.0, METRIC.cells + 1)
    a = folded_at(positions)
    np.testing.assert_allclose(at(METRIC, a), METRIC.nodes, atol=1e-12)
    np.testing.assert_allclose(METRIC.host_at(positions), METRIC.nodes)
    s = np.linspace(0.0, 1.0, 33)
    np.testing.assert_allclose(METRIC.host_at(s), at(METRIC.at, s), atol=1e-12)
    lam = np.linspace(0.0, 1.0, 33)
    np.testing.assert_allclose(METRIC.host_position(lam), at(METRIC.position, lam), atol=1e-12)
    np.testing.assert_allclose(METRIC.host_at(METRIC.host_position(lam)), lam, atol=1e-12)


def test_fold_and_unit() -> None:
    a = np.array([0.0, 0.4, 1.0, 1.6, 2.0])
    np.testing.assert_allclose(at(fold, a), [0.0, 0.4, 1.0, 0.4, 0.0], atol=1e-15)
    np.testing.assert_allclose(at(unit, a), [0.0, 0.44, 1.0, 0.44, 0.0], atol=1e-12)
    np.testing.assert_allclose(host_unit(a[:3]), [0.0, 0.44, 1.0], atol=1e-12)


def test_a_lattice_of_eight_has_as_many_points_at_each_end_wherever_it_lies() -> None:
    for points, base, target in ((8, 1, 2), (16, 2, 4)):
        first = np.random.default_rng(0).uniform(0.0, 2.0, size=(1000, 1))
        lattice = np.asarray(fold((first + 2.0 / points * np.arange(points)) % 2.0))
        assert np.all(np.sum(lattice < BASE_END, axis=1) == base)
        assert np.all(np.sum(lattice > TARGET_START, axis=1) == target)


def test_interpolate_is_linear_between_rows_and_exact_at_them() -> None:
    table = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2, 3)))
    np.testing.assert_allclose([interpolate(table, jnp.asarray(b / 3)) for b in range(4)], table, atol=1e-12)
    np.testing.assert_allclose(interpolate(table, jnp.asarray(0.5)), 0.5 * (table[1] + table[2]), rtol=1e-12)


# From N(0, I) to precision 10 in d dimensions: delta is -4.5 |x|^2 and |x|^2 (1 + 9 lam) is chi-squared, so
# sd(delta | lam) = 4.5 sqrt(2 d) / (1 + 9 lam), and the length up to lam is sqrt(d / 2) log(1 + 9 lam).
LAM = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 120)])


def scale_sd(lam: np.ndarray, dim: int = 2) -> np.ndarray:
    return 4.5 * np.sqrt(2.0 * dim) / (1.0 + 9.0 * lam)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_length_of_the_gaussian_scale_path(dim: int) -> None:
    where = np.array([0.0, 0.01, 0.1, 0.5, 1.0])
    length = thermodynamic_length(LAM, scale_sd(LAM, dim), where)
    np.testing.assert_allclose(length, np.sqrt(dim / 2) * np.log1p(9.0 * where), rtol=2e-3, atol=1e-6)


def test_barrier_of_the_gaussian_scale_path() -> None:
    """In two dimensions delta is exponential, whose half mean difference is sd / 2: the barrier is half the length."""
    assert 0.5 * thermodynamic_length(LAM, scale_sd(LAM), np.ones(1))[0] == pytest.approx(1.1513, abs=2e-3)


def test_length_where_the_spread_varies_over_many_orders() -> None:
    """sd = 1/lam above 1e-6: the length from there is log(1e6), and almost nothing lies below."""
    lam = np.geomspace(1e-6, 1.0, 60)
    length = thermodynamic_length(lam, 1.0 / lam, np.array([1e-6, 1.0]))
    assert length[1] - length[0] == pytest.approx(np.log(1e6), rel=0.01)
    assert length[0] < 1.5


def test_nodes_of_the_metric_alone_are_equispaced_in_length() -> None:
    nodes = metric_nodes(LAM, scale_sd(LAM), 64, mix=1.0)
    steps = np.diff(np.log1p(9.0 * nodes))
    np.testing.assert_allclose(steps, np.log(10.0) / 64, rtol=0.03)
    assert nodes[0] == 0.0
    assert nodes[-1] == 1.0


def test_nodes_without_the_metric_are_those_of_the_papers_link() -> None:
    nodes = metric_nodes(LAM, scale_sd(LAM), 64, mix=0.0)
    s = np.linspace(0.0, 1.0, 65)
    np.testing.assert_allclose(nodes, s * s * (3.0 - 2.0 * s), atol=3e-4)


@pytest.mark.parametrize("sd", [np.zeros(121), np.full(121, 1e-12), np.where(LAM < 0.5, 1e6, 1e-8), 1.0 / (LAM + 1e-9)])
def test_nodes_increase_strictly_whatever_the_spread(sd: np.ndarray) -> None:
    nodes = metric_nodes(LAM, sd, 128)
    assert nodes.shape == (129,)
    assert nodes[0] == 0.0
    assert nodes[-1] == 1.0
    assert np.all(np.diff(nodes) > 0)
