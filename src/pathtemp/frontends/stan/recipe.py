"""All that it takes to make the model of a Stan program again, as plain values: no code, no pickles, no file names."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.frontends.stan.opening import Opened, Stored
from pathtemp.frontends.stan.source import Place, Source
from pathtemp.model.bases import Normal, is_automatic, normal
from pathtemp.model.model import Model

STAN = "stan"
"""What a recipe of this kind is of."""


def stan_recipe(opened: Sequence[Opened], *, base: Any, seed: int, name: str) -> dict[str, Any] | None:
    """The recipe of a model: programs with their data, and the base; None where one of them is more than text.

    A program that someone else compiled is a library, and a base may be any function; neither can be kept.
    """
    kept = None if base is None else _plain_base(base)
    if any(item.program is None for item in opened) or (base is not None and kept is None):
        return None
    data: dict[str, Any] = {}
    for item in opened:
        data |= json.loads(item.data[1])
    programs = [_plain_program(item) for item in opened]
    return {"of": STAN, "programs": programs, "data": json.dumps(data), "base": kept, "seed": seed, "name": name}


def from_recipe(recipe: Mapping[str, Any], *, progress: bool) -> Model:
    """The model of a recipe; compiled programs come from the cache where it has them."""
    from pathtemp.frontends.stan.model import from_stan

    program, *rest = [_stored_program(kept) for kept in recipe["programs"]]
    return from_stan(
        program,
        rest[0] if rest else None,
        data=recipe["data"],
        base=None if recipe["base"] is None else _base(recipe["base"]),
        seed=recipe["seed"],
        name=recipe["name"],
        progress=progress,
    )


def _plain_program(opened: Opened) -> dict[str, Any]:
    assert opened.program is not None
    source = opened.program.source
    places = [("", 0) if place is None else (place.file, place.line) for place in source.places]
    files = sorted({file for file, _ in places})
    lines = np.array([[files.index(file), line] for file, line in places])
    return {"name": opened.name, "text": source.text, "files": files, "lines": lines}


def _stored_program(kept: Mapping[str, Any]) -> Stored:
    places = [Place(kept["files"][file], line) if line else None for file, line in kept["lines"].tolist()]
    return Stored(kept["name"], Source(kept["text"], tuple(places)))


def _plain_base(base: Any) -> Any:
    """A base as plain values: "auto", normals, NumPyro distributions, and dicts of those; None for any other."""
    if is_automatic(base):
        return base
    if isinstance(base, Mapping):
        parts = {str(name): _plain_base(part) for name, part in base.items()}
        return None if None in parts.values() else {"parts": parts}
    if isinstance(base, Normal):
        return {"normal": [np.asarray(base.loc), np.asarray(base.scale), list(base.shape)]}
    return _plain_distribution(base)


def _base(kept: Any) -> Any:
    if is_automatic(kept):
        return kept
    if "parts" in kept:
        return {name: _base(part) for name, part in kept["parts"].items()}
    if "normal" in kept:
        loc, scale, shape = kept["normal"]
        return normal(loc, scale, shape=tuple(shape))
    return _distribution(kept)


def _plain_distribution(base: Any) -> dict[str, Any] | None:
    """A NumPyro distribution by its name and parameters; None where these do not say it all."""
    try:
        from numpyro import distributions as dist
    except ImportError:
        return None
    if isinstance(base, dist.ExpandedDistribution):
        inner = _plain_distribution(base.base_dist)
        return None if inner is None else {"expanded": inner, "shape": list(base.batch_shape)}
    if isinstance(base, dist.Independent):
        inner = _plain_distribution(base.base_dist)
        return None if inner is None else {"independent": inner, "axes": base.reinterpreted_batch_ndims}
    kind = type(base)
    if getattr(dist, kind.__name__, None) is not kind:
        return None
    wanted = {name: p for name, p in inspect.signature(kind).parameters.items() if name != "validate_args"}
    # Of parameters that may be left out one is computed from another, and only one may be given.
    if set(wanted) != set(kind.arg_constraints) or any(p.default is None for p in wanted.values()):
        return None
    return {"name": kind.__name__, "parameters": {name: np.asarray(getattr(base, name)) for name in wanted}}


def _distribution(kept: Mapping[str, Any]) -> Any:
    from numpyro import distributions as dist

    if "expanded" in kept:
        return _distribution(kept["expanded"]).expand(kept["shape"])
    if "independent" in kept:
        return _distribution(kept["independent"]).to_event(kept["axes"])
    kind = getattr(dist, kept["name"], None)
    if not (isinstance(kind, type) and issubclass(kind, dist.Distribution)):
        raise InputError(f"resume: the file names {kept['name']!r} as its base, which is no distribution of NumPyro")
    return kind(**kept["parameters"])
