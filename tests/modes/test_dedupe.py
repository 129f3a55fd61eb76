"""Whether two ends of ascents are one mode: by distance, or by a way without a barrier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from pathtemp.modes.dedupe import BARRIER, near, same_mode
from pathtemp.modes.local import Local, from_covariance
from pathtemp.modes.mode import Mode, known_mode


def law(centre: float, scale: float = 1.0, height: float = 0.0) -> Local:
    return from_covariance(np.array([centre]), np.array([[scale**2]]), height)


def two_normals(x: np.ndarray) -> np.ndarray:
    """Modes of one height at 0 and at 10, scale 1."""
    return np.asarray(logsumexp([-0.5 * x[:, 0] ** 2, -0.5 * (x[:, 0] - 10.0) ** 2], axis=0))


def never(x: np.ndarray) -> np.ndarray:
    raise AssertionError("a near end needs no look at the way")


def test_no_mode_is_known_yet() -> None:
    assert same_mode([], np.zeros(1), 0.0, never) is None


def test_an_end_near_a_centre_is_that_mode_without_a_look_at_the_way() -> None:
    assert same_mode([law(10.0), law(0.0)], np.array([0.1]), 0.0, never) == 1


def test_near_is_in_units_of_the_local_scale() -> None:
    assert near(law(0.0, scale=10.0), np.array([3.0])) == pytest.approx(near(law(0.0), np.array([0.3])))
    assert near(law(0.0), np.array([0.45])) < 1.0 < near(law(0.0), np.array([0.55]))


def test_an_end_beyond_a_barrier_is_a_mode_of_its_own() -> None:
    assert same_mode([law(0.0)], np.array([10.0]), 0.0, two_normals) is None


def test_a_way_without_a_fall_leads_to_the_same_mode() -> None:
    assert same_mode([law(0.0)], np.array([10.0]), 0.0, lambda x: np.zeros(len(x))) == 0


@pytest.mark.parametrize(("fall", "expected"), [(0.99 * BARRIER, 0), (1.01 * BARRIER, None)])
def test_the_fall_counts_from_the_lower_of_both_ends(fall: float, expected: int | None) -> None:
    found = same_mode([law(0.0, height=5.0)], np.array([10.0]), 1.0, lambda x: np.full(len(x), 1.0 - fall))
    assert found == expected


def test_the_way_is_looked_at_between_the_ends_and_not_at_them() -> None:
    ways: list[np.ndarray] = []

    def log_target(x: np.ndarray) -> np.ndarray:
        ways.append(x[:, 0])
        return np.full(len(x), -np.inf)

    assert same_mode([law(4.0)], np.array([10.0]), 0.0, log_target) is None
    assert len(ways) == 1
    assert 4.0 < ways[0].min() < 4.5
    assert 9.5 < ways[0].max() < 10.0


def test_only_the_three_nearest_modes_are_tried() -> None:
    laws = [law(float(k)) for k in (40, 10, 20, 30)]

    def free_to(centre: float) -> int | None:
        """Which mode it is when the way to one centre alone is free."""
        return same_mode(
            laws, np.zeros(1), 0.0, lambda x: np.full(len(x), 0.0 if abs(x[-1, 0] - 16 / 17 * centre) < 0.1 else -9.0)
        )

    assert [free_to(centre) for centre in (10.0, 20.0, 30.0, 40.0)] == [1, 2, 3, None]


def test_an_end_at_the_top_of_a_mode_whose_law_has_moved_is_that_mode() -> None:
    """Refining moved the law of a Cauchy mode a whole scale away: on the way there the density falls by a nat."""

    def cauchy(x: np.ndarray) -> np.ndarray:
        return np.asarray(-np.log1p(x[:, 0] ** 2))

    end, moved = np.array([0.01]), Mode(law(-1.4, scale=2.5), 0.0, "base", 1, refined=True)
    assert same_mode([moved.law], end, 0.0, cauchy) is None
    assert known_mode([moved], end, 0.0, cauchy) is None
    assert known_mode([replace(moved, top=law(0.0))], end, 0.0, cauchy) == 0


def test_an_end_near_the_law_of_a_mode_is_that_mode_wherever_its_top_is() -> None:
    mode = Mode(law(-9.0), 0.0, "base", 1, refined=True, top=law(0.0))
    assert known_mode([mode], np.array([-9.1]), 0.0, two_normals) == 0
    assert known_mode([mode], np.array([10.0]), 0.0, two_normals) is None
    assert known_mode([], np.array([10.0]), 0.0, two_normals) is None
