"""Every gate opens on good arrays and closes on bad ones, and says where on the path and what to do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from pathtemp.result.run import Check
from pathtemp.testing.calibration import assert_rate
from pathtemp.verdict import draws as gates
from pathtemp.verdict import travel

RNG = np.random.default_rng(0)
EDGES = np.linspace(0.0, 1.0, travel.BINS + 1) ** 2
POSITION = np.clip(RNG.uniform(-0.2, 1.2, size=(8, 500)), 0.0, 1.0)
LAM = POSITION**2
ALONG = np.linspace(0.0, 1.0, 20)
EXPONENTIAL = np.ceil(RNG.exponential(4.0, size=2000))
NORMAL = np.column_stack([RNG.normal(size=(1000, 2)), -RNG.exponential(size=1000)])


def coverage(keep: Callable[[np.ndarray], np.ndarray]) -> Check:
    kept = keep(LAM)
    lam, position = LAM[kept], POSITION[kept]
    visits = np.histogram(position[(lam > 0) & (lam < 1)], travel.BINS, (0.0, 1.0))[0]
    at_ends = (float(np.sum(lam <= 0)), float(np.sum(lam >= 1)))
    return travel.check_coverage(visits, EDGES, at_ends=at_ends)


def with_point(*point: float) -> np.ndarray:
    return np.concatenate([NORMAL[:200], [point]])


def two(first: tuple[float, float], second: tuple[float, float]) -> Check:
    return travel.check_agreement(first, second, ("Rao-Blackwell", "MBAR"))


GOOD: dict[str, Callable[[], Check]] = {
    "reach": lambda: travel.check_reach(1.0),
    "rounds": lambda: travel.check_rounds(2),
    "coverage": lambda: coverage(lambda lam: lam >= 0),
    "tours": lambda: travel.check_tours(20),
    "stuck chains": lambda: travel.check_stuck(np.array([3, 1, 9]), np.zeros((5, 3))),
    "effective tours": lambda: gates.check_effective_tours(EXPONENTIAL[:200]),
    "long tours": lambda: gates.check_long_tours(EXPONENTIAL),
    "long tours, many": lambda: gates.check_long_tours(np.concatenate([np.ones(5000), np.full(50, 200.0)])),
    "long tours, ended and tiny": lambda: gates.check_long_tours(np.append(np.tile(EXPONENTIAL, 4), 150.0)),
    "long tours, none": lambda: gates.check_long_tours(np.empty(0)),
    "lost": lambda: gates.check_lost(NORMAL[:200], NORMAL[200:]),
    "lost, no early draws": lambda: gates.check_lost(np.empty((0, 3)), NORMAL),
    "acceptance": lambda: travel.check_acceptance(np.full(20, 0.8), np.full(20, 9.0), ALONG),
    "acceptance where no move was made": lambda: travel.check_acceptance(
        np.where(ALONG > 0.5, 0.0, 0.8), np.where(ALONG > 0.5, 0.0, 9.0), ALONG
    ),
    "R-hat": lambda: gates.check_rhat(1.01, limit=1.1),
    "ESS": lambda: gates.check_ess(201.0),
    "agreement": lambda: two((-8.0, 0.05), (-8.1, 0.05)),
    "agreement to rounding": lambda: two((-8.0, 0.0), (-8.02, 0.0)),
    "log z error": lambda: travel.check_precision(0.3),
    "base": lambda: gates.check_base(1.02),
}

# What must stand in the message: the place on the path where there is one.
BAD: dict[str, tuple[Callable[[], Check], list[str]]] = {
    "reach": (lambda: travel.check_reach(0.25), ["lam = 0.25"]),
    "rounds": (lambda: travel.check_rounds(1), ["1 round"]),
    "coverage of the target": (lambda: coverage(lambda lam: lam < 1), ["lam = 1"]),
    "coverage of the base": (lambda: coverage(lambda lam: lam > 0), ["lam = 0"]),
    "coverage inside": (lambda: coverage(lambda lam: (lam <= 0.16) | (lam > 0.2025)), ["0.16", "0.2"]),
    "tours": (lambda: travel.check_tours(3), ["3 round trips"]),
    "stuck chains": (
        lambda: travel.check_stuck(np.array([3, 0, 9]), np.array([[0.0, 0.4, 1.0], [0.2, 0.6, 0.0]])),
        ["1 of 3", "number 1", "lam between 0.4 and 0.6"],
    ),
    "effective tours": (
        lambda: gates.check_effective_tours(np.concatenate([np.ones(500), [2000.0]])),
        ["80%", "lam"],
    ),
    "effective tours, none": (lambda: gates.check_effective_tours(np.empty(0)), ["0 effective"]),
    "long tours": (
        lambda: gates.check_long_tours(np.concatenate([EXPONENTIAL, [200.0, 300.0]])),
        ["2 of 2002", "300", "lam = 1"],
    ),
    "long tours, tiny but not ended": (
        lambda: gates.check_long_tours(np.tile(EXPONENTIAL, 4), np.array([150.0])),
        ["1 of 8001", "150", "lam = 1"],
    ),
    "lost place": (lambda: gates.check_lost(with_point(0.0, 25.0, -1.0), NORMAL), ["1 of 201", "lam = 1"]),
    "lost peak": (lambda: gates.check_lost(with_point(0.0, 0.0, 9.0), NORMAL), ["1 of 201", "lam = 1"]),
    "acceptance": (
        lambda: travel.check_acceptance(np.where(ALONG[7] == ALONG, 0.1, 0.8), np.full(20, 9.0), ALONG),
        ["10%", f"lam = {ALONG[7]:.3g}"],
    ),
    "acceptance, no move": (lambda: travel.check_acceptance(np.zeros(20), np.zeros(20), ALONG), ["No HMC move"]),
    "R-hat": (lambda: gates.check_rhat(1.3, limit=1.1), ["1.300", "lam = 1", "1.1"]),
    "R-hat unknown": (lambda: gates.check_rhat(float("nan"), limit=1.1), ["could not be computed"]),
    "ESS": (lambda: gates.check_ess(50.0), ["50", "200"]),
    "ESS unknown": (lambda: gates.check_ess(float("nan")), ["could not be computed"]),
    "agreement": (lambda: two((-8.0, 0.02), (-9.0, 0.05)), ["-8", "-9", "Rao-Blackwell", "MBAR"]),
    "agreement, no error": (lambda: two((-8.0, np.inf), (-8.0, 0.05)), ["Rao-Blackwell"]),
    "agreement, no value": (lambda: two((np.nan, 0.1), (-8.0, 0.05)), ["Rao-Blackwell"]),
    "log z error": (lambda: travel.check_precision(3.0), ["3"]),
    "log z error infinite": (lambda: travel.check_precision(np.inf), ["not known"]),
    "log z error unknown": (lambda: travel.check_precision(np.nan), ["not known"]),
    "base": (lambda: gates.check_base(1.7), ["1.70", "lam = 0"]),
    "base unknown": (lambda: gates.check_base(float("nan")), ["lam = 0"]),
}


@pytest.mark.parametrize("name", sorted(GOOD))
def test_gate_opens(name: str) -> None:
    check = GOOD[name]()
    assert check.passed is True
    assert check.message == ""
    assert name.startswith(check.name)


@pytest.mark.parametrize("name", sorted(BAD))
def test_gate_closes_and_says_why_and_what_to_do(name: str) -> None:
    make, words = BAD[name]
    check = make()
    assert check.passed is False
    assert name.startswith(check.name)
    for word in words:
        assert word in check.message
    assert check.message[0].isupper() or check.message[0].isdigit()
    assert check.message.endswith(".")
    assert "\n" not in check.message
    assert any(
        advice in check.message for advice in ("run longer", "choose a base", "give a base", "run with", "reparam")
    )


def test_thresholds_are_those_reported() -> None:
    assert not travel.check_tours(19).passed
    assert travel.check_tours(19, limit=19).passed
    assert gates.check_ess(200.0).passed
    assert not travel.check_acceptance(np.full(20, 0.29), np.ones(20), ALONG).passed


def test_tempering_is_as_strict_as_arviz_users_are() -> None:
    """No run has converged whose ArviZ summary shows 1.01 or more, or fewer than 1000 effective draws of thousands."""
    limit = gates.rhat_limit(1.05, 4096, several=False)
    assert gates.check_rhat(1.009, limit=limit).passed
    assert not gates.check_rhat(1.011, limit=limit).passed
    between = gates.rhat_limit(1.05, 4096, several=True)
    assert gates.check_rhat(1.015, limit=between).passed
    assert not gates.check_rhat(1.021, limit=between).passed
    short = gates.check_both_ess(999.0, 2000.0, 4096)
    assert not short.passed
    assert "999" in short.message
    assert "1000" in short.message
    # A user may ask for less than that, and for more.
    assert gates.rhat_limit(1.005, 4096, several=True) == 1.005


def test_one_empty_bin_anywhere_is_seen() -> None:
    for low, high in pairwise(EDGES):
        check = coverage(lambda lam, low=low, high=high: (lam <= low) | (lam > high) | (lam >= 1))
        assert not check.passed, (low, high)


def test_effective_tours() -> None:
    assert gates.effective_tours(np.full(50, 3.0)) == pytest.approx(50.0)
    assert gates.effective_tours(np.array([1000.0, 1.0, 1.0])) == pytest.approx(1.004, abs=0.001)
    assert gates.effective_tours(np.zeros(4)) == 0.0


def test_exponential_tours_are_seldom_called_long() -> None:
    rng = np.random.default_rng(1)
    called = [not gates.check_long_tours(np.ceil(rng.exponential(4.0, size=1000))).passed for _ in range(300)]
    assert_rate(sum(called), 300, at_most=0.02)


def test_early_draws_of_the_same_law_are_seldom_called_lost() -> None:
    rng = np.random.default_rng(2)
    called = []
    for _ in range(200):
        x = rng.normal(size=(4000, 3))
        points = np.column_stack([x, -0.5 * np.sum(x**2, axis=1)])
        called.append(not gates.check_lost(points[:1000], points[1000:]).passed)
    assert_rate(sum(called), 200, at_most=0.03)


class TestRhatEss:
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(16, 50, 3))

    def test_of_independent_draws(self) -> None:
        rhat, bulk, tail = gates.rhat_ess(self.mixed)
        # Over 400 such samples the worst R-hat of three has mean 1.008 and standard deviation .004, and the smallest
        # effective numbers of draws 809 and 50 (bulk), 775 and 50 (tail). The limits are ten deviations away.
        assert rhat < 1.05
        assert 300 < bulk < 1300
        assert 250 < tail < 1300

    def test_of_chains_that_disagree_in_one_quantity(self) -> None:
        apart = self.mixed.copy()
        apart[:8, :, 1] += 3.0
        rhat, bulk, _ = gates.rhat_ess(apart)
        assert rhat > 1.5
        assert bulk < 50

    def test_of_chains_that_disagree_in_scale(self) -> None:
        apart = self.mixed.copy()
        apart[:8, :, 2] *= 10.0
        assert gates.rhat_ess(apart)[0] > 1.2

    def test_finds_the_worst_of_many_quantities(self) -> None:
        many = self.rng.normal(size=(8, 40, 300))
        many[:4, :, 217] += 4.0
        assert gates.rhat_ess(many)[0] > 1.5

    def test_of_too_little(self) -> None:
        for shape in ((1, 50, 2), (8, 3, 2), (8, 0, 2)):
            assert np.isnan(gates.rhat_ess(np.zeros(shape))).all()
        assert np.isnan(gates.rhat_ess(np.zeros((4, 50, 2)))).all()

    def test_a_constant_quantity_is_left_out(self) -> None:
        draws = np.concatenate([self.mixed, np.ones((16, 50, 1))], axis=2)
        assert gates.rhat_ess(draws) == pytest.approx(gates.rhat_ess(self.mixed))
