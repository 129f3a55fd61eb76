"""The state of an object: its class names the fields that are kept, and one writer and one reader serve all classes.

The constructor makes everything else again, from the model and the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from pathtemp.errors import MissingExtraError

Cls = TypeVar("Cls", bound=type)

_STORABLE: dict[str, type] = {}


def storable(cls: Cls) -> Cls:
    """Let values of a dataclass or named tuple stand in a checkpoint."""
    _STORABLE[cls.__name__] = cls
    return cls


def storable_classes() -> dict[str, type]:
    """All classes that a checkpoint may hold, by name, but those of engines whose extra is not installed.

    >>> "Counts" in storable_classes(), "Schedule" in storable_classes()
    (True, True)
    """
    from pathtemp.engines import ENGINES
    from pathtemp.io.codec import CLASSES

    for module in ENGINES:
        with suppress(MissingExtraError):
            import_module(module)
    return CLASSES | _STORABLE


def missing_extra() -> MissingExtraError | None:
    """What an engine lacks whose runs a checkpoint may hold; None where all can be imported."""
    from pathtemp.engines import ENGINES

    for module in ENGINES:
        try:
            import_module(module)
        except MissingExtraError as error:
            return error
    return None


def persistent(*names: str, device: tuple[str, ...] = ()) -> Callable[[Cls], Cls]:
    """Name the fields of a class that are its state, in the order in which they are restored.

    ``device`` names those whose arrays live on the device. A class may have a method ``restored``, which is called once
    all fields are filled: to derive what is not kept, and to refuse a state that is of another model.

    >>> @persistent("count")
    ... class Counter:
    ...     def __init__(self):
    ...         self.count, self.name = 0, "counter"
    >>> one, two = Counter(), Counter()
    >>> one.count = 3
    >>> restore(two, state_of(one))
    >>> state_of(two)
    {'count': 3}
    """

    def mark(cls: Cls) -> Cls:
        cls.persistent_fields = (*names, *device)  # type: ignore[attr-defined]
        cls.device_fields = frozenset(device)  # type: ignore[attr-defined]
        return cls

    return mark


def state_of(thing: Any) -> dict[str, Any]:
    """The state of an object whose class is :func:`persistent`, as plain values, records and host arrays."""
    return {name: _plain(getattr(thing, name)) for name in type(thing).persistent_fields}


def restore(thing: Any, state: Mapping[str, Any]) -> None:
    """Put an object that was just made into a kept state."""
    cls = type(thing)
    for name in cls.persistent_fields:
        value, now = state[name], getattr(thing, name, None)
        if isinstance(now, np.random.Generator):
            now.bit_generator.state = value
        elif hasattr(type(now), "persistent_fields"):
            restore(now, value)
        elif name in cls.device_fields:
            # A copy each, since a round donates them.
            setattr(thing, name, jax.tree.map(jnp.array, value))
        else:
            setattr(thing, name, value)
    if hasattr(thing, "restored"):
        thing.restored()


def _plain(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if hasattr(type(value), "persistent_fields"):
        return state_of(value)
    return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, value)
