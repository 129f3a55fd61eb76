"""Statements of canonical Stan code: their tree, and the parts of a ``~`` statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pathtemp.frontends.stan.canonical import matching, split_top
from pathtemp.frontends.stan.source import masked

_CONTROL = re.compile(r"(?:for|while|if|else\s+if|profile)\s*\(")
_ELSE = re.compile(r"else\b")
_DISTRIBUTION = re.compile(r"\s*(\w+)\s*\(")
_TRUNCATION = re.compile(r"\s*T\s*\[")


@dataclass(frozen=True)
class Tilde:
    """``left ~ distribution(arguments) T[low, high]``; a bound that is not there is empty."""

    left: str
    distribution: str
    arguments: tuple[str, ...]
    low: str = ""
    high: str = ""


def parse_tilde(statement: str) -> Tilde | None:
    """The parts of a ``~`` statement, None where it is another one.

    >>> parse_tilde("y[n] ~ normal(mu, f(s, 1)) T[0, ]")
    Tilde(left='y[n]', distribution='normal', arguments=('mu', 'f(s, 1)'), low='0', high='')
    """
    code = masked(statement)
    at = code.find("~")
    name = _DISTRIBUTION.match(code, at + 1) if at >= 0 else None
    if name is None:
        return None
    close = matching(code, name.end() - 1)
    inside = statement[name.end() : close].strip()
    arguments = tuple(split_top(inside)) if inside else ()
    low = high = ""
    if truncation := _TRUNCATION.match(code, close + 1):
        low, high = (*split_top(statement[truncation.end() : matching(code, truncation.end() - 1)]), "")[:2]
    return Tilde(statement[:at].strip(), name.group(1), arguments, low, high)


@dataclass(frozen=True)
class Statement:
    """A statement: ``text`` of a simple one, or header of a controlled one with the statements it controls.

    ``start`` and ``end`` are its span in the code it was read from, the semicolon or closing brace included.
    """

    text: str
    body: tuple[Statement, ...] | None = None
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def walk(self) -> Iterator[Statement]:
        """The statement and all inside it."""
        yield self
        for inner in self.body or ():
            yield from inner.walk()


def parse_statements(code: str) -> tuple[Statement, ...]:
    """The statements of a body, which must be free of comments.

    >>> [s.text for s in parse_statements("real s = 1; for (n in 1 : N) { y[n] ~ normal(0, s); }")]
    ['real s = 1', 'for (n in 1 : N)']
    """
    return _statements(code, masked(code), 0, len(code))


def _statements(code: str, hidden: str, at: int, end: int) -> tuple[Statement, ...]:
    found = []
    while (at := _skip_space(hidden, at)) < end:
        statement = _statement(code, hidden, at)
        found.append(statement)
        at = statement.end
    return tuple(found)


def _statement(code: str, hidden: str, at: int) -> Statement:
    if hidden[at] == "{":
        end = matching(hidden, at)
        return Statement("", _statements(code, hidden, at + 1, end), at, end + 1)
    control = _CONTROL.match(hidden, at)
    header = matching(hidden, control.end() - 1) + 1 if control else at
    if header == at and _ELSE.match(hidden, at):
        header = at + 4
    if header > at:
        inner = _statement(code, hidden, _skip_space(hidden, header))
        return Statement(code[at:header], inner.body if inner.text == "" else (inner,), at, inner.end)
    end = at
    while hidden[end] != ";":
        end = matching(hidden, end) + 1 if hidden[end] in "([{" else end + 1
    return Statement(code[at:end].strip(), None, at, end + 1)


def _skip_space(code: str, at: int) -> int:
    while at < len(code) and code[at].isspace():
        at += 1
    return at
