"""Tours: counted by hand, and standard errors from them that cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pathtemp.links import A_MAX, A_MIN
from pathtemp.tours import FEWEST_TOURS, Masses, TargetVisits, TripCounter, rao_blackwell, standard_error


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


CELLS = 4
NODES = np.array([0.0, 0.1, 0.3, 0.7, 1.0])
LOG_C = np.array([0.4, -0.5, -1.0, -2.0, -1.5])
AT_BASE = -0.3
PRIOR = np.concatenate([[A_MIN], np.full(CELLS, (A_MAX - A_MIN) / CELLS), [1.0 - A_MAX]])


def simulate(rng: np.random.Generator, truth: np.ndarray, *, chains: int, tours: int) -> Masses:
    """Sums over independent tours of random length whose expected masses are in the proportions of ``truth``.

    Long tours hold much of the later bins and little of the first, as real ones do.
    """
    length = rng.geometric(0.2, size=(chains, tours, 1))
    noise = rng.gamma(2.0, 0.5, size=(chains, tours, CELLS + 2))
    mean_length = 5.0
    x = truth * noise * np.where(np.arange(CELLS + 2) > 1, length / mean_length, 1.0)
    flat = x.reshape(-1, CELLS + 2)
    return Masses(
        x.sum(axis=1), np.sum(flat**2, axis=0), np.sum(flat * flat[:, :1], axis=0), flat.sum(axis=0), chains * tours
    )


def test_exact_masses_give_the_exact_curve() -> None:
    log_z = np.array([0.0, -0.3, -0.7, -1.0, -1.4, -1.6])
    offset = np.concatenate([[AT_BASE], 0.5 * (LOG_C[1:] + LOG_C[:-1]), LOG_C[-1:]])
    x = 100.0 * PRIOR * np.exp(log_z - offset)
    curve = rao_blackwell(Masses(np.stack([x, x]), x**2, x * x[0], 2 * x, 2), NODES, LOG_C, AT_BASE)
    np.testing.assert_allclose(curve.mean, log_z, atol=1e-12)
    np.testing.assert_allclose(curve.lam, [0.0, 0.05, 0.2, 0.5, 0.85, 1.0])
    np.testing.assert_allclose(curve.stderr, 0.0, atol=1e-12)
    assert float(curve(0.2)) == pytest.approx(-0.7)


@pytest.mark.parametrize(("chains", "tours"), [(16, 25), (64, 2), (64, 30)])
def test_errors_cover_the_truth(chains: int, tours: int) -> None:
    """With 2 tours a chain errors come from chains, with 25 and 30 from tours; both must be honest."""
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 0.4, 3.0, 1.0, 0.2, 2.0])
    log_ratio = np.log(truth / truth[0])
    offset = np.concatenate([[AT_BASE], 0.5 * (LOG_C[1:] + LOG_C[:-1]), LOG_C[-1:]])
    expected = offset - np.log(PRIOR) + log_ratio
    expected = expected - expected[0]
    scores = []
    for _ in range(800):
        curve = rao_blackwell(simulate(rng, truth, chains=chains, tours=tours), NODES, LOG_C, AT_BASE)
        assert curve.mean[0] == 0.0
        assert curve.stderr[0] == pytest.approx(0.0, abs=1e-6)
        scores.append(((curve.mean - expected) / np.where(curve.stderr > 1e-6, curve.stderr, 1.0))[1:])
    z = np.array(scores)
    assert np.all(np.abs(z.mean(axis=0)) < 0.2)
    assert np.all((z.std(axis=0) > 0.9) & (z.std(axis=0) < 1.12))
    covered = np.mean(np.abs(z) < 2.0, axis=0)
    assert np.all((covered > 0.92) & (covered < 0.98))


def test_error_over_tours_is_the_ratio_estimators_own() -> None:
    """Against the textbook residual form: sqrt(sum (x_k / X_k - x_0 / X_0)^2)."""
    rng = np.random.default_rng(1)
    x = rng.gamma(2.0, size=(500, 3))
    total = x.sum(axis=0)
    masses = Masses(np.stack([total] * 4), np.sum(x**2, axis=0), np.sum(x * x[:, :1], axis=0), total, 500)
    residual = x / total - x[:, :1] / total[0]
    np.testing.assert_allclose(standard_error(masses), np.sqrt(np.sum(residual**2, axis=0)), atol=1e-9)


def test_few_tours_fall_back_on_chains() -> None:
    rng = np.random.default_rng(2)
    masses = simulate(rng, np.ones(6), chains=8, tours=FEWEST_TOURS - 1)
    total = masses.total
    relative = total / total.mean(axis=0) - total[:, :1] / total[:, 0].mean()
    np.testing.assert_allclose(standard_error(masses), relative.std(axis=0, ddof=1) / np.sqrt(8), rtol=1e-12)
    # The sums over tours are not even looked at.
    spoilt = masses._replace(square=np.full(6, np.nan), cross=np.full(6, np.nan))
    np.testing.assert_allclose(standard_error(spoilt), standard_error(masses))


def test_chains_that_disagree_have_a_large_error() -> None:
    """Half of the chains stay at the base and half at the target: no ratio can be told."""
    total = np.zeros((10, CELLS + 2))
    total[:5, 0], total[5:, -1] = 100.0, 100.0
    masses = Masses(total, np.zeros(6), np.zeros(6), np.zeros(6), 0)
    assert rao_blackwell(masses, NODES, LOG_C, AT_BASE).stderr[-1] > 0.5


def test_bins_never_seen_have_no_finite_error() -> None:
    total = np.ones((4, CELLS + 2))
    total[:, -1] = 0.0
    ones = np.ones(CELLS + 2)
    curve = rao_blackwell(Masses(total, ones, ones, ones, 4), NODES, LOG_C, AT_BASE)
    assert curve.stderr[-1] == np.inf
    assert np.all(np.isfinite(curve.stderr[:-1]))
    total[:, 0] = 0.0
    curve = rao_blackwell(Masses(total, ones, ones, ones, 4), NODES, LOG_C, AT_BASE)
    assert np.isnan(curve.mean[-1])


def test_scores_can_fail() -> None:
    """An error made as if every iteration were independent is too small, and seen to be."""
    rng = np.random.default_rng(3)
    z = []
    for _ in range(200):
        masses = simulate(rng, np.ones(6), chains=16, tours=25)
        curve = rao_blackwell(masses, np.linspace(0, 1, 5), np.zeros(5), 0.0)
        truth = -np.log(PRIOR / PRIOR[0])
        z.append((curve.mean[-1] - truth[-1]) / (0.5 * curve.stderr[-1]))
    assert stats.kstest(z, "norm").pvalue < 1e-4
