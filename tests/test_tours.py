"""Tours: counted by hand, and standard errors from them that cover the truth."""

from __future__ import annotations

import numpy as np
import pytest

from pathtemp.estimators.tours import FEWEST_TOURS, Masses, TargetVisits, TripCounter, against_whole_base, rao_blackwell
from pathtemp.kernels.strata import compared_with, count_bins, relative_width, strata
from pathtemp.testing.calibration import ENOUGH, assert_scores, judge_scores


def trace(text: str) -> tuple[np.ndarray, np.ndarray]:
    """(at base, at target) of one chain from a string of B, T and dots."""
    letters = np.array(list(text))[:, None]
    return letters == "B", letters == "T"


@pytest.mark.parametrize(
    ("text", "trips"),
    [
        ("", 0),
        ("....", 0),
        ("BBBB", 0),
        ("TTTT", 0),
        ("T.B", 0),
        ("B.T", 0),
        ("B.T.B", 1),
        ("B.T.T.B", 1),
        ("B.T.BT.B", 2),
        ("B.T.B.T", 1),
        (".T.B.B.T.B.T.T.B.", 2),
        ("BTBTB", 2),
    ],
)
def test_round_trips_of_one_chain(text: str, trips: int) -> None:
    counter = TripCounter(1)
    assert counter.add(*trace(text)) == trips
    assert counter.trips.tolist() == [trips]


@pytest.mark.parametrize("cut", range(13))
def test_a_trip_across_rounds_counts_once(cut: int) -> None:
    text = ".B.T.TB.BT..B"
    counter = TripCounter(1)
    assert counter.add(*trace(text[:cut])) + counter.add(*trace(text[cut:])) == 2


def test_chains_are_counted_apart() -> None:
    base, target = (np.concatenate(x, axis=1) for x in zip(trace("BTB.."), trace("..BT."), trace("BTBTB"), strict=True))
    counter = TripCounter(3)
    assert counter.add(base, target) == 3
    assert counter.trips.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("text", "ended", "under_way"),
    [
        ("", [], []),
        ("B..B", [], []),
        ("BT.T.B", [2], []),
        ("TTB", [2], []),
        ("BTB.TTT", [1], [3]),
        ("BTBBTB", [1, 1], []),
    ],
)
def test_target_visits_of_each_tour(text: str, ended: list[int], under_way: list[int]) -> None:
    counter = TargetVisits(1)
    for letter in text:
        counter.add(*trace(letter))
    assert [part.tolist() for part in counter.values()] == [ended, under_way]


CELLS = 10
NODES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0])
LOG_C = np.array([0.4, -0.5, -1.0, -2.0, -1.5, -1.3, -0.8, -1.0, -1.4, -1.9, -1.5])
AT_BASE = -0.3
BASE, BINS = strata(CELLS), count_bins(CELLS)
OFFSET = np.append(0.5 * (LOG_C[1:] + LOG_C[:-1]), LOG_C[-1]) - AT_BASE
LOG_Z = np.append(0.0, np.linspace(-0.2, -2.2, CELLS + 1))


def masses_of(tours: np.ndarray, *, finished: bool = True) -> Masses:
    """Sums over tours of masses (chains, tours, 2, BINS)."""
    flat = tours.reshape(-1, 2, BINS)
    both = np.concatenate([flat, compared_with(flat, CELLS)], axis=1)
    second = np.einsum("tik,tjk->ijk", both, both)
    return Masses(tours.sum(axis=1), flat.sum(axis=0), second, len(flat) if finished else 0)


def expected_masses() -> np.ndarray:
    """Masses of the bins (BINS,) in the proportions of LOG_Z."""
    base = np.full(BASE, 1.0 / BASE)
    of_base = compared_with(np.append(base, np.zeros(CELLS + 1)), CELLS)[BASE:]
    return np.append(base, of_base * relative_width(CELLS) * np.exp(LOG_Z[1:] - OFFSET))


