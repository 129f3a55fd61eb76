"""Types shared by every module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import numpy as np

Array = jax.Array
"""A JAX array, float64 unless said otherwise."""

Key = jax.Array
"""A typed JAX random key."""

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
"""A NumPy array of float64."""

LogDensity = Callable[[Array], Array]
"""A log density of one flat point: ``(dim,) -> ()``."""

Sampler = Callable[[Key], Array]
"""One exact draw: ``key -> (dim,)``."""

Variables = Mapping[str, Array]
"""Named arrays, as the model names them."""
