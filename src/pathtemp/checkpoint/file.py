"""Checkpoints in files: netCDF4 with a checksum, replaced whole, the one before kept; opening one runs no code."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp.atomic import write_whole
from pathtemp.codec import decode, encode
from pathtemp.errors import InputError
from pathtemp.io.persistent import storable_classes

FORMAT = 3
"""Version of the layout; a checkpoint of another is refused."""

IN_FOLDER = "checkpoint.nc"
"""Name of the file where the user gave a folder."""

RECORD = "record"


def place_of(path: str | os.PathLike[str]) -> Path:
    """The file of a checkpoint that the user calls ``path``, which may be a folder."""
    place = Path(os.path.realpath(path))
    return place / IN_FOLDER if place.is_dir() else place


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
        raise InputError(f"checkpoint: there is no folder {place.parent}; make it first")
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"checkpoint: the folder {place.parent} cannot be written to")
    if place.exists() or before(place).exists():
        raise InputError(f"checkpoint: {place} is there already; go on with it by pt.resume, or remove it")
    return place


def write(place: Path, record: Mapping[str, Any]) -> None:
    """Write a record of plain values, arrays and the classes that a checkpoint may hold; OSError where it cannot."""
    write_whole(place, _pack(record), before=before(place))


def read_last(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The record of the last good checkpoint: the file, or, with a warning, the one before where it is damaged."""
    place = place_of(path)
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
    if not place.is_file():
        raise InputError(f"resume: there is no file {place}")
    # Imported here because HDF5 takes its time, which `import pathtemp` should not.
    import h5netcdf

    try:
        with h5netcdf.File(place, "r") as file:
            attributes = dict(file.attrs)
            names = [name for name, x in file.variables.items() if x.dtype == np.uint8 and x.ndim == 1]
            size = sum(file.variables[name].shape[0] for name in names)
            if size > place.stat().st_size:
                raise ValueError(f"it claims to hold {size:,} bytes, more than it has")
            parts = {name: np.asarray(file.variables[name][...]) for name in names}
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"resume: {place} is no checkpoint, or was cut short or damaged ({reason})") from error
    if "pathtemp_checkpoint" not in attributes:
        what = "a saved fit; pt.load opens it" if "pathtemp_format" in attributes else "of another program"
        raise InputError(f"resume: {place} is not a checkpoint of pathtemp, but {what}")
    if attributes["pathtemp_checkpoint"] != FORMAT:
        raise InputError(f"resume: {place} was written by another version of pathtemp; resume it with that one")
    if attributes.get("checksum") != _checksum(parts):
        raise InputError(f"resume: {place} is damaged: its content does not match its checksum")
    try:
        vectors = {name: x.view(np.dtype(name)) for name, x in parts.items() if name != RECORD}
        record: dict[str, Any] = decode(parts[RECORD].tobytes().decode(), vectors, storable_classes())
    except Exception as error:
        raise InputError(f"resume: {place} cannot be read by this version of pathtemp ({error})") from error
    return record


def _pack(record: Mapping[str, Any]) -> bytes:
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
        file.attrs["pathtemp_checkpoint"] = FORMAT
        file.attrs["checksum"] = _checksum(parts)
    return buffer.getvalue()


def _checksum(parts: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name} {parts[name].size} ".encode())
        digest.update(np.ascontiguousarray(parts[name]).data)
    return digest.hexdigest()
