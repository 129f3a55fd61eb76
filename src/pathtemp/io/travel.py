"""A model on its way to another process of the user's own: what made it, where that is plain, or cloudpickle of it.

Unpickling runs code, so that this is for the user's own workers alone; no file that pathtemp writes holds it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pathtemp.errors import InputError
from pathtemp.io.found_base import kept_base, with_kept_base
from pathtemp.io.rebuild import COMMAND_LINE, rebuilt
from pathtemp.io.sealed import first_line
from pathtemp.model.model import Model

MOST_MODELS = 4
"""Models that a worker keeps: compiled programs belong to the model object, and each island brings the same one."""

_models: dict[str, Model] = {}


def packed(model: Model) -> bytes:
    """A model as bytes: a Stan program as its text, data and base, any other model by cloudpickle."""
    import cloudpickle

    recipe: Any = model.recipe
    if recipe is not None and recipe["of"] != COMMAND_LINE:
        return bytes(cloudpickle.dumps({"name": model.name, "recipe": recipe} | kept_base(model)))
    try:
        return bytes(cloudpickle.dumps(model))
    except Exception as error:
        raise InputError(
            f"model: {model.name!r} cannot be sent to workers ({type(error).__name__}: {first_line(error)}); make it "
            "of functions and arrays alone, or run it without client= and cluster="
        ) from error


def unpacked(content: bytes) -> Model:
    """The model that :func:`packed` made bytes of, the same object for the same bytes while it is kept."""
    import cloudpickle

    name = sha256(content).hexdigest()
    if name not in _models:
        kept = cloudpickle.loads(content)
        while len(_models) >= MOST_MODELS:
            del _models[next(iter(_models))]
        _models[name] = kept if isinstance(kept, Model) else with_kept_base(rebuilt(kept, progress=False), kept)
    return _models[name]
