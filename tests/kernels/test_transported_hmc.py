"""One iteration of the default kernel leaves the joint law invariant, exactly, whatever its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stationary import (
    ACCEPTED,
    CHAINS,
    FEW_FAST,
    QUICK,
    REFUSED,
    Plant,
    exact_draws,
    law,
    rough_transport,
    with_bugs,
    worst_p_value,
)

from pathtemp._types import Key, Sampler
from pathtemp.kernels import hmc, lam_given_theta, strata, transported_hmc
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.legs import Legs, LegTransport
from pathtemp.kernels.rejected import kinds
from pathtemp.kernels.transport import AffineMap, Transport
from pathtemp.kernels.transported_hmc import ChainState, KernelParameters, Step
from pathtemp.paths.geometric import GeometricPath
from pathtemp.paths.links import BASE_END, TARGET_START, MetricLink
from pathtemp.testing.calibration import assert_close

POINTS = 6
LOG_STEP = {
    "mixture": np.log([1.6, 1.2, 1.2, 1.0]),
    "beta_binomial": np.log([1.2, 0.9, 0.6, 0.45]),
    "correlated": np.log([0.7, 0.6, 0.5, 0.45]),
    "legs": np.log([1.3, 1.3, 1.2, 1.2]),
}
Kernel = Callable[..., tuple[ChainState, Step]]


def parameters(name: str, *, full: bool = True, orbit: bool = True, pinned: bool = False) -> KernelParameters:
    exact = law(name)
    base = exact.problem.model.log_base
    legs = base.count if isinstance(base, Legs) else 0
    return KernelParameters(
        exact.link,
        exact.prior,
        rough_transport(exact.problem.model.dim, full=full and not legs, size=0.4, seed=1),
        jnp.asarray(LOG_STEP[name]),
        orbit=jnp.asarray(orbit),
        pinned=jnp.asarray(pinned),
        frozen=jnp.asarray(True),
        leg_step=jnp.linspace(-0.3, 0.3, legs) if legs else None,
    )


@cache
def kernel(name: str, *, sampled: bool, plants: Sequence[Plant] = ()) -> Kernel:
    """The compiled iteration of many chains: (bug, keys, state, steps, spacing, parameters)."""
    exact = law(name)

    def iterate(key: Key, state: ChainState, steps: int, spacing: float, parameters: KernelParameters) -> object:
        return transported_hmc.iterate(
            key,
            state,
            steps,
            spacing,
            parameters,
            path=exact.path,
            sample_base=base_of(name) if sampled else None,
            lattice_points=POINTS,
        )

    return jax.jit(jax.vmap(with_bugs(iterate, plants), (None, 0, 0, None, None, None)), compiler_options=QUICK)


def base_of(name: str) -> Sampler:
    sample = law(name).problem.model.sample_base
    assert sample is not None
    return sample


@cache
def start(name: str) -> ChainState:
    theta, a = exact_draws(law(name), 0)
    energies = jax.jit(jax.vmap(law(name).path.energies))(theta)
    return ChainState(jnp.asarray(theta), jnp.asarray(a), energies)


def move(
    name: str,
    iterate: Kernel,
    chosen: KernelParameters,
    *,
    steps: int = 2,
    width: float = 1.0,
    iterations: int = 1,
    bug: int = -1,
) -> tuple[float, ChainState, Step]:
    """Move chains from the exact law: the worst p-value, where they are, and what was done last."""
    state = start(name)
    for i in range(iterations):
        keys = jax.random.split(jax.random.key(7 + i), CHAINS)
        state, made = iterate(bug, keys, state, steps, 2.0 * width / POINTS, chosen)
    state, made = jax.device_get((state, made))
    return worst_p_value(law(name), exact_draws(law(name), 0), (state.theta, state.a)), state, made


def rejected_share(made: Step) -> float:
    """Share of the HMC moves (not the exact draws) that are rejected on average."""
    return float(1.0 - made.acceptance[~made.regenerated].mean())


def slow(*values: object) -> object:
    """A case that would compile one more program."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "sampled", "full", "orbit", "steps", "width"),
    [
        ("mixture", True, True, True, 1, 1.0),
        ("mixture", True, True, True, 3, 0.125),
        slow("beta_binomial", True, True, True, 3, 1.0),
        slow("beta_binomial", True, True, False, 1, 1.0),
        slow("beta_binomial", False, True, True, 2, 0.5),
        ("correlated", True, True, True, 1, 0.5),
        ("correlated", True, True, True, 3, 1.0),
        ("correlated", False, False, True, 2, 0.25),
        ("correlated", False, False, False, 2, 1.0),
        slow("correlated", False, True, True, 2, 0.125),
        slow("correlated", True, False, True, 2, 0.5),
        ("legs", True, False, True, 2, 1.0),
        ("legs", True, False, True, 1, 0.25),
        slow("legs", False, False, False, 2, 1.0),
    ],
)
def test_one_iteration_from_the_exact_law_stays_in_it(
    name: str, sampled: bool, full: bool, orbit: bool, steps: int, width: float
) -> None:
    chosen = parameters(name, full=full, orbit=orbit)
    p_value, _, made = move(name, kernel(name, sampled=sampled), chosen, steps=steps, width=width)
    assert p_value > ACCEPTED
    # Standard errors of these means are below .005.
    assert 0.1 < rejected_share(made) < 0.45
    assert np.any(made.regenerated) == sampled
    assert np.any(made.orbit_jump > 0) == orbit


