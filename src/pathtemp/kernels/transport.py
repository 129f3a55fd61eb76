"""The learned transport theta = m(s) + F(s) z along the path, with F(s) = diag(scale(s)) R(s) diag(inner(s)).

Location, log scales and R are given at B equispaced positions s and interpolated linearly. R is lower triangular, or,
in high dimension, the identity plus a low-rank part I + V diag(g(s)) V', or the identity itself. Any value of the
tables gives an exactly invariant kernel; good ones make z nearly independent of s.

Tempering has no inner scales: R is a factor of a correlation matrix, whose images at the B positions serve all of an
orbit. Paths of other kinds have no outer ones, see :func:`regressions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from pathtemp._types import Array
from pathtemp.io.persistent import storable
from pathtemp.paths.links import interpolate


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AffineMap:
    """The transport at one position: theta = m + diag(scale) R diag(inner) z.

    Parameters
    ----------
    location, scale
        m and the diagonal, shape (dim,).
    factor
        R: lower triangular (dim, dim), or None.
    basis, gain
        Low-rank part: V (dim, rank), orthonormal columns, and g (rank,); None with a triangular factor, or without any.
    inner
        Scales of z, shape (dim,); None for ones.
    """

    location: Array
    scale: Array
    factor: Array | None = None
    basis: Array | None = None
    gain: Array | None = None
    inner: Array | None = None

    def forward(self, z: Array) -> Array:
        """Theta of z."""
        return self.location + self.linear(z)

    def linear(self, v: Array) -> Array:
        """F v."""
        return self.scale * self._r(self._within(v))

    def adjoint(self, v: Array) -> Array:
        """F' v, which takes a gradient in theta to one in z."""
        v = self.scale * v
        return self._within(v @ self.factor if self.factor is not None else self._r(v))

    def inverse(self, theta: Array) -> Array:
        """The z of theta."""
        u = (theta - self.location) / self.scale
        if self.factor is not None:
            u = solve_triangular(self.factor, u, lower=True)
        elif self.basis is not None:
            basis, gain = self.low_rank()
            u = u - basis @ (gain / (1.0 + gain) * (basis.T @ u))
        return u if self.inner is None else u / self.inner

    def log_det(self) -> Array:
        """Log |det F|."""
        whole = jnp.sum(jnp.log(self.scale))
        if self.factor is not None:
            whole = whole + jnp.sum(jnp.log(jnp.diagonal(self.factor)))
        elif self.gain is not None:
            whole = whole + jnp.sum(jnp.log(1.0 + self.gain))
        return whole if self.inner is None else whole + jnp.sum(jnp.log(self.inner))

    def low_rank(self) -> tuple[Array, Array]:
        """V and g, of a map that has no triangular factor."""
        assert self.basis is not None
        assert self.gain is not None
        return self.basis, self.gain

    def _within(self, v: Array) -> Array:
        return v if self.inner is None else self.inner * v

    def _r(self, v: Array) -> Array:
        if self.factor is not None:
            return self.factor @ v
        if self.basis is None:
            return v
        basis, gain = self.low_rank()
        return v + basis @ (gain * (basis.T @ v))


@storable
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Transport:
    """Tables of the transport over B equispaced positions s in [0, 1].

    Parameters
    ----------
    location, log_scale
        Shape (B, dim).
    factor
        Shape (B, dim, dim), lower triangular with positive diagonal; None in high dimension.
    basis, gain
        V (dim, rank) shared by all positions, and g (B, rank), in place of ``factor``.
    log_inner
        Shape (B, dim), or None for zeros.
    """

    location: Array
    log_scale: Array
    factor: Array | None = None
    basis: Array | None = None
    gain: Array | None = None
    log_inner: Array | None = None

    def at(self, s: Array) -> AffineMap:
        """The map at position s (a scalar)."""
        return AffineMap(
            interpolate(self.location, s),
            jnp.exp(interpolate(self.log_scale, s)),
            None if self.factor is None else interpolate(self.factor, s),
            self.basis,
            None if self.gain is None else interpolate(self.gain, s),
            None if self.log_inner is None else jnp.exp(interpolate(self.log_inner, s)),
        )

    def orbit(self, z: Array, s: Array) -> tuple[Array, Array]:
        """Points theta(s) of one z at positions s (J,), shape (J, dim), and log |det F(s)|, shape (J,).

        Without inner scales R(s) z is linear between positions, so the images at the B positions serve all of ``s``.
        """
        if self.log_inner is not None or (self.factor is None and self.basis is None):
            charts = jax.vmap(self.at)(s)
            return jax.vmap(lambda chart: chart.forward(z))(charts), jax.vmap(lambda chart: chart.log_det())(charts)

        def at(table: Array) -> Array:
            return jax.vmap(interpolate, (None, 0))(table, s)

        log_scale = at(self.log_scale)
        if self.factor is not None:
            images = at(self.factor @ z)
            log_det = jnp.sum(jnp.log(at(jnp.diagonal(self.factor, axis1=1, axis2=2))), axis=1)
        else:
            assert self.basis is not None
            assert self.gain is not None
            gain = at(self.gain)
            images = z + (gain * (self.basis.T @ z)) @ self.basis.T
            log_det = jnp.sum(jnp.log1p(gain), axis=1)
        return at(self.location) + jnp.exp(log_scale) * images, jnp.sum(log_scale, axis=1) + log_det


def regressions(location: Array, log_diagonal: Array, lower: Array | None) -> Transport:
    """The transport theta = m(s) + A(s) diag(exp(d(s))) z, with tables (B, dim), (B, dim) and (B, dim, dim).

    A is unit lower triangular, or the identity: its rows are regressions of each coordinate on those before it, and
    exp(d) are the residual scales. In a funnel these fall by many orders along the path while the regressions stay as
    they are, so that a table of both follows it; a table of marginal scales and correlations would not.

    >>> transport = regressions(jnp.zeros((2, 1)), jnp.array([[0.0], [2.0]]), jnp.ones((2, 1, 1)))
    >>> float(transport.at(jnp.asarray(0.5)).log_det())
    1.0
    """
    if lower is None:
        return Transport(location, log_diagonal)
    return Transport(location, jnp.zeros_like(log_diagonal), factor=lower, log_inner=log_diagonal)


def identity(dim: int, positions: int, *, location: Array | float = 0.0, scale: Array | float = 1.0) -> Transport:
    """A transport that is the same at every position and does not mix coordinates.

    >>> identity(2, 3, scale=2.0).at(jnp.asarray(0.3)).forward(jnp.ones(2)).tolist()
    [2.0, 2.0]
    """
    return Transport(
        jnp.broadcast_to(jnp.asarray(location, float), (positions, dim)),
        jnp.broadcast_to(jnp.log(jnp.asarray(scale, float)), (positions, dim)),
        basis=jnp.zeros((dim, 1)).at[0, 0].set(1.0),
        gain=jnp.zeros((positions, 1)),
    )
