"""The kernel along a path leaves the joint law unchanged, whatever its transport; its gradients have the right mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, QUICK, REFUSED, Plant, uniforms_p_value, with_bugs

from pathtemp.kernels import hmc, path_rounds
from pathtemp.kernels.path_rounds import PathParameters, PathRecord, PathShape, PathState, make_round
from pathtemp.kernels.transport import AffineMap, regressions
from pathtemp.paths.function import FunctionPath
from pathtemp.testing.calibration import assert_close

CHAINS, NODES = 40_000, 9
LOW, HIGH = -2.0, 1.0


def log_q(theta: jax.Array, lam: jax.Array) -> jax.Array:
    """Two normals of mean lam and scale exp(lam), correlated; log z = lam."""
    x = (theta - lam) * jnp.exp(-lam)
    return -0.5 * (x[0] ** 2 + (x[1] - 0.6 * x[0]) ** 2 / 0.64) - 2 * lam + lam


def parameters(ends: tuple[float, float], *, transport_error: float) -> PathParameters:
    """A transport that is wrong in location, scale and correlation, and a pseudo-prior that is right."""
    s = np.linspace(0.0, 1.0, 5)
    lam = LOW + (HIGH - LOW) * s
    wrong = transport_error * np.sin(5.0 * s)
    location = np.column_stack([lam + wrong, lam - 0.5 * wrong])
    log_diagonal = np.column_stack([lam + wrong, lam + np.log(0.8) + 0.3 * wrong])
    lower = np.tile(np.eye(2), (5, 1, 1))
    lower[:, 1, 0] = 0.6 - wrong
    return PathParameters(
        jnp.asarray([LOW, HIGH]),
        jnp.asarray(ends),
        jnp.linspace(LOW, HIGH, NODES),  # log c = log z = lam
        regressions(jnp.asarray(location), jnp.asarray(log_diagonal), jnp.asarray(lower)),
        jnp.full(3, jnp.log(0.8)),
        jnp.asarray(False),
        (),
    )


def exact(ends: tuple[float, float], rng: np.random.Generator) -> PathState:
    a = rng.uniform(0.0, 2.0, CHAINS)
    s = np.clip((1.0 - np.abs(1.0 - a) - ends[0]) / (1.0 - sum(ends)), 0.0, 1.0)
    lam = LOW + (HIGH - LOW) * s
    x = rng.normal(size=(CHAINS, 2)) * np.array([1.0, 0.8])
    x[:, 1] += 0.6 * x[:, 0]
    theta = lam[:, None] + np.exp(lam)[:, None] * x
    return PathState(jnp.asarray(theta), jnp.asarray(a), jax.vmap(log_q)(jnp.asarray(theta), jnp.asarray(lam)))


@cache
def program(plants: Sequence[Plant] = (), *, iterations: int = 4) -> Callable[..., tuple[PathState, PathRecord]]:
    """The compiled round of many chains: (bug, seed, number, chains, parameters)."""
    one_round = make_round(FunctionPath(log_q), PathShape(iterations=iterations, leapfrogs=2, points=5))
    return jax.jit(with_bugs(one_round, plants), compiler_options=QUICK)


ENDS = {"margin": (0.0, 0.0), "flat ends": (0.1, 0.2)}


def walked(ends: tuple[float, float]) -> tuple[PathParameters, PathState, PathRecord]:
    """A round from the exact law."""
    rng = np.random.default_rng(0)
    chosen, seed = parameters(ends, transport_error=0.5), np.uint32(rng.integers(2**31))
    return chosen, *jax.device_get(program()(-1, seed, np.uint32(0), exact(ends, rng), chosen))


@pytest.fixture(scope="module", params=list(ENDS))
def after(request: pytest.FixtureRequest) -> tuple[PathParameters, PathState, PathRecord]:
    return walked(ENDS[request.param])


def uniforms(chosen: PathParameters, chains: PathState) -> np.ndarray:
    """Of a, and of theta given it: independent uniforms exactly when the chains have the law."""
    a = np.asarray(chains.a)
    lam = LOW + (HIGH - LOW) * np.asarray(jax.vmap(chosen.position)(a))
    x = (np.asarray(chains.theta) - lam[:, None]) * np.exp(-lam)[:, None]
    second = (x[:, 1] - 0.6 * x[:, 0]) / 0.8
    # The way out and the way back are one half each, so that a also shows by its distance from the middle.
    return np.column_stack([a / 2.0, stats.norm.cdf(x[:, 0]), stats.norm.cdf(second)])


def test_the_joint_law_is_unchanged(after: tuple[PathParameters, PathState, PathRecord]) -> None:
    chosen, chains, _ = after
    found = uniforms(chosen, chains)
    assert uniforms_p_value(found) > ACCEPTED
    for part in np.array_split(found[np.argsort(np.abs(found[:, 0] - 0.5)), 1:], 4):  # also at each part of the path
        assert uniforms_p_value(part) > ACCEPTED


def no_jacobian(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = AffineMap.log_det
    patch.setattr(AffineMap, "log_det", lambda self: jnp.where(on, 0.0, right(self)))


def wrong_sign_of_log_c(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = path_rounds.interpolate

    def wrong(table: jax.Array, s: jax.Array) -> jax.Array:
        value = right(table, s)
        return jnp.where(on, -value, value) if table.shape == (NODES,) else value

    patch.setattr(path_rounds, "interpolate", wrong)


def window_always_begins_at_a(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    """The place of a in its window is the first of the uniforms."""
    right = jax.random.uniform

    def wrong(key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        u = right(key, shape)
        return u.at[0].multiply(jnp.where(on, 0.0, 1.0)) if shape == (4,) else u

    patch.setattr(jax.random, "uniform", wrong)


def always_accept(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.acceptance
    patch.setattr(hmc, "acceptance", lambda ratio: jnp.where(on, 1.0, right(ratio)))


def wrong_sign_of_kinetic_energy(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.propose

    def wrong(*args: object) -> hmc.Proposal:
        end = right(*args)  # type: ignore[arg-type]
        return end._replace(kinetic_fall=jnp.where(on, -1.0, 1.0) * end.kinetic_fall)

    patch.setattr(hmc, "propose", wrong)


BUGS = (no_jacobian, wrong_sign_of_log_c, window_always_begins_at_a, always_accept, wrong_sign_of_kinetic_energy)


@pytest.mark.parametrize("bug", range(len(BUGS)), ids=[plant.__name__ for plant in BUGS])
def test_a_planted_bug_is_seen(bug: int) -> None:
    assert worst_over_rounds(bug) < REFUSED


def worst_over_rounds(bug: int) -> float:
    """The smallest p-value after each of eight rounds, or of the first few where they settle it.

    Chains share the lengths of their trajectories, so how far one round leads away from the law depends on the seed.
    """
    rng = np.random.default_rng(0)
    chosen, seed = parameters(ENDS["margin"], transport_error=0.5), np.uint32(rng.integers(2**31))
    chains, found = exact(ENDS["margin"], rng), []
    for number in range(8):
        chains, _ = program(BUGS)(bug, seed, np.uint32(number), chains, chosen)
        found.append(uniforms_p_value(uniforms(chosen, chains)))
        if found[-1] < REFUSED:
            break
    return min(found)


def test_the_chains_moved(after: tuple[PathParameters, PathState, PathRecord]) -> None:
    # Means over 160,000 moves, far inside these limits.
    assert float(after[2].jump) > 0.05
    assert 0.2 < float(np.mean(after[2].acceptance)) < 1.0


def test_both_gradients_have_the_slope_of_log_z_as_their_mean(
    after: tuple[PathParameters, PathState, PathRecord],
) -> None:
    _, _, record = after
    inside = (record.s > 0) & (record.s < 1)
    for values in (record.u, record.plain):
        # Iterations of one chain depend on each other: chains are what is independent.
        total = np.where(inside, values - (HIGH - LOW), 0.0).sum(axis=0)
        assert_close(total.mean(), 0.0, total.std() / np.sqrt(CHAINS))


def test_masses_are_probabilities(after: tuple[PathParameters, PathState, PathRecord]) -> None:
    np.testing.assert_allclose(after[2].masses.sum(axis=1), 4.0)


def test_an_exact_transport_leaves_no_noise_in_the_gradient() -> None:
    chosen = parameters((0.0, 0.0), transport_error=0.0)
    start = exact((0.0, 0.0), np.random.default_rng(0))
    _, record = program()(-1, np.uint32(1), np.uint32(0), start, chosen)
    assert np.std(np.asarray(record.u)) < 1e-6
    # At fixed theta the standard deviation is 12.
    assert np.std(np.asarray(record.plain)) > 1.0
