"""What the values in a Stan program depend on: data, parameters or both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pathtemp.frontends.stan.canonical import matching, split_top
from pathtemp.frontends.stan.declarations import declared_names, is_declaration
from pathtemp.frontends.stan.source import masked
from pathtemp.frontends.stan.statements import Statement

_VALUE = re.compile(r"\b[A-Za-z]\w*(?!\w*\s*\()")
_SIZED = re.compile(
    r"\b(rep_\w+|num_elements|size|rows|cols|dims|identity_matrix|(?:zeros|ones)_\w+|uniform_simplex)\s*\("
)
_LOOP = re.compile(r"for\s*\(\s*(\w+)\s+in\b(.*)\)\s*", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?<![=<>!~])(?:\+|-|\*|/|\.\*|\./|\^|%|%/%)?=(?!=)")


@dataclass(frozen=True)
class Scoped:
    """A statement that is not a block, with the headers of the loops and branches around it, outermost first."""

    statement: Statement
    headers: tuple[str, ...] = ()


def scoped(statements: Iterable[Statement], headers: tuple[str, ...] = ()) -> Iterator[Scoped]:
    """All simple statements, those inside others too."""
    for statement in statements:
        if statement.body is None:
            yield Scoped(statement, headers)
        else:
            # What an `else` depends on stands in the `if` before it; a sibling's header does no harm.
            yield from scoped(statement.body, (*headers, *_conditions(statement, statements), statement.text))


def _conditions(statement: Statement, siblings: Iterable[Statement]) -> tuple[str, ...]:
    if not statement.text.startswith("else"):
        return ()
    return tuple(s.text for s in siblings if s.body is not None and s.start < statement.start and "if" in s.text[:8])


def loop_of(header: str) -> tuple[str, list[str]] | None:
    """Variable and range of a loop, ``[low, high]`` or ``[container]``; None for another header.

    >>> loop_of("for (n in 1 : N)"), loop_of("for (v in y)"), loop_of("if (a)")
    (('n', ['1', 'N']), ('v', ['y']), None)
    """
    match = _LOOP.fullmatch(masked(header))
    return None if match is None else (match.group(1), split_top(match.group(2), ":"))


def values_in(expression: str) -> set[str]:
    """Names whose values an expression uses, indices among them; what only gives a size is not.

    >>> sorted(values_in("f(a[i]) + rep_vector(b, N)"))
    ['a', 'b', 'i']
    """
    code = masked(expression)
    while found := _SIZED.search(code):
        close = matching(code, found.end() - 1)
        kept = split_top(code[found.end() : close])[0] if found.group(1).startswith("rep_") else ""
        code = f"{code[: found.start()]}({kept}){code[close + 1 :]}"
    return set(_VALUE.findall(code))


def assignments(statement: str) -> list[tuple[str, str]]:
    """Names that a statement declares or assigns, with the expressions that they get.

    >>> assignments("real x = a, y"), assignments("x[i] += b"), assignments("x ~ normal(0, 1)")
    ([('x', 'a'), ('y', '')], [('x', 'x[i] + b')], [])
    """
    if is_declaration(statement):
        return declared_names(statement)
    code = masked(statement)
    sign = next((m for m in _ASSIGNMENT.finditer(code) if _depth(code, m.start()) == 0), None)
    if sign is None or re.match(r"(?:target|jacobian)\b", code):
        return []
    left, right = statement[: sign.start()].strip(), statement[sign.end() :].strip()
    indices = left[left.index("[") :] if "[" in left else ""
    names = [left.partition("[")[0].strip()] if not left.startswith("(") else _VALUE.findall(left)
    whole = right if sign.group() == "=" and not indices else f"{left} + {right}"
    return [(name, whole) for name in names]


def _depth(code: str, at: int) -> int:
    before = code[:at]
    return sum(before.count(c) for c in "([{") - sum(before.count(c) for c in ")]}")


@dataclass(frozen=True)
class Origins:
    """Names by what their values depend on.

    Parameters
    ----------
    data
        Data but for single whole numbers, and all that is computed from any data.
    counts
        Single whole numbers of the data: sizes and switches, but an observation too at times.
    parameters
        Parameters, and all that is computed from them.
    single
        Single numbers of the data that are not whole: hyperparameters more often than an observation.
    """

    data: frozenset[str]
    counts: frozenset[str]
    parameters: frozenset[str]
    single: frozenset[str] = frozenset()

    def has_data(self, *expressions: str) -> bool:
        """Whether a value depends on data of any kind."""
        return any(values_in(e) & (self.data | self.counts) for e in expressions)

    def has_observations(self, *expressions: str) -> bool:
        """Whether a value depends on data other than a single whole number."""
        return any(values_in(e) & self.data for e in expressions)

    def has_containers(self, *expressions: str) -> bool:
        """Whether a value depends on data other than single numbers."""
        return any(values_in(e) & (self.data - self.single) for e in expressions)

    def has_parameters(self, *expressions: str) -> bool:
        """Whether a value depends on parameters."""
        return any(values_in(e) & self.parameters for e in expressions)

    def chosen_by_data(self, headers: Iterable[str]) -> bool:
        """Whether data decide what is computed under these headers: a branch by any, a loop by more than its size."""
        for header in headers:
            loop = loop_of(header)
            if loop is None and self.has_data(header.partition("(")[2]):
                return True
            if loop is not None and self.has_observations(*loop[1]):
                return True
        return False


def origins(info: Mapping[str, Any], transformed_data: Iterable[Statement], rest: Iterable[Statement]) -> Origins:
    """What each name depends on, whatever the order of the statements.

    ``info`` is that of stanc; ``rest`` are the statements of the transformed parameters and of the model.
    """
    whole = {n for n, kind in info["inputs"].items() if kind["type"] == "int" and kind["dimensions"] == 0}
    made = [item.statement.text for item in scoped(transformed_data)]
    single = {n for n, kind in info["inputs"].items() if kind["type"] == "real" and kind["dimensions"] == 0}
    whole |= {name for text in made if re.match(r"int\b", text) for name, _ in assignments(text)}
    data = ({*info["inputs"]} | {name for text in made for name, _ in assignments(text)}) - whole
    parameters = set(info["parameters"])
    items = list(scoped(rest))
    while True:
        known = Origins(frozenset(data), frozenset(whole), frozenset(parameters), frozenset(single))
        for item in items:
            loops = (loop_of(header) for header in item.headers)
            pairs = [(v, span[0]) for v, span in filter(None, loops) if len(span) == 1]
            for name, value in [*assignments(item.statement.text), *pairs]:
                data |= {name} if known.has_data(value) or known.chosen_by_data(item.headers) else set()
                parameters |= {name} if known.has_parameters(value, *item.headers) else set()
        if len(data) == len(known.data) and len(parameters) == len(known.parameters):
            return known


def joined(known: Origins, items: Iterable[Scoped]) -> frozenset[str]:
    """Names that hold data and parameters side by side, such as what was measured and what is missing."""
    data, parameters, both = set[str](), set[str](), set[str]()
    for item in items:
        for name, value in _whole_values(item.statement.text):
            plain = re.sub(r"\[[^][]*\]", "", masked(value))
            measured, free = known.has_data(plain), known.has_parameters(plain)
            data |= {name} if measured and not free else set()
            parameters |= {name} if free and not measured else set()
            both |= {name} if measured and free and re.match(r"append_\w+\s*\(", plain) else set()
    return frozenset((data & parameters) | both)


def _whole_values(statement: str) -> list[tuple[str, str]]:
    """Names that a statement declares or assigns, with what stands on the right alone."""
    if is_declaration(statement):
        return declared_names(statement)
    match = re.match(r"(\w+)\s*(?:\[[^=]*\])?\s*=(?!=)(.*)", statement, re.DOTALL)
    return [] if match is None else [(match.group(1), match.group(2))]
