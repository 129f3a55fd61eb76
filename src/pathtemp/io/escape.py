"""Names that a netCDF file and a DataTree can hold, reversibly."""

from __future__ import annotations

import re

import xarray as xr

# Slashes are groups, a leading dot is a folder, control characters and lone surrogates cannot be written.
_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f]|^\.|[\ud800-\udfff]")
_ESCAPED = re.compile(r"%(?:u([0-9A-F]{4})|([0-9A-F]{2}))")


def escape(name: str) -> str:
    """Percent-encode what cannot stand in a name.

    >>> escape("a/b"), escape("theta[1]"), escape("100%")
    ('a%2Fb', 'theta[1]', '100%25')
    """
    if not name:
        return "%"
    return _UNSAFE.sub(lambda m: f"%{ord(m[0]):02X}" if ord(m[0]) < 256 else f"%u{ord(m[0]):04X}", name)


def unescape(name: str) -> str:
    """Inverse of :func:`escape`.

    >>> unescape("a%2Fb"), unescape("100%25")
    ('a/b', '100%')
    """
    return "" if name == "%" else _ESCAPED.sub(lambda m: chr(int(m[1] or m[2], 16)), name)


def escape_names(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset with every variable, coordinate and dimension escaped."""
    return _rename(dataset, {str(name): escape(str(name)) for name in _names(dataset)})


def unescape_names(dataset: xr.Dataset) -> xr.Dataset:
    """Inverse of :func:`escape_names`."""
    return _rename(dataset, {str(name): unescape(str(name)) for name in _names(dataset)})


def _names(dataset: xr.Dataset) -> set[object]:
    return {*dataset.variables, *dataset.dims}


def _rename(dataset: xr.Dataset, new: dict[str, str]) -> xr.Dataset:
    return dataset.rename({old: name for old, name in new.items() if old != name})
