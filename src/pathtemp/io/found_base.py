"""The base that a run found for itself, kept with its checkpoint: another search might end a little elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathtemp.errors import InputError
from pathtemp.model.bases import Automatic
from pathtemp.model.model import Model
from pathtemp.modes.reference import with_found_base
from pathtemp.modes.student_base import PartBase, StudentBase


def kept_base(model: Model) -> dict[str, Any]:
    """What a checkpoint keeps of a base that was found; nothing of any other."""
    student = model.log_base.student if isinstance(model.log_base, PartBase) else model.log_base
    if not isinstance(student, StudentBase):
        return {}
    return {"base": {f.name: np.asarray(getattr(student, f.name)) for f in fields(StudentBase)}}


def with_kept_base(model: Model, kept: Mapping[str, Any]) -> Model:
    """The model with the base that the run had found, where it came without one.

    >>> from pathtemp.model.layout import Layout
    >>> bare = Model(Automatic(), lambda x: -jnp.sum(x**2), Layout({"x": (1,)}))
    >>> kept = {"centre": [0.0], "scale": [1.0], "basis": [[0.0]], "gain": [0.0], "df": 3.0}
    >>> round(float(with_kept_base(bare, {"base": kept}).log_base(jnp.zeros(1))), 4)
    -1.0009
    """
    if not isinstance(model.log_base, Automatic):
        return model
    if "base" not in kept:
        raise InputError("model: it has no base, and the run had one that was given; give the same model to pt.resume")
    return with_found_base(
        model, StudentBase(**{f.name: jnp.asarray(kept["base"][f.name]) for f in fields(StudentBase)})
    )
