"""Flat draws of an engine as an xarray Dataset: constrained, named, with dimensions and coordinates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.model.model import Model

SAMPLE_DIMS = ("chain", "draw")

RENAMED = "renamed"
"""Attribute of draws with the model's names of variables that xarray holds under another, as JSON."""


def draws_dataset(model: Model, flat: FloatArray, *, of_base: bool = False) -> xr.Dataset:
    """Constrained draws by name: ``(chain, draw, dim)`` to a Dataset over (chain, draw, ...).

    Names, dims and coords are the layout's. A variable with the name of a dimension, which xarray cannot
    hold, gets an underscore. Called with one point, ``flat`` of shape (1, 1, dim), it checks dims and coords
    before any sampling.

    >>> from pathtemp.model import bases, model
    >>> m = model.model(lambda x: -0.5 * (x**2).sum(), bases.normal(0.0, 1.0, shape=(2,)))
    >>> dict(draws_dataset(m, np.zeros((3, 5, 2))).sizes)
    {'chain': 3, 'draw': 5, 'theta_dim_0': 2}
    """
    chains, count, dim = flat.shape
    rows = (model.base_draws if of_base else model.draws)(flat.reshape(chains * count, dim))
    ordered = [
        *(name for name in model.layout.shapes if name in rows),
        *(n for n in rows if n not in model.layout.shapes),
    ]
    layout = model.layout
    named = {name: rows[name] for name in ordered}
    return _dataset(named, (chains, count), layout.dims, layout.coords, first_index=layout.first_index)


def log_likelihood_dataset(model: Model, posterior: xr.Dataset) -> xr.Dataset:
    """Log likelihood of each observation at the draws of ``draws_dataset``, over (chain, draw, ...)."""
    if model.pointwise is None:
        raise InputError(
            f"log_likelihood: {model.name} gives no likelihood of single observations; PyMC and NumPyro models with "
            "observed variables do, and Stan programs whose generated quantities have log_lik"
        )
    terms = model.pointwise.evaluate(flat_draws(model, posterior))
    return _dataset(terms, _sample_shape(posterior), model.pointwise.dims, model.pointwise.coords)


def predicted_dataset(model: Model, posterior: xr.Dataset, seed: int) -> xr.Dataset:
    """New data at the draws of ``draws_dataset``, one set for each draw, over (chain, draw, ...)."""
    assert model.predictive is not None
    made = model.predictive.draw(flat_draws(model, posterior), seed)
    return _dataset(made, _sample_shape(posterior), model.predictive.dims, model.predictive.coords)


def flat_draws(model: Model, posterior: xr.Dataset) -> dict[str, FloatArray]:
    """The variables of the layout by the model's own names, all chains one after the other, ``(n, ...)``."""
    values = {name: posterior[stored_name(posterior, name)].values for name in model.layout.shapes}
    return {name: x.reshape(-1, *x.shape[2:]) for name, x in values.items()}


def _sample_shape(posterior: xr.Dataset) -> tuple[int, int]:
    return posterior.sizes["chain"], posterior.sizes["draw"]


def data_dataset(
    values: Mapping[str, Any],
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    *,
    first_index: int = 0,
) -> xr.Dataset:
    """Data by name as a Dataset; what is no array of numbers is left out.

    >>> data_dataset({"y": [1.0, 2.0], "how": "text"}, {"y": ("school",)})["y"].dims
    ('school',)
    """
    arrays = {str(name): np.asarray(x) for name, x in values.items() if _is_numeric(x)}
    if not arrays:
        return xr.Dataset()
    rows = {name: x[None] for name, x in arrays.items()}
    named = {name: d for name, d in (dims or {}).items() if name in rows and len(d) <= arrays[name].ndim}
    used = {d for names in named.values() for d in names}
    known = {name: x for name, x in (coords or {}).items() if name in used}
    whole = _dataset(rows, (1, 1), named, known, first_index=first_index)
    return whole.isel(chain=0, draw=0, drop=True)


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "fiub"
    except (TypeError, ValueError):
        return False


