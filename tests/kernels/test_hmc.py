"""HMC on z: reversible, volume preserving, second order, and invariant at every lam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, CHAINS, FEW_FAST, QUICK, REFUSED, Plant, law, rough_transport, with_bugs

from pathtemp.kernels import hmc
from pathtemp.kernels.transport import AffineMap
from pathtemp.paths.geometric import log_density

LAM = 0.35


def chart(dim: int, *, full: bool = True) -> AffineMap:
    return rough_transport(dim, full=full, size=0.6).at(jnp.asarray(0.4))


def quartic(theta: jax.Array) -> jax.Array:
    """A log density that is neither normal nor symmetric."""
    return -0.5 * jnp.sum(theta**2) - 0.1 * jnp.sum(theta**4) + 0.3 * theta[0] * theta[1] - 0.4 * theta[1]


@jax.jit
def trajectory(z: jax.Array, momentum: jax.Array, step: float = 0.3, steps: int = 3) -> hmc.Proposal:
    return hmc.propose(momentum, z, chart(3), jax.grad(quartic), jnp.asarray(step), jnp.asarray(steps))


@jax.jit
def final_momentum(z: jax.Array, momentum: jax.Array) -> jax.Array:
    """Momentum at the end, by the leapfrog written out once more."""
    for _ in range(3):
        z = z + 0.15 * momentum
        momentum = momentum + 0.3 * jax.grad(lambda z: quartic(chart(3).forward(z)))(z)
        z = z + 0.15 * momentum
    return momentum


def test_a_trajectory_runs_back_to_its_start() -> None:
    z, p = jnp.array([0.3, -0.8, 1.1]), jnp.array([0.9, 0.2, -1.3])
    there = trajectory(z, p)
    p_end = final_momentum(z, p)
    back = trajectory(there.z, -p_end)
    np.testing.assert_allclose(back.z, z, atol=1e-12)
    np.testing.assert_allclose(there.kinetic_fall, 0.5 * (p @ p - p_end @ p_end), rtol=1e-10)
    np.testing.assert_allclose(back.kinetic_fall, -there.kinetic_fall, rtol=1e-10)
    np.testing.assert_allclose(there.theta, chart(3).forward(there.z), rtol=1e-12)


def test_a_trajectory_preserves_volume() -> None:
    def flow(x: jax.Array) -> jax.Array:
        return jnp.concatenate([trajectory(x[:3], x[3:]).z, final_momentum(x[:3], x[3:])])

    # Forward mode: the loop has a dynamic length.
    jacobian = jax.jacfwd(flow)(jnp.array([0.3, -0.8, 1.1, 0.9, 0.2, -1.3]))
    assert float(jnp.abs(jnp.linalg.det(jacobian))) == pytest.approx(1.0, abs=1e-10)


def test_energy_error_is_of_second_order() -> None:
    z, p = jnp.array([0.3, -0.8, 1.1]), jnp.array([0.9, 0.2, -1.3])

    def error(step: float, steps: int) -> float:
        end = trajectory(z, p, step, steps)
        return abs(float(quartic(end.theta) - quartic(chart(3).forward(z)) + end.kinetic_fall))

    assert error(0.1, 4) / error(0.05, 8) == pytest.approx(4.0, rel=0.15)


def test_acceptance_is_metropolis_and_zero_where_it_is_not_a_number() -> None:
    ratio = jnp.array([-jnp.inf, -2.0, 0.0, 3.0, jnp.inf, jnp.nan])
    np.testing.assert_allclose(hmc.acceptance(ratio), [0.0, np.exp(-2.0), 1.0, 1.0, 1.0, 0.0])


def mover(name: str, *, full: bool, plants: Sequence[Plant] = ()) -> Callable[..., jax.Array]:
    """The compiled move of many chains at one lam: (bug, keys, theta, step, steps)."""
    exact, lam = law(name), jnp.asarray(LAM)

    def move(key: jax.Array, theta: jax.Array, step: jax.Array, steps: jax.Array) -> jax.Array:
        here = chart(theta.shape[0], full=full)
        key_momentum, key_accept = jax.random.split(key)
        momentum = jax.random.normal(key_momentum, theta.shape)
        end = hmc.propose(momentum, here.inverse(theta), here, lambda x: exact.path.gradient(x, lam), step, steps)
        change = log_density(exact.path.energies(end.theta), lam) - log_density(exact.path.energies(theta), lam)
        accepted = jax.random.uniform(key_accept) < hmc.acceptance(change + end.kinetic_fall)
        return jnp.where(accepted, end.theta, theta)

    return jax.jit(jax.vmap(with_bugs(move, plants), (None, 0, 0, None, None)), compiler_options=QUICK)


kept_mover = cache(mover)


@cache
def starts(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact draws at the lam, and as many more."""
    rng = np.random.default_rng(5)
    sample_at = law(name).problem.sample_at
    assert sample_at is not None
    return sample_at(rng, np.full(CHAINS, LAM)), sample_at(rng, np.full(CHAINS, LAM))


