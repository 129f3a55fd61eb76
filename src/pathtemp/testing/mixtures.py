"""Mixtures of normals: separated modes with known shares, and exact draws at every lam."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pathtemp._types import Array, FloatArray, Key, LogDensity
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model
from pathtemp.seeds import data_rng
from pathtemp.testing.problem import IntArray, Problem
from pathtemp.testing.quadrature import edges_around, gauss_legendre, geometric_curve

_LOG_2PI = float(np.log(2 * np.pi))


def gaussian_mixture(
    weights: ArrayLike,
    centres: ArrayLike,
    *,
    scales: ArrayLike | None = None,
    covariances: ArrayLike | None = None,
    base_scale: float | None = None,
    name: str = "gaussian_mixture",
) -> Problem:
    """A normalised mixture of K normals in d dimensions, from ``normal(0, base_scale)``: log z(1) = 0.

    In one dimension the whole curve is known, by quadrature. A draw's label is the component that most likely
    made it; ``shares`` are the weights, so the two agree as far as the components do not overlap.

    Parameters
    ----------
    weights, centres
        ``(K,)``, scaled to add up to one, and ``(K, d)``.
    scales, covariances
        One of them: standard deviations, ``()`` or ``(K,)``, or ``(K, d, d)``.
    base_scale
        Defaults to one and a half times the target's own root mean square in its widest coordinate.

    >>> problem = gaussian_mixture([0.3, 0.7], [[-8.0, 0.0], [8.0, 1.0]], scales=[0.5, 2.0])
    >>> problem.log_z_end, problem.target_mean
    (0.0, array([3.2, 0.7]))
    """
    mixture = _Mixture.read(weights, centres, scales, covariances)
    dim, mean, var = mixture.dim, mixture.mean, mixture.var
    scale = float(1.5 * np.sqrt(np.max(var + mean**2))) if base_scale is None else base_scale
    if scale <= 0:
        raise InputError(f"{name}: base_scale must be positive, and is {scale}")

    def log_base(x: Array) -> Array:
        return -0.5 * jnp.sum(x**2) / scale**2 - dim * (float(np.log(scale)) + 0.5 * _LOG_2PI)

    def sample_base(key: Key) -> Array:
        return scale * jax.random.normal(key, (dim,))

    def sample_at(rng: np.random.Generator, lam: FloatArray) -> FloatArray:
        return _draw_by_rejection(rng, mixture, lam, scale)

    def labels(draws: FloatArray) -> IntArray:
        return np.asarray(np.argmax(mixture.log_components(draws), axis=1), np.int64)

    log_target = mixture.log_density()
    curve = None
    if dim == 1:
        widths = np.sqrt(mixture.eigenvalues)
        centres_1d = np.append(mixture.centres[:, 0], 0.0)
        farthest = 12.0 * max(scale, float(widths.max()))
        # Fine enough for the switch from one component to the next, which is sharp even at small lam.
        edges = edges_around(centres_1d, narrowest=0.25 * float(widths.min()), widest=farthest, ratio=1.08)
        nodes, log_w = gauss_legendre(edges)
        base_at = np.asarray(jax.vmap(log_base)(jnp.asarray(nodes[:, None])))
        curve = geometric_curve(base_at, logsumexp(mixture.log_components(nodes[:, None]), axis=1), log_w)
    return Problem(
        name=name,
        model=Model(log_base, log_target, Layout({"theta": (dim,)}), sample_base, name=name),
        log_z=curve,
        end=0.0,
        labels=labels,
        shares=mixture.weights,
        sample_at=sample_at,
        target_mean=mean,
        target_var=var,
    )


def mixture_1d(*, base_scale: float = 8.0) -> Problem:
    """An asymmetric pair of normals: .3 normal(-8, .5) + .7 normal(8, 1.5), from ``normal(0, base_scale)``.

    >>> problem = mixture_1d()
    >>> abs(problem.log_z_end) < 1e-10, problem.shares
    (True, array([0.3, 0.7]))
    """
    centres = [[-8.0], [8.0]]
    return gaussian_mixture([0.3, 0.7], centres, scales=[0.5, 1.5], base_scale=base_scale, name="mixture_1d")


def paper_mixture(
    dim: int = 10, *, centre_scale: float = 1.0, seed: int = 1, base_scale: float | None = None
) -> Problem:
    """The paper's ten equal components, centres ``normal(0, centre_scale)``, variance = least distance / 10.

    The default base is over-dispersed, 1.5 sqrt(centre_scale^2 + variance); the paper's own is 1.5.

    >>> problem = paper_mixture(100, centre_scale=5.0)
    >>> problem.model.dim, problem.shares[0]
    (100, np.float64(0.1))
    """
    centres = centre_scale * data_rng(seed).normal(size=(10, dim))
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    variance = float(distance[np.triu_indices(10, 1)].min()) / 10.0
    scale = 1.5 * float(np.sqrt(centre_scale**2 + variance)) if base_scale is None else base_scale
    return gaussian_mixture(
        np.full(10, 0.1), centres, scales=float(np.sqrt(variance)), base_scale=scale, name="paper_mixture"
    )


def unequal_modes(dim: int = 20) -> Problem:
    """Three normals of weights .05, .25, .7, scales 1, .3, 3 and different correlations, far apart.

    The correlations are .8^|i-j|, one half between all, and (-.5)^|i-j|.

    >>> unequal_modes().shares
    array([0.05, 0.25, 0.7 ])
    """
    lag = np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    correlations = np.stack([0.8**lag, 0.5 + 0.5 * np.eye(dim), (-0.5) ** lag])
    covariances = np.array([1.0, 0.3, 3.0])[:, None, None] ** 2 * correlations
    sign = (-1.0) ** np.arange(dim)
    centres = np.stack([np.full(dim, 6.0), -5.0 * sign, np.linspace(-3.0, 1.0, dim)])
    return gaussian_mixture([0.05, 0.25, 0.7], centres, covariances=covariances, name="unequal_modes")


@dataclass(frozen=True)
class _Mixture:
    """Weights ``(K,)``, centres ``(K, d)``, eigenvalues ``(K, d)`` of the covariances and their axes.

    ``axes`` is ``(K, d, d)``, eigenvectors in columns; None where every component is round.
    """

    weights: FloatArray
    centres: FloatArray
    eigenvalues: FloatArray
    axes: FloatArray | None

    @classmethod
    def read(
        cls, weights: ArrayLike, centres: ArrayLike, scales: ArrayLike | None, covariances: ArrayLike | None
    ) -> _Mixture:
        """Check and complete what the user gave."""
        w, c = np.asarray(weights, float), np.asarray(centres, float)
        if c.ndim != 2 or w.shape != c.shape[:1] or not np.all(w > 0):
            raise InputError(
                f"gaussian_mixture: give K positive weights and K x d centres, not {w.shape} and {c.shape}"
            )
        if (scales is None) == (covariances is None):
            raise InputError("gaussian_mixture: give either scales= or covariances=")
        if scales is not None:
            s = np.broadcast_to(np.asarray(scales, float), w.shape)
            eigenvalues, axes = np.repeat(s[:, None] ** 2, c.shape[1], axis=1), None
        else:
            eigenvalues, axes = np.linalg.eigh(np.asarray(covariances, float))
        if not np.all(eigenvalues > 0):
            raise InputError("gaussian_mixture: every scale must be positive and every covariance positive definite")
        return cls(w / w.sum(), c, eigenvalues, axes)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.centres.shape[1]

    @property
    def mean(self) -> FloatArray:
        """Mean of the mixture, ``(d,)``."""
        return np.asarray(self.weights @ self.centres)

    @property
    def var(self) -> FloatArray:
        """Variance of each coordinate, ``(d,)``."""
        within = self.eigenvalues if self.axes is None else np.einsum("kij,kj->ki", self.axes**2, self.eigenvalues)
        return np.asarray(self.weights @ (within + (self.centres - self.mean) ** 2))

    @property
    def log_heights(self) -> FloatArray:
        """Log of weight times normalising constant of each component, ``(K,)``."""
        return np.asarray(np.log(self.weights) - 0.5 * (_LOG_2PI + np.log(self.eigenvalues)).sum(axis=1))

    def along_axes(self, x: FloatArray) -> FloatArray:
        """Coordinates ``(n, K, d)`` of ``(n, d)`` points along the axes of every component."""
        if self.axes is None:
            return np.repeat(x[:, None], len(self.weights), axis=1)
        return np.asarray(np.einsum("kij,ni->nkj", self.axes, x, optimize=True))

    @property
    def centres_along_axes(self) -> FloatArray:
        """Each centre along the axes of its own component, ``(K, d)``."""
        return self.centres if self.axes is None else np.einsum("kij,ki->kj", self.axes, self.centres)

    def log_components(self, x: FloatArray) -> FloatArray:
        """Log of weight times density of each component at ``(n, d)`` points, ``(n, K)``."""
        z = self.along_axes(x) - self.centres_along_axes
        return np.asarray(self.log_heights - 0.5 * (z**2 / self.eigenvalues).sum(axis=-1))

    def log_density(self) -> LogDensity:
        """The log density of one point for JAX."""
        centres, heights = jnp.asarray(self.centres), jnp.asarray(self.log_heights)
        if self.axes is None:
            precision = jnp.asarray(1.0 / self.eigenvalues[:, 0])
            return lambda x: jax.nn.logsumexp(heights - 0.5 * precision * jnp.sum((x - centres) ** 2, axis=1))
        whiten = jnp.asarray(np.swapaxes(self.axes / np.sqrt(self.eigenvalues)[:, None, :], 1, 2))
        offset = jnp.einsum("kij,kj->ki", whiten, centres)
        return lambda x: jax.nn.logsumexp(heights - 0.5 * jnp.sum((whiten @ x - offset) ** 2, axis=1))


def _draw_by_rejection(rng: np.random.Generator, mixture: _Mixture, lam: FloatArray, base_scale: float) -> FloatArray:
    """Exact draws at lam: for lam <= 1 a sum to the power lam is at most the sum of the powers.

    Each power times the base is an unnormalised normal, so their sum is a mixture that can be drawn from; the
    acceptance probability, the ratio of the two, is at least K^(lam - 1).
    """
    out, todo = np.empty((len(lam), mixture.dim)), np.arange(len(lam))
    rows_at_once = max(1, 4_000_000 // (len(mixture.weights) * mixture.dim))
    while len(todo):
        now = todo[:rows_at_once]
        x = _draw_envelope(rng, mixture, lam[now], base_scale)
        parts = mixture.log_components(x)
        log_ratio = lam[now] * logsumexp(parts, axis=1) - logsumexp(lam[now, None] * parts, axis=1)
        accepted = np.log(rng.uniform(size=len(now))) < log_ratio
        out[now[accepted]] = x[accepted]
        todo = np.concatenate([now[~accepted], todo[rows_at_once:]])
    return out


def _draw_envelope(rng: np.random.Generator, mixture: _Mixture, lam: FloatArray, base_scale: float) -> FloatArray:
    """Draws ``(n, d)`` of sum_k (w_k normal_k)^lam base^(1 - lam), normalised."""
    l = lam[:, None, None]
    own, other = l / mixture.eigenvalues, (1.0 - l) / base_scale**2
    precision, c = own + other, mixture.centres_along_axes
    log_mass = lam[:, None] * mixture.log_heights - 0.5 * (np.log(precision) + own * other / precision * c**2).sum(
        axis=-1
    )
    component = np.argmax(log_mass + rng.gumbel(size=log_mass.shape), axis=1)
    row = np.arange(len(lam))
    p, mean = precision[row, component], (own * c / precision)[row, component]
    along = mean + rng.standard_normal(p.shape) / np.sqrt(p)
    if mixture.axes is None:
        return np.asarray(along)
    return np.asarray(np.einsum("nij,nj->ni", mixture.axes[component], along))
