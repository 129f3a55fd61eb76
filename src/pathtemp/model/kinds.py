"""What kind of model someone has given, told by its type alone, so that no library is imported to ask."""

from __future__ import annotations

import os
from typing import Any, Literal

Kind = Literal["model", "pymc", "stan", "function", ""]


def kind_of(value: Any) -> Kind:
    """What a value is a model of: ours, PyMC's, Stan's (a file or a text), any function; nothing where it is none.

    >>> kind_of("eight_schools.stan"), kind_of(lambda x: x), kind_of(3)
    ('stan', 'function', '')
    """
    homes = {cls.__module__.partition(".")[0] for cls in type(value).__mro__ if cls.__name__ in ("Model", "BaseModel")}
    if "pathtemp" in homes:
        return "model"
    if "pymc" in homes:
        return "pymc"
    compiled = hasattr(value, "stanlib") and hasattr(value, "lib_path")
    if compiled or isinstance(value, str | os.PathLike):
        return "stan"
    return "function" if callable(value) and not isinstance(value, type) else ""


def where_to(value: Any) -> str:
    """A hint which function takes a value; empty where none does.

    >>> where_to("a.stan")
    '; a Stan program goes to pt.from_stan'
    """
    return {
        "model": "; it is a model already, which pt.temper takes",
        "pymc": "; a PyMC model goes to pt.from_pymc",
        "stan": "; a Stan program goes to pt.from_stan",
        "function": "; a NumPyro model goes to pt.from_numpyro, a log density to target=",
        "": "",
    }[kind_of(value)]
