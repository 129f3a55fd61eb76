"""The joint kernel leaves psi^(1 - lam) q^lam / c(lam) invariant, exactly, and counts what it spends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, QUICK, REFUSED, Plant, uniforms_p_value, with_bugs

from pathtemp.kernels import joint_nuts
from pathtemp.kernels.rejected import kinds
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import CubicLink
from pathtemp.paths.pseudoprior import Kernels

CENTRE, SD, LOG_SCALE = np.array([1.5, -0.6]), np.array([0.5, 1.4]), 0.7
LOG_C = Kernels.fit(np.linspace(0, 1, 50), 1.5 * np.linspace(0, 1, 50) - 3.0 * np.linspace(0, 1, 50) ** 2, kernels=2)
FLAT = Kernels.fit([0.0, 0.5, 1.0], np.zeros(3), kernels=2)
NORMALS = GeometricPath(
    lambda x: -0.5 * jnp.sum(x**2) - jnp.log(2 * jnp.pi),
    lambda x: -0.5 * jnp.sum(((x - CENTRE) / SD) ** 2) + LOG_SCALE,
)


class ExactJoint:
    """Exact law of (theta, a) for two independent normals at each end, and any log c."""

    a = np.linspace(0.0, 2.0, 200_001)

    def __init__(self) -> None:
        lam = np.asarray(CubicLink()(self.a))
        precision, mean = self.theta_given(lam)
        log_z = (
            lam * LOG_SCALE
            + lam * np.log(2 * np.pi)
            - 0.5 * np.sum(np.log(precision) + lam[:, None] * (CENTRE / SD) ** 2 - precision * mean**2, axis=1)
        )
        density = np.exp(log_z - np.asarray(LOG_C(jnp.asarray(lam))))
        mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        self.cdf = mass / mass[-1]

    @staticmethod
    def theta_given(lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision = (1 - lam)[:, None] + lam[:, None] / SD**2
        return precision, lam[:, None] * CENTRE / SD**2 / precision

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        a = np.interp(rng.uniform(size=n), self.cdf, self.a)
        precision, mean = self.theta_given(np.asarray(CubicLink()(a)))
        theta = mean + rng.normal(size=mean.shape) / np.sqrt(precision)
        return np.asarray(jax.vmap(joint_nuts.position_of)(jnp.asarray(theta), jnp.asarray(a)))

    def uniforms(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The Rosenblatt transform: independent uniforms exactly when (theta, a) has the law."""
        precision, mean = self.theta_given(np.asarray(CubicLink()(a)))
        return np.column_stack([np.interp(a, self.a, self.cdf), stats.norm.cdf((theta - mean) * np.sqrt(precision))])


CHAINS = 10_000


def mover(plants: Sequence[Plant] = ()) -> Callable[..., jax.Array]:
    """The compiled transition of many chains: (bug, keys, positions)."""

    def move(key: jax.Array, position: jax.Array) -> jax.Array:
        joint = joint_nuts.joint_log_density(NORMALS)
        # Shallow trees: without the Jacobian a is improper, and the trees of all chains would be as deep as may be.
        step = joint_nuts.transition(
            joint, LOG_C, step_size=jnp.asarray(0.5), inverse_mass=jnp.array([0.6, 1.2, 2.0]), max_depth=4
        )
        state = blackjax.nuts.init(position, lambda x: joint(x, LOG_C))
        return step(key, state)[0].position

    return jax.jit(jax.vmap(with_bugs(move, plants), (None, 0, 0)), compiler_options=QUICK)


kept_mover = cache(mover)


def moved_chains(plants: Sequence[Plant] = (), *, bug: int = -1, transitions: int = 1) -> tuple[float, np.ndarray]:
    """Move chains from the exact law: the worst p-value, and how far a moved."""
    exact = ExactJoint()
    start = end = jnp.asarray(exact.draw(np.random.default_rng(3), CHAINS))
    for i in range(transitions):
        end = kept_mover(plants)(bug, jax.random.split(jax.random.key(4 + i), CHAINS), end)
    theta, a = jax.vmap(joint_nuts.split)(end)
    moved = np.abs(np.asarray(a - jax.vmap(joint_nuts.split)(start)[1]))
    return uniforms_p_value(exact.uniforms(np.asarray(theta), np.asarray(a))), moved


def test_one_transition_from_the_exact_law_stays_in_it() -> None:
    p_value, moved = moved_chains()
    assert p_value > ACCEPTED
    # It is .245 with a standard error of .002.
    assert moved.mean() > 0.2


