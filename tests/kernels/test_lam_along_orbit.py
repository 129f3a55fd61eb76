"""The move along the orbit leaves the joint law invariant whatever the transport, on windows of every width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
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

from pathtemp.kernels import lam_along_orbit
from pathtemp.kernels.lam_given_theta import PseudoPrior
from pathtemp.kernels.transport import Transport
from pathtemp.paths.links import unit

WINDOWS = (1.0, 0.5, 0.25, 0.125)


Mover = Callable[..., lam_along_orbit.OrbitMove]


@cache
def mover(name: str, *, full: bool = True, points: int = 8, plants: Sequence[Plant] = ()) -> Mover:
    """The compiled move of many chains: (bug, u, a, theta, spacing)."""
    exact = law(name)
    transport = rough_transport(exact.problem.model.dim, full=full)

    def move(u: jax.Array, a: jax.Array, theta: jax.Array, spacing: jax.Array) -> lam_along_orbit.OrbitMove:
        here = lam_along_orbit.Point(a, theta, transport.at(unit(a)).inverse(theta), exact.path.energies(theta))
        lattice = lam_along_orbit.Lattice(spacing, points, exact.link, exact.prior)
        return lam_along_orbit.move(u, here, lattice, transport=transport, evaluate=exact.path.energies)

    return jax.jit(jax.vmap(with_bugs(move, plants), (None, 0, 0, 0, None)), compiler_options=QUICK)


def one_move(
    name: str,
    *,
    full: bool = True,
    width: float = 1.0,
    points: int = 8,
    plants: Sequence[Plant] = (),
    bug: int = -1,
) -> tuple[float, lam_along_orbit.OrbitMove]:
    """Move chains from the exact law once: the worst p-value, and the moves."""
    theta, a = start = exact_draws(law(name), 0)
    u = jax.random.uniform(jax.random.key(1), (CHAINS, 2))
    move = mover(name, full=full, points=points, plants=plants)
    moved = jax.device_get(move(bug, u, a, theta, 2.0 * width / points))
    return worst_p_value(law(name), start, (moved.theta, moved.a)), moved


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("name", FEW_FAST)
def test_one_move_from_the_exact_law_stays_in_it(name: str, width: float) -> None:
    p_value, moved = one_move(name, width=width)
    assert p_value > ACCEPTED
    # A half and more move, with a standard error of .004.
    assert np.mean(moved.a != exact_draws(law(name), 0)[1]) > 0.4


@pytest.mark.parametrize(
    "points", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(16, marks=pytest.mark.slow)]
)
def test_any_number_of_points_and_a_low_rank_transport(points: int) -> None:
    assert one_move("correlated", full=False, points=points, width=0.5)[0] > ACCEPTED


def test_the_chosen_point_lies_on_the_orbit_and_carries_its_own_energies() -> None:
    exact, transport = law("correlated"), rough_transport(3, full=True)
    _, moved = one_move("correlated")
    theta, a = exact_draws(exact, 0)
    first = np.flatnonzero(moved.a != a)[:50]

    @jax.jit
    @jax.vmap
    def along(a: jax.Array, theta: jax.Array, to: jax.Array) -> tuple[jax.Array, jax.Array]:
        there = transport.at(unit(to)).forward(transport.at(unit(a)).inverse(theta))
        return there, exact.path.energies(there)

    there, energies = along(a[first], theta[first], moved.a[first])
    np.testing.assert_allclose(moved.theta[first], there, rtol=1e-10)
    np.testing.assert_allclose(moved.energies[first], energies, rtol=1e-10)


def test_the_lattice_is_a_window_of_the_circle_that_holds_the_start_at_every_place() -> None:
    points, width = 8, 0.25
    _, moved = one_move("mixture", points=points, width=width)
    lattice, a = moved.lattice, exact_draws(law("mixture"), 0)[1]
    np.testing.assert_array_equal(lattice[:, 0], a)
    assert np.all((lattice >= 0) & (lattice < 2))
    steps = np.sort(np.round((np.mod(lattice - a[:, None] + 1.0, 2.0) - 1.0) / (2.0 * width / points)), axis=1)
    np.testing.assert_array_equal(np.diff(steps, axis=1), 1)
    place = -steps[:, 0]
    assert stats.chisquare(np.bincount(place.astype(int), minlength=points)).pvalue > ACCEPTED
    np.testing.assert_allclose(moved.probability.sum(axis=1), 1.0, rtol=1e-12)


def test_a_point_without_density_is_never_chosen() -> None:
    exact, transport = law("mixture"), rough_transport(1, full=True, size=3.0)

    def half(theta: jax.Array) -> jax.Array:
        return jnp.where(theta[0] > 0, exact.path.energies(theta), jnp.array([-jnp.inf, jnp.nan]))

    @jax.jit
    @jax.vmap
    def move(u: jax.Array, a: jax.Array, theta: jax.Array) -> lam_along_orbit.OrbitMove:
        here = lam_along_orbit.Point(a, theta, transport.at(unit(a)).inverse(theta), half(theta))
        lattice = lam_along_orbit.Lattice(jnp.asarray(0.25), 8, exact.link, exact.prior)
        return lam_along_orbit.move(u, here, lattice, transport=transport, evaluate=half)

    theta, a = exact_draws(exact, 0)
    positive = theta[:, 0] > 0
    u = jax.random.uniform(jax.random.key(0), (CHAINS, 2))
    moved = jax.device_get(move(u[positive], a[positive], theta[positive]))
    assert np.all(moved.theta > 0)
    assert np.all(np.isfinite(moved.energies))
    assert np.all(np.isfinite(moved.probability))
    assert np.mean(np.any(moved.probability == 0, axis=1)) > 0.1


def jacobian_times(factor: float) -> Plant:
    def plant(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
        right = Transport.orbit

        def wrong(self: Transport, z: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
            thetas, log_dets = right(self, z, s)
            return thetas, jnp.where(on, factor, 1.0) * log_dets

        patch.setattr(Transport, "orbit", wrong)

    return plant


def wrong_sign_of_log_c(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = PseudoPrior.__call__
    patch.setattr(PseudoPrior, "__call__", lambda self, a: jnp.where(on, -1.0, 1.0) * right(self, a))


def window_always_begins_at_a(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_along_orbit.move

    def wrong(u: jax.Array, *args: object, **kw: object) -> lam_along_orbit.OrbitMove:
        return right(u.at[0].multiply(jnp.where(on, 0.0, 1.0)), *args, **kw)  # type: ignore[arg-type]

    patch.setattr(lam_along_orbit, "move", wrong)


def theta_stays_behind(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    right = lam_along_orbit.move

    def wrong(u: jax.Array, here: lam_along_orbit.Point, *args: object, **kw: object) -> lam_along_orbit.OrbitMove:
        moved = right(u, here, *args, **kw)  # type: ignore[arg-type]
        return moved._replace(theta=jnp.where(on, here.theta, moved.theta))

    patch.setattr(lam_along_orbit, "move", wrong)


def atom_without_its_own_value(patch: pytest.MonkeyPatch, on: jax.Array) -> None:
    """The limit of log c at lam -> 0+ taken at the atom too."""
    right = PseudoPrior.__call__

    def wrong(self: PseudoPrior, a: jax.Array) -> jax.Array:
        continued = jnp.interp(unit(a), jnp.linspace(0, 1, len(self.log_c)), self.log_c)
        return jnp.where(on, continued, right(self, a))

    patch.setattr(PseudoPrior, "__call__", wrong)


BUGS: dict[str, Plant] = {
    "no jacobian": jacobian_times(0.0),
    "wrong sign of the jacobian": jacobian_times(-1.0),
    "wrong sign of log c": wrong_sign_of_log_c,
    "window always begins at a": window_always_begins_at_a,
    "theta stays behind": theta_stays_behind,
    "atom without its own value": atom_without_its_own_value,
}
PLANTS = tuple(BUGS.values())


def with_bug(name: str, width: float) -> float:
    """The worst p-value of one move with a bug planted."""
    return one_move("correlated", width=width, plants=PLANTS, bug=list(BUGS).index(name))[0]


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("no jacobian", 1.0),
        ("no jacobian", 0.125),
        ("wrong sign of the jacobian", 1.0),
        ("wrong sign of log c", 1.0),
        ("window always begins at a", 0.25),
        ("window always begins at a", 0.125),
        ("theta stays behind", 1.0),
        ("atom without its own value", 1.0),
    ],
)
def test_a_planted_bug_is_seen(name: str, width: float) -> None:
    assert with_bug(name, width) < REFUSED


def test_the_place_of_the_window_does_not_matter_when_it_spans_the_circle() -> None:
    assert with_bug("window always begins at a", 1.0) > ACCEPTED
