"""HMC on z: reversible, volume preserving, second order, and invariant at every lam."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, CHAINS, PROBLEMS, QUICK, REFUSED, law, rough_transport

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


def one_move(name: str, *, full: bool, step: float, steps: int) -> tuple[float, float]:
    """Move exact draws at one lam by HMC: the worst p-value against their start, and the share rejected."""
    exact = law(name)
    rng = np.random.default_rng(5)
    assert exact.problem.sample_at is not None
    theta = exact.problem.sample_at(rng, np.full(CHAINS, LAM))
    here = chart(theta.shape[1], full=full)

    def move(key: jax.Array, theta: jax.Array) -> jax.Array:
        key_momentum, key_accept = jax.random.split(key)
        momentum = jax.random.normal(key_momentum, theta.shape)
        end = hmc.propose(
            momentum,
            here.inverse(theta),
            here,
            lambda x: exact.path.gradient(x, jnp.asarray(LAM)),
            jnp.asarray(step),
            jnp.asarray(steps),
        )
        change = log_density(exact.path.energies(end.theta), jnp.asarray(LAM)) - log_density(
            exact.path.energies(theta), jnp.asarray(LAM)
        )
        accepted = jax.random.uniform(key_accept) < hmc.acceptance(change + end.kinetic_fall)
        return jnp.where(accepted, end.theta, theta)

    moved = np.asarray(
        jax.jit(jax.vmap(move), compiler_options=QUICK)(jax.random.split(jax.random.key(6), CHAINS), theta)
    )
    x, y = ((t - theta.mean(axis=0)) / theta.std(axis=0) for t in (theta, moved))
    powers = [f(y) - f(x) for f in (lambda t: t, np.square, lambda t: t**3, np.tanh)]
    powers.append(np.prod(y, axis=1, keepdims=True) - np.prod(x, axis=1, keepdims=True))
    change = np.concatenate(powers, axis=1)
    z = change.mean(axis=0) / change.std(axis=0) * np.sqrt(CHAINS)
    fresh = exact.problem.sample_at(rng, np.full(CHAINS, LAM))
    tests = list(2.0 * stats.norm.sf(np.abs(z)))
    tests += [stats.ks_2samp(moved[:, j], fresh[:, j], method="asymp").pvalue for j in range(theta.shape[1])]
    return float(min(tests)) * len(tests), float(np.mean(np.all(moved == theta, axis=1)))


# Step sizes that reject between a fifth and two fifths.
STEPS = {"mixture": 1.3, "beta_binomial": 0.6, "correlated": 0.57, "legs": 1.2}


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_one_move_from_the_exact_law_stays_in_it(name: str, steps: int) -> None:
    p_value, rejected = one_move(name, full=steps == 1, step=STEPS[name], steps=steps)
    assert p_value > ACCEPTED
    assert 0.15 < rejected < 0.45


def wrong_sign_of_kinetic_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hmc.propose

    def wrong(*args: object) -> hmc.Proposal:
        end = right(*args)  # type: ignore[arg-type]
        return end._replace(kinetic_fall=-end.kinetic_fall)

    monkeypatch.setattr(hmc, "propose", wrong)


def always_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmc, "acceptance", lambda ratio: jnp.ones_like(ratio))


def momentum_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hmc.propose
    monkeypatch.setattr(hmc, "propose", lambda momentum, *args: right(1.3 * momentum, *args))


@pytest.mark.parametrize("plant", [wrong_sign_of_kinetic_energy, always_accept, momentum_too_large])
@pytest.mark.parametrize("name", ["beta_binomial", "correlated"])
def test_a_planted_bug_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert one_move(name, full=True, step=STEPS[name], steps=2)[0] < REFUSED


def test_a_wrong_gradient_costs_acceptance_and_not_exactness(monkeypatch: pytest.MonkeyPatch) -> None:
    """The force may be any function of z: only the acceptance must be right."""
    right = AffineMap.adjoint
    monkeypatch.setattr(AffineMap, "adjoint", lambda self, v: 0.5 * right(self, v))
    p_value, rejected = one_move("correlated", full=True, step=STEPS["correlated"], steps=2)
    assert p_value > ACCEPTED
    assert rejected > 0.1
