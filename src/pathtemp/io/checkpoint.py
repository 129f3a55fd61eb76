"""Checkpoints in files: sealed netCDF, replaced whole, the one before kept; opening one runs no code."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.io import lock
from pathtemp.io.atomic import write_whole
from pathtemp.io.codec import decode, encode
from pathtemp.io.persistent import missing_extra, storable_classes
from pathtemp.io.printable import printable
from pathtemp.io.sealed import first_line, seal, unseal, unseal_bytes
from pathtemp.io.typed import check_type

IN_FOLDER = "checkpoint.nc"
"""Name of the file where the user gave a folder."""

RECORD = "record"


def place_of(path: str | os.PathLike[str]) -> Path:
    """The file of a checkpoint that the user calls ``path``, which may be a folder."""
    if path == "":
        raise InputError('checkpoint: its name is empty; "." is this folder')
    try:
        place = Path(os.path.realpath(path))
        os.fsencode(place)
        place = place / IN_FOLDER if place.is_dir() else place
        before(place).exists()  # whose name is longer
        return place
    except (TypeError, ValueError, OSError) as error:
        reason = printable(str(error))[:60]
        raise InputError(f"checkpoint: {printable(str(path))[:60]!r} is no name of a file ({reason})") from None


def before(place: Path) -> Path:
    """Where the checkpoint of one round earlier is kept.

    >>> before(Path("run.nc")).name
    'run.nc.before'
    """
    return place.with_name(f"{place.name}.before")


def new_place(path: str | os.PathLike[str]) -> Path:
    """The file of a checkpoint that is to be made, where it can be made and would hide no other."""
    place = place_of(path)
    if not place.parent.is_dir():
        raise InputError(f"checkpoint: there is no folder {printable(str(place.parent))}; make it first")
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"checkpoint: the folder {printable(str(place.parent))} cannot be written to")
    if place.exists() or before(place).exists():
        raise InputError(
            f"checkpoint: {printable(str(place))} is there already; go on with it by pt.resume, or remove it"
        )
    lock.expect_new(place)
    return place


def write(place: Path, record: Mapping[str, Any]) -> None:
    """Write a record of plain values, arrays and the classes that a checkpoint may hold; OSError where it cannot."""
    write_whole(place, packed(record), before=before(place))


def read_last(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The record of the last good checkpoint: the file, or, with a warning, the one before where it is damaged."""
    place = place_of(path)
    lock.take_as_it_is(place)
    try:
        return read(place)
    except InputError as error:
        if not before(place).is_file():
            raise
        try:
            record = read(before(place))
        except InputError:
            raise error from None
        warnings.warn(f"{error}; going on from one round earlier, in {before(place)}", stacklevel=3)
        return record


def read(place: Path) -> dict[str, Any]:
    """The record of one file; InputError with a sentence where it is not whole, or none of ours."""
    return _record(unseal(place, "checkpoint", "resume"), printable(str(place)))


def unpacked(content: bytes) -> dict[str, Any]:
    """The record of the bytes that :func:`packed` made."""
    return _record(unseal_bytes(content, "the run of this fit", "checkpoint", "extend"), "the run of this fit")


def _record(parts: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    try:
        vectors = {name: x.view(np.dtype(name)) for name, x in parts.items() if name != RECORD}
        record: dict[str, Any] = decode(parts[RECORD].tobytes().decode(), vectors, storable_classes())
        _check(record)
    except Exception as error:
        missing = missing_extra()
        reason = f"by this version of pathtemp ({first_line(error)})" if missing is None else f"here: {missing}"
        raise InputError(f"resume: {name} cannot be read {reason}") from error
    return record


def _check(record: Mapping[str, Any]) -> None:
    """Raise where what every checkpoint says is missing, or of another type."""
    check_type(record["plan"])
    model, recipe = record["model"], record["model"].get("recipe")
    known = {"name": str, "dim": int, "versions": dict}
    if not all(isinstance(model.get(name), kind) for name, kind in known.items()):
        raise TypeError("it says too little of its model")
    if recipe is not None and not isinstance(recipe["of"], str):
        raise TypeError("its model is of no kind")
    if not isinstance(record["state"], dict):
        raise TypeError("it has no state")


def packed(record: Mapping[str, Any]) -> bytes:
    """The file as bytes. Made in memory: HDF5 does not survive a disk that is full half way."""
    import h5netcdf

    text, vectors = encode(record, storable_classes())
    # As bytes, because netCDF has no booleans.
    parts = {RECORD: np.frombuffer(text.encode(), np.uint8)}
    parts |= {dtype: np.ascontiguousarray(x).view(np.uint8) for dtype, x in vectors.items()}
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for name, x in parts.items():
            file.dimensions[f"{name}_bytes"] = len(x)
            file.create_variable(name, (f"{name}_bytes",), data=x)
    return seal("checkpoint", buffer.getbuffer(), parts)
