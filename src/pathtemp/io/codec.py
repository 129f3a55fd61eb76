"""Records as strict JSON plus a few long vectors, and back; only classes that are named beforehand are ever made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pathtemp.modes.local import Local
from pathtemp.modes.power import Power
from pathtemp.modes.table import Modes
from pathtemp.result.curve import LogZ
from pathtemp.result.run import Check, Counts, Diagnostics, Rejections, RoundRecord
from pathtemp.settings import LadderSettings, PaperSettings, Settings

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(Check, Counts, Diagnostics, LadderSettings, Local, LogZ, Modes, Power),
        *(PaperSettings, Rejections, RoundRecord, Settings),
    )
}


Vectors = Mapping[str, np.ndarray]
"""All arrays laid end to end, one vector a dtype: a few vectors open far faster than hundreds of arrays."""


def encode(value: Any, classes: Mapping[str, type] = CLASSES) -> tuple[str, Vectors]:
    """Strict JSON (no NaN, no infinity) and the vectors it points into.

    ``classes`` are the dataclasses and named tuples that may be written, by name.

    >>> text, vectors = encode({"value": float("inf"), "curve": np.zeros(2)})
    >>> text
    '{"dict": {"value": {"float": "inf"}, "curve": {"array": ["float64", 0, [2]]}}}'
    >>> decode(text, vectors)
    {'value': inf, 'curve': array([0., 0.])}
    """
    writer = _Writer(classes)
    text = json.dumps(writer.plain(value), allow_nan=False)
    return text, {dtype: np.concatenate(parts) for dtype, parts in writer.pieces.items()}


def decode(text: str, vectors: Vectors, classes: Mapping[str, type] = CLASSES) -> Any:
    """Inverse of :func:`encode`; raises ValueError, KeyError or TypeError where the text is none of its."""
    return _Reader(vectors, classes).value(json.loads(text))


class _Writer:
    """Turns values into what JSON can hold, and lays their arrays end to end."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.pieces: dict[str, list[np.ndarray]] = {}
        self._sizes: dict[str, int] = {}
        self._classes = classes

    def plain(self, value: Any) -> Any:
        """The value as JSON has it."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            return {"dict": {str(key): self.plain(x) for key, x in value.items()}}
        if self._classes.get(type(value).__name__) is type(value):
            return {
                "class": type(value).__name__,
                "fields": {name: self.plain(getattr(value, name)) for name in _fields(value)},
            }
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.plain(x) for x in value]}
        if isinstance(value, np.ndarray):
            return self._array(value)
        raise TypeError(f"a {type(value).__name__} cannot be written")

    def _array(self, value: np.ndarray) -> Any:
        if value.dtype.kind not in "fiub":
            raise TypeError(f"an array of {value.dtype} cannot be written")
        dtype = value.dtype.name
        start = self._sizes.get(dtype, 0)
        self.pieces.setdefault(dtype, []).append(value.ravel())
        self._sizes[dtype] = start + value.size
        return {"array": [dtype, start, list(value.shape)]}


def _fields(value: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(value)) if is_dataclass(value) else value._fields


class _Reader:
    """Makes values of what JSON holds; as arrays are read once each, no text can ask for more than there is."""

    def __init__(self, vectors: Vectors, classes: Mapping[str, type]) -> None:
        self._vectors, self._classes = vectors, classes
        self._left = {dtype: x.size for dtype, x in vectors.items()}

    def value(self, value: Any) -> Any:
        """The value that :meth:`_Writer.plain` was given."""
        if not isinstance(value, dict):
            return value
        if "class" in value:
            made = {name: self.value(x) for name, x in value["fields"].items()}
            return self._classes[value["class"]](**made)
        ((kind, content),) = value.items()
        match kind:
            case "float":
                return float(content)
            case "dict":
                return {key: self.value(x) for key, x in content.items()}
            case "list":
                return [self.value(x) for x in content]
            case "tuple":
                return tuple(self.value(x) for x in content)
            case "array":
                return self._array(*content)
        raise ValueError(f"unknown kind {kind!r}")

    def _array(self, dtype: str, start: int, shape: list[int]) -> np.ndarray:
        size = math.prod(shape)
        self._left[dtype] -= size
        if size < 0 or start < 0 or self._left[dtype] < 0:
            raise ValueError("its arrays claim to hold more than it has")
        return self._vectors[dtype][start : start + size].reshape(shape).copy()
