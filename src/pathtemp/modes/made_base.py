"""The base that was made for a path as plain numbers, for checkpoints, and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from pathtemp.kernels.spread import on_device
from pathtemp.model.model import Model
from pathtemp.modes.bent_base import BentBase
from pathtemp.modes.choose import with_bent
from pathtemp.modes.mixture_base import MixtureBase, MixtureSampler


def numbers_of(model: Model) -> dict[str, Any] | None:
    """The numbers of the base of ``model``; None where it is the user's own."""
    base = model.log_base
    if isinstance(base, BentBase):
        return {"law": base.law}
    if not isinstance(base, MixtureBase):
        return None
    return {field.name: getattr(base, field.name) for field in fields(base) if field.name != "user"}


def with_numbers(model: Model, kept: dict[str, Any]) -> Model:
    """The user's model with the base of such numbers."""
    if "law" in kept:
        return with_bent(model, kept["law"])
    assert model.sample_base is not None
    base = MixtureBase(**{name: on_device(x) for name, x in kept.items()}, user=model.log_base)
    return replace(model, log_base=base, sample_base=MixtureSampler(base, model.sample_base))
