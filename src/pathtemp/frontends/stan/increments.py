"""Statements of a model block rewritten so that they add to a variable rather than to ``target``.

Works on code that stanc has canonicalised: no comments, braces around every controlled statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathtemp.errors import InputError
from pathtemp.frontends.stan.canonical import matching
from pathtemp.frontends.stan.source import masked
from pathtemp.frontends.stan.statements import Tilde, parse_tilde

FLAT = "pathtemp_flat"
"""Overloaded function that makes a vector of whatever a statement may add to target."""

AT = "pathtemp_at"
"""Overloaded function that takes an element of a container, or the scalar itself."""

_INDEX = "pathtemp_index"
_CONTROL = re.compile(r"(?:for|while|if)\s*\(")
_NUMBER = re.compile(r"-?[\d.]+(?:[eE][-+]?\d+)?")
_TARGET = re.compile(r"\btarget\s*\+=")
_LP_FUNCTION = re.compile(r"([\w\]\[,() ]*?)\b(\w+_lp)\s*\(")


@dataclass(frozen=True)
class Rewriter:
    """Rewrites bodies.

    Parameters
    ----------
    suffixes
        ``lpdf`` or ``lpmf`` by distribution, built in and defined by the program.
    lp_functions
        New name by name of the program's void functions that end in ``_lp``.
    """

    suffixes: Mapping[str, str]
    lp_functions: Mapping[str, str]

    def rewrite(self, body: str, variable: str) -> str:
        """A body that adds to ``variable`` all that the given one adds to ``target``, constants kept.

        >>> print(Rewriter({"normal": "lpdf"}, {}).rewrite("x ~ normal(0, 1); target += -x;", "lp"))
        lp += normal_lpdf(x | 0, 1); lp += sum(pathtemp_flat(-x));
        """
        body = re.sub(r"_lup(df|mf)\b", r"_lp\1", body)
        body = _replace(body, re.compile("~"), lambda code, at: self._tilde(code, at, variable))
        body = _replace(body, _TARGET, lambda code, at: _increment(code, at, variable))
        body = re.sub(r"\btarget\s*\(\s*\)", variable, body)
        for old, new in self.lp_functions.items():
            body = re.sub(rf"(?<=[;{{}})])(\s*){old}\s*\(", rf"\1{variable} += {new}(", ";" + body)[1:]
        return body

    def _tilde(self, code: str, at: int, variable: str) -> tuple[int, int, str]:
        """Span and replacement of the statement whose ``~`` is at ``at``."""
        start, end = _left_side(code, at), code.index(";", at) + 1
        tilde = parse_tilde(code[start : end - 1])
        assert tilde is not None
        suffix = self.suffixes.get(tilde.distribution)
        if suffix is None:
            raise InputError(f"augment: {tilde.distribution!r} is not a distribution that stanc knows")
        statement = f"{variable} += {_call(tilde, suffix, tilde.left, tilde.arguments)};"
        if tilde.low or tilde.high:
            statement = f"{{ {statement} {_truncated(tilde, suffix, variable)} }}"
        return start, end, statement


def lp_functions(functions: str) -> dict[str, str]:
    """New names of the void functions that end in ``_lp``; those that return a value cannot be taken.

    >>> lp_functions("void bump_lp(real z) { target += z; }")
    {'bump_lp': 'pathtemp_bump'}
    """
    found = {}
    code = masked(functions)
    for match in _LP_FUNCTION.finditer(code):
        if _is_definition(code, match):
            kind, name = match.group(1).strip(), match.group(2)
            if kind != "void":
                raise InputError(
                    f"augment: the function {name} both returns a value and adds to target; split it into two"
                )
            found[name] = f"pathtemp_{name.removesuffix('_lp')}"
    return found


def counterparts(functions: str, rewriter: Rewriter) -> str:
    """Functions that return what the ``_lp`` functions add to target."""
    texts = []
    code = masked(functions)
    for match in _LP_FUNCTION.finditer(code):
        if _is_definition(code, match):
            close = matching(code, match.end() - 1)
            open_brace = code.index("{", close)
            end = matching(code, open_brace)
            body = rewriter.rewrite(functions[open_brace + 1 : end], "pathtemp_total")
            body = re.sub(r"\breturn\s*;", "return pathtemp_total;", body)
            head = f"real {rewriter.lp_functions[match.group(2)]}({functions[match.end() : close]})"
            texts.append(f"{head} {{ real pathtemp_total = 0; {body} return pathtemp_total; }}")
    return "\n".join(texts)


def _is_definition(code: str, match: re.Match[str]) -> bool:
    return bool(match.group(1).strip()) and code[matching(code, match.end() - 1) + 1 :].lstrip().startswith("{")


def _call(tilde: Tilde, suffix: str, at: str, arguments: Sequence[str]) -> str:
    return f"{tilde.distribution}_{suffix}({at}{' | ' + ', '.join(arguments) if arguments else ''})"


def _truncated(tilde: Tilde, suffix: str, variable: str) -> str:
    """A loop over elements that divides by the mass between the bounds, and gives density 0 outside them."""
    parts = [part for part in (tilde.left, *tilde.arguments) if not _NUMBER.fullmatch(part)]
    sizes = ", ".join(f"num_elements({FLAT}({part}))" for part in parts)
    elements = [_element(part) for part in tilde.arguments]
    x, lower, upper = map(_element, (tilde.left, tilde.low, tilde.high))
    below = f"{lower} - 1" if suffix == "lpmf" else lower  # a discrete variable has mass at the bound itself
    outside = [*([f"{x} < {lower}"] if tilde.low else []), *([f"{x} > {upper}"] if tilde.high else [])]
    if tilde.low and tilde.high:
        mass = f"log_diff_exp({_call(tilde, 'lcdf', upper, elements)}, {_call(tilde, 'lcdf', below, elements)})"
    else:
        mass = _call(tilde, "lccdf", below, elements) if tilde.low else _call(tilde, "lcdf", upper, elements)
    refuse, divide = f"{variable} += negative_infinity();", f"{variable} -= {mass};"
    choice = f"if ({' || '.join(outside)}) {{ {refuse} }} else {{ {divide} }}"
    return f"for ({_INDEX} in 1 : max({{{sizes}}})) {{ {choice} }}"


def _element(expression: str) -> str:
    return expression if _NUMBER.fullmatch(expression) else f"{AT}({expression}, {_INDEX})"


def _increment(code: str, at: int, variable: str) -> tuple[int, int, str]:
    start = code.index("=", at) + 1
    end = code.index(";", start)
    return at, end + 1, f"{variable} += sum({FLAT}({code[start:end].strip()}));"


def _replace(body: str, pattern: re.Pattern[str], replacement: Callable[[str, int], tuple[int, int, str]]) -> str:
    """Replace statements from the last to the first, so that earlier positions stay."""
    for match in reversed(list(pattern.finditer(masked(body)))):
        start, end, text = replacement(body, match.start())
        body = body[:start] + text + body[end:]
    return body


def _left_side(code: str, tilde: int) -> int:
    """Where the expression to the left of ``~`` begins."""
    depth, at = 0, tilde - 1
    seen = False
    while at >= 0:
        char = code[at]
        if char in ")]" or (char == "}" and (depth or not seen)):
            depth += 1
        elif char in "([" or (char == "{" and depth):
            depth -= 1
        elif depth == 0 and char in ";{}":
            break
        seen = seen or not char.isspace()
        at -= 1
    start = _skip_space(code, at + 1)
    while control := _CONTROL.match(code, start):  # a loop over elements keeps its body without braces
        start = _skip_space(code, matching(code, control.end() - 1) + 1)
    return start


def _skip_space(code: str, at: int) -> int:
    while code[at].isspace():
        at += 1
    return at
