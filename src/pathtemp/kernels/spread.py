"""Chains spread over the devices that JAX shows, so that their draws are the same for any number of devices.

What a chain does depends on its own number alone. Sums over chains are taken in a fixed number of parts, each of which
lies on one device, and the parts are added on the host: so no order of adding depends on the devices.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike

from pathtemp._types import Array

Tree = TypeVar("Tree")

MOST_PARTS = 16
"""Parts in which sums over chains are taken, and so devices, at most."""

AXIS = "chains"


def parts_of(chains: int) -> int:
    """Number of parts in which sums over so many chains are taken.

    >>> parts_of(64), parts_of(12), parts_of(7)
    (16, 4, 1)
    """
    return gcd(chains, MOST_PARTS)


def devices_for(chains: int, *, batch: int | None) -> int:
    """Devices of this process over which so many chains are spread; one where they are evaluated in batches."""
    if batch is not None and batch < chains:
        return 1
    parts, shown = parts_of(chains), jax.local_device_count()
    return max(count for count in range(1, parts + 1) if parts % count == 0 and count <= shown)


def by_part(x: Array) -> Array:
    """Sums of ``x`` (C, ...) over the chains of each part, (parts, ...)."""
    parts = parts_of(x.shape[0])
    return x.reshape(parts, -1, *x.shape[1:]).sum(axis=1)


def on_device(x: ArrayLike) -> Array:
    """An array of the host's numbers that no one else holds, so that a program may be given its memory.

    Unlike ``jnp.asarray`` it compiles nothing, which for the many shapes of a run takes longer than anything else here.

    >>> on_device(0.5).dtype, on_device([True, False]).shape
    (dtype('float64'), (2,))
    """
    return jax.device_put(np.array(x))


def spread(tree: Tree, devices: int) -> Tree:
    """Arrays whose first axis is that of the chains, or of their parts, laid over so many devices."""
    return tree if devices == 1 else jax.device_put(tree, _sharding(devices, AXIS))


def copied(tree: Tree, devices: int) -> Tree:
    """Arrays that every one of so many devices has."""
    return tree if devices == 1 else jax.device_put(tree, _sharding(devices, None))


def held_spread(tree: Tree, devices: int) -> Tree:
    """The same inside of a compiled function: what is spread stays so."""
    return tree if devices == 1 else jax.lax.with_sharding_constraint(tree, _sharding(devices, AXIS))


def held_copied(tree: Tree, devices: int) -> Tree:
    """The same inside of a compiled function, for what is to be added up in one order on every device."""
    return tree if devices == 1 else jax.lax.with_sharding_constraint(tree, _sharding(devices, None))


@cache
def _sharding(devices: int, axis: str | None) -> NamedSharding:
    mesh = Mesh(np.array(jax.local_devices()[:devices]), (AXIS,))
    return NamedSharding(mesh, PartitionSpec() if axis is None else PartitionSpec(axis))
