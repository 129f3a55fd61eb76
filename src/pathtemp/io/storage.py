"""Fits in files: netCDF that ArviZ and xarray read, written atomically, sealed, and opened without running any code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pathtemp.api.arguments import kind_name
from pathtemp.api.given import as_model, check_given
from pathtemp.errors import InputError
from pathtemp.io.atomic import new_file, write_new
from pathtemp.io.codec import decode, encode
from pathtemp.io.escape import escape, unescape_names
from pathtemp.io.printable import printable
from pathtemp.io.sealed import first_line, seal, unseal
from pathtemp.io.typed import check_type
from pathtemp.model.model import Model
from pathtemp.result.arviz import PATH_DRAWS, own_groups
from pathtemp.result.draws import stored_name
from pathtemp.result.fit import Fit
from pathtemp.result.kept_run import KeptRun, content_of
from pathtemp.result.margin_fit import MARGIN, MarginFit, with_margin

OWN_GROUP = "pathtemp"
DATA = ("observed_data", "constant_data")
RECORD, RUN = "record", "run"
IN_RECORD = (
    *("log_z", "diagnostics", "history", "counts", "seconds", "settings"),
    *("seed", "name", "exact_base", "about_base", "known_evidence", "remedy", "base_is_prior"),
    *("modes", "versions", "created_at"),
)


def save(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit to ``path``: groups that ArviZ knows, and one of our own for the rest.

    The file appears whole or not at all: it is written beside its place, synced, then moved there.
    """
    place = new_file("save", path)
    write_new("save", place, _content(fit))


def load(path: str | os.PathLike[str], *, model: Any = None) -> Fit:
    """Read a fit that :func:`save` wrote; it has everything but its model.

    Parameters
    ----------
    path
        The file.
    model
        The model that the run was of, for what needs it: ``fit.extend``, ``fit.predict`` and the log
        likelihoods of ``fit.to_arviz``.
    """
    try:
        place = Path(path)
    except TypeError:
        raise InputError(f"load: path must be the name of a file, and is {kind_name(path)}") from None
    if model is not None:
        check_given(model)
    arrays = unseal(place, "fit", "load")
    try:
        fit = _fit(arrays)
    except Exception as error:
        reason = f"load: {printable(str(place))} is damaged, or of another version of pathtemp ({first_line(error)})"
        raise InputError(reason) from error
    return fit if model is None else replace(fit, model=_checked(model, fit))


def _checked(given: Any, fit: Fit) -> Model:
    """The model where the fit can be of it."""
    model = as_model(given)
    for name in model.layout.shapes:
        if stored_name(fit.posterior, name) not in fit.posterior.data_vars:
            raise InputError(
                f"model: it has {name!r}, and the fit of {printable(fit.name)} does not; give its own model"
            )
    return model


def _content(fit: Fit) -> bytes:
    """The file as bytes. Made in memory: HDF5 does not survive a disk that is full half way."""
    groups = own_groups(fit) | (fit.margin_groups() if isinstance(fit, MarginFit) else {})
    tree = xr.DataTree.from_dict(groups)
    record = {name: getattr(fit, name) for name in IN_RECORD}
    text, vectors = encode({"fit": record, "groups": {name: _shape(data) for name, data in groups.items()}})
    run = content_of(fit.continuation)
    own = {RECORD: np.frombuffer(text.encode("ascii"), np.uint8), **vectors}
    own |= {} if run is None else {RUN: np.frombuffer(run, np.uint8)}
    tree.attrs = {"inference_library": "pathtemp", "created_at": fit.created_at}
    for node in tree.subtree:
        node.attrs = {name: _fixed(value) for name, value in node.attrs.items()}
    tree[OWN_GROUP] = xr.DataTree(xr.Dataset({name: (f"{name}_", x) for name, x in own.items()}))
    arrays = {f"{OWN_GROUP}/{name}": x for name, x in own.items()}
    for group, data in groups.items():
        arrays |= {f"{group}/{name}": _plain(x.values) for name, x in data.variables.items()}
    # Without a fill value NaNs are kept as they are, bit by bit.
    as_is = {
        node.path: {name: {"_FillValue": None} for name, x in node.variables.items() if x.dtype.kind == "f"}
        for node in tree.subtree
    }
    return seal("fit", tree.to_netcdf(engine="h5netcdf", encoding=as_is), arrays)


def _fixed(value: Any) -> Any:
    """Text of fixed length: HDF5 can hang on a damaged file with text of any other."""
    return np.bytes_(escape(value).encode()) if isinstance(value, str) else value


def _plain(values: np.ndarray) -> np.ndarray:
    """Labels that pandas holds as objects, as text of fixed length."""
    return values.astype(str) if values.dtype.kind not in "fiubUMm" else values


def _shape(data: xr.Dataset) -> dict[str, Any]:
    """What a Dataset has beside its numbers."""
    return {
        "variables": {str(name): [str(dim) for dim in x.dims] for name, x in data.variables.items()},
        "coords": [str(name) for name in data.coords],
        "attrs": {str(name): value for name, value in data.attrs.items()},
    }


def _fit(arrays: Mapping[str, np.ndarray]) -> Fit:
    own = {path.partition("/")[2]: x for path, x in arrays.items() if path.startswith(f"{OWN_GROUP}/")}
    whole = decode(own[RECORD].tobytes().decode("ascii"), own)
    record = whole["fit"]
    groups = {name: _dataset(name, shape, arrays) for name, shape in whole["groups"].items()}
    named = {name: unescape_names(data) for name, data in groups.items()}
    fit = Fit(
        posterior=named["posterior"],
        base=named["prior" if record["base_is_prior"] else "base"],
        path=named["path"],
        path_draws=named.get(PATH_DRAWS, xr.Dataset()),
        sample_stats=named["sample_stats"],
        data={name: named[name] for name in DATA if name in named},
        continuation=KeptRun(own[RUN].tobytes()) if RUN in own else None,
        **{name: record[name] for name in IN_RECORD},
    )
    check_type(fit)
    _check_sizes(fit)
    return with_margin(fit, groups) if MARGIN in groups else fit


def _dataset(group: str, shape: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
    variables = {name: (dims, arrays[f"{group}/{name}"]) for name, dims in shape["variables"].items()}
    return xr.Dataset(variables, attrs=shape["attrs"]).set_coords(shape["coords"])


def _check_sizes(fit: Fit) -> None:
    """Raise ValueError where parts do not go together, so that no later use of the fit fails."""
    curve, along = fit.log_z, fit.diagnostics
    if not (curve.lam.ndim == 1 and curve.lam.size > 0 and curve.lam.shape == curve.mean.shape == curve.stderr.shape):
        raise ValueError("the curve of log z has no shape")
    if not along.lam.shape == along.local_length.shape == along.acceptance.shape == along.visits.shape:
        raise ValueError("the diagnostics along the path are of several lengths")
    for data in (fit.posterior, fit.base, fit.path_draws):
        if any(x.dims[:2] != ("chain", "draw") for x in data.data_vars.values()):
            raise ValueError("draws are not over chain and draw")
    if (
        fit.path_draws.sizes.get("draw", 0) != fit.path.sizes.get("point", 0)
        or fit.path_draws.sizes.get("chain", 1) != 1
    ):
        raise ValueError("the draws of the path are not those of its points")
