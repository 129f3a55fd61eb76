"""Runs that cannot work: budgets too small, bases far away, narrow modes, islands without density between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from pathtemp import testing
from pathtemp._types import Array, FloatArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model


@dataclass(frozen=True)
class Scenario:
    """A problem, with a budget in gradient evaluations and a number of chains that are not enough for it.

    Without a budget the run stops by itself.
    """

    family: str
    name: str
    make: Callable[[], testing.Problem]
    budget: float | None = 3e5
    chains: int | None = None


def narrow(dim: int, *, width: float, weight: float, distance: float = 8.0) -> testing.Problem:
    """A broad normal and a narrow one of scale ``width``, under the base ``normal(0, 5)``."""
    centres = np.zeros((2, dim))
    centres[0, 0], centres[1, 0] = -2.0, distance
    name = f"narrow {dim}-d, width {width:g}, weight {weight:g}"
    return testing.gaussian_mixture([1.0 - weight, weight], centres, scales=[1.0, width], base_scale=5.0, name=name)


def far(dim: int, *, places: tuple[float, float], scales: tuple[float, float], base: float) -> testing.Problem:
    """Two normals of weights .3 and .7 at ``places`` along the first axis, far out in the base's tails."""
    centres = np.zeros((2, dim))
    centres[:, 0] = places
    return testing.gaussian_mixture([0.3, 0.7], centres, scales=scales, base_scale=base, name=f"far {dim}-d")


def islands(dim: int, *, radii: tuple[float, float], places: tuple[float, float], share: float) -> testing.Problem:
    """Two balls of constant density, -inf outside; the second holds ``share`` of the target's mass."""
    centres = np.zeros((2, dim))
    centres[:, 0] = places
    scale, shares = 3.0, np.array([1.0 - share, share])
    log_volume = 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim + 1) + dim * np.log(radii)
    heights, radius, at = jnp.asarray(np.log(shares) - log_volume), jnp.asarray(radii), jnp.asarray(centres)

    def log_base(x: Array) -> Array:
        return jnp.asarray(-0.5 * jnp.sum(x**2) / scale**2 - dim * np.log(scale * np.sqrt(2 * np.pi)))

    def log_target(x: Array) -> Array:
        inside = jnp.sum((x - at) ** 2, axis=1) < radius**2
        # The slope is nil: a constant would leave HMC no gradient to differentiate.
        return jnp.max(jnp.where(inside, heights, -jnp.inf)) + 0.0 * jnp.sum(x)

    def sample_base(key: Key) -> Array:
        return scale * jax.random.normal(key, (dim,))

    def labels(draws: FloatArray) -> testing.problem.IntArray:
        return np.argmin(np.linalg.norm(draws[:, None] - centres, axis=2), axis=1)

    model = Model(log_base, log_target, Layout({"theta": (dim,)}), sample_base, name="islands")
    return testing.Problem(name=f"islands {dim}-d", model=model, end=0.0, labels=labels, shares=shares)


def without_sampler(problem: testing.Problem) -> testing.Problem:
    """The same problem with a base that is only a density."""
    return replace(problem, model=replace(problem.model, sample_base=None))


def two_faced_base(share: float) -> testing.Problem:
    """A base of two modes that cannot be sampled, with weights 1 - share and share, to one normal over both."""
    mixture = testing.gaussian_mixture(
        [1.0 - share, share], [[-6.0, 0.0], [6.0, 0.0]], scales=[0.5, 1.0], base_scale=8.0
    )
    model = replace(
        mixture.model,
        log_base=mixture.model.log_target,
        log_target=mixture.model.log_base,
        sample_base=None,
        name="two-faced base",
    )
    return testing.Problem(name="two-faced base", model=model, end=0.0)


def _narrow(
    dim: int,
    width: float,
    weight: float,
    *,
    family: str = "narrow mode",
    budget: float | None = 3e5,
    chains: int | None = None,
) -> Scenario:
    make = partial(narrow, dim, width=width, weight=weight)
    return Scenario(family, f"{dim}-d, width {width:g}, weight {weight:g}", make, budget, chains)


SCENARIOS = (
    Scenario("small budget", "40 petals", testing.flower, 3.9e4),
    Scenario("small budget", "student modes", testing.student_modes, 6e4),
    Scenario("small budget", "unequal modes", testing.unequal_modes, 9e4),
    Scenario("small budget", "ten modes, 50-d", partial(testing.paper_mixture, 50, centre_scale=5.0), 1.8e5),
    Scenario("small budget", "logistic 10-d", partial(testing.logistic_regression, 10, 300), 4.5e4),
    Scenario("small budget", "gaussian 200-d", partial(testing.high_dimensional_gaussian, 200), 1.5e5),
    Scenario("small budget", "funnel 30-d", partial(testing.funnel, 30), 6e4),
    Scenario("far base", "1-d, 10 and -30", partial(far, 1, places=(10.0, -30.0), scales=(1.0, 2.0), base=1.0)),
    Scenario("far base", "2-d, 12 and 40", partial(far, 2, places=(12.0, 40.0), scales=(1.0, 0.5), base=1.0)),
    Scenario("far base", "5-d, 20 and -25", partial(far, 5, places=(20.0, -25.0), scales=(0.5, 2.0), base=1.0)),
    Scenario("far base", "3-d, too narrow", partial(far, 3, places=(6.0, -6.0), scales=(3.0, 2.0), base=0.3)),
    _narrow(1, 0.01, 0.5),
    _narrow(4, 0.2, 0.2),
    _narrow(5, 0.25, 0.2),
    _narrow(6, 0.3, 0.4),
    _narrow(8, 0.4, 0.5),
    _narrow(1, 0.003, 0.2),
    _narrow(2, 0.2, 0.1),
    _narrow(2, 0.1, 0.5),
    _narrow(2, 0.05, 0.3),
    _narrow(2, 0.02, 0.1),
    _narrow(3, 0.2, 0.3),
    _narrow(3, 0.1, 0.5),
    _narrow(3, 0.05, 0.3),
    _narrow(5, 0.4, 0.1),
    _narrow(5, 0.3, 0.5),
    _narrow(5, 0.2, 0.3),
    _narrow(10, 0.6, 0.3),
    _narrow(20, 0.8, 0.5),
    _narrow(2, 0.1, 0.5, family="few chains", chains=8),
    _narrow(2, 0.05, 0.3, family="few chains", chains=4),
    _narrow(3, 0.2, 0.3, family="few chains", chains=8),
    _narrow(5, 0.3, 0.5, family="few chains", chains=8),
    _narrow(2, 0.05, 0.3, family="no budget", budget=None),
    _narrow(3, 0.1, 0.5, family="no budget", budget=None),
    _narrow(5, 0.3, 0.5, family="no budget", budget=None),
    _narrow(2, 0.05, 0.3, chains=256, budget=3e5),
    Scenario("islands", "1-d, .02 wide", partial(islands, 1, radii=(1.0, 0.01), places=(-1.0, 5.0), share=0.5)),
    Scenario("islands", "2-d, .1 wide", partial(islands, 2, radii=(1.0, 0.05), places=(-1.0, 5.0), share=0.4)),
    Scenario("islands", "3-d, .4 wide", partial(islands, 3, radii=(1.5, 0.2), places=(-1.0, 4.0), share=0.6)),
    Scenario("no sampler", "narrow 2-d", lambda: without_sampler(narrow(2, width=0.1, weight=0.5)), 3e5),
    Scenario("no sampler", "two-faced base", partial(two_faced_base, 0.2), 3e5),
)