@pytest.mark.parametrize("name", FEW_FAST)
def test_a_pinned_chain_keeps_its_a_and_the_law_of_theta_given_it(name: str) -> None:
    chosen = parameters(name, pinned=True)
    p_value, state, made = move(name, kernel(name, sampled=True), chosen)
    assert p_value > ACCEPTED
    np.testing.assert_array_equal(state.a, start(name).a)
    assert np.all(made.plain_jump == 0)
    assert np.all(made.orbit_jump == 0)
    # Seven in ten move or more, with a standard error of .003.
    assert np.mean(np.any(state.theta != start(name).theta, axis=1)) > 0.5


def test_many_iterations_stay_in_the_law_and_carry_their_energies() -> None:
    name = "correlated"
    p_value, state, _ = move(name, kernel(name, sampled=True), parameters(name), width=0.5, iterations=6)
    assert p_value > ACCEPTED
    energies = jax.jit(jax.vmap(law(name).path.energies))(state.theta)
    np.testing.assert_allclose(state.energies, energies, rtol=1e-9, atol=1e-9)


def test_regeneration_is_a_fresh_base_draw_at_lam_zero_and_nowhere_else() -> None:
    name = "mixture"
    chosen = parameters(name, orbit=False)
    _, state, made = move(name, kernel(name, sampled=True), chosen)
    lam = law(name).lam(np.asarray(start(name).a))
    np.testing.assert_array_equal(made.regenerated, lam <= 0)
    np.testing.assert_array_equal(made.acceptance[lam <= 0], 1.0)
    assert np.all(state.theta[lam <= 0] != start(name).theta[lam <= 0])


def test_conditional_masses_of_both_moves_average_to_the_law_of_a() -> None:
    """What the Rao-Blackwell estimators sum: each iteration's bin probabilities have the bins' exact masses as mean."""
    name = "mixture"
    exact = law(name)
    _, _, made = move(name, kernel(name, sampled=True), parameters(name))
    cells = exact.link.cells
    base = np.linspace(0.0, BASE_END, strata.strata(cells) + 1)
    positions = np.concatenate([base[:-1], np.linspace(BASE_END, TARGET_START, cells + 1), [1.0]])
    # The distribution function on the circle covers the folded one in its first half.
    expected = 2.0 * np.diff(exact.uniform(positions))
    for masses in (made.orbit_masses, made.plain_masses):
        np.testing.assert_allclose(masses.sum(axis=1), 1.0, rtol=1e-12)
        assert_close(masses.mean(axis=0), expected, masses.std(axis=0) / np.sqrt(CHAINS))


def test_points_without_density_are_counted_and_refused() -> None:
    exact = law("mixture")
    half = GeometricPath(exact.path.log_base, lambda x: jnp.where(x[0] > 0, exact.path.log_target(x), jnp.nan))
    state = start("mixture")
    here = np.asarray((state.theta[:, 0] > 0) | (exact.lam(np.asarray(state.a)) <= 0))
    state = ChainState(state.theta[here], state.a[here], jax.vmap(half.energies)(state.theta[here]))

    def iterate(key: Key, state: ChainState) -> tuple[ChainState, Step]:
        return transported_hmc.iterate(
            key,
            state,
            jnp.asarray(2),
            jnp.asarray(2.0 / POINTS),
            parameters("mixture"),
            path=half,
            sample_base=exact.problem.model.sample_base,
            lattice_points=POINTS,
        )

    keys = jax.random.split(jax.random.key(0), len(state.a))
    after, made = jax.device_get(jax.jit(jax.vmap(iterate), compiler_options=QUICK)(keys, state))
    lam = exact.lam(after.a)
    assert np.all(after.theta[lam > 0] > 0)
    assert np.any(after.theta[lam <= 0] < 0)
    assert kinds(made.rejected.code)[1].sum() > 0
    for x in (*after[:2], made.acceptance, made.orbit_masses, made.plain_masses):
        assert np.all(np.isfinite(x))


