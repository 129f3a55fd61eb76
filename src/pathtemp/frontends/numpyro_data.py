"""The data of a NumPyro model, and new data from its posterior predictive distribution."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.result.draws import data_dataset
from pathtemp.seeds import KeyStream, stream_key


def data_groups(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    observed: Mapping[str, Any],
    *,
    dims: Mapping[str, tuple[str, ...]],
) -> dict[str, xr.Dataset]:
    """The values of the observed sites, and the arguments of the model that are none of them, by their names."""
    seen = {name: np.asarray(x) for name, x in observed.items() if np.size(x)}  # a factor has no values
    constant = {
        name: x
        for name, x in _arguments(model, args, kwargs).items()
        if x is not None and not any(_same(x, value) for value in seen.values())
    }
    groups = {"observed_data": data_dataset(seen, dims), "constant_data": data_dataset(constant)}
    return {group: data for group, data in groups.items() if data.data_vars}


def predictive_draws(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Sequence[str]
) -> Callable[[Mapping[str, FloatArray], int], dict[str, FloatArray]]:
    """New values of the observed sites at constrained draws, with the arguments that the model was given."""

    def draw(draws: Mapping[str, FloatArray], seed: int) -> dict[str, FloatArray]:
        from numpyro.infer import Predictive

        rows = {name: jnp.asarray(x) for name, x in draws.items()}
        free = Predictive(_unobserved(model), posterior_samples=rows, return_sites=list(names))
        made = free(stream_key(jnp.uint32(seed), KeyStream.PREDICTIVE), *args, **kwargs)
        return {name: np.asarray(x) for name, x in made.items() if np.size(x)}

    return draw


def _unobserved(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model with its observed sites drawn, each in the shape of what it observed."""
    from numpyro.primitives import Messenger

    class Unobserved(Messenger):  # type: ignore[misc]
        def process_message(self, msg: dict[str, Any]) -> None:
            if msg["type"] != "sample" or not msg["is_observed"] or not np.size(msg["value"]):
                return
            law = msg["fn"]
            # A distribution of one number may observe many.
            shape = jnp.shape(msg["value"])
            batch = jnp.broadcast_shapes(law.batch_shape, shape[: len(shape) - law.event_dim])
            msg["fn"], msg["value"], msg["is_observed"] = law.expand(batch), None, False

    return Unobserved(model)


def _arguments(model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the model was given, by the names of its parameters."""
    try:
        bound = inspect.signature(model).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a callable without a signature of its own
        return dict(kwargs)
    return dict(bound.arguments)


def _same(given: Any, value: FloatArray) -> bool:
    """Whether an argument holds the values of an observed site."""
    try:
        array = np.asarray(given)
        return array.shape == value.shape and bool(np.array_equal(array, value, equal_nan=array.dtype.kind == "f"))
    except (TypeError, ValueError):
        return False
