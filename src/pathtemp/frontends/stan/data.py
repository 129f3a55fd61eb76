"""Data of a Stan program: a dict or a JSON file, checked against the declarations and written as JSON."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp.api.arguments import kind_name
from pathtemp.errors import InputError
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import without_comments

Data = Mapping[str, Any] | str | os.PathLike[str] | None

TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".parquet", ".feather", ".npz", ".rds", ".rda", ".data.r")
"""How the names of files end that hold data otherwise than as JSON."""


def read_data(data: Data) -> dict[str, Any]:
    """The data as a dict; a string or path names a JSON file, or is JSON itself.

    >>> read_data('{"N": 3}')
    {'N': 3}
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        unnamed = [name for name in data if not isinstance(name, str)]
        if unnamed:
            raise InputError(f"data: the names must be strings, and {unnamed[0]!r} is not")
        return dict(data)
    if not isinstance(data, str | os.PathLike):
        frame = "; take its columns, as in {'N': len(df), 'y': df['y']}" if hasattr(data, "columns") else ""
        raise InputError(f"data: expected a dict or the path of a JSON file, got {kind_name(data)}{frame}")
    if str(data).lower().endswith(TABLES):
        raise InputError(
            f"data: {Path(data).name} is a table; read it, with pandas for instance, and give a dict of its columns"
        )
    text, name = (data, "data") if isinstance(data, str) and data.lstrip().startswith("{") else _read_file(Path(data))
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}, line {error.lineno}: this is not JSON ({error.msg})") from None
    if not isinstance(values, dict):
        raise InputError(f"{name}: a JSON object with one entry per data variable is needed, as in {{'N': 3}}")
    return values


def _read_file(path: Path) -> tuple[str, str]:
    try:
        return path.read_text(encoding="utf-8"), path.name
    except OSError as error:
        raise InputError(f"data: cannot read {str(path)!r} ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"data: {str(path)!r} is not a JSON text file") from None


def check_data(values: Mapping[str, Any], inputs: Mapping[str, Any], program: Program) -> dict[str, Any]:
    """The data that the program declares, as JSON has it; errors name the declaration.

    Parameters
    ----------
    values
        Data by name.
    inputs
        Declared types: the ``inputs`` of ``stanc --info``.
    program
        Where the declarations are, for messages.
    """
    checked = {}
    for name, declared in inputs.items():
        place = program.find(name, "data")
        if name not in values:
            near = [x for x in values if x.lower() == name.lower()] or difflib.get_close_matches(name, values, n=1)
            hint = f"; is {near[0]!r} meant?" if near else f"; data has {sorted(values) or 'no entries'}"
            raise InputError(f"{place}: the data variable {name!r} is not in data{hint}")
        try:
            checked[name] = _convert(values[name], declared)
        except InputError as error:
            raise InputError(f"{place}: the data variable {name!r} {error}") from None
    return checked


def _convert(value: Any, declared: Mapping[str, Any]) -> Any:
    kind, rank = declared["type"], int(declared["dimensions"])
    if isinstance(kind, list):
        return _convert_tuples(value, kind, rank)
    wanted = _kind_name(kind, rank)
    if np.ma.is_masked(value) or (isinstance(value, list | tuple) and any(x is None for x in value)):
        raise InputError(f"must be {wanted}, and has missing values; leave them out, or make them parameters")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.empty(0, dtype=object)
    if array.size == 0 and array.ndim <= rank and array.dtype != object:
        return array.tolist()
    if array.dtype.kind not in "biufc":
        raise InputError(f"must be {wanted}, and is {_describe(value)}")
    if kind == "complex":
        array = _complex_pairs(array, rank)
        rank += 1
    if array.ndim != rank:
        shape = f"of shape {array.shape}" if array.ndim else "a single number"
        raise InputError(f"must be {wanted}, and is {shape}")
    if array.dtype.kind == "c":
        raise InputError(f"must be {wanted}, and is complex")
    if kind == "int":
        whole = np.asarray(array, dtype=np.float64)
        if not np.all(np.isfinite(whole)) or np.any(whole != np.floor(whole)):
            raise InputError(f"must be {wanted}, and has other numbers, such as {_first_odd(whole)}")
        if array.size and np.max(np.abs(whole)) > 2**31 - 1:
            raise InputError("has integers beyond the 32 bits that Stan gives them")
        return array.astype(np.int64).tolist()
    return array.astype(np.float64).tolist()


def _convert_tuples(value: Any, kinds: list[Mapping[str, Any]], rank: int) -> Any:
    if rank > 0:
        return [_convert_tuples(item, kinds, rank - 1) for item in value]
    parts = [value[str(k + 1)] for k in range(len(kinds))] if isinstance(value, Mapping) else list(value)
    if len(parts) != len(kinds):
        raise InputError(f"must be a tuple of {len(kinds)}, and has {len(parts)} parts")
    return {str(k + 1): _convert(part, kind) for k, (part, kind) in enumerate(zip(parts, kinds, strict=True))}


def _complex_pairs(array: np.ndarray, rank: int) -> np.ndarray:
    """Complex numbers as pairs (real, imaginary); a real array with that last axis is taken as it is."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1)
    if array.ndim == rank:
        return np.stack([array, np.zeros_like(array)], axis=-1)
    return array


def _kind_name(kind: str, rank: int) -> str:
    one = {"int": "an integer", "real": "a real number", "complex": "a complex number"}[kind]
    many = {"int": "integers", "real": "real numbers", "complex": "complex numbers"}[kind]
    return one if rank == 0 else f"a {rank}-dimensional array of {many}"


def _describe(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "a list whose rows differ in length or hold something other than numbers"
    return f"{value!r}" if isinstance(value, str) or value is None else kind_name(value)


def _first_odd(whole: np.ndarray) -> float:
    return float(whole[~(np.isfinite(whole) & (whole == np.floor(whole)))].flat[0])


def to_json(values: Mapping[str, Any]) -> str:
    """JSON as Stan reads it; floats keep all their digits."""
    return json.dumps(values)


_MISMATCH = re.compile(r"variable name=(\w+);.*dims declared=\(([^)]*)\); dims found=\(([^)]*)\)")
_NEGATIVE = re.compile(
    r"negative dimension size.*variable=(\w+); dimension size expression=(.+?); expression value=(-\d+)"
)
_OUTCOME = re.compile(r"(?:^|[;{})])\s*(\w+)\s*(?:\[[^\]~;]*\])*\s*~|_lp[dm]f\s*\(\s*(\w+)")


def in_plain_words(message: str) -> str:
    """What Stan says of data that it does not take, without the names of its own stages.

    >>> in_plain_words("Exception: mismatch in dimension declared and found in context; processing stage=data "
    ...                "initialization; variable name=y; position=0; dims declared=(5); dims found=(4)")
    "'y' is declared with size (5), and data has (4)"
    """
    plain = " ".join(message.split()).removeprefix("Exception: ")
    mismatch, negative = _MISMATCH.search(plain), _NEGATIVE.search(plain)
    if mismatch:
        name, declared, found = mismatch.groups()
        return f"{name!r} is declared with size ({declared}), and data has ({found})"
    if negative:
        name, size, value = negative.groups()
        return f"{name!r} cannot have the size {size} = {value}"
    return plain


def observed_names(program: Program) -> frozenset[str]:
    """Names that stand left of a ``~``, or first in a density, in the model block."""
    code = without_comments(program.body("model")) if "model" in program.blocks else ""
    return frozenset(name for pair in _OUTCOME.findall(code) for name in pair if name)
