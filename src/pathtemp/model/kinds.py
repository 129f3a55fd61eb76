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
    return "function" if callable(value) and not (isinstance(value, type) or is_distribution(value)) else ""


def is_distribution(value: Any) -> bool:
    """Whether a value can be a base: it has a log density and draws, and may be callable besides, as NumPyro's are."""
    return hasattr(value, "log_prob") and hasattr(value, "sample")


def where_to(value: Any) -> str:
    """A hint which function takes a value; empty where none does.

    >>> where_to("a.stan")
    '; a Stan program goes to pt.from_stan'
    """
    if is_distribution(value):
        return "; a distribution goes to base=, beside a log density as target="
    return {
        "model": "; it is a model already, which pt.temper takes",
        "pymc": "; a PyMC model goes to pt.from_pymc",
        "stan": "; a Stan program goes to pt.from_stan",
        "function": "; a NumPyro model goes to pt.from_numpyro, a log density to target=",
        "": "",
    }[kind_of(value)]
