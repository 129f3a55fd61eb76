"""Declarations: names, types without their constraints, and bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pathtemp.frontends.stan.canonical import matching, split_top

_VECTORS = ("simplex", "ordered", "positive_ordered", "unit_vector", "sum_to_zero_vector")
_SQUARE = ("corr_matrix", "cov_matrix", "cholesky_factor_corr", "cholesky_factor_cov")
_RANKS = {"real": 0, "vector": 1, "row_vector": 1, "matrix": 2}
_FINITE = ("simplex", "unit_vector", "corr_matrix", "cholesky_factor_corr")
_WORD = re.compile(r"\w+")
_TYPE = re.compile(
    rf"(?:array\s*\[|(?:int|complex\w*|tuple|{'|'.join((*_RANKS, *_VECTORS, *_SQUARE))}|sum_to_zero_matrix"
    r"|(?:row|column)_stochastic_matrix)\b\s*[<\[\w(])"
)


@dataclass(frozen=True)
class Declaration:
    """A variable.

    Parameters
    ----------
    name
        Of the variable.
    array
        Sizes of the array around it.
    kind, sizes
        ``real``, ``vector``, ``row_vector`` or ``matrix``, and its sizes: the values without their constraint.
    lower, upper
        Bounds on each element; empty where there are none.
    type
        Its type as declared, such as ``simplex``.
    scaled
        Whether it has an offset or a multiplier.
    """

    name: str
    array: tuple[str, ...]
    kind: str
    sizes: tuple[str, ...]
    lower: str = ""
    upper: str = ""
    type: str = ""
    scaled: bool = False

    @property
    def rank(self) -> int:
        """Number of indices that lead to one number."""
        return len(self.array) + _RANKS[self.kind]

    @property
    def bounded(self) -> bool:
        """Whether its values lie within finite bounds, so that it is proper where nothing is said of it."""
        return bool(self.lower and self.upper) or self.type in _FINITE

    @property
    def origin(self) -> str:
        """Code of the value whose unconstrained form is zero, where the log Jacobian is zero too; else empty."""
        if self.type != self.kind or self.scaled or (self.lower and self.upper):
            return ""
        bound = f"({self.lower}) + 1" if self.lower else f"({self.upper}) - 1" if self.upper else "0"
        value = bound if self.kind == "real" else f"rep_{self.kind}(0, {', '.join(self.sizes)}) + ({bound})"
        return f"rep_array({value}, {', '.join(self.array)})" if self.array else value

    @property
    def code(self) -> str:
        """Declaration of a variable that holds such values."""
        array = f"array[{', '.join(self.array)}] " if self.array else ""
        sizes = f"[{', '.join(self.sizes)}]" if self.sizes else ""
        return f"{array}{self.kind}{sizes} {self.name};"


def parse_declarations(body: str) -> list[Declaration] | None:
    """The declarations of a block without comments or other statements; None where one is of a type not known here.

    >>> [d.code for d in parse_declarations("real<lower=0> tau, s; array[J] simplex[K] w;")]
    ['real tau;', 'real s;', 'array[J] vector[K] w;']
    """
    found: list[Declaration] = []
    for statement in split_top(body, ";"):
        if statement:
            declared = _declarations(statement)
            if declared is None:
                return None
            found += declared
    return found


def is_declaration(statement: str) -> bool:
    """Whether a statement declares variables.

    >>> [is_declaration(s) for s in ("real x = 1", "array[N] vector[K] y", "x = 1", "realx ~ normal(0, 1)")]
    [True, True, False, False]
    """
    return _TYPE.match(statement) is not None


def declared_names(statement: str) -> list[tuple[str, str]]:
    """Names that a declaration declares, each with the expression that defines it, empty where there is none.

    >>> declared_names("array[N] real<lower=f(1 > 0)> x = g(a, b), y")
    [('x', 'g(a, b)'), ('y', '')]
    """
    rest = _after_type(statement)[-1]
    return [(name.strip(), value.strip()) for name, _, value in (part.partition("=") for part in split_top(rest))]


def declared_shapes(statement: str) -> list[tuple[str, tuple[str, ...]]]:
    """Names that a declaration declares, each with its sizes, those of the array first; a tuple has none here.

    >>> declared_shapes("array[J] matrix[2, K] x"), declared_shapes("cov_matrix[K] S, T")
    ([('x', ('J', '2', 'K'))], [('S', ('K', 'K')), ('T', ('K', 'K'))])
    """
    array, kind, _, sizes, _ = _after_type(statement)
    if kind == "tuple":
        return []
    inner = sizes * 2 if kind in _SQUARE and len(sizes) == 1 else sizes
    return [(name, (*array, *inner)) for name, _ in declared_names(statement)]


def declared_bounds(statement: str) -> tuple[str, dict[str, str]]:
    """Type that a declaration declares, without the array around it, and its bounds by name.

    >>> declared_bounds("array[N] int<lower=0, upper=K> y"), declared_bounds("array[2] simplex[K] w")
    (('int', {'lower': '0', 'upper': 'K'}), ('simplex', {}))
    """
    _, kind, constraint, _, _ = _after_type(statement)
    parts = (part.partition("=") for part in split_top(constraint) if part)
    return kind, {name.strip(): value.strip() for name, _, value in parts}


def type_of(statement: str) -> str:
    """A declaration without its names.

    >>> type_of("array[N] real<lower=0> x = g(a), y")
    'array[N] real<lower=0> '
    """
    text = statement.rstrip()
    return text[: len(text) - len(_after_type(text)[-1])]


def _declarations(statement: str) -> list[Declaration] | None:
    array, kind, constraint, sizes, rest = _after_type(statement)
    given = kind
    bounds = dict(part.partition("=")[::2] for part in split_top(constraint) if constraint)
    if kind in _VECTORS:
        kind = "vector"
    elif kind in _SQUARE:
        kind, sizes = "matrix", sizes if len(sizes) == 2 else sizes * 2
    names = [part.partition("=")[0].strip() for part in split_top(rest)]
    known = {"lower", "upper", "offset", "multiplier"}  # the last two leave the values free
    if kind not in _RANKS or not all(map(_WORD.fullmatch, names)) or set(bounds) - known:
        return None
    lower, upper = bounds.get("lower", ""), bounds.get("upper", "")
    scaled = not {"offset", "multiplier"}.isdisjoint(bounds)
    return [Declaration(name, array, kind, sizes, lower, upper, given, scaled) for name in names]


def _after_type(statement: str) -> tuple[tuple[str, ...], str, str, tuple[str, ...], str]:
    """Sizes of the array, type, its constraint and sizes, and the names that follow."""
    array: tuple[str, ...] = ()
    if statement.startswith("array"):
        close = matching(statement, statement.index("["))
        array = tuple(split_top(statement[statement.index("[") + 1 : close]))
        statement = statement[close + 1 :].strip()
    word = _WORD.match(statement)
    kind, rest = ("", statement) if word is None else (word.group(), statement[word.end() :].strip())
    constraint = ""
    if rest.startswith("<"):
        end = _closing_angle(rest)
        constraint, rest = rest[1:end], rest[end + 1 :].strip()
    sizes: tuple[str, ...] = ()
    if rest.startswith(("[", "(")):
        close = matching(rest, 0)
        sizes, rest = tuple(split_top(rest[1:close])), rest[close + 1 :]
    return array, kind, constraint, sizes, rest.strip()


def _closing_angle(text: str) -> int:
    """Where the constraint that opens at the start of ``text`` ends; angles inside brackets are comparisons."""
    at = 1
    while text[at] != ">":
        at = matching(text, at) + 1 if text[at] in "([{" else at + 1
    return at
