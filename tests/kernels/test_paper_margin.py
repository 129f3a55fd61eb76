"""The paper's kernel along a margin leaves q(theta, lam) exp(bias(lam)) on an interval invariant, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from stationary import ACCEPTED, QUICK, REFUSED, Plant, uniforms_p_value, with_bugs

from pathtemp.kernels import margin_nuts as paper
from pathtemp.model.layout import Layout
from pathtemp.paths.margin import Margin, MarginLogQ, SolvedCoordinate
from pathtemp.paths.pseudoprior import Kernels, PiecewiseLinear

CHAINS, KEPT = 10_000, 6
LOW, HIGH, SD = -4.0, 4.0, 0.8
RATIO = Margin(lambda p: p["x"] * jnp.exp(-p["y"]), lambda v, p: v * jnp.exp(p["y"]), replaces="x")
COORDINATES = SolvedCoordinate(RATIO, Layout({"x": (), "y": ()}), 0)
T = np.linspace(0.0, 1.0, 41)
BIAS = paper.Bias(
    jnp.asarray(LOW),
    jnp.asarray(HIGH),
    Kernels.fit(T, 1.5 * np.sin(5.0 * T), kernels=4),
    PiecewiseLinear.fit(T, -6.0 * (T - 0.5) ** 2 + 1.5),
)


def log_target(flat: jax.Array) -> jax.Array:
    """Lam = x exp(-y) and y are independent normals of standard deviations 1 and .8."""
    x, y = flat
    return -0.5 * (x * jnp.exp(-y)) ** 2 - y - 0.5 * (y / SD) ** 2


class HeldWarmUp(NamedTuple):
    """In place of the warm-up: the chain where it starts, with a step size and a mass that were chosen before."""

    joint: Callable[[jax.Array], jax.Array]

    def run(self, key: jax.Array, position: jax.Array, count: int) -> Any:
        held = {"step_size": jnp.asarray(0.6), "inverse_mass_matrix": jnp.array([0.6, 0.5])}
        nothing_met = jnp.zeros(count, int), jnp.zeros(count, int), jnp.zeros((count, len(position)))
        return (blackjax.nuts.init(position, self.joint), held), nothing_met


@cache
def program(plants: Sequence[Plant] = ()) -> Callable[..., paper.ChainDraws]:
    """The compiled transitions of many chains: (bug, seed, number, starts, bias)."""

    def adaptation(*arguments: jax.Array) -> paper.ChainDraws:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blackjax, "window_adaptation", lambda _kernel, joint, **_options: HeldWarmUp(joint))
            log_q = MarginLogQ(log_target, COORDINATES)
            return paper.make_adaptation(log_q, (LOW, HIGH), KEPT, max_depth=4)(*arguments)[0]  # type: ignore[arg-type]

    return jax.jit(with_bugs(adaptation, plants), compiler_options=QUICK)


@cache
def law_of_lam() -> tuple[np.ndarray, np.ndarray]:
    """Lam, and its exact distribution function."""
    lam = np.linspace(LOW, HIGH, 20_001)
    density = np.exp(-0.5 * lam**2 + np.asarray(jax.vmap(BIAS)(jnp.asarray(lam))))
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return lam, mass / mass[-1]


def moved(plants: Sequence[Plant] = (), bug: int = -1) -> tuple[float, paper.ChainDraws]:
    """Move chains from the exact law: the worst p-value, and what was kept."""
    rng = np.random.default_rng(0)
    lam_at, cdf = law_of_lam()
    # The kernel moves starts in the outer hundredths of the interval inward; next to none are there.
    assert np.interp(LOW + 0.01 * (HIGH - LOW), lam_at, cdf) < 1e-4
    assert 1.0 - np.interp(HIGH - 0.01 * (HIGH - LOW), lam_at, cdf) < 1e-4
    lam, y = np.interp(rng.uniform(size=CHAINS), cdf, lam_at), SD * rng.normal(size=CHAINS)
    starts = np.column_stack([lam * np.exp(y), y])
    seed = np.uint32(rng.integers(2**31))
    draws = jax.device_get(program(plants)(bug, seed, np.uint32(0), jnp.asarray(starts), BIAS))
    last = np.column_stack([np.interp(draws.lam[:, -1], lam_at, cdf), stats.norm.cdf(draws.theta[:, -1, 0] / SD)])
    return uniforms_p_value(last), draws


def test_transitions_from_the_exact_law_stay_in_it() -> None:
    p_value, draws = moved()
    assert p_value > ACCEPTED
    # Successive draws are nearly independent; their mean distance is about 1, with a standard error of .01.
    assert np.mean(np.abs(np.diff(draws.lam, axis=1))) > 0.3
    # U = dlog q/dlam: -lam for this target.
    np.testing.assert_allclose(draws.u, -draws.lam, atol=1e-9)


def no_jacobian_of_the_interval(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = jax.nn.log_sigmoid
    patch.setattr(jax.nn, "log_sigmoid", lambda b: jnp.where(on, 0.0, right(b)))


def no_jacobian_of_the_margin(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = SolvedCoordinate.log_jacobian
    patch.setattr(
        SolvedCoordinate, "log_jacobian", lambda self, theta, lam: jnp.where(on, 0.0, right(self, theta, lam))
    )


def wrong_sign_of_the_bias(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = paper.Bias.__call__
    patch.setattr(paper.Bias, "__call__", lambda self, lam: jnp.where(on, -1.0, 1.0) * right(self, lam))


BUGS = (no_jacobian_of_the_interval, no_jacobian_of_the_margin, wrong_sign_of_the_bias)


@pytest.mark.parametrize("bug", range(len(BUGS)), ids=[plant.__name__ for plant in BUGS])
def test_a_planted_bug_is_seen(bug: int) -> None:
    assert moved(BUGS, bug)[0] < REFUSED
