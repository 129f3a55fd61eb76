"""Sizes of Stan data held against their declarations, before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.frontends.stan.canonical import split_top
from pathtemp.frontends.stan.declarations import declared_shapes, is_declaration
from pathtemp.frontends.stan.expressions import number_of
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import without_comments


def data_declarations(program: Program) -> list[str]:
    """The declarations of the data block, each without its semicolon."""
    if "data" not in program.blocks:
        return []
    statements = map(str.strip, split_top(without_comments(program.body("data")), ";"))
    return [statement for statement in statements if is_declaration(statement)]


def check_sizes(values: Mapping[str, Any], program: Program) -> None:
    """Raise where data are of another size than declared; sizes that only Stan can compute are left to it.

    Parameters
    ----------
    values
        Data by name, as JSON has them.
    program
        The program that declares them.
    """
    known = {name: int(x) for name, x in values.items() if isinstance(x, int)}
    for statement in data_declarations(program):
        for name, declared in declared_shapes(statement):
            if name in values and not isinstance(values[name], dict):
                _check_one(name, values[name], declared, known, program)


def _check_one(name: str, value: Any, declared: tuple[str, ...], known: Mapping[str, int], program: Program) -> None:
    sizes = [size_of(text, known) for text in declared]
    negative = [text for text, size in zip(declared, sizes, strict=True) if size is not None and size < 0]
    if negative:
        raise InputError(f"{_where(name, program)} cannot have the size {negative[0]} = {size_of(negative[0], known)}")
    found = np.shape(value)
    # An empty array may be written as [] whatever its other sizes are; tuples and complex numbers have more axes.
    if len(found) != len(sizes) or 0 in found:
        return
    if any(size not in (None, there) for size, there in zip(sizes, found, strict=True)):
        wanted = ", ".join(
            text if size is None or text.strip() == str(size) else f"{text.strip()} = {size}"
            for text, size in zip(declared, sizes, strict=True)
        )
        raise InputError(
            f"{_where(name, program)} is declared with size ({wanted}), and data has ({', '.join(map(str, found))})"
        )


def size_of(text: str, known: Mapping[str, int]) -> int | None:
    """The integer that an expression of data is; None where only Stan can compute it.

    >>> size_of("2 * N + 1", {"N": 3}), size_of("sum(n)", {}), size_of("M", {})
    (7, None, None)
    """
    size = number_of(text, known)
    return size if isinstance(size, int) else None


def _where(name: str, program: Program) -> str:
    return f"{program.find(name, 'data')}: the data variable {name!r}"