def simulate(rng: np.random.Generator, *, chains: int, tours: int, shared: float = 0.5) -> Masses:
    """Independent tours of random length, whose expected masses are in the proportions of LOG_Z.

    Long tours hold much of the cells and little of the base, as real ones do. The two estimators have a part of their
    noise in common, and the first follows its stratum of the base closely.
    """
    length = rng.geometric(0.2, size=(chains, tours, 1, 1)) / 5.0
    common = rng.gamma(2.0, 0.5, size=(chains, tours, 1, BINS))
    own = rng.gamma(2.0, 0.5, size=(chains, tours, 2, BINS))
    noise = shared * common + (1.0 - shared) * own
    strata_noise = rng.gamma(2.0, 0.5, size=(chains, tours, BASE))
    follows = compared_with(np.concatenate([strata_noise, np.zeros((chains, tours, CELLS + 1))], axis=-1), CELLS)
    noise[:, :, 0] *= np.append(follows[..., :-1], follows[..., -1:] / BASE, axis=-1)
    noise[:, :, 1] *= np.where(np.arange(BINS) < BASE, 1.0, length[..., 0])
    return masses_of(expected_masses() * noise)


def test_exact_masses_give_the_exact_curve() -> None:
    x = np.broadcast_to(100.0 * expected_masses(), (4, 20, 2, BINS))
    estimates = rao_blackwell(masses_of(x), NODES, LOG_C, AT_BASE)
    for curve in (estimates.curve(0), estimates.curve(1), estimates.combined()):
        np.testing.assert_allclose(curve.mean, LOG_Z, atol=1e-12)
        np.testing.assert_allclose(curve.stderr, 0.0, atol=1e-7)
        np.testing.assert_allclose(curve.lam[[0, 1, 4, -1]], [0.0, 0.01, 0.15, 1.0])
        assert float(curve(0.15)) == pytest.approx(LOG_Z[4])


@pytest.mark.parametrize(("chains", "tours"), [(16, 25), (64, 2), pytest.param(64, 30, marks=pytest.mark.slow)])
def test_errors_cover_the_truth(chains: int, tours: int) -> None:
    """With 2 tours a chain errors come from chains, with 25 and 30 from tours; both must be honest, for all curves."""
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(400):
        estimates = rao_blackwell(simulate(rng, chains=chains, tours=tours), NODES, LOG_C, AT_BASE)
        curves = (estimates.curve(0), estimates.curve(1), estimates.combined())
        assert all(curve.mean[0] == curve.stderr[0] == 0.0 for curve in curves)
        scores.append([((curve.mean - LOG_Z)[1:] / curve.stderr[1:])[[0, 4, -1]] for curve in curves])
    for z in np.array(scores).reshape(400, -1).T:
        assert_scores(z)


def test_the_combined_curve_is_no_worse_than_either() -> None:
    masses = simulate(np.random.default_rng(5), chains=64, tours=100)
    estimates = rao_blackwell(masses, NODES, LOG_C, AT_BASE)
    first, second, both = estimates.curve(0), estimates.curve(1), estimates.combined()
    assert np.all(both.stderr <= np.minimum(first.stderr, second.stderr) + 1e-12)
    assert both.stderr[-1] < 0.99 * min(first.stderr[-1], second.stderr[-1])


def test_the_whole_base_gives_the_same_curve_with_more_noise() -> None:
    exact = np.broadcast_to(expected_masses(), (3, BINS))
    curve = against_whole_base(exact, NODES, LOG_C, AT_BASE)
    assert curve is not None
    np.testing.assert_allclose(curve.mean, LOG_Z, atol=1e-12)
    unseen = np.where(np.arange(BINS) == BASE + 3, 0.0, exact)
    assert against_whole_base(unseen, NODES, LOG_C, AT_BASE) is None


def test_without_lattices_the_curve_is_that_given_theta() -> None:
    masses = simulate(np.random.default_rng(6), chains=16, tours=20)
    none = masses.total.copy()
    none[:, 0] = 0.0
    finished, second = masses.finished.copy(), masses.second.copy()
    finished[0] = second[[0, 2]] = second[:, [0, 2]] = 0.0
    estimates = rao_blackwell(Masses(none, finished, second, masses.tours), NODES, LOG_C, AT_BASE)
    given, both = estimates.curve(1), estimates.combined()
    np.testing.assert_allclose(both.mean, given.mean, rtol=1e-12)
    np.testing.assert_allclose(both.stderr, given.stderr, rtol=1e-12)


