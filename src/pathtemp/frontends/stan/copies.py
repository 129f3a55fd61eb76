"""Transformed parameters that only hold parameters, and are given a distribution in their place.

``theta[1] = theta1; theta[2] = theta2; ... theta[k] ~ dirichlet(a[k])`` is a recipe for theta1 and theta2 as well: the
copy is drawn, and the parameters are its elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathtemp.frontends.stan.declarations import Declaration, declared_names, is_declaration, parse_declarations
from pathtemp.frontends.stan.dependence import assignments
from pathtemp.frontends.stan.statements import Statement, parse_tilde

_PART = re.compile(r"(\w+\s*(?:\[[^=]*\])?)\s*=\s*(\w+)")


@dataclass(frozen=True)
class Copy:
    """A copy: how it is declared, and its elements with the parameters that they hold."""

    declaration: Declaration
    parts: tuple[tuple[str, str], ...]


def drawn_copies(
    transformed: Sequence[Statement], model: Sequence[Statement], parameters: frozenset[str]
) -> tuple[Copy, ...]:
    """Copies of whole parameters that the model gives a distribution.

    >>> text = ("array[2] vector[3] t", "t[1] = a", "t[2] = b")
    >>> model = [Statement("for (k in 1 : 2)", (Statement("t[k] ~ dirichlet(alpha)"),))]
    >>> (copy,) = drawn_copies([Statement(s) for s in text], model, frozenset("ab"))
    >>> copy.declaration.name, copy.parts
    ('t', (('t[1]', 'a'), ('t[2]', 'b')))
    """
    tildes = (parse_tilde(s.text) for outer in model for s in outer.walk() if s.body is None)
    drawn = {tilde.left.partition("[")[0].strip() for tilde in tildes if tilde is not None}
    declared = [
        declaration
        for s in transformed
        if s.body is None and is_declaration(s.text)
        for declaration in parse_declarations(s.text) or ()
    ]
    found = []
    for declaration in declared:
        parts = _parts(transformed, declaration.name) if declaration.name in drawn - parameters else None
        held = [parameter for _, parameter in parts or ()]
        if parts and parameters.issuperset(held) and len(set(held)) == len(held) and drawn.isdisjoint(held):
            found.append(Copy(declaration, tuple(parts)))
    return tuple(found)


def _parts(transformed: Sequence[Statement], name: str) -> list[tuple[str, str]] | None:
    """Elements of a copy with the names that they are set to; None where they are set to anything else."""
    found: list[tuple[str, str]] = []
    for outer in transformed:
        for statement in outer.walk():
            if statement.body is not None or name not in {n for n, _ in assignments(statement.text)}:
                continue
            if is_declaration(statement.text):
                texts = [f"{n} = {value}" for n, value in declared_names(statement.text) if n == name and value]
            else:
                texts = [statement.text]
            matches = [_PART.fullmatch(text) for text in texts]
            if outer.body is not None or None in matches:
                return None
            found += [(match.group(1).strip(), match.group(2)) for match in matches if match]
    return found


def inverted(statements: Sequence[Statement], copies: Sequence[Copy]) -> tuple[Statement, ...]:
    """The statements, parameters set to the elements of copies and not these to them."""
    back = {f"{element} = {name}": f"{name} = {element}" for copy in copies for element, name in copy.parts}
    return tuple(
        Statement(back[s.text]) if s.body is None and s.text in back else s
        for s in (_spaced(statement) for statement in statements)
    )


def _spaced(statement: Statement) -> Statement:
    match = _PART.fullmatch(statement.text) if statement.body is None else None
    return statement if match is None else Statement(f"{match.group(1).strip()} = {match.group(2)}")
