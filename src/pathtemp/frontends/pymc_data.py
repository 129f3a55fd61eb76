"""The data of a PyMC model, and new data from its posterior predictive distribution."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.result.draws import data_dataset

if TYPE_CHECKING:
    import pymc as pm


def dims_of(model: pm.Model, names: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Dims of some variables, and the coords of those."""
    named = {name: dims for name, dims in model.named_vars_to_dims.items() if name in set(names)}
    dims = {k: tuple(f"{k}_dim_{i}" if d is None else d for i, d in enumerate(v)) for k, v in named.items()}
    used = {d for names in dims.values() for d in names}
    return dims, {d: np.asarray(c) for d, c in model.coords.items() if c is not None and d in used}


def data_groups(model: pm.Model) -> dict[str, xr.Dataset]:
    """What the model observes, and its other data containers, as ``pm.sample`` has them."""
    from pymc.backends.arviz import find_constants, find_observations

    found = {"observed_data": find_observations(model), "constant_data": find_constants(model)}
    return {
        group: data_dataset({name: np.ma.getdata(x) for name, x in values.items()}, *dims_of(model, values))
        for group, values in found.items()
        if values
    }


def predictive_draws(model: pm.Model) -> Callable[[Mapping[str, FloatArray], int], dict[str, FloatArray]]:
    """New data at constrained draws, by ``pm.sample_posterior_predictive`` itself."""

    def draw(draws: Mapping[str, FloatArray], seed: int) -> dict[str, FloatArray]:
        import pymc

        names = [rv.name for rv in model.observed_RVs]
        rows = {
            name: (("chain", "draw", *(f"{name}_{axis}" for axis in range(x.ndim - 1))), x[None])
            for name, x in draws.items()
        }
        quiet = logging.getLogger("pymc.sampling.forward")
        level = quiet.level
        quiet.setLevel(logging.WARNING)
        try:
            made = pymc.sample_posterior_predictive(
                xr.Dataset(rows),
                model=model,
                var_names=names,
                random_seed=seed,
                progressbar=False,
                return_inferencedata=False,
            )
        finally:
            quiet.setLevel(level)
        return {name: np.asarray(made[name])[0] for name in names}

    return draw
