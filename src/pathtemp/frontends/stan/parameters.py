"""Parameters as the text of a Stan program declares them, and names held against them before anything is compiled."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pathtemp.errors import InputError
from pathtemp.frontends.stan.declarations import Declaration, parse_declarations
from pathtemp.frontends.stan.program import Program, parse
from pathtemp.frontends.stan.sizes import size_of
from pathtemp.frontends.stan.source import program_path, read_source, without_comments
from pathtemp.model.bases import Base, as_base

Shape = tuple[int | None, ...]
LIBRARIES = (".so", ".dylib", ".dll")
"""How the file of a compiled program ends."""

_LITERAL = re.compile(r"\s*-?\d+(\.\d*)?\s*")
_DRAWN = ("parameters", "transformed parameters", "generated quantities")
"""Blocks whose variables have draws."""


def check_some(program: Program, values: Mapping[str, Any]) -> None:
    """Raise where a program has no parameters, or none with these data."""
    declared = _declared(program)
    if declared is None:
        return
    block = program.blocks.get("parameters")
    if not declared:
        where = program.source.places[0] if block is None else program.source.place_at(block.head)
        raise InputError(f"{where}: the program has no parameters, so there is nothing to sample")
    if all(0 in _shape(item, values) for item in declared):
        place = program.find(declared[0].name, "parameters")
        raise InputError(f"{place}: with these data no parameter has any elements, so there is nothing to sample")


def check_base(base: Any, program: Program, values: Mapping[str, Any]) -> None:
    """Raise where a base in Python has other names or sizes than the parameters; what only Stan knows is left to it.

    Parameters
    ----------
    base
        A distribution over the flat vector, a dict of them by parameter, or a base.
    program, values
        The program and its data.
    """
    declared, psi = _declared(program), as_base(base)
    if not declared:
        return
    shapes = {item.name: _shape(item, values) for item in declared}
    if psi.layout.single:
        _check_flat(psi, declared, shapes)
        return
    given = psi.layout.shapes
    missing = [name for name, shape in shapes.items() if name not in given and not {0, None} & set(shape)]
    unknown = [name for name in given if name not in shapes]
    if missing or unknown:
        what = f"has no distribution for {missing[0]!r}" if missing else f"names {unknown[0]!r}, which is no parameter"
        raise InputError(f"base: it {what}; the parameters are {_listed(list(shapes))}")
    for item in declared:
        shape, free = shapes[item.name], item.type == item.kind
        if free and item.name in given and None not in shape and given[item.name] != shape:
            raise InputError(
                f"base: the distribution of {item.name!r} has the shape {given[item.name]}, and "
                f"{program.find(item.name, 'parameters')} declares {shape}"
            )
        if free and item.name in given and _bounded(item) is (item.name not in psi.layout.transforms):
            has, declares = ("no bounds", "some") if _bounded(item) else ("bounds", "none")
            raise InputError(
                f"base: the distribution of {item.name!r} has {has}, and "
                f"{program.find(item.name, 'parameters')} declares {declares}"
            )


def check_same(program: Program, base_program: Program) -> None:
    """Raise where the program that is the base declares other parameters."""
    here, there = _declared(program), _declared(base_program)
    if here is None or there is None:
        return
    ours, theirs = ({item.name for item in declared} for declared in (here, there))
    for name in sorted(ours ^ theirs):
        has, lacks = ("program", "base_program") if name in ours else ("base_program", "program")
        raise InputError(f"base_program: both must have the same parameters, and {name!r} is in {has}, not in {lacks}")


def check_asked(given: Any, argument: str, names: Sequence[str]) -> None:
    """Raise where a program, before anything is made of it, has not the variables that an argument names.

    Parameters
    ----------
    given
        A program as the user gave it; one that is compiled is asked later.
    argument
        What names them.
    names
        Variables, without indices.
    """
    file = program_path(given) if isinstance(given, str | os.PathLike) else Path(LIBRARIES[0])
    if file is not None and (file.suffix in LIBRARIES or not file.is_file()):
        return
    program = parse(read_source(given))
    for name in names:
        if program.find(name, *_DRAWN) is None:
            known = [item.name for item in _declared(program) or ()]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"is {near[0]!r} meant?" if near else f"its parameters are {_listed(known)}"
            raise InputError(f"{argument}: the program has no {name!r}; {hint}")


def _check_flat(psi: Base, declared: list[Declaration], shapes: Mapping[str, Shape]) -> None:
    # A distribution with a support may be that of the one parameter, by which Stan's own check goes.
    if psi.layout.transforms or any(item.type != item.kind for item in declared):
        return
    sizes = [_count(shape) for shape in shapes.values()]
    if None not in sizes and psi.layout.dim != (dim := sum(size or 0 for size in sizes)):
        raise InputError(f"base: it has {psi.layout.dim} dimensions, and the program has {dim} (unconstrained)")


def _bounded(item: Declaration) -> bool | None:
    """Whether a declaration has bounds; None where their values decide, as with ``lower=negative_infinity()``."""
    bounds = [bound for bound in (item.lower, item.upper) if bound]
    if item.scaled:
        return None
    return True if any(map(_LITERAL.fullmatch, bounds)) else None if bounds else False


def _count(shape: Shape) -> int | None:
    count = 1
    for size in shape:
        if size is None:
            return None
        count *= size
    return count


def _declared(program: Program) -> list[Declaration] | None:
    """The declarations; None where one is of a type that is not read here."""
    return parse_declarations(without_comments(program.body("parameters")))


def _shape(item: Declaration, values: Mapping[str, Any]) -> Shape:
    known = {name: x for name, x in values.items() if isinstance(x, int)}
    return tuple(size_of(text, known) for text in (*item.array, *item.sizes))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