def one_move(
    name: str, make: Callable[..., jax.Array], *, steps: int, bug: int = -1, longer: float = 1.0
) -> tuple[float, float]:
    """Move exact draws at one lam by HMC: the worst p-value against their start, and the share rejected."""
    theta, fresh = starts(name)
    keys = jax.random.split(jax.random.key(6), CHAINS)
    moved = np.asarray(make(bug, keys, theta, longer * STEPS[name], steps))
    x, y = ((t - theta.mean(axis=0)) / theta.std(axis=0) for t in (theta, moved))
    powers = [f(y) - f(x) for f in (lambda t: t, np.square, lambda t: np.clip(t, -5, 5) ** 3, np.tanh)]
    powers.append(np.prod(y, axis=1, keepdims=True) - np.prod(x, axis=1, keepdims=True))
    change = np.concatenate(powers, axis=1)
    z = change.mean(axis=0) / change.std(axis=0) * np.sqrt(CHAINS)
    tests = list(2.0 * stats.norm.sf(np.abs(z)))
    tests += [stats.ks_2samp(moved[:, j], fresh[:, j], method="asymp").pvalue for j in range(theta.shape[1])]
    return float(min(tests)) * len(tests), float(np.mean(np.all(moved == theta, axis=1)))


# Step sizes that reject between a fifth and two fifths; shares of 20,000 chains have standard errors of .003.
STEPS = {"mixture": 1.3, "beta_binomial": 0.5, "correlated": 0.57, "legs": 1.2}


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", FEW_FAST)
def test_one_move_from_the_exact_law_stays_in_it(name: str, steps: int) -> None:
    p_value, rejected = one_move(name, kept_mover(name, full=name != "legs"), steps=steps)
    assert p_value > ACCEPTED
    assert 0.15 < rejected < 0.45


def wrong_sign_of_kinetic_energy(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.propose

    def wrong(*args: object) -> hmc.Proposal:
        end = right(*args)  # type: ignore[arg-type]
        return end._replace(kinetic_fall=jnp.where(on, -1.0, 1.0) * end.kinetic_fall)

    patch.setattr(hmc, "propose", wrong)


def always_accept(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.acceptance
    patch.setattr(hmc, "acceptance", lambda ratio: jnp.where(on, 1.0, right(ratio)))


def momentum_too_large(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.propose
    patch.setattr(hmc, "propose", lambda momentum, *args: right(jnp.where(on, 1.3, 1.0) * momentum, *args))


def force_of_half_the_size(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = AffineMap.adjoint
    patch.setattr(AffineMap, "adjoint", lambda self, v: jnp.where(on, 0.5, 1.0) * right(self, v))


BUGS = (wrong_sign_of_kinetic_energy, always_accept, momentum_too_large, force_of_half_the_size)


@pytest.mark.parametrize("bug", range(3), ids=[plant.__name__ for plant in BUGS[:3]])
def test_a_planted_bug_is_seen(bug: int) -> None:
    make = kept_mover("correlated", full=True, plants=BUGS)
    # Long steps need the acceptance more.
    assert one_move("correlated", make, steps=2, bug=bug, longer=1.2)[0] < REFUSED


def test_a_wrong_gradient_costs_acceptance_and_not_exactness() -> None:
    """The force may be any function of z: only the acceptance must be right."""
    buggy = kept_mover("correlated", full=True, plants=BUGS)
    p_value, rejected = one_move("correlated", buggy, steps=2, bug=3)
    assert p_value > ACCEPTED
    # Three in ten are rejected, with a standard error of .003.
    assert rejected > 0.1
