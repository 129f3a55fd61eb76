"""The look beyond an interval: mass there shows, with its size and its place, and where there is none nothing does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from synthetic import nothing_to_tell

from pathtemp.engines.path.chains import CELLS, PathChains
from pathtemp.engines.path.evidence import _reference_ratios
from pathtemp.engines.path.probe import PLACES, mass_beyond
from pathtemp.engines.path.targets import TargetMarginal
from pathtemp.engines.path.transport import flat_transport
from pathtemp.errors import InfiniteDensity
from pathtemp.paths.function import FunctionPath
from pathtemp.result.run import Counts
from pathtemp.settings import Settings
from pathtemp.verdict.travel import check_beyond

INTERVAL = (-5.0, 5.0)
CHAINS = 16


def log_q(theta: jax.Array, lam: jax.Array, share: jax.Array, place: jax.Array, edge: jax.Array) -> jax.Array:
    """lam ~ (1 - share) normal(0, 1) + share normal(place, .7); theta given lam of scale exp(lam / 2).

    Beyond ``edge`` it is +inf.
    """
    one = jnp.log1p(-share) - 0.5 * lam**2
    two = jnp.log(share) - 0.5 * ((lam - place) / 0.7) ** 2 - jnp.log(0.7)
    finite = jnp.logaddexp(one, two) - 0.5 * jnp.sum((theta * jnp.exp(-0.5 * lam)) ** 2) - lam
    return jnp.where(lam > edge, jnp.inf, finite)


@cache
def path() -> FunctionPath:
    return FunctionPath(log_q)


def chains(share: float, place: float, edge: float = np.inf) -> PathChains:
    """Chains on their exact transport, at draws of theta given lam spread over the interval."""
    rng = np.random.default_rng(0)
    learned = flat_transport(INTERVAL, rng.normal(size=(100, 2)))
    exact = np.tile(0.5 * learned.lam[:, None], (1, 2))
    learned = replace(learned, location=np.zeros_like(exact), log_diagonal=exact)
    lam = rng.uniform(*INTERVAL, CHAINS)
    theta = np.exp(0.5 * lam)[:, None] * rng.normal(size=(CHAINS, 2))
    args = (jnp.asarray(share), jnp.asarray(place), jnp.asarray(edge))
    settings = Settings(chains=CHAINS, iterations=4)
    how = {"target": TargetMarginal("uniform"), "settings": settings, "seed": 0, "watch": nothing_to_tell()}
    made = PathChains(path(), args, ends=(0.0, 0.0), **how)
    made.begin(learned, theta, lam)
    return made


def exact_log_z(share: float, place: float) -> np.ndarray:
    lam = np.linspace(*INTERVAL, CELLS + 1)
    return np.log((1 - share) * stats.norm.pdf(lam) + share * stats.norm.pdf(lam, place, 0.7))


@pytest.mark.parametrize(("place", "said"), [(10.0, "near 10 on"), (-9.0, "near -9.06 on")])
def test_a_mode_beyond_either_end_shows_with_its_size_and_place(place: float, said: str) -> None:
    made = chains(0.2, place)
    share, where, spent = mass_beyond(made, exact_log_z(0.2, place))
    check = check_beyond(share, where)
    assert not check.passed
    # On the exact transport every orbit rises alike, so that the sum over the places has the error of quadrature alone.
    assert check.value == pytest.approx(0.25, rel=0.02)
    assert said in check.message
    assert spent == Counts(0, 2 * CHAINS * (PLACES + 1))
    assert made.counts == Counts()


def test_nothing_shows_where_nothing_is() -> None:
    check = check_beyond(*mass_beyond(chains(1e-9, 10.0), exact_log_z(1e-9, 10.0))[:2])
    assert check.passed
    assert check.message == ""
    # The two tails of a normal beyond five standard deviations hold 6e-7; the sum counts the place at the edge whole.
    assert check.value < 1e-5 < check.threshold


def test_a_rise_along_single_orbits_is_no_mass() -> None:
    """Of 16 orbits one rises far: the mean of the ratios is its own, and the middle one does not follow."""
    made = chains(1e-9, 10.0)
    theta = np.asarray(made.state.theta).copy()

    def lone(theta: jax.Array, lam: jax.Array, *args: jax.Array) -> jax.Array:
        return log_q(theta, lam, *args) + jnp.where(theta[0] * jnp.exp(-0.5 * lam) > 20.0, lam**2, 0.0)

    theta[3] = 30.0 * np.exp(0.5 * np.asarray(made.lam_of(made.state.a))[3])
    made.path = FunctionPath(lone)
    made.state = made.state._replace(theta=jnp.asarray(theta))
    assert check_beyond(*mass_beyond(made, exact_log_z(1e-9, 10.0))[:2]).passed


def test_plus_infinity_beyond_the_interval_is_an_error_with_its_place() -> None:
    """No chain ever comes there; the look does."""
    found = chains(0.0, 0.0, edge=7.0)
    with pytest.raises(InfiniteDensity, match=r"\+inf at the unconstrained point") as met:
        mass_beyond(found, exact_log_z(0.0, 0.0))
    assert met.value.theta[-1] > 7.0


def test_plus_infinity_at_the_draws_of_the_bridge_is_one_as_well() -> None:
    """Which come from the reference, and lie where no chain need have been."""
    flat = np.zeros(CELLS + 1)
    assert np.isfinite(_reference_ratios(chains(0.0, 0.0), flat, count=64)).all()
    with pytest.raises(InfiniteDensity, match=r"\+inf at the unconstrained point") as met:
        _reference_ratios(chains(0.0, 0.0, edge=2.0), flat, count=64)
    assert met.value.theta[-1] > 2.0
