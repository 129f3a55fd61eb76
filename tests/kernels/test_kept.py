"""Kept draws are spread over the whole run, in the order of the visits, within their memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.kernels import kept
from pathtemp.kernels.kept import Kept

CHAINS, ITERATIONS = 3, 4
COMING = CHAINS * ITERATIONS


def visited(buffer: Kept, rounds: int, share: np.ndarray, rng: np.random.Generator) -> tuple[Kept, np.ndarray]:
    """The buffer after so many rounds, and what was seen: (theta, chain, tour) of every visit, in order."""
    seen = []
    make_room, keep = jax.jit(kept.make_room, static_argnums=1), jax.jit(kept.keep)
    for number in range(rounds):
        buffer = make_room(buffer, COMING)
        for _ in range(ITERATIONS):
            theta, here = rng.normal(size=(CHAINS, 1)), rng.uniform(size=CHAINS) < share
            tour = 10 * number + np.arange(CHAINS)
            buffer = keep(buffer, jnp.asarray(theta), jnp.asarray(tour), jnp.asarray(here))
            seen += [(theta[c, 0], c, tour[c]) for c in np.flatnonzero(here)]
    return buffer, np.array(seen)


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("rounds", [1, 7, 60])
def test_what_is_kept_is_every_so_manieth_visit_of_all(draws: int, rounds: int) -> None:
    empty = kept.empty(draws, CHAINS, 1, coming=COMING)
    buffer, seen = visited(empty, rounds, np.array([1.0, 0.3, 0.0]), np.random.default_rng(0))
    size, stride = int(buffer.size), int(buffer.stride)
    assert int(buffer.visits) == len(seen)
    expected = seen[::stride]
    assert size == len(expected)
    got = np.column_stack([buffer.theta[:size, 0], buffer.chain[:size], buffer.tour[:size]])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("draws", [1, 2, 5])
def test_a_buffer_that_was_full_keeps_what_was_asked_for(draws: int) -> None:
    """Whatever the number of rounds, once there were that many visits: not one draw too few, nor a row too many."""
    buffer = kept.empty(draws, CHAINS, 1, coming=COMING)
    rng = np.random.default_rng(1)
    for _ in range(40):
        buffer, _ = visited(buffer, 1, np.ones(CHAINS), rng)
        first = int(kept.empty(draws, CHAINS, 1, coming=COMING).stride)
        assert int(buffer.size) <= buffer.theta.shape[0]
        if int(buffer.visits) >= first * draws * CHAINS:
            assert int(buffer.size) >= draws * CHAINS


def test_a_buffer_without_rows_only_counts() -> None:
    buffer, seen = visited(kept.empty(0, CHAINS, 1, coming=COMING), 2, np.ones(CHAINS), np.random.default_rng(2))
    assert buffer.theta.shape == (0, 1)
    assert int(buffer.visits) == len(seen)


def test_restarting_forgets_and_enlarging_does_not() -> None:
    buffer, seen = visited(kept.empty(2, CHAINS, 1, coming=COMING), 9, np.ones(CHAINS), np.random.default_rng(3))
    larger = kept.enlarge(buffer, 6, CHAINS)
    assert larger.theta.shape[0] > buffer.theta.shape[0]
    np.testing.assert_array_equal(larger.theta[: larger.size, 0], seen[:: int(buffer.stride), 0])
    assert int(larger.stride) == int(buffer.stride)
    again = kept.restart(buffer, coming=COMING)
    assert (int(again.size), int(again.visits)) == (0, 0)
    assert int(again.stride) == int(kept.empty(2, CHAINS, 1, coming=COMING).stride)
