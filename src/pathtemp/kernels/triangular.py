"""A transport theta = m(s) + A(s) diag(exp(d(s))) z whose scales may change by many orders along the path.

A is unit lower triangular: its rows are regressions of each coordinate on those before it, and exp(d) are the residual
scales. In a funnel the residual scales fall to nothing while the regressions stay as they are, so that a table of
both, linear between positions, follows the funnel; a table of marginal scales and correlations would not.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from pathtemp._types import Array
from pathtemp.paths.links import interpolate


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TriangularMap:
    """The transport at one position.

    Parameters
    ----------
    location, log_diagonal
        m and d, shape (dim,).
    lower
        A, unit lower triangular, shape (dim, dim); None for the identity.
    """

    location: Array
    log_diagonal: Array
    lower: Array | None

    def forward(self, z: Array) -> Array:
        """Theta of z."""
        scaled = jnp.exp(self.log_diagonal) * z
        return self.location + (scaled if self.lower is None else self.lower @ scaled)

    def adjoint(self, v: Array) -> Array:
        """The gradient in z of a gradient ``v`` in theta."""
        return jnp.exp(self.log_diagonal) * (v if self.lower is None else v @ self.lower)

    def inverse(self, theta: Array) -> Array:
        """The z of theta."""
        shifted = theta - self.location
        if self.lower is not None:
            shifted = solve_triangular(self.lower, shifted, lower=True, unit_diagonal=True)
        return shifted * jnp.exp(-self.log_diagonal)

    def log_det(self) -> Array:
        """Log |det dtheta/dz|."""
        return jnp.sum(self.log_diagonal)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TriangularTransport:
    """Tables of the transport over B equispaced positions s in [0, 1].

    Parameters
    ----------
    location, log_diagonal
        m and d, shape (B, dim).
    lower
        Shape (B, dim, dim), or None in high dimension.

    >>> transport = TriangularTransport(jnp.zeros((2, 1)), jnp.array([[0.0], [2.0]]), None)
    >>> float(transport.at(jnp.asarray(0.5)).log_det())
    1.0
    """

    location: Array
    log_diagonal: Array
    lower: Array | None

    def at(self, s: Array) -> TriangularMap:
        """The map at position s (a scalar)."""
        lower = None if self.lower is None else interpolate(self.lower, s)
        return TriangularMap(interpolate(self.location, s), interpolate(self.log_diagonal, s), lower)
