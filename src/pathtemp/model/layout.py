"""How named, shaped and constrained variables lie in one flat vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp._types import Array, FloatArray
from pathtemp.api.arguments import a_kind_of, shown
from pathtemp.errors import InputError
from pathtemp.model.transforms import Transform, invert


@dataclass(frozen=True)
class Layout:
    """Names, shapes and transforms of the variables of a density on R^dim.

    Parameters
    ----------
    shapes
        Unconstrained shape of each variable, in the order in which they lie in the flat vector.
    transforms
        Variables that are constrained, each with its transform; the others are as they are.
    single
        The density takes the one array itself, not a dict of one.
    dims, coords
        Named dimensions and their coordinates, as ArviZ has them.
    first_index
        Number of the first element of a dimension without coordinates: 1 in Stan, 0 elsewhere.

    >>> layout = Layout({"mu": (), "theta": (2,)})
    >>> layout.dim
    3
    >>> {k: v.shape for k, v in layout.unravel(jnp.arange(3.0)).items()}
    {'mu': (), 'theta': (2,)}
    """

    shapes: Mapping[str, tuple[int, ...]]
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    single: bool = False
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    first_index: int = 0

    def __post_init__(self) -> None:
        a_kind_of("transforms", self.transforms, Mapping, "a dict of transforms by name")
        for name, transform in self.transforms.items():
            if not all(hasattr(transform, part) for part in ("__call__", "log_abs_det_jacobian")):
                raise InputError(f"transforms: that of {name!r} is no transform, but {shown(transform)}")
        unknown = set(self.transforms) - set(self.shapes)
        if unknown:
            raise InputError(f"transforms names {sorted(unknown)}, which shapes does not have")

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def unravel(self, flat: Array) -> dict[str, Array]:
        """Split ``(dim,)`` into unconstrained variables."""
        out, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            out[name] = flat[start : start + size].reshape(shape)
            start += size
        return out

    def ravel(self, variables: Mapping[str, Array]) -> Array:
        """Join unconstrained variables into ``(dim,)``."""
        return jnp.concatenate([jnp.ravel(variables[name]) for name in self.shapes]) if self.shapes else jnp.zeros(0)

    def constrain(self, flat: Array) -> tuple[dict[str, Array], Array]:
        """Constrained variables of ``(dim,)``, and the log Jacobian of the map."""
        variables, log_jacobian = self.unravel(flat), jnp.zeros(())
        for name, transform in self.transforms.items():
            x = variables[name]
            variables[name] = transform(x)
            log_jacobian = log_jacobian + jnp.sum(transform.log_abs_det_jacobian(x, variables[name]))
        return variables, log_jacobian

    def unconstrain(self, variables: Mapping[str, Array]) -> Array:
        """Flat vector of constrained variables."""
        free = {
            name: invert(self.transforms[name], x) if name in self.transforms else x for name, x in variables.items()
        }
        return self.ravel(free)

    def constrain_draws(self, flat: FloatArray) -> dict[str, FloatArray]:
        """Constrained variables of many draws: ``(n, dim) -> {name: (n, ...)}``."""
        return {name: np.asarray(x) for name, x in self._constrain_many(jnp.asarray(flat)).items()}

    @cached_property
    def _constrain_many(self) -> Callable[[Array], dict[str, Array]]:
        """The map of many draws, compiled once for each shape."""
        return jax.jit(jax.vmap(lambda x: self.constrain(x)[0]))
