"""Targets drawn at random, with known answers: mixtures of normal, heavy-tailed, skewed and bent modes.

A seed and a number give a problem, so that nothing can be tuned to a list. Every part of a mixture is normalised, the
base is a normal, and so log z(1) - log z(0) is the constant that the target was multiplied by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from pathtemp._types import Array, FloatArray, IntArray, Key
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import Problem

DIMENSIONS = (1, 2, 3, 5, 8, 12, 20, 30, 50)

COUNTS = (1, 1, 2, 2, 3, 4, 6, 8, 12, 16, 32, 64)
"""Numbers of modes, each as likely as the others; few dimensions have room for fewer."""

WIDTHS = (0.3, 1.0)
"""Widths of the modes relative to the widest."""

LEAST_VOLUME = 6.0
"""Nats that a mode's volume is smaller by than that of the widest, at most, in three problems out of four: beyond it no
evaluation outside its basin shows it. In the fourth the widths fill their whole range in any dimension."""

HEAVY_DF = 5.0
"""Degrees of freedom of heavy-tailed modes."""


@dataclass(frozen=True)
class Family:
    """What was drawn: the facts by which results are sorted.

    Parameters
    ----------
    dim, count
        Dimension, and number of modes.
    narrowest
        Smallest width of a mode relative to the widest, as a ratio of geometric means of its axes.
    kind
        "normal", "heavy", "skewed" or "bent".
    off_centre
        Distance of the base's centre from that of the modes, in units of the base's spread.
    """

    dim: int
    count: int
    narrowest: float
    kind: str
    off_centre: float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Parts:
    """Log density of a mixture, times a constant; callable on one point (dim,).

    Parts that only fill up have a weight of zero, so that one compilation serves any number of modes up to a power of
    four.

    Parameters
    ----------
    log_weight, centre, scale
        Of each of K parts: log weight (K,), centre and standard deviations along the axes (K, dim).
    axes
        Common axes of all parts, an orthogonal matrix (dim, dim).
    heavy
        Weight of the Student-t law, 0 or 1.
    skew, bend
        Of every part; zero for none.
    log_constant
        The exact log z(1) - log z(0).
    skewed
        Whether there is a skew: without it the density is cheaper.
    """

    log_weight: Array
    centre: Array
    scale: Array
    axes: Array
    heavy: Array
    skew: Array
    bend: Array
    log_constant: Array
    skewed: bool = field(default=False, metadata={"static": True})

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        return self.log_constant + logsumexp(self.log_parts(theta))

    def log_parts(self, theta: Array) -> Array:
        """Log weighted density of each part, (K,)."""
        dim = theta.shape[0]
        u = ((theta - self.centre) @ self.axes) / self.scale
        if dim > 1:
            u = u.at[:, 1].add(-self.bend * (u[:, 0] ** 2 - 1.0))
        w, volume = u, -jnp.sum(jnp.log(self.scale), axis=1)
        if self.skewed:
            # The inverse of sinh-arcsinh: w is normal, or Student-t.
            height = jnp.arcsinh(u) - self.skew
            w = jnp.sinh(height)
            volume += jnp.sum(jnp.log(jnp.cosh(height)) - 0.5 * jnp.log1p(u**2), axis=1)
        square = jnp.sum(w**2, axis=1)
        normal = -0.5 * square - 0.5 * dim * float(np.log(2 * np.pi))
        constant = (
            gammaln(0.5 * (HEAVY_DF + dim)) - gammaln(0.5 * HEAVY_DF) - 0.5 * dim * float(np.log(HEAVY_DF * np.pi))
        )
        student = constant - 0.5 * (HEAVY_DF + dim) * jnp.log1p(square / HEAVY_DF)
        return self.log_weight + volume + jnp.where(self.heavy > 0, student, normal)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalBase:
    """Log density of a normal with one standard deviation; callable on one point (dim,)."""

    centre: Array
    scale: Array

    def __call__(self, theta: Array) -> Array:
        """Log density at ``theta`` (dim,)."""
        square = jnp.sum(((theta - self.centre) / self.scale) ** 2)
        return -0.5 * square - theta.shape[0] * (jnp.log(self.scale) + float(0.5 * np.log(2 * np.pi)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalDraw:
    """Exact draws of a :class:`NormalBase`; callable on a key."""

    base: NormalBase

    def __call__(self, key: Key) -> Array:
        """One draw (dim,)."""
        return self.base.centre + self.base.scale * jax.random.normal(key, self.base.centre.shape)


def family(seed: int, number: int) -> tuple[Problem, Family]:
    """The problem of this number in the family of this seed, and what it is like.

    >>> problem, facts = family(0, 3)
    >>> problem.model.dim == facts.dim, round(float(problem.shares.sum()), 6)
    (True, 1.0)
    """
    rng = data_rng([seed, number])
    dim = int(rng.choice(DIMENSIONS))
    count = min(int(rng.choice(COUNTS)), {1: 6, 2: 16}.get(dim, 64))
    lowest = WIDTHS[0] if rng.random() < 0.25 else max(WIDTHS[0], float(np.exp(-LEAST_VOLUME / dim)))
    width = rng.uniform(lowest, WIDTHS[1], size=count)
    width /= width.max()
    shares = rng.dirichlet(np.full(count, 2.0))
    kind = str(rng.choice(["normal", "heavy", "skewed", "bent"] if dim > 1 else ["normal", "heavy", "skewed"]))
    spread = float(np.exp(rng.uniform(np.log(3.0), np.log(12.0))))
    off = rng.normal(size=dim)
    off *= rng.uniform(0.0, 1.0) / np.linalg.norm(off)
    axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    stretch = np.exp(rng.uniform(-0.5, 0.5, size=dim) * rng.choice([0.0, 1.6]))
    scale = width[:, None] * stretch / np.exp(np.mean(np.log(stretch)))
    centre, spread = _apart(rng, count, dim, spread)
    wide = spread * float(rng.uniform(1.0, 2.0))
    base = NormalBase(jnp.asarray(spread * off), jnp.asarray(wide))
    filled = 4 ** int(np.ceil(np.log(count) / np.log(4.0)))
    rest = filled - count
    target = Parts(
        jnp.asarray(np.append(np.log(shares), np.full(rest, -np.inf))),
        jnp.asarray(np.concatenate([centre, np.zeros((rest, dim))])),
        jnp.asarray(np.concatenate([scale, np.ones((rest, dim))])),
        jnp.asarray(axes),
        jnp.asarray(float(kind == "heavy")),
        jnp.asarray(rng.uniform(0.2, 0.6) if kind == "skewed" else 0.0),
        jnp.asarray(rng.uniform(0.2, 0.6) if kind == "bent" else 0.0),
        jnp.asarray(rng.uniform(-20.0, 20.0)),
        kind == "skewed",
    )
    model = Model(base, target, Layout({"x": (dim,)}), NormalDraw(base), name=f"family_{seed}_{number}")
    problem = Problem(
        f"family_{seed}_{number}",
        model,
        end=float(target.log_constant),
        labels=_labels(target, count),
        shares=shares,
        target_sampler=_sampler(target, count),
    )
    return problem, Family(dim, count, float(width.min()), kind, float(spread * np.linalg.norm(off) / wide))


def _apart(rng: np.random.Generator, count: int, dim: int, spread: float) -> tuple[FloatArray, float]:
    """Centres (count, dim) of normal draws, and their spread, enlarged until no two lie closer than three widths."""
    centre = rng.normal(size=(count, dim))
    if count > 1:
        distance = np.linalg.norm(centre[:, None] - centre[None], axis=2) + np.where(np.eye(count) > 0, np.inf, 0.0)
        spread = max(spread, 5.0 / float(distance.min()))
    return 0.6 * spread * centre, spread


def responsibilities(target: Parts, theta: FloatArray) -> FloatArray:
    """Probability of each part of the mixture given each of the points (n, dim), shape (n, K)."""
    logs = np.asarray(jax.jit(jax.vmap(Parts.log_parts, (None, 0)))(target, jnp.asarray(theta)))
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _labels(target: Parts, count: int) -> Any:
    def labels(theta: FloatArray) -> IntArray:
        return np.asarray(np.argmax(responsibilities(target, theta)[:, :count], axis=1), np.int64)

    return labels


def _sampler(target: Parts, count: int) -> Any:
    part = {name: np.asarray(getattr(target, name)) for name in ("log_weight", "centre", "scale", "axes")}
    heavy, skew, bend = (float(x) for x in (target.heavy, target.skew, target.bend))

    def sample(rng: np.random.Generator, n: int) -> FloatArray:
        k = rng.choice(count, size=n, p=np.exp(part["log_weight"][:count]))
        w = rng.normal(size=(n, part["centre"].shape[1]))
        if heavy > 0:
            w *= np.sqrt(HEAVY_DF / rng.chisquare(HEAVY_DF, size=n))[:, None]
        u = np.sinh(np.arcsinh(w) + skew)
        if u.shape[1] > 1:
            u[:, 1] += bend * (u[:, 0] ** 2 - 1.0)
        return np.asarray(part["centre"][k] + (part["scale"][k] * u) @ part["axes"].T)

    return sample
