"""NaN in data of which the density surely depends, told before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.frontends.stan.declarations import is_declaration
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import masked, without_comments
from pathtemp.frontends.stan.statements import parse_statements

_TOLERANT = (
    *("head", "tail", "segment", "block", "sub_row", "sub_col", "row", "col", "rows", "cols", "size", "dims"),
    *("num_elements", "fmax", "fmin", "step", "int_step"),
)
"""Functions of Stan whose value may be a number though an argument holds NaN."""

_INNERMOST = re.compile(r"\{[^{}]*\}")
_CALLED = re.compile(r"(\w+)\s*\(")
_CHOICE = re.compile(r"[?<>!]|==|&&|\|\||\)\s*\[")
"""What may leave NaN aside inside of an expression."""


def check_nan(values: Mapping[str, Any], program: Program) -> None:
    """Raise where data hold NaN and a statement that always runs takes all of them.

    NaN is a usual mark for what is missing or pads an array, so that nothing is said of data that a program takes
    in parts, in loops, under conditions or by functions of its own.

    Parameters
    ----------
    values
        Data by name, as JSON has them.
    program
        The program, which stanc has found to be one.
    """
    bad = {name: x for name, x in _arrays(values).items() if np.isnan(x).any()}
    if not bad or re.search(r"\bis_nan\b", masked(program.source.text)):
        return
    always = [s.text for s in parse_statements(without_comments(program.body("model"))) if s.body is None]
    skipped = {*_TOLERANT, *_own_functions(program)}
    certain = [text for text in always if not is_declaration(text) and _takes_all(text, skipped)]
    for name, array in bad.items():
        whole = re.compile(rf"(?<![\w.]){re.escape(name)}\b(?!\s*[\[(])")
        if any(whole.search(masked(text)) for text in certain):
            places = np.argwhere(np.isnan(array))
            first = f"[{', '.join(str(k + 1) for k in places[0])}]" if array.ndim else ""
            raise InputError(
                f"{program.find(name, 'data')}: the data variable {name!r} has NaN at {len(places)} of {array.size} "
                f"places, the first {name}{first}, so that the density is nowhere a number"
            )


def _arrays(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(x, dtype=float) for name, x in values.items() if not isinstance(x, dict | str)}


def _takes_all(text: str, skipped: set[str]) -> bool:
    """Whether a statement adds to the density and does nothing that may leave elements aside."""
    code = masked(text)
    adds = "~" in code or re.match(r"target\s*\+=", code) is not None
    return adds and skipped.isdisjoint(re.findall(r"\w+", code)) and not _CHOICE.search(code)


def _own_functions(program: Program) -> set[str]:
    """Names of the functions that a program defines."""
    code = masked(program.body("functions"))
    while (shorter := _INNERMOST.sub("", code)) != code:
        code = shorter
    return set(_CALLED.findall(code))