def test_error_over_tours_is_the_ratio_estimators_own() -> None:
    """Against the textbook residual form: sum (x_k / X_k - y_k / Y_k) of both estimators."""
    rng = np.random.default_rng(1)
    x = rng.gamma(2.0, size=(4, 125, 2, BINS))
    covariance = rao_blackwell(masses_of(x), NODES, LOG_C, AT_BASE).covariance
    flat = x.reshape(-1, 2, BINS)
    base = compared_with(flat, CELLS)
    residual = (flat / flat.sum(axis=0) - base / base.sum(axis=0))[..., BASE:]
    np.testing.assert_allclose(covariance[..., 1:], np.einsum("tek,tfk->efk", residual, residual), atol=1e-12)


def test_few_tours_fall_back_on_chains() -> None:
    masses = simulate(np.random.default_rng(2), chains=8, tours=FEWEST_TOURS - 1)
    total = masses.total
    base = compared_with(total, CELLS)
    relative = (total / total.mean(axis=0) - base / base.mean(axis=0))[..., BASE:]
    estimates = rao_blackwell(masses, NODES, LOG_C, AT_BASE)
    for index in (0, 1):
        expected = relative[:, index].std(axis=0, ddof=1) / np.sqrt(8)
        np.testing.assert_allclose(estimates.curve(index).stderr[1:], expected, rtol=1e-12)
    # The sums over tours are not even looked at.
    spoilt = masses._replace(second=np.full((4, 4, BINS), np.nan))
    again = rao_blackwell(spoilt, NODES, LOG_C, AT_BASE)
    np.testing.assert_allclose(again.covariance, estimates.covariance)


def test_chains_that_disagree_have_a_large_error() -> None:
    """Half of the chains stay at the base and half at the target: no ratio can be told."""
    tours = np.zeros((10, 1, 2, BINS))
    tours[:5, ..., :BASE], tours[5:, ..., -1] = 100.0, 100.0
    curve = rao_blackwell(masses_of(tours, finished=False), NODES, LOG_C, AT_BASE).combined()
    assert curve.stderr[-1] > 0.5


def test_bins_never_seen_have_no_finite_error() -> None:
    tours = np.random.default_rng(4).uniform(0.5, 1.0, size=(4, 1, 2, BINS))
    tours[..., -1] = 0.0
    curve = rao_blackwell(masses_of(tours, finished=False), NODES, LOG_C, AT_BASE).combined()
    assert curve.stderr[-1] == np.inf
    assert np.all(np.isfinite(curve.stderr[:-1]))
    tours[..., :BASE] = 0.0
    curve = rao_blackwell(masses_of(tours, finished=False), NODES, LOG_C, AT_BASE).combined()
    assert np.isnan(curve.mean[-1])


def test_what_only_tours_under_way_have_seen_has_no_finite_error() -> None:
    """As where chains have gone over to the target and not come back."""
    masses = simulate(np.random.default_rng(7), chains=16, tours=20)
    finished, second = masses.finished.copy(), masses.second.copy()
    finished[:, -1] = second[..., -1] = 0.0
    curve = rao_blackwell(masses._replace(finished=finished, second=second), NODES, LOG_C, AT_BASE).combined()
    assert np.isfinite(curve.mean[-1])
    assert curve.stderr[-1] == np.inf
    assert np.all(np.isfinite(curve.stderr[:-1]))


def test_scores_can_fail() -> None:
    """Errors of half their size are seen to be too small, and twice as large ones too large."""
    rng = np.random.default_rng(3)
    z = []
    for _ in range(ENOUGH):
        curve = rao_blackwell(simulate(rng, chains=16, tours=25), NODES, LOG_C, AT_BASE).combined()
        z.append((curve.mean[-1] - LOG_Z[-1]) / curve.stderr[-1])
    assert judge_scores(z).passed
    assert not judge_scores(2.0 * np.array(z)).passed
    assert not judge_scores(0.5 * np.array(z)).passed


def test_one_chain_with_few_tours_has_no_finite_error() -> None:
    masses = simulate(np.random.default_rng(8), chains=1, tours=FEWEST_TOURS - 1)
    curve = rao_blackwell(masses, NODES, LOG_C, AT_BASE).combined()
    assert np.all(np.isinf(curve.stderr[1:]))