def _dataset(
    rows: Mapping[str, FloatArray],
    sample: tuple[int, int],
    named: Mapping[str, tuple[str, ...]],
    coordinates: Mapping[str, Any],
    *,
    first_index: int = 0,
) -> xr.Dataset:
    """Rows ``(chain * draw, ...)`` by name as a Dataset over (chain, draw, ...)."""
    # Imported here because ArviZ imports matplotlib where there is one, which `import pathtemp` should not.
    from arviz_base import dict_to_dataset

    values = {name: np.array(x).reshape(*sample, *np.shape(x)[1:]) for name, x in rows.items()}
    coords = {name: _coordinate(name, x) for name, x in coordinates.items()}
    dims = {name: named.get(name, ()) for name in values}
    _check_dims({name: x.shape[2:] for name, x in values.items()}, dims, coords)
    taken = {*SAMPLE_DIMS, *coords, *(d for names in dims.values() for d in names)}
    taken |= {f"{name}_dim_{axis}" for name, x in values.items() for axis in range(x.ndim - 2)}
    free = _free_names(values, taken)
    dataset: xr.Dataset = dict_to_dataset(
        {free[name]: x for name, x in values.items()},
        dims={free[name]: list(d) for name, d in dims.items()},
        coords=coords,
        sample_dims=list(SAMPLE_DIMS),
        index_origin=first_index,
        check_conventions=False,  # more chains than draws is usual here
    )
    dataset.attrs.clear()
    if first_index:  # of the variables alone
        dataset = dataset.assign_coords({d: np.arange(n) for d, n in zip(SAMPLE_DIMS, sample, strict=True)})
    renamed = {new: name for name, new in free.items() if new != name}
    if renamed:
        dataset.attrs[RENAMED] = json.dumps(renamed)
    return dataset


def shown_name(dataset: xr.Dataset, stored: str) -> str:
    """What the model calls a variable that a Dataset holds under another name.

    >>> shown_name(xr.Dataset(attrs={"renamed": '{"draw_": "draw"}'}), "draw_")
    'draw'
    """
    try:
        names = json.loads(str(dataset.attrs.get(RENAMED, "{}")))
    except ValueError:
        return stored
    return str(names.get(stored, stored)) if isinstance(names, dict) else stored


def stored_name(dataset: xr.Dataset, name: str) -> str:
    """Under which name a Dataset holds what the model calls ``name``."""
    known = {shown_name(dataset, str(stored)): str(stored) for stored in dataset.data_vars}
    return known.get(name, name)


def _coordinate(name: str, values: Any) -> Any:
    """Coordinate values that a netCDF file can hold: numbers, dates or text; anything else becomes text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"coords: {name!r} must be a list of values, and is {values!r}")
    items = list(values)
    plain = np.asarray(values) if all(np.ndim(x) == 0 for x in items) else np.empty(0, object)
    return plain if plain.dtype.kind in "iufbUM" else np.array([str(x) for x in items], dtype=str)


def _check_dims(
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
) -> None:
    sizes: dict[str, tuple[int, str]] = {d: (len(x), "its coordinate") for d, x in coords.items()}
    for name, shape in shapes.items():
        named = dims[name]
        if len(named) > len(shape):
            raise InputError(f"dims: {name!r} has {len(shape)} axes, and dims names {len(named)}: {list(named)}")
        if len(set(named)) < len(named) or set(named) & set(SAMPLE_DIMS):
            raise InputError(
                f"dims: {name!r} has {list(named)}; name each axis differently, none of them chain or draw"
            )
        for d, size in zip(named, shape, strict=False):
            known, where = sizes.setdefault(d, (size, repr(name)))
            if known != size:
                raise InputError(f"dims: {d!r} has length {size} in {name!r} and {known} in {where}; they must agree")


def _free_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Each name, with underscores added until no dimension and no other variable has it."""
    free: dict[str, str] = {}
    used = taken | set(names)
    for name in names:
        new = name
        while new in (taken if new == name else used):
            new += "_"
        used.add(new)
        free[name] = new
    return free
