"""Fits in files: netCDF4 that ArviZ and xarray read, written atomically, opened without running any code."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pathtemp.atomic import write_whole
from pathtemp.codec import decode, encode
from pathtemp.errors import InputError
from pathtemp.escape import unescape_names
from pathtemp.fit import Fit
from pathtemp.margin_fit import MARGIN, with_margin

FORMAT = 1
"""Version of the layout of the file; raised when an older pathtemp could not read it."""

OWN_GROUP = "pathtemp"
RECORD = "record"
IN_RECORD = (
    *("log_z", "diagnostics", "history", "counts", "seconds", "settings"),
    *("seed", "name", "exact_base", "about_base", "known_evidence", "modes", "versions", "created_at"),
)


def save(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit to ``path``: posterior, prior and sample_stats as ArviZ has them, and a group for the rest.

    The file appears whole or not at all: it is written beside its place, synced, then moved there.
    """
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"save: there is no folder {place.parent}; make it first")
    if place.is_dir():
        raise InputError(f"save: {place} is a folder; give the name of a file in it")
    content = _content(_tree(fit))
    try:
        write_whole(place, content)
    except OSError as error:
        reason = f"save: could not write {place}, which is as it was before ({error.strerror})"
        raise OSError(error.errno, reason) from error


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit that :func:`save` wrote; it has everything but its model."""
    # Imported here because HDF5 takes its time, which `import pathtemp` should not.
    import h5netcdf

    place = Path(path)
    if not place.is_file():
        raise InputError(f"load: there is no file {place}")
    try:
        with h5netcdf.File(place, "r") as file:
            written = int(file.attrs.get("pathtemp_format", 0))
            unfinished = "pathtemp_checkpoint" in file.attrs
            size = _size(file)
    except Exception as error:
        reason = f"load: {place} is not a netCDF file, or was cut short or damaged ({_first_line(error)})"
        raise InputError(reason) from error
    if unfinished:
        raise InputError(f"load: {place} is the checkpoint of a run; go on with it by pt.resume, which gives the fit")
    if written < 1:
        raise InputError(f"load: {place} is a netCDF file, but not a fit that pathtemp saved")
    if written > FORMAT:
        raise InputError(f"load: {place} was saved by a newer pathtemp; upgrade pathtemp to read it")
    if size > 2 * place.stat().st_size:
        raise InputError(f"load: {place} is damaged: it claims to hold {size:,} bytes, more than it has")
    try:
        return _read(place)
    except Exception as error:
        reason = f"load: {place} is damaged, or of another version of pathtemp ({_first_line(error)})"
        raise InputError(reason) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _tree(fit: Fit) -> xr.DataTree:
    text, vectors = encode({name: getattr(fit, name) for name in IN_RECORD})
    tree = fit.to_arviz()
    tree.attrs = {"pathtemp_format": FORMAT, "inference_library": "pathtemp", "created_at": fit.created_at}
    # The record is a variable because an HDF5 attribute cannot hold more than 64 kB.
    variables = {dtype: (f"{dtype}s", x) for dtype, x in vectors.items()}
    tree[OWN_GROUP] = xr.DataTree(xr.Dataset({RECORD: ((), text), **variables}))
    return tree


def _content(tree: xr.DataTree) -> bytes | memoryview:
    # Without a fill value NaNs are kept as they are, bit by bit.
    plain = {
        node.path: {name: {"_FillValue": None} for name, x in node.variables.items() if x.dtype.kind == "f"}
        for node in tree.subtree
    }
    # Made in memory first: HDF5 does not survive a disk that is full half way.
    return tree.to_netcdf(engine="h5netcdf", encoding=plain)


def _size(group: Any) -> int:
    """Bytes of all numbers in a file as its headers claim, before any is read."""
    numbers = [x for x in group.variables.values() if x.dtype != str]
    own: int = sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in numbers)
    return sum((_size(child) for child in group.groups.values()), own)


def _read(place: Path) -> Fit:
    with xr.open_datatree(place, engine="h5netcdf", mask_and_scale=False) as tree:
        tree.load()
        groups = {name: node.to_dataset(inherit=False).drop_encoding() for name, node in tree.children.items()}
    own = groups[OWN_GROUP]
    record = decode(str(own[RECORD].item()), {str(name): x.values for name, x in own.data_vars.items()})
    posterior, base, path = (unescape_names(groups[name]) for name in ("posterior", "prior", "sample_stats"))
    fit = Fit(posterior=posterior, base=base, path=path, **{name: record[name] for name in IN_RECORD if name in record})
    return with_margin(fit, groups) if MARGIN in groups else fit
