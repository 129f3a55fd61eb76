"""A base for a target that came without one: a heavy-tailed cover of the modes that ascents from far and near find."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray, Key, LogDensity
from pathtemp.bases import Automatic
from pathtemp.errors import InputError
from pathtemp.inputs import check_density, naming
from pathtemp.model import Model
from pathtemp.modes.search import BATCH, Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.run import Counts

RADII = (1.0, 10.0, 100.0)
"""Scales of the normals around the origin from which the ascents start."""

DF = 3
"""Degrees of freedom of the cover."""

WIDER = 3.0
"""Scale of the cover relative to that of all modes together."""

MOST_GRADIENTS = 10_000
"""Gradient evaluations of its search, where the budget does not say fewer."""

LEAST_GRADIENTS = 1024 * len(RADII)
"""Gradient evaluations of its search at least, enough for a few dozen starts at each scale."""

SHARE = 0.2
"""Share of the budget for its search."""


@dataclass(frozen=True, eq=False)
class Cover:
    """A multivariate Student-t with a scale for each coordinate; callable on one point (dim,)."""

    centre: Array
    scale: Array

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        dim = theta.shape[0]
        square = jnp.sum(((theta - self.centre) / self.scale) ** 2)
        gammas = jax.scipy.special.gammaln(0.5 * (DF + dim)) - jax.scipy.special.gammaln(0.5 * DF)
        constant = gammas - 0.5 * dim * float(np.log(DF * np.pi)) - jnp.sum(jnp.log(self.scale))
        return constant - 0.5 * (DF + dim) * jnp.log1p(square / DF)

    def sample(self, key: Key) -> Array:
        """One draw (dim,)."""
        dim = self.centre.shape[0]
        normal = jax.random.normal(key, (dim + DF,))
        return self.centre + self.scale * normal[:dim] * jnp.sqrt(DF / jnp.sum(normal[dim:] ** 2))


@dataclass(frozen=True)
class Reference:
    """A base, how it was made in words, and what that cost."""

    cover: Cover
    about: str
    counts: Counts


def reference(log_target: LogDensity, dim: int, *, seed: int, most_gradients: float = MOST_GRADIENTS) -> Reference:
    """A wide base for ``log_target`` on R^dim, from the modes that ascents around the origin find; warns how far.

    >>> made = reference(lambda x: -0.5 * jnp.sum((x - 50.0) ** 2), 2, seed=0)
    >>> draw = made.cover.sample(jax.random.key(0))
    >>> draw.shape, bool(jnp.isfinite(made.cover(draw)))
    ((2,), True)
    """
    rng = np.random.default_rng([seed, 5])
    far = Cover(jnp.zeros(dim), jnp.full(dim, RADII[-1]))
    search = Search(GeometricPath(far, log_target), scale=np.full(dim, RADII[1]), seed=seed)
    search.room = most_gradients
    for radius in RADII:
        starts = radius * rng.standard_normal((BATCH, dim))
        search.climb(starts, found_by="origin", random=True, most_gradients=most_gradients / len(RADII))
    laws = [law for law in search.laws if not law.flat]
    if not laws or search.hopeless:
        raise InputError(
            f"base: none was given, and ascents from around the origin (scales {RADII[0]:g} to {RADII[-1]:g}) "
            "found no isolated mode of the target to build one from: it is flat, or rises without end as a funnel "
            "does; give base= (for a Stan program, or an alternative model block)"
        )
    centres = np.stack([law.centre for law in laws])
    centre = centres.mean(axis=0)
    within = np.max([_variance(law.scale, law.basis, law.gain) for law in laws], axis=0)
    scale = WIDER * np.sqrt(within + np.mean((centres - centre) ** 2, axis=0))
    about = (
        f"no base was given: starts within about {RADII[-1] * np.sqrt(dim):.3g} of the origin found {len(laws)} "
        f"{'mode' if len(laws) == 1 else 'modes'}, and a Student-t cover of scale {scale.min():.3g} to "
        f"{scale.max():.3g} around {'it' if len(laws) == 1 else 'them'} is the base"
    )
    warnings.warn(f"{about}; a mode far outside would be missed: give base= if there may be one", stacklevel=4)
    return Reference(Cover(jnp.asarray(centre), jnp.asarray(scale)), about, search.counts)


def with_reference(model: Model, *, seed: int, budget: float | None = None) -> tuple[Model, Reference | None]:
    """The model with a base: its own, or, where that is automatic, the one that is found now.

    ``budget`` are the gradient evaluations of the whole run, None where nobody said.
    """
    if not isinstance(model.log_base, Automatic):
        return model, None
    check_density("target", model.log_target, model.dim)
    most = MOST_GRADIENTS if budget is None else float(np.clip(SHARE * budget, LEAST_GRADIENTS, MOST_GRADIENTS))
    with naming(model):
        found = reference(model.log_target, model.dim, seed=seed, most_gradients=most)
    return with_cover(model, found.cover), found


def with_cover(model: Model, cover: Cover) -> Model:
    """The model with a cover as its base."""
    return replace(model, log_base=cover, sample_base=cover.sample)


def _variance(scale: FloatArray, basis: FloatArray, gain: FloatArray) -> FloatArray:
    """Diagonal of the covariance of scale * (I + V g V') z."""
    return np.asarray(scale**2 * (1.0 + basis**2 @ ((1.0 + gain) ** 2 - 1.0)))
