"""Types shared by every module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

Array = jax.Array
"""A JAX array, float64 unless said otherwise."""

Key = jax.Array
"""A typed JAX random key."""

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
"""A NumPy array of float64."""

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""A NumPy array of int64."""

HostArray = jax.Array | np.ndarray[tuple[int, ...], np.dtype[Any]]
"""An array that NumPy reads, wherever it lies."""

LogDensity = Callable[[Array], Array]
"""A log density of one flat point: ``(dim,) -> ()``."""

Sampler = Callable[[Key], Array]
"""One exact draw: ``key -> (dim,)``."""

Variables = Mapping[str, Array]
"""Named arrays, as the model names them."""
