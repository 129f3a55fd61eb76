"""What the widths of the known modes say of narrower ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pathtemp.modes.find import narrower
from pathtemp.modes.local import from_covariance
from pathtemp.modes.mode import Mode
from pathtemp.modes.search import Search
from pathtemp.modes.unseen import narrower_modes
from pathtemp.paths.geometric import GeometricPath
from pathtemp.testing.calibration import assert_close
from pathtemp.verdict.modes import check_narrower


def spread_out(widths: list[float], count: int) -> Search:
    """A search in ten dimensions that knows modes of these relative widths and of equal mass, each met so often."""
    path = GeometricPath(lambda x: -0.5 * x @ x, lambda x: -0.5 * x @ x)
    search = Search(path, scale=np.ones(10), seed=0)
    for k, width in enumerate(widths):
        law = from_covariance(np.full(10, 10.0 * k), width**2 * np.eye(10), 0.0)
        search.modes.append(Mode(law, 0.0, "base", count // 2, held=count - count // 2))
    return search


def test_widths_that_reach_down_to_where_modes_are_missed_suggest_narrower_ones() -> None:
    widths = [1.0, 0.92, 0.85, 0.78, 0.74]
    assert not check_narrower(narrower(spread_out(widths, 5))).passed
    assert check_narrower(narrower(spread_out(widths, 500))).passed
    assert check_narrower(narrower(spread_out([1.0, 0.99, 0.98, 0.97, 0.96], 5))).passed
    # A few modes say nothing of a range.
    assert narrower(spread_out([1.0, 0.8, 0.75], 1)) == 0.0
    # Met by one point alone: it was luck, and nothing is known of what is narrower.
    assert narrower(spread_out(widths, 1)) == pytest.approx(0.5)


def test_lesser_modes_say_nothing_of_the_widths() -> None:
    search = spread_out([1.0, 0.99, 0.98, 0.97, 0.5], 5)
    assert not check_narrower(narrower(search)).passed
    search.modes[4] = replace(search.modes[4], log_mass=-5.0)
    assert check_narrower(narrower(search)).passed


def test_a_lesser_mode_that_is_wide_counts_as_one_of_the_known_widths() -> None:
    """The widest of four holds a thirtieth of the mass: without it three would be left, which say nothing."""
    search = spread_out([1.0, 0.92, 0.85, 0.78], 5)
    assert not check_narrower(narrower(search)).passed
    search.modes[0] = replace(search.modes[0], log_mass=-2.3)
    assert not check_narrower(narrower(search)).passed


def test_the_probability_of_a_wider_range_is_right_on_average() -> None:
    """Ranges X from their prior, and uniform log widths, of which those above a limit are known."""
    rng, least, cut, known = np.random.default_rng(0), 0.05, 1.0, 6
    stated, beyond = [], []
    for _ in range(4000):
        reach = least / rng.uniform()
        log_width = -np.append(0.0, rng.uniform(0.0, min(reach, cut), size=known))
        # The narrowest was met so often that the limit is at ``cut``.
        count = np.exp(2.0 * (cut + log_width.min()))
        stated.append(2.0 * narrower_modes(np.exp(log_width), np.full(known + 1, count), 2))
        beyond.append(float(reach > cut))
    difference = np.array(stated) - np.array(beyond)
    assert_close(difference.mean(), 0.0, difference.std(ddof=1) / np.sqrt(len(difference)))
