"""Pinned chains that got stuck are freed, and teach the transport nothing; healthy ones are left alone."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from pathtemp.engines.default.chains import Chains
from pathtemp.engines.default.learner import from_record
from pathtemp.kernels.rounds import Record, initial_state
from pathtemp.kernels.transported_hmc import ChainState
from pathtemp.settings import DEFAULT
from pathtemp.testing import gaussian_scale

CHAINS = 6


def engine_at(a: np.ndarray, energies: np.ndarray) -> Chains:
    theta = np.arange(2.0 * CHAINS).reshape(CHAINS, 2)
    engine = Chains(
        gaussian_scale(2).model, seed=0, draws=1, must_draw=False, settings=DEFAULT, start=(theta, energies)
    )
    chains = ChainState(jnp.asarray(theta), jnp.asarray(a), jnp.asarray(energies))
    engine.state = initial_state(chains, 1, 10, iterations=8, exact_base=True)
    return engine


def record(acceptance: list[float]) -> Record:
    """A round of eight iterations in which every chain stayed at its lam, with theta of the first four of them."""
    shape = (8, CHAINS)
    nothing = np.zeros(shape)
    lam = np.broadcast_to(np.linspace(0.0, 1.0, CHAINS), shape)
    parts = {name: nothing for name in Record._fields} | {
        "acceptance": np.broadcast_to(acceptance, shape),
        "lam": lam,
        "delta": np.broadcast_to(np.arange(CHAINS, dtype=float), shape),
        "theta": np.zeros((2, 4, 3)),
        "theta_lam": lam[:2, :4],
    }
    return Record(**parts)  # type: ignore[arg-type]


A = np.array([0.05, 0.2, 0.4, 0.6, 1.35, 1.0])
ENERGIES = np.stack([np.arange(CHAINS), -np.arange(CHAINS)], axis=1).astype(float)


def test_a_stuck_chain_takes_the_place_of_its_nearest_neighbour_on_the_path() -> None:
    engine = engine_at(A, ENERGIES)
    # 1.35 folds to 0.65, next to 0.6.
    moving = engine.unstick(record([0.8, 0.7, 0.9, 0.0, 0.8, 0.8]))
    assert np.asarray(moving).tolist() == [True, True, True, False, True, True]
    chains = engine.state.chains
    np.testing.assert_array_equal(chains.theta[3], [8.0, 9.0])
    np.testing.assert_array_equal(chains.energies[3], ENERGIES[4])
    np.testing.assert_array_equal(chains.a, A)
    np.testing.assert_array_equal(np.delete(chains.theta, 3, axis=0)[:, 0], [0.0, 2.0, 4.0, 8.0, 10.0])


def test_a_neighbour_without_density_is_passed_over() -> None:
    energies = ENERGIES.copy()
    energies[4, 1] = -np.inf
    engine = engine_at(A, energies)
    engine.unstick(record([0.8, 0.7, 0.9, 0.0, 0.8, 0.8]))
    np.testing.assert_array_equal(engine.state.chains.theta[3], [4.0, 5.0])


def test_chains_that_all_move_or_hardly_any_are_left_alone() -> None:
    for acceptance in ([0.5] * CHAINS, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]):
        engine = engine_at(A, ENERGIES)
        before = engine.state
        assert np.all(engine.unstick(record(acceptance)))
        assert engine.state is before


def test_draws_of_some_chains_alone() -> None:
    mask = np.array([True, True, True, False, True, True])
    draws = from_record(record([0.5] * CHAINS), mask)
    assert 3.0 not in draws.delta
    assert (draws.lam.shape, draws.theta.shape, draws.theta_lam.shape) == ((40,), (6, 3), (6,))
    assert len(from_record(record([0.5] * CHAINS)).lam) == 48
