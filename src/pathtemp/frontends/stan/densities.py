"""Statements that add to the log density, in their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pathtemp.frontends.stan.canonical import matching, split_top
from pathtemp.frontends.stan.source import masked
from pathtemp.frontends.stan.statements import parse_tilde

_TARGET = re.compile(r"target\s*\+=\s*")
_NAMED = re.compile(r"(\w+)_lu?p[dm]f\s*\(")
_CALL = re.compile(r"(\w+_lp|reject|fatal_error)\s*\(")


@dataclass(frozen=True)
class Term:
    """A part of the log density: ``distribution`` of ``left``, or ``rest``, an expression without such a name.

    Parameters
    ----------
    text
        As the program has it, its sign included.
    distribution, left, arguments
        Of a named one; all but ``text`` are empty for another.
    """

    text: str
    distribution: str = ""
    left: str = ""
    arguments: tuple[str, ...] = ()


def density_terms(statement: str) -> list[Term]:
    """What a statement adds to the log density; nothing where it adds nothing.

    >>> [(t.distribution, t.left) for t in density_terms("x ~ normal(0, s)")]
    [('normal', 'x')]
    >>> [t.distribution or t.text for t in density_terms("target += normal_lpdf(x | 0, 1) - normal_lccdf(0 | 0, 1)")]
    ['normal', '- normal_lccdf(0 | 0, 1)']
    >>> density_terms("x = 1")
    []
    """
    code = masked(statement)
    tilde = parse_tilde(statement)
    if tilde is not None:
        bounds = tuple(bound for bound in (tilde.low, tilde.high) if bound)
        return [Term(statement, tilde.distribution, tilde.left, (*tilde.arguments, *bounds))]
    if match := _TARGET.match(code):
        return [_term(part) for part in split_sum(statement[match.end() :])]
    return [Term(statement)] if _CALL.match(code) else []


def _term(text: str) -> Term:
    plain = text.removeprefix("+").strip()
    code = masked(plain)
    match = _NAMED.match(code)
    if match is None or matching(code, match.end() - 1) != len(code) - 1:
        return Term(text)
    left, *rest = split_top(plain[match.end() : -1], "|")
    arguments = tuple(split_top("|".join(rest))) if rest and rest[0] else ()
    return Term(text, match.group(1), left, arguments)


def split_sum(expression: str) -> list[str]:
    """The terms of a sum, each with its sign where it has one.

    >>> split_sum("-a + f(b - c) - 2e-3 * d")
    ['-a', '+ f(b - c)', '- 2e-3 * d']
    """
    code = masked(expression)
    parts, depth, start = [], 0, 0
    for at, char in enumerate(code):
        depth += (char in "([{") - (char in ")]}")
        before = code[:at].rstrip()
        binary = before and before[-1] not in "+-*/^%,|?:<>=&!" and not re.search(r"(?<![\w.])[\d.]+[eE]$", before)
        if char in "+-" and depth == 0 and binary and code[:at].strip():
            parts.append(expression[start:at].strip())
            start = at
    return [part for part in (*parts, expression[start:].strip()) if part]
