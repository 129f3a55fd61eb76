"""Sums of a model block that are added to target as a whole, opened, so that each part of them can be judged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pathtemp.frontends.stan.dependence import assignments, scoped, values_in
from pathtemp.frontends.stan.program import Program, parse
from pathtemp.frontends.stan.source import Source, masked, without_comments
from pathtemp.frontends.stan.statements import Statement, parse_statements

_TOTAL = re.compile(r"target\s*\+=\s*(\w+)\s*")


def with_open_sums(program: Program) -> Program:
    """The program whose model block adds to target at once what it had added up in a variable before."""
    block, text = program.blocks.get("model"), program.source.text
    if block is None:
        return program
    body = open_sums(program.body("model"))
    if body == program.body("model"):
        return program
    return parse(Source(text[: block.body] + body + text[block.end :], program.source.places))


def open_sums(body: str) -> str:
    """A block whose sums are opened; as it is where a sum is used for anything else. Lines stay where they are.

    >>> open_sums("real lp = 0; lp += normal_lpdf(y | mu, 1); lp += normal_lpdf(mu | 0, 1); target += lp;")
    'real lp = 0; target += normal_lpdf(y | mu, 1); target += normal_lpdf(mu | 0, 1);               ;'
    >>> open_sums("real lp = 0; lp += a; lp *= 2; target += lp;")
    'real lp = 0; lp += a; lp *= 2; target += lp;'
    """
    statements = parse_statements(without_comments(body))
    totals = [(s, m.group(1)) for s in statements if s.body is None and (m := _TOTAL.fullmatch(masked(s.text)))]
    changes: list[tuple[int, int, str]] = []
    for total, name in totals:
        added = _parts(statements, total, name)
        if added is None or not all(re.match(rf"{name}\s*\+=", body[s.start :]) for s in added):
            continue
        changes += [(s.start, s.start + body[s.start :].index("+="), "target ") for s in added]
        changes.append((total.start, total.start + len(total.text), " " * len(total.text)))
    for start, end, text in sorted(changes, reverse=True):
        body = body[:start] + text + body[end:]
    return body


def _parts(statements: Sequence[Statement], total: Statement, name: str) -> list[Statement] | None:
    """Statements that add to a sum which begins at zero, before it is added to target; None where it is no such sum."""
    added: list[Statement] = []
    begun = False
    for item in scoped(statements):
        text = item.statement.text
        if item.statement is total:
            continue
        if any(name in values_in(header) for header in item.headers):
            return None
        given = dict(assignments(text)).get(name)
        if given is None:
            if name in values_in(text):
                return None
        elif given == "" and not begun:
            continue  # declared, and set to zero further down
        elif given in ("0", "0.0") and not item.headers and not begun and not added:
            begun = True
        elif (
            begun
            and item.statement.start < total.start
            and (match := re.match(rf"{name}\s*\+=", text)) is not None
            and name not in values_in(text[match.end() :])
        ):
            added.append(item.statement)
        else:
            return None
    return added if begun else None
