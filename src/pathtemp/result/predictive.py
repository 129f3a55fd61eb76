"""New data from the posterior predictive distribution of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from pathtemp.errors import InputError
from pathtemp.result.draws import predicted_dataset

if TYPE_CHECKING:
    from pathtemp.result.fit import Fit

ENDINGS = ("_rep", "_pred", "_tilde", "_new")
"""How Stan programs end the names of generated data."""


def predictions(fit: Fit, seed: int) -> xr.Dataset:
    """New data over (chain, draw, ...): by the model where it makes them, else those that a Stan program generated."""
    if fit.model is not None and fit.model.predictive is not None:
        return predicted_dataset(fit.model, fit.posterior, seed)
    generated = [str(name) for name in fit.posterior.data_vars if str(name).endswith(ENDINGS)]
    if generated:
        return fit.posterior[generated]
    if fit.model is None:
        raise InputError("predict: a fit from a file has no model; give it to pt.load, as model=")
    raise InputError(
        f"predict: {fit.name} does not say how to make new data; PyMC and NumPyro models with observed variables do, "
        "and Stan programs with generated quantities such as y_rep"
    )
