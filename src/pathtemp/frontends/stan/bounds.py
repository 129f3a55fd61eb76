"""Values of Stan data held against their declared bounds and types, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.errors import InputError
from pathtemp.frontends.stan.declarations import declared_bounds, declared_names
from pathtemp.frontends.stan.expressions import Number, number_of
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.sizes import data_declarations

SLACK = 1e-7
"""What a sum or a length may be off: ten times what Stan allows, so that Stan itself has the last word."""


def check_bounds(values: Mapping[str, Any], program: Program) -> None:
    """Raise where data lie outside of what is declared; bounds that only Stan can compute are left to it.

    Parameters
    ----------
    values
        Data by name, as JSON has them.
    program
        The program that declares them.
    """
    known = {name: x for name, x in values.items() if isinstance(x, int | float)}
    for statement in data_declarations(program):
        kind, bounds = declared_bounds(statement)
        for name, _ in declared_names(statement):
            if name in values and not isinstance(values[name], dict) and (bounds or kind in _TYPES):
                said = _said(name, np.asarray(values[name], dtype=float), kind, bounds, known)
                if said:
                    raise InputError(f"{program.find(name, 'data')}: the data variable {said}")


def _said(name: str, array: FloatArray, kind: str, bounds: Mapping[str, str], known: Mapping[str, Number]) -> str:
    """What is wrong with the values of a variable; empty where nothing is."""
    if array.size == 0:
        return ""
    if np.isnan(array).any():
        return f"{name!r} has NaN{_at(name, np.isnan(array))}"
    for word, text in bounds.items():
        bound = number_of(text, known) if word in _OUTSIDE else None
        if bound is not None and (outside := _OUTSIDE[word](array, bound)).any():
            limit = f"{text} = {bound}" if text != str(bound) else text
            most = "at least" if word == "lower" else "at most"
            return f"{name!r} must be {most} {limit}, and {_element(name, array, outside)}"
    rank, test = _TYPES.get(kind, (0, _no_complaint))
    if rank == 0 or array.ndim < rank:
        return ""
    for index in np.ndindex(array.shape[: array.ndim - rank]):
        if said := test(array[index]):
            which = "" if not index else f" {name}{_subscript(index)}"
            return f"{name!r} must be of type {kind}, and{which} {said}"
    return ""


_OUTSIDE: dict[str, Callable[[FloatArray, Number], Any]] = {"lower": np.less, "upper": np.greater}


def _subscript(index: tuple[int, ...]) -> str:
    """An index as Stan counts it."""
    return f"[{', '.join(str(k + 1) for k in index)}]"


def _at(name: str, where: Any) -> str:
    return f", at {name}{_subscript(tuple(np.argwhere(where)[0]))}" if where.ndim else ""


def _element(name: str, array: FloatArray, where: Any) -> str:
    index = tuple(int(k) for k in np.argwhere(where)[0])
    return f"{name}{_subscript(index)} is {array[index]:g}" if index else f"is {array:g}"


def _no_complaint(_: FloatArray) -> str:
    return ""


def _simplex(x: FloatArray) -> str:
    return f"has {x.min():g}" if x.min() < 0 else _sum_to_one(x)


def _sum_to_one(x: FloatArray) -> str:
    return f"sums to {x.sum():.8g}" if abs(x.sum() - 1.0) > SLACK else ""


def _ordered(x: FloatArray) -> str:
    falls = np.flatnonzero(np.diff(x) <= 0)
    return f"element {falls[0] + 2} is not above element {falls[0] + 1}" if len(falls) else ""


def _positive_ordered(x: FloatArray) -> str:
    return f"begins with {x[0]:g}" if x[0] < 0 else _ordered(x)


def _unit_vector(x: FloatArray) -> str:
    return f"has the length {np.sqrt(x @ x):.8g}" if abs(x @ x - 1.0) > SLACK else ""


def _sum_to_zero(x: FloatArray) -> str:
    return f"sums to {x.sum():g}" if abs(x.sum()) > SLACK * max(1.0, float(np.abs(x).max())) else ""


def _covariance(x: FloatArray) -> str:
    if x.shape[0] != x.shape[1]:
        return ""  # the check of sizes tells
    if np.abs(x - x.T).max() > SLACK:
        return "is not symmetric"
    values = np.linalg.eigvalsh(x)
    return f"has the eigenvalue {values[0]:g}" if values[0] < -SLACK * max(1.0, values[-1]) else ""


def _correlation(x: FloatArray) -> str:
    odd = np.abs(np.diag(x) - 1.0) > SLACK
    return f"has {np.diag(x)[odd][0]:g} on its diagonal" if odd.any() else _covariance(x)


def _cholesky(x: FloatArray) -> str:
    if np.triu(x, 1).any():
        return "has numbers above its diagonal"
    return f"has {np.diag(x).min():g} on its diagonal" if np.diag(x).min() <= 0 else ""


def _cholesky_of_correlation(x: FloatArray) -> str:
    return _cholesky(x) or next(filter(None, map(_unit_vector, x)), "").replace("has the", "has a row of")


def _stochastic_rows(x: FloatArray) -> str:
    return next(filter(None, map(_simplex, x)), "").replace("sums", "has a row that sums")


def _stochastic_columns(x: FloatArray) -> str:
    return _stochastic_rows(x.T).replace("row", "column")


_TYPES: dict[str, tuple[int, Callable[[FloatArray], str]]] = {
    "simplex": (1, _simplex),
    "ordered": (1, _ordered),
    "positive_ordered": (1, _positive_ordered),
    "unit_vector": (1, _unit_vector),
    "sum_to_zero_vector": (1, _sum_to_zero),
    "cov_matrix": (2, _covariance),
    "corr_matrix": (2, _correlation),
    "cholesky_factor_cov": (2, _cholesky),
    "cholesky_factor_corr": (2, _cholesky_of_correlation),
    "row_stochastic_matrix": (2, _stochastic_rows),
    "column_stochastic_matrix": (2, _stochastic_columns),
}
"""Types that are more than bounds: how many axes one has, and what is wrong with one, empty where nothing is."""
