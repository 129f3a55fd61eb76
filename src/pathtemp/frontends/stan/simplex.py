"""The simplex of Stan from 2.37 on; before that it is NumPyro's stick-breaking."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray


@dataclass(frozen=True)
class LogRatioSimplex:
    """The inverse isometric log ratio: ``y = softmax(V x)`` with V orthonormal and of columns that sum to zero.

    >>> LogRatioSimplex()(jnp.zeros(2)).tolist()
    [0.3333333333333333, 0.3333333333333333, 0.3333333333333333]
    """

    def __call__(self, x: Array) -> Array:
        """Simplexes ``(..., K)`` of ``(..., K - 1)``."""
        return jax.nn.softmax(x @ _contrasts(x.shape[-1]).T, axis=-1)

    def inv(self, y: Array) -> Array:
        """Unconstrained ``(..., K - 1)`` of simplexes ``(..., K)``."""
        return jnp.log(y) @ _contrasts(y.shape[-1] - 1)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Of the first K - 1 shares, one value a simplex: sum log y + log(K) / 2."""
        return jnp.sum(jnp.log(y), axis=-1) + 0.5 * jnp.log(y.shape[-1])


def _contrasts(n: int) -> FloatArray:
    """The matrix V (n + 1, n): column i has 1 in its first i rows and -i in the next, scaled to length one."""
    rows, columns = np.indices((n + 1, n))
    size = columns + 1.0
    return np.where(rows < size, 1.0, np.where(rows == size, -size, 0.0)) / np.sqrt(size * (size + 1))