def wrong_sign_of_the_jacobian(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = Transport.orbit

    def wrong(self: Transport, z: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        thetas, log_dets = right(self, z, s)
        return thetas, jnp.where(on, -log_dets, log_dets)

    patch.setattr(Transport, "orbit", wrong)


def wrong_sign_of_log_c_given_theta(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.log_masses

    def wrong(delta: jax.Array, link: MetricLink, prior: PseudoPrior) -> tuple[jax.Array, jax.Array]:
        sign = jnp.where(on, -1.0, 1.0)
        return right(delta, link, PseudoPrior(sign * prior.log_c, sign * prior.at_base))

    patch.setattr(lam_given_theta, "log_masses", wrong)


def wrong_sign_of_kinetic_energy(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.propose

    def wrong(*args: object) -> hmc.Proposal:
        end = right(*args)  # type: ignore[arg-type]
        return end._replace(kinetic_fall=jnp.where(on, -1.0, 1.0) * end.kinetic_fall)

    patch.setattr(hmc, "propose", wrong)


def always_accept(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = hmc.acceptance
    patch.setattr(hmc, "acceptance", lambda ratio: jnp.where(on, 1.0, right(ratio)))


def inverse_forgets_the_location(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = AffineMap.inverse

    def wrong(self: AffineMap, theta: jax.Array) -> jax.Array:
        return right(replace(self, location=jnp.where(on, 0.0, 1.0) * self.location), theta)

    patch.setattr(AffineMap, "inverse", wrong)


def exact_draws_above_the_base_too(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    """Lam below .1 taken for zero by the kernel, and not by the law."""
    right = MetricLink.__call__

    def wrong(self: MetricLink, a: jax.Array) -> jax.Array:
        lam = right(self, a)
        return jnp.where(on & (lam < 0.1), 0.0, lam)

    patch.setattr(MetricLink, "__call__", wrong)


def base_draws_of_the_wrong_scale(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = base_of("correlated")
    here = sys.modules[__name__]
    patch.setattr(here, "base_of", lambda name: lambda key: jnp.where(on, 2.0, 1.0) * right(key))


BUGS: dict[Plant, float] = {
    wrong_sign_of_the_jacobian: 0.5,
    wrong_sign_of_log_c_given_theta: 1.0,
    wrong_sign_of_kinetic_energy: 1.0,
    always_accept: 1.0,
    inverse_forgets_the_location: 1.0,
    exact_draws_above_the_base_too: 1.0,
    base_draws_of_the_wrong_scale: 1.0,
}
"""Bugs, and the width of the window at which each shows."""


@pytest.mark.parametrize("bug", range(len(BUGS)), ids=[plant.__name__ for plant in BUGS])
def test_a_planted_bug_is_seen(bug: int) -> None:
    iterate, width = kernel("correlated", sampled=True, plants=tuple(BUGS)), list(BUGS.values())[bug]
    chosen = parameters("correlated")
    # The other moves repair part of what one breaks, so a few iterations let it add up; long steps break more.
    long = replace(chosen, log_step=chosen.log_step + 0.3)
    assert move("correlated", iterate, long, width=width, iterations=8, bug=bug)[0] < REFUSED


def labels_count_for_nothing(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = transported_hmc._label

    def wrong(*arguments: object) -> object:
        *rest, log_label = right(*arguments)  # type: ignore[arg-type]
        return *rest, lambda theta, energies: jnp.where(on, 0.0, log_label(theta, energies))

    patch.setattr(transported_hmc, "_label", wrong)


def labels_that_do_not_look_at_theta(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_given_theta.choose
    legs = law("legs").problem.model.log_base
    assert isinstance(legs, Legs)

    def wrong(u: jax.Array, p: jax.Array) -> jax.Array:
        chosen = right(u, p)
        return jnp.where(on, 0, chosen) if len(p) == legs.count else chosen

    patch.setattr(lam_given_theta, "choose", wrong)


def orbit_of_a_leg_without_its_volume(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = LegTransport.orbit

    def wrong(self: LegTransport, z: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        thetas, log_dets = right(self, z, s)
        return thetas, jnp.where(on, 0.0, log_dets)

    patch.setattr(LegTransport, "orbit", wrong)


LABEL_BUGS: dict[Plant, int] = {
    labels_count_for_nothing: 12,
    labels_that_do_not_look_at_theta: 3,
    orbit_of_a_leg_without_its_volume: 6,
}
"""Bugs of the labels, and the iterations after which each shows."""


@pytest.mark.parametrize(
    "bug",
    [pytest.param(k, marks=pytest.mark.slow if k else (), id=bug.__name__) for k, bug in enumerate(LABEL_BUGS)],
)
def test_a_bug_planted_in_the_labels_is_seen(bug: int) -> None:
    # Without exact draws of the base, which repair what the labels break, and with step sizes that differ much.
    iterate, iterations = kernel("legs", sampled=False, plants=tuple(LABEL_BUGS)), list(LABEL_BUGS.values())[bug]
    chosen = parameters("legs")
    assert chosen.leg_step is not None
    uneven = replace(chosen, leg_step=0.7 + jnp.linspace(-2.0, 2.0, len(chosen.leg_step)))
    assert move("legs", iterate, uneven, iterations=iterations, bug=bug)[0] < REFUSED
