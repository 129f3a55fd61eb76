"""Declarations of parameters: names, types without their constraints, and fixed bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pathtemp.frontends.stan.canonical import matching, split_top

_VECTORS = ("simplex", "ordered", "positive_ordered", "unit_vector", "sum_to_zero_vector")
_SQUARE = ("corr_matrix", "cov_matrix", "cholesky_factor_corr", "cholesky_factor_cov")
_RANKS = {"real": 0, "vector": 1, "row_vector": 1, "matrix": 2}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Declaration:
    """A parameter.

    Parameters
    ----------
    name
        Of the parameter.
    array
        Sizes of the array around it.
    kind, sizes
        ``real``, ``vector``, ``row_vector`` or ``matrix``, and its sizes: the values without their constraint.
    lower, upper
        Bounds on each element; empty where there are none.
    """

    name: str
    array: tuple[str, ...]
    kind: str
    sizes: tuple[str, ...]
    lower: str = ""
    upper: str = ""

    @property
    def rank(self) -> int:
        """Number of indices that lead to one number."""
        return len(self.array) + _RANKS[self.kind]

    @property
    def code(self) -> str:
        """Declaration of a variable that holds such values."""
        array = f"array[{', '.join(self.array)}] " if self.array else ""
        sizes = f"[{', '.join(self.sizes)}]" if self.sizes else ""
        return f"{array}{self.kind}{sizes} {self.name};"


def parse_declarations(body: str) -> list[Declaration] | None:
    """The declarations of a canonical parameters block; None where one is of a type not known here.

    >>> [d.code for d in parse_declarations("real<lower=0> tau; array[J] simplex[K] w;")]
    ['real tau;', 'array[J] vector[K] w;']
    """
    found = [_declaration(statement) for statement in split_top(body, ";") if statement]
    return None if any(d is None for d in found) else [d for d in found if d is not None]


def _declaration(statement: str) -> Declaration | None:
    array: tuple[str, ...] = ()
    if statement.startswith("array"):
        close = matching(statement, statement.index("["))
        array = tuple(split_top(statement[statement.index("[") + 1 : close]))
        statement = statement[close + 1 :].strip()
    word = _WORD.match(statement)
    if word is None:
        return None
    kind, rest = word.group(), statement[word.end() :]
    constraint = ""
    if rest.startswith("<"):
        end = _closing_angle(rest)
        constraint, rest = rest[1:end], rest[end + 1 :]
    sizes: tuple[str, ...] = ()
    if rest.startswith("["):
        close = matching(rest, 0)
        sizes, rest = tuple(split_top(rest[1:close])), rest[close + 1 :]
    bounds = dict(part.partition("=")[::2] for part in split_top(constraint) if constraint)
    if kind in _VECTORS:
        kind = "vector"
    elif kind in _SQUARE:
        kind, sizes = "matrix", sizes if len(sizes) == 2 else sizes * 2
    if kind not in _RANKS or not _WORD.fullmatch(rest.strip()) or set(bounds) - {"lower", "upper"}:
        return None
    return Declaration(rest.strip(), array, kind, sizes, bounds.get("lower", ""), bounds.get("upper", ""))


def _closing_angle(text: str) -> int:
    """Where the constraint that opens at the start of ``text`` ends; angles inside brackets are comparisons."""
    at = 1
    while text[at] != ">":
        at = matching(text, at) + 1 if text[at] in "([{" else at + 1
    return at