def no_jacobian(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = joint_nuts.log_jacobian
    patch.setattr(joint_nuts, "log_jacobian", lambda b: jnp.where(on, 0.0, right(b)))


def wrong_sign_of_log_c(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = joint_nuts.joint_log_density

    def wrong(path: GeometricPath) -> joint_nuts.JointLogDensity:
        joint = right(path)
        return lambda x, log_c: joint(x, jax.tree.map(lambda part: jnp.where(on, -part, part), log_c))

    patch.setattr(joint_nuts, "joint_log_density", wrong)


def swapped_ends(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = joint_nuts.log_density

    def wrong(energies: jax.Array, lam: jax.Array) -> jax.Array:
        return right(jnp.where(on, jnp.flip(energies), energies), lam)

    patch.setattr(joint_nuts, "log_density", wrong)


BUGS = (no_jacobian, wrong_sign_of_log_c, swapped_ends)


@pytest.mark.parametrize("bug", range(len(BUGS)), ids=[plant.__name__ for plant in BUGS])
def test_a_planted_bug_is_seen(bug: int) -> None:
    assert moved_chains(BUGS, bug=bug, transitions=6)[0] < REFUSED


def test_gradient_of_the_joint_density_is_that_of_its_value() -> None:
    joint = joint_nuts.joint_log_density(NORMALS)
    value = jax.jit(jax.vmap(lambda x: joint(x, LOG_C)), compiler_options=QUICK)
    slope = jax.jit(jax.vmap(jax.grad(lambda x: joint(x, LOG_C))), compiler_options=QUICK)
    a = jnp.array([0.05, 0.3, 0.7, 1.0, 1.5, 1.95])
    x = np.asarray(jax.vmap(joint_nuts.position_of, (None, 0))(jnp.array([0.4, -1.1]), a))
    numeric = [(value(x + h) - value(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(slope(x), np.transpose(numeric), rtol=1e-6, atol=1e-7)


HALF_LINE = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), lambda x: jnp.sum(jnp.log(x) - x))


def test_a_density_of_zero_weight_counts_for_nothing_even_where_it_is_nan() -> None:
    joint = joint_nuts.joint_log_density(HALF_LINE)
    at_base = joint_nuts.position_of(jnp.array([-1.0]), jnp.asarray(0.05))
    value, gradient = jax.value_and_grad(joint)(at_base, LOG_C)
    assert float(value) == pytest.approx(-0.5 + float(joint_nuts.log_jacobian(at_base[-1])))
    assert float(gradient[0]) == 1.0
    assert np.isfinite(gradient[1])
    above = joint_nuts.position_of(jnp.array([-1.0]), jnp.asarray(0.3))
    assert float(joint(above, LOG_C)) == -np.inf


def run_chain(key: jax.Array, start: jax.Array, path: GeometricPath, **options: int) -> joint_nuts.Draws:
    def run(key: jax.Array, start: jax.Array) -> joint_nuts.Draws:
        return joint_nuts.run_chain(key, start, FLAT, path=path, **options)

    return jax.jit(run, compiler_options=QUICK)(key, start)


def test_a_chain_on_unequal_supports_stays_in_them() -> None:
    chain = run_chain(jax.random.key(1), jnp.array([1.0, 0.0]), HALF_LINE, draws=400)
    theta, lam = np.asarray(chain.theta[:, 0]), np.asarray(chain.lam)
    assert np.all(np.isfinite(theta))
    assert np.all(np.isfinite(chain.delta))
    assert np.all(theta[lam > 0] > 0)
    # A fifth of the draws are at the base, half of them below zero; trajectories leave the half line all the time.
    assert np.any(theta[lam == 0] < 0)
    # There the logarithm is NaN.
    assert int(np.sum(kinds(chain.met.code).nan)) > 0


def test_gradients_are_counted_as_they_are_spent() -> None:
    calls = []

    def counted(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda: calls.append(1))
        return -0.5 * jnp.sum((x - 1.0) ** 2)

    path = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), counted)
    chain = run_chain(jax.random.key(0), jnp.zeros(3), path, draws=40, max_depth=5)
    jax.block_until_ready(chain)
    jax.effects_barrier()
    # One density of each kept draw, and one of the end of each trajectory.
    assert len(calls) == int(chain.gradients) + 40 + 2 * 40
