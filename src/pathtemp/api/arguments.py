"""Checks of single arguments: each failure is one sentence that begins with the argument's name."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import numpy as np

from pathtemp.errors import InputError
from pathtemp.io.printable import printable

LONGEST = 60
"""Characters with which a wrong value is shown."""


def shown(value: Any) -> str:
    """A value in a few printable characters, with its type.

    >>> shown("many"), shown(2.5), shown(None)
    ("'many' (a str)", '2.5 (a float)', 'None')
    """
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:
        return kind_name(value)
    text = printable(" ".join(text.split()))
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return f"{text} ({kind_name(value)})"


def kind_name(value: Any) -> str:
    """The type of a value, with its article.

    >>> kind_name("many"), kind_name(3)
    ('a str', 'an int')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def whole_number(name: str, value: Any, *, least: int) -> int:
    """The int that ``value`` is; 4.0 is none, nor is True.

    >>> whole_number("chains", np.int64(4), least=1)
    4
    >>> whole_number("chains", 1.5, least=1)
    Traceback (most recent call last):
    pathtemp.errors.InputError: chains: it must be a whole number, 1 at least, and is 1.5 (a float)
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise InputError(f"{name}: it must be a whole number, {least} at least, and is {shown(value)}")
    return number


def positive_number(name: str, value: Any, what: str = "number") -> float:
    """The finite number above zero that ``value`` is.

    >>> positive_number("budget", 1e5)
    100000.0
    >>> positive_number("budget", "many", "number of gradient evaluations")
    Traceback (most recent call last):
    pathtemp.errors.InputError: budget: it must be a positive number of gradient evaluations, and is 'many' (a str)
    """
    number = _real(value)
    if number is None or not (math.isfinite(number) and number > 0):
        raise InputError(f"{name}: it must be a positive {what}, and is {shown(value)}")
    return number


def share(name: str, value: Any) -> float:
    """The number between 0 and 1, both excluded, that ``value`` is.

    >>> share("acceptance", 0.8)
    0.8
    """
    number = _real(value)
    if number is None or not 0 < number < 1:
        raise InputError(f"{name}: it must lie between 0 and 1, and is {shown(value)}")
    return number


def yes_or_no(name: str, value: Any) -> bool:
    """The bool that ``value`` is.

    >>> yes_or_no("stop", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: it must be True or False, and is {shown(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """The str that ``value`` is.

    >>> text("name", "cauchy")
    'cauchy'
    """
    if not isinstance(value, str):
        raise InputError(f"{name}: it must be a text, and is {shown(value)}")
    return value


def a_kind_of(name: str, value: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise unless ``value`` is of one of the classes, which ``what`` puts into words.

    >>> a_kind_of("fit_a", 3, str, "a fit")
    Traceback (most recent call last):
    pathtemp.errors.InputError: fit_a: it must be a fit, and is 3 (an int)
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name}: it must be {what}, and is {shown(value)}")


def float_array(name: str, value: Any) -> np.ndarray:
    """The array of numbers, finite or not, that ``value`` is.

    >>> float_array("u", [1, -np.inf]).tolist()
    [1.0, -inf]
    """
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        given = np.asarray(None)
    if given.dtype.kind not in "fiub":
        raise InputError(f"{name}: expected numbers, and it is {shown(value)}")
    return given.astype(float)


def finite_array(name: str, value: Any, *, or_infinite: bool = False) -> np.ndarray:
    """The array of finite numbers that ``value`` is; of any but NaN with ``or_infinite``.

    >>> finite_array("lam", [0, 1]).tolist()
    [0.0, 1.0]
    """
    array = float_array(name, value)
    if not (~np.isnan(array) if or_infinite else np.isfinite(array)).all():
        raise InputError(f"{name}: expected {'' if or_infinite else 'finite '}numbers, and it is {shown(value)}")
    return array


def interval_of(name: str, value: Any) -> tuple[float, float]:
    """The two finite numbers, the lower first, that ``value`` is.

    >>> interval_of("interval", (0, 2))
    (0.0, 2.0)
    """
    try:
        low, high = (_real(end) for end in value)
    except (TypeError, ValueError):
        low = high = None
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"{name}: expected two finite numbers, the lower first, and it is {shown(value)}")
    return low, high


def _real(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_):
        return None
    scalar = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    return float(value) if scalar or isinstance(value, numbers.Real) else None
