"""Rounds: tour sums and windows, against the same thing done one chain at a time in Python."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stationary import ACCEPTED, QUICK, law, rough_transport, worst_p_value

from pathtemp.kernels import rounds, strata
from pathtemp.kernels.rounds import RoundShape, empty_sums, initial_state, make_round, window
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters, Step

CHAINS, CELLS = 5, 10
BINS = strata.count_bins(CELLS)


def steps_of(rng: np.random.Generator, iterations: int) -> list[Step]:
    """Made-up iterations: random regenerations and bin probabilities."""
    blank = jnp.zeros(CHAINS)
    return [
        Step(
            regenerated=jnp.asarray(rng.uniform(size=CHAINS) < 0.2),
            acceptance=blank,
            position=blank,
            orbit_jump=blank,
            plain_jump=blank,
            orbit_masses=jnp.asarray(rng.dirichlet(np.ones(BINS), size=CHAINS)),
            plain_masses=jnp.asarray(rng.dirichlet(np.ones(BINS), size=CHAINS)),
            rejected=blank,
            leg=blank,
        )
        for _ in range(iterations)
    ]


def test_tour_sums_against_tours_cut_by_hand() -> None:
    made = steps_of(np.random.default_rng(0), 60)
    sums = empty_sums(CHAINS, CELLS)
    for step in made:
        sums = rounds._accumulate(sums, step, CELLS)
    tours, total = [], np.zeros((CHAINS, 2, BINS))
    for chain in range(CHAINS):
        current, started = np.zeros((2, BINS)), False
        for step in made:
            orbit, plain = np.asarray(step.orbit_masses[chain]), np.asarray(step.plain_masses[chain])
            total[chain] += [orbit, plain]
            # The lattice comes before the regeneration that ends a tour, the draw given theta after it.
            current[0] += orbit
            if bool(step.regenerated[chain]):
                if started:
                    tours.append(current)
                current, started = np.zeros((2, BINS)), True
            current[1] += plain
    x = np.array(tours)
    assert int(sums.tours) == len(x) > 20
    np.testing.assert_allclose(sums.total, total, rtol=1e-12)
    np.testing.assert_allclose(sums.finished.sum(axis=0), x.sum(axis=0), rtol=1e-12)
    both = np.concatenate([x, strata.compared_with(x, CELLS)], axis=1)
    np.testing.assert_allclose(sums.second.sum(axis=0), np.einsum("tik,tjk->ijk", both, both), rtol=1e-12)


def test_windows_have_their_shares() -> None:
    width = np.asarray(jax.vmap(window)(jnp.linspace(0.0, 1.0, 120_001)[:-1]))
    values, counts = np.unique(width, return_counts=True)
    np.testing.assert_allclose(values, [0.125, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(counts / len(width), [1 / 12, 1 / 12, 1 / 12, 0.75], atol=1e-3)


@pytest.fixture(scope="module")
def played() -> dict[str, Any]:
    """One round of many chains that starts in the exact law."""
    name, count = "correlated", 8000
    exact = law(name)
    theta, a = exact.draw(np.random.default_rng(0), count)
    energies = jax.jit(jax.vmap(exact.path.energies))(theta)
    parameters = KernelParameters(
        exact.link,
        exact.prior,
        rough_transport(3, full=True, size=0.3, seed=1),
        jnp.log(jnp.array([0.7, 0.6, 0.5, 0.45])),
        orbit=jnp.asarray(True),
        pinned=jnp.asarray(False),
        frozen=jnp.asarray(True),
    )
    shape = RoundShape(iterations=8, leapfrogs=3, lattice_points=4, batch=None, learners=100)
    sample_base = exact.problem.model.sample_base
    run = jax.jit(make_round(exact.path, sample_base, shape), compiler_options=QUICK)
    chains = ChainState(jnp.asarray(theta), jnp.asarray(a), energies)
    start = initial_state(chains, 3, exact.link.cells, iterations=8, exact_base=True)
    state, record = jax.device_get(run(np.uint32(5), np.uint32(0), start, parameters))
    again = jax.device_get(run(np.uint32(5), np.uint32(0), start, parameters))[0]
    other = jax.device_get(run(np.uint32(5), np.uint32(1), start, parameters))[0]
    return {"law": exact, "start": (theta, a), "state": state, "record": record, "again": again, "other": other}


def test_a_round_stays_in_the_law(played: dict[str, Any]) -> None:
    end = played["state"].chains
    assert worst_p_value(played["law"], played["start"], (end.theta, end.a)) > ACCEPTED


def test_a_round_depends_on_its_seed_and_number_alone(played: dict[str, Any]) -> None:
    np.testing.assert_array_equal(played["state"].chains.theta, played["again"].chains.theta)
    assert np.mean(played["state"].chains.a == played["other"].chains.a) < 0.01


def test_the_record_is_what_happened(played: dict[str, Any]) -> None:
    record, state, exact = played["record"], played["state"], played["law"]
    np.testing.assert_allclose(record.lam, exact.lam(record.a), atol=1e-15)
    np.testing.assert_array_equal(record.a[-1], state.chains.a)
    np.testing.assert_array_equal(record.first[-1], state.chains.theta[:, 0])
    np.testing.assert_allclose(record.delta[-1], state.chains.energies[:, 1] - state.chains.energies[:, 0])
    assert record.theta.shape == (2, 100, 3)
    np.testing.assert_array_equal(record.theta[-1], state.chains.theta[:100])
    np.testing.assert_array_equal(record.theta_lam, record.lam[3::4, :100])
    assert set(record.leapfrogs) <= {1, 2, 3}
    assert record.regenerated.shape == (8, len(state.chains.a))
    assert not np.any(record.rejected.code)


def test_target_draws_are_those_at_lam_one(played: dict[str, Any]) -> None:
    record, target = played["record"], played["state"].target
    iteration, chain = np.nonzero(record.lam >= 1)
    assert int(target.visits) == len(chain)
    kept = slice(None, None, int(target.stride))
    assert int(target.size) == len(chain[kept])
    np.testing.assert_array_equal(target.chain[: target.size], chain[kept])
    np.testing.assert_array_equal(target.theta[: target.size, 0], record.first[iteration, chain][kept])
    tour = np.cumsum(record.regenerated, axis=0)
    np.testing.assert_array_equal(target.tour[: target.size], tour[iteration, chain][kept])
    np.testing.assert_array_equal(played["state"].tour, tour[-1])
    # A base that can be sampled needs no draws of the chains.
    assert played["state"].base.theta.shape[0] == 0


def test_tours_are_counted_between_regenerations(played: dict[str, Any]) -> None:
    regenerated = played["record"].regenerated.sum(axis=0)
    assert int(played["state"].sums.tours) == np.maximum(regenerated - 1, 0).sum()
    np.testing.assert_array_equal(played["state"].sums.started, regenerated > 0)
    orbit, plain = played["state"].sums.total.sum(axis=2).T
    np.testing.assert_allclose(plain, 8.0, rtol=1e-9)
    # Windows are drawn for all chains alike; those on a part of the circle do not count.
    np.testing.assert_allclose(orbit, round(orbit[0]), rtol=1e-9)
    assert 3 <= round(orbit[0]) < 8
