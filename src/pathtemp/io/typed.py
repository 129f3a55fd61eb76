"""Whether what was read from a file is of the types that its classes declare."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


def check_type(value: Any) -> None:
    """Raise TypeError unless every field of a dataclass, and of those inside it, is as declared.

    >>> from pathtemp.result.run import Counts
    >>> check_type(Counts(1, 2))
    >>> check_type(Counts(1, "2"))
    Traceback (most recent call last):
    TypeError: densities of Counts is a str
    """
    cls: Any = type(value)
    for name, hint in _hints(cls).items():
        part = getattr(value, name)
        if not conforms(part, hint):
            raise TypeError(f"{name} of {type(value).__name__} is a {type(part).__name__}")


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type; types that are neither plain nor dataclasses are taken as they are.

    >>> conforms((1, 2.0), tuple[float, int]), conforms(True, int), conforms([1], tuple[int, ...])
    (True, False, False)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(conforms(value, one) for one in inside)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and _each(value, inside)
    if origin is not None and issubclass(origin, np.ndarray):
        return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_each(pair, inside) for pair in value.items())
    if hint in (bool, int, float, str, types.NoneType):
        return _is_plain(value, hint)
    if isinstance(hint, type) and is_dataclass(hint):
        if isinstance(value, hint):
            check_type(value)
        return isinstance(value, hint)
    return True


def _each(value: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
    if inside[-1:] == (...,):
        return all(conforms(x, inside[0]) for x in value)
    return len(value) == len(inside) and all(conforms(x, one) for x, one in zip(value, inside, strict=True))


def _is_plain(value: Any, hint: type) -> bool:
    """Numbers may be of either kind, since they were written as text; but True is no number."""
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float if hint in (int, float) else hint)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)
