"""A round costs the same however many there were before: what is kept of them does not grow."""

from __future__ import annotations

import numpy as np
import pytest
from kept_runs import SMALL, two_modes

import pathtemp as pt
from pathtemp.engines.default import trace
from pathtemp.engines.driver import Driver
from pathtemp.engines.rows import Rows
from pathtemp.io.checkpoint import packed

LINE = 500
"""Bytes of a line of the history, which says what a round cost and found."""


def test_rows_that_are_kept_are_spread_over_all_rounds_and_never_more() -> None:
    rows, numbers = Rows(most=64), np.arange(8)
    sizes = set()
    for number in range(500):
        rows.add(x=8 * number + numbers)
        sizes.add(len(rows.fields["x"]))
    assert max(sizes) == 64
    np.testing.assert_array_equal(rows.fields["x"], np.arange(0, 4000, rows.stride))


@pytest.mark.slow
def test_a_checkpoint_is_as_large_after_many_rounds_as_after_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the lines of its history."""
    monkeypatch.setattr(trace, "MOST_POINTS", 2**10)
    fit = pt.temper(two_modes(), settings=SMALL, budget=120_000, seed=1, progress=False)
    sizes, rounds = [], []
    for _ in range(2):
        fit = fit.extend(budget=60_000)
        assert isinstance(fit.continuation, Driver)
        sizes.append(len(packed(fit.continuation.record())))
        rounds.append(len(fit.history))
    assert rounds[1] > rounds[0] + 50
    assert sizes[1] - sizes[0] < LINE * (rounds[1] - rounds[0])
