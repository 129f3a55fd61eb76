"""What the user names on the command line, as a model."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pathtemp.api.arguments import kind_name
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.io.rebuild import COMMAND_LINE, named_object
from pathtemp.model.model import Model


def open_model(
    name: str, *, data: Path | None, base: Path | None, include: Sequence[Path], seed: int, progress: bool
) -> Model:
    """The model of a Stan file, or of ``module:object``."""
    module, colon, attribute = name.partition(":")
    if colon and not name.endswith(".stan") and not os.path.exists(name):
        if data is not None or base is not None or include:
            raise InputError("--data, --base and --include go with a Stan program; a Python model brings its own")
        return replace(python_model(module, attribute), recipe={"of": COMMAND_LINE, "object": name})
    if name.endswith(".py"):
        named = printable(Path(name).stem)
        raise InputError(f"model: name the model in {printable(name)!r} as well, as in {named}:make_model")
    from pathtemp.frontends.stan import from_stan

    automatic = base is not None and str(base) == "auto"
    if base is not None and not automatic and not base.is_file():
        raise InputError(f"--base: there is no Stan program {printable(str(base))!r}; give its file, or auto")
    return from_stan(
        Path(name),
        None if automatic else base,
        data=data,
        base="auto" if automatic else None,
        include_paths=include,
        seed=seed,
        progress=progress,
    )


def refuse_named(checkpoint: Path, kept: Mapping[str, Any]) -> None:
    """Show the ``module:object`` that a checkpoint names, where it names one: only what the user names is imported.

    Whoever made the file chose the name, and importing runs code.
    """
    name = named_object(kept)
    if name is not None:
        typed = [shlex.quote(printable(str(part))[:200]) for part in (name, checkpoint)]
        raise InputError(
            f"--resume: the checkpoint names {typed[0]} as its model, which is Python code; if you trust it, name it "
            f"yourself: pathtemp run {typed[0]} --checkpoint {typed[1]} --resume"
        )


def python_model(module: str, attribute: str) -> Model:
    """The model called ``attribute`` of a module, or what the function of that name returns.

    >>> python_model("pathtemp.testing", "cauchy_pair").name
    'cauchy_pair'
    """
    if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        raise InputError(f"model: {module}:{attribute} is no module:object, such as mymodels:make_model")
    # Modules of the user lie where the command is called.
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise
        raise InputError(f"model: there is no module {module!r} here; call pathtemp where it lies") from error
    finally:
        sys.path.pop(0)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"model: the module {module!r} has no {attribute!r}")
        found = getattr(found, part)
    return _as_model(f"{module}:{attribute}", found() if _is_maker(found) else found)


def _is_maker(found: Any) -> bool:
    return callable(found) and not isinstance(found, Model) and not _is_pymc(found)


def _is_pymc(found: Any) -> bool:
    return any(cls.__module__.startswith("pymc.") and cls.__name__ == "Model" for cls in type(found).__mro__)


def _as_model(name: str, found: Any) -> Model:
    if isinstance(found, Model):
        return found
    if _is_pymc(found):
        from pathtemp.frontends.pymc import from_pymc

        return from_pymc(found)
    if isinstance(getattr(found, "model", None), Model):
        model: Model = found.model
        return model
    raise InputError(
        f"model: {name} is {kind_name(found)}; expected a pathtemp model, such as pt.from_numpyro(...) returns, "
        "a PyMC model, or a function without arguments that returns one"
    )
