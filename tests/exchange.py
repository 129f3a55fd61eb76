"""Fits that one set of versions saves and another opens: `python tests/exchange.py save FILE`, `... open FILE...`.

Each opened file is one line: a digest of its draws as ``pt.load`` reads them, and as xarray does through h5netcdf.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
import xarray as xr
from synthetic import cauchy_fit

import pathtemp as pt


def digest(posterior: xr.Dataset) -> str:
    """Of all numbers of a group, by name."""
    whole = hashlib.sha256()
    for name in sorted(map(str, posterior.data_vars)):
        whole.update(name.encode() + np.ascontiguousarray(posterior[name].values).tobytes())
    return whole.hexdigest()[:16]


def opened(place: Path) -> str:
    """The two digests of one file."""
    return f"{digest(pt.load(place).posterior)} {digest(xr.load_dataset(place, group='posterior', engine='h5netcdf'))}"


def main() -> None:
    command, *names = sys.argv[1:]
    for place in map(Path, names):
        if command == "save":
            cauchy_fit().save(place)
        else:
            print(opened(place))


if __name__ == "__main__":
    main()
