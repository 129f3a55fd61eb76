"""Kept draws as a rectangle: order, equal lengths, thinning, chains that fell short."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from pathtemp.kernels.kept import Kept
from pathtemp.result.grouping import MOST_GROUPS, grouped


def kept_of(chain: np.ndarray) -> Kept:
    """A buffer whose draws carry their number, with two rows that are not filled."""
    size = len(chain)
    rows = np.append(np.arange(size, dtype=float), [-1.0, -1.0])[:, None]
    padded = np.append(chain, [0, 0])
    arrays = (rows, padded, np.arange(size + 2) // 3, size, size, 1)
    return Kept(*(jnp.asarray(x) for x in arrays))


def test_draws_of_a_chain_stay_together_and_in_order() -> None:
    chain = np.tile(np.arange(16), 10)
    made = grouped(kept_of(chain), 16)
    assert made.theta.shape == (MOST_GROUPS, 20, 1)
    for group in range(MOST_GROUPS):
        expected = np.concatenate([np.flatnonzero(chain == c) for c in (group, group + 8)])
        np.testing.assert_array_equal(made.theta[group, :, 0], expected)
        np.testing.assert_array_equal(made.chain[group], chain[expected])
        np.testing.assert_array_equal(made.tour[group], expected // 3)


def test_groups_start_alike_and_islands_share_none() -> None:
    chain = np.repeat(np.arange(64), 2)
    one, two = (grouped(kept_of(chain), 64, islands=islands) for islands in (1, 2))
    # Chains start in order along the path: the mean start of the groups differs by a stride at most.
    assert np.ptp(one.chain.mean(axis=1)) <= 8
    assert [set(group // 32) for group in two.chain] == [{0}] * 4 + [{1}] * 4


def test_few_chains_are_groups_of_their_own() -> None:
    made = grouped(kept_of(np.array([0, 1, 2, 1, 0, 2, 2])), 3)
    np.testing.assert_array_equal(made.chain, [[0, 0], [1, 1], [2, 2]])
    # The longest chain is thinned evenly, not cut off.
    np.testing.assert_array_equal(made.theta[2, :, 0], [2.0, 5.0])


def test_a_number_of_draws_is_spread_over_all_of_them() -> None:
    chain = np.repeat(np.arange(8), 1000)
    made = grouped(kept_of(chain), 8, most=80)
    assert made.theta.shape == (8, 10, 1)
    np.testing.assert_array_equal(made.theta[3, :, 0], 3000 + 100.0 * np.arange(10))


def test_chains_that_fell_short_do_not_cost_the_others_their_draws() -> None:
    chain = np.concatenate([np.repeat(np.arange(7), 50), [7]])
    made = grouped(kept_of(chain), 8)
    assert made.theta.shape == (7, 50, 1)
    assert set(made.chain[:, 0]) == set(range(7))


def test_no_draws() -> None:
    made = grouped(kept_of(np.empty(0, int)), 4)
    assert made.theta.shape == (4, 0, 1)
    assert made.flat.shape == (0, 1)


def test_tours_of_different_chains_have_different_numbers() -> None:
    made = grouped(kept_of(np.tile(np.arange(4), 6)), 4)
    pairs = {(int(c), int(t)) for c, t in zip(made.chain.ravel(), made.tour.ravel(), strict=True)}
    assert len(np.unique(made.numbered_tours)) == len(pairs)
