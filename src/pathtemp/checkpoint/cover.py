"""The base that a run found for itself, kept with its checkpoint: another search might end a little elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp.bases import Automatic
from pathtemp.errors import InputError
from pathtemp.model import Model
from pathtemp.modes.reference import Cover, with_cover


def cover_of(model: Model) -> dict[str, Any]:
    """What a checkpoint keeps of a base that was found; nothing of any other."""
    if not isinstance(model.log_base, Cover):
        return {}
    return {"cover": {"centre": np.asarray(model.log_base.centre), "scale": np.asarray(model.log_base.scale)}}


def with_kept_cover(model: Model, kept: Mapping[str, Any]) -> Model:
    """The model with the base that the run had found, where it came without one.

    >>> from pathtemp.layout import Layout
    >>> bare = Model(Automatic(), lambda x: -jnp.sum(x**2), Layout({"x": (1,)}))
    >>> round(float(with_kept_cover(bare, {"cover": {"centre": [0.0], "scale": [1.0]}}).log_base(jnp.zeros(1))), 4)
    -1.0009
    """
    if not isinstance(model.log_base, Automatic):
        return model
    if "cover" not in kept:
        raise InputError("model: it has no base, and the run had one that was given; give the same model to pt.resume")
    return with_cover(model, Cover(*(jnp.asarray(kept["cover"][name]) for name in ("centre", "scale"))))
