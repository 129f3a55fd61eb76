"""A model made again from what its checkpoint keeps of it, which is text and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.io.sealed import first_line
from pathtemp.model.model import Model

COMMAND_LINE = "command line"
"""What the recipe of a Python model is of that was named on the command line, which alone may import it again."""


def rebuilt(kept: Mapping[str, Any], *, progress: bool) -> Model:
    """The model of a checkpoint, where it was a Stan program; others are Python, of which a file holds nothing."""
    recipe = kept.get("recipe")
    if recipe is None or recipe["of"] == COMMAND_LINE:
        name = printable(str(kept["name"]))
        raise InputError(
            f"resume: the checkpoint of {name!r} holds no model, as that was made in Python; give the same as "
            "to pt.temper: pt.resume(path, model)"
        )
    from pathtemp.frontends.stan.recipe import STAN, from_recipe

    if recipe["of"] != STAN:
        kind = printable(str(recipe["of"]))[:100]
        raise InputError(f"resume: the checkpoint is of a {kind!r} model, which this version does not know")
    try:
        return from_recipe(recipe, progress=progress)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"resume: the Stan program in the checkpoint makes no sense ({first_line(error)})") from error


def named_object(kept: Mapping[str, Any]) -> str | None:
    """The ``module:object`` that a run was started with on the command line; None for any other.

    >>> named_object({"recipe": {"of": COMMAND_LINE, "object": "mymodels:make_model"}})
    'mymodels:make_model'
    """
    recipe = kept.get("recipe")
    return str(recipe["object"]) if recipe is not None and recipe["of"] == COMMAND_LINE else None
