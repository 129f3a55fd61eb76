"""Dataclasses as strict JSON plus a few long vectors, and back; only the classes named here are ever made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pathtemp.curve import LogZ
from pathtemp.run import Check, Counts, Diagnostics, RoundRecord
from pathtemp.settings import PaperSettings, Settings

CLASSES: dict[str, type] = {
    cls.__name__: cls for cls in (Check, Counts, Diagnostics, LogZ, PaperSettings, RoundRecord, Settings)
}


Vectors = Mapping[str, np.ndarray]
"""All arrays laid end to end, one vector a dtype: a few vectors open far faster than hundreds of arrays."""


def encode(value: Any) -> tuple[str, Vectors]:
    """Strict JSON (no NaN, no infinity) and the vectors it points into.

    >>> text, vectors = encode({"value": float("inf"), "curve": np.zeros(2)})
    >>> text
    '{"dict": {"value": {"float": "inf"}, "curve": {"array": ["float64", 0, [2]]}}}'
    >>> decode(text, vectors)
    {'value': inf, 'curve': array([0., 0.])}
    """
    pieces: dict[str, list[np.ndarray]] = {}
    text = json.dumps(_plain(value, pieces), allow_nan=False)
    return text, {dtype: np.concatenate(parts) for dtype, parts in pieces.items()}


def decode(text: str, vectors: Vectors) -> Any:
    """Inverse of :func:`encode`; raises ValueError, KeyError or TypeError where the text is none of its."""
    return _rebuild(json.loads(text), vectors)


def _plain(value: Any, pieces: dict[str, list[np.ndarray]]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {"dict": {str(key): _plain(x, pieces) for key, x in value.items()}}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_plain(x, pieces) for x in value]}
    if is_dataclass(value) and CLASSES.get(type(value).__name__) is type(value):
        name = type(value).__name__
        return {
            "class": name,
            "fields": {f.name: _plain(getattr(value, f.name), pieces) for f in fields(value)},
        }
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub":
            raise TypeError(f"an array of {value.dtype} cannot be written")
        parts = pieces.setdefault(value.dtype.name, [])
        start = sum(part.size for part in parts)
        parts.append(value.ravel())
        return {"array": [value.dtype.name, start, list(value.shape)]}
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _rebuild(value: Any, vectors: Vectors) -> Any:
    if not isinstance(value, dict):
        return value
    if "class" in value:
        made = {name: _rebuild(x, vectors) for name, x in value["fields"].items()}
        return CLASSES[value["class"]](**made)
    ((kind, content),) = value.items()
    match kind:
        case "float":
            return float(content)
        case "dict":
            return {key: _rebuild(x, vectors) for key, x in content.items()}
        case "list":
            return [_rebuild(x, vectors) for x in content]
        case "tuple":
            return tuple(_rebuild(x, vectors) for x in content)
        case "array":
            dtype, start, shape = content
            return vectors[dtype][start : start + math.prod(shape)].reshape(shape).copy()
    raise ValueError(f"unknown kind {kind!r}")
