"""Numbers that expressions of Stan data come to, as far as arithmetic on other data goes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

Number = int | float

_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def number_of(text: str, known: Mapping[str, Number]) -> Number | None:
    """The number that an expression of data is; None where it takes more than sums and products of known ones.

    >>> number_of("2 * N + 1", {"N": 3}), number_of("-0.5", {}), number_of("sum(n)", {}), number_of("M", {})
    (7, -0.5, None, None)
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, known)
    except (SyntaxError, LookupError, TypeError, ValueError):
        return None


def _value(node: ast.expr, known: Mapping[str, Number]) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, known)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, known), _value(node.right, known))
    raise TypeError("an expression that only Stan can compute")
