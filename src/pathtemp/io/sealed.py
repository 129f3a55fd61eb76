"""Sealed files: netCDF, then a table of where its arrays lie, then a checksum over all of it.

What reads netCDF (xarray, ArviZ, the netCDF library) stops where the netCDF ends and never sees the rest. pathtemp
reads the other way round: the checksum first, then the table, then plain numbers at the places that it gives. HDF5,
which can hang or crash on a file that someone has damaged or made up, and which follows links to other files, is never
asked.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.io.printable import printable

FORMAT = 6
"""Version of the layout of all files; files of another are refused."""

KINDS = {
    "fit": "a saved fit; pt.load opens it",
    "checkpoint": "the checkpoint of a run; go on with it by pt.resume, which gives the fit",
}
"""What a file may be, and what to do with it."""

SEAL_BYTES = 144
"""Length of the seal, in this version and any other."""

_SEAL = re.compile(
    rb"\npathtemp (?P<kind>[a-z]{1,12}) +format (?P<format>\d{4}) data (?P<body>[0-9a-f]{12}) "
    rb"table (?P<table>[0-9a-f]{12}) sha256 (?P<digest>[0-9a-f]{64})\n"
)
_HDF5 = b"\x89HDF\r\n\x1a\n"
_PLAIN_KINDS = "fiubUMm"
"""Kinds of NumPy dtypes that are plain bytes: numbers, fixed-length text, times."""


def seal(kind: str, netcdf: bytes | memoryview, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The whole file: ``netcdf``, what of ``arrays`` is not in it as it stands, their table, the seal.

    ``arrays`` are by their path in the netCDF, such as ``posterior/theta``.
    """
    places = _places(netcdf, arrays)
    parts, end, table = [bytes(netcdf)], len(netcdf), {}
    for path, x in arrays.items():
        if x.dtype.kind not in _PLAIN_KINDS:
            raise TypeError(f"an array of {x.dtype} cannot be written")
        at = places.get(path)
        if at is None:
            content = np.ascontiguousarray(x).tobytes()
            parts.append(content)
            at, end = end, end + len(content)
        table[path] = [x.dtype.str, list(x.shape), at]
    return stamp(kind, b"".join(parts), json.dumps(table))


def stamp(kind: str, data: bytes, table: str, *, version: int = FORMAT) -> bytes:
    """``data``, the table and the seal over both."""
    text = table.encode("ascii")
    head = f"\npathtemp {kind:<12} format {version:04d} data {len(data):012x} table {len(text):012x} sha256 "
    whole = b"".join([data, text, head.encode("ascii")])
    return b"".join([whole, hashlib.sha256(whole).hexdigest().encode("ascii"), b"\n"])


def _places(netcdf: bytes | memoryview, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Where in the netCDF the very bytes of an array lie, of those of which this is so."""
    import h5py  # HDF5 takes its time, which `import pathtemp` should not

    places = {}
    with h5py.File(io.BytesIO(netcdf), "r") as file:
        for path, x in arrays.items():
            at = file[path].id.get_offset() if path in file else None
            if at is not None and netcdf[at : at + x.nbytes] == np.ascontiguousarray(x).tobytes():
                places[path] = at
    return places


def unseal(place: Path, kind: str, caller: str) -> dict[str, np.ndarray]:
    """The arrays of a whole file of ``kind``; InputError with a sentence, begun by ``caller``, for any other file."""
    return unseal_bytes(read_plain(place, caller), printable(str(place)), kind, caller)


def unseal_bytes(content: bytes, name: str, kind: str, caller: str) -> dict[str, np.ndarray]:
    """The same of the bytes of a file, which messages call ``name``."""
    found = _SEAL.fullmatch(content[-SEAL_BYTES:]) if len(content) >= SEAL_BYTES else None
    if found is None:
        raise InputError(f"{caller}: {name} {_unsealed(content)}")
    if hashlib.sha256(memoryview(content)[:-65]).hexdigest().encode() != found["digest"]:
        raise InputError(f"{caller}: {name} is damaged: its content does not match its checksum")
    if int(found["format"]) != FORMAT:
        other = "a newer" if int(found["format"]) > FORMAT else "an older"
        raise InputError(f"{caller}: {name} was written by {other} pathtemp; open it with that version")
    written = found["kind"].decode()
    if written != kind:
        raise InputError(f"{caller}: {name} is {KINDS.get(written, 'no file of this kind')}")
    try:
        return _arrays(content, int(found["body"], 16), int(found["table"], 16))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{caller}: {name} is damaged: its table makes no sense ({first_line(error)})") from error


def read_plain(place: Path, caller: str) -> bytes:
    """The bytes of an ordinary file; no device and no pipe, which would never end."""
    try:
        descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        reason = "" if missing else f" that can be read ({getattr(error, 'strerror', None) or first_line(error)})"
        raise InputError(f"{caller}: there is no file {printable(str(place))}{reason}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{caller}: there is no file {printable(str(place))}, but a folder, a device or a pipe")
    with open(descriptor, "rb") as file:
        return file.read()


def first_line(error: Exception) -> str:
    """An error in one printable line."""
    return printable(f"{type(error).__name__}: {error}".splitlines()[0][:200])


def _unsealed(content: bytes) -> str:
    if not content.startswith(_HDF5):
        return "is not a file of pathtemp, or was cut short or damaged"
    return (
        "is netCDF without the checksum of pathtemp at its end: it was cut short or damaged, changed by another "
        "program, or written by an older pathtemp; xarray may still open its draws"
    )


def _arrays(content: bytes, body: int, table: int) -> dict[str, np.ndarray]:
    if body + table + SEAL_BYTES != len(content):
        raise ValueError("its parts are not as long as it says")
    entries: dict[str, Any] = json.loads(content[body : body + table])
    arrays, left = {}, body
    for path, (dtype_name, shape, at) in entries.items():
        dtype = np.dtype(dtype_name)
        # NumPy 2.0 lets the size of a very long text wrap around to a negative number.
        plain = dtype.kind in _PLAIN_KINDS and dtype.itemsize >= 0
        if not plain or not all(isinstance(n, int) and n >= 0 for n in [*shape, at]):
            raise ValueError(f"{path} is no plain array")
        size = math.prod(shape) * dtype.itemsize
        # Written once each, so that a small file cannot claim to hold much.
        left -= size
        if left < 0 or at + size > body:
            raise ValueError("it claims to hold more than it has")
        arrays[path] = np.frombuffer(content, dtype, math.prod(shape), at if size else 0).reshape(shape).copy()
    return arrays
