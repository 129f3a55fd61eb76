"""Stan code that draws the elements of a parameter where a model block gives them a distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathtemp.frontends.stan.canonical import split_top
from pathtemp.frontends.stan.declarations import Declaration
from pathtemp.frontends.stan.dependence import values_in
from pathtemp.frontends.stan.increments import AT, FLAT
from pathtemp.frontends.stan.mass import LOG_MASS, Interval, log_mass_of_bounds
from pathtemp.frontends.stan.statements import Tilde

TRIES = 10_000
"""Draws of a truncated element before it is given up."""

FAILED = "pathtemp_failed"
"""The last of the generated quantities: 1 where the block proved to be no recipe for draws."""

SAME = "pathtemp_same"
"""Overloaded function: whether all elements of an argument are equal."""

_INDEX, _ROW, _COLUMN, _TRY = "pathtemp_i", "pathtemp_r", "pathtemp_c", "pathtemp_try"
_REFERENCE = re.compile(r"(?:(to_vector)\s*\(\s*)?(\w+)\s*(?:\[(.*)\])?\s*(\))?")
_SIZED = ("lkj_corr", "lkj_corr_cholesky")
"""Distributions whose random numbers take the size of the matrix first."""

FUNCTIONS = f"""
  int {AT}(int x, int i) {{ return x; }}
  int {AT}(array[] int x, int i) {{ return x[i]; }}
  real {AT}(real x, int i) {{ return x; }}
  real {AT}(vector x, int i) {{ return x[i]; }}
  real {AT}(row_vector x, int i) {{ return x[i]; }}
  real {AT}(array[] real x, int i) {{ return x[i]; }}
  vector {FLAT}(real x) {{ return [x]'; }}
  vector {FLAT}(vector x) {{ return x; }}
  vector {FLAT}(row_vector x) {{ return x'; }}
  vector {FLAT}(matrix x) {{ return to_vector(x); }}
  vector {FLAT}(array[] real x) {{ return to_vector(x); }}
  int {SAME}(real x) {{ return 1; }}
  int {SAME}(vector x) {{ return max(x) == min(x); }}
  int {SAME}(row_vector x) {{ return max(x) == min(x); }}
  int {SAME}(array[] real x) {{ return max(x) == min(x); }}
"""


class NotGenerativeError(Exception):
    """Why a block cannot be drawn from."""


@dataclass(frozen=True)
class Elements:
    """Draws parameters.

    Parameters
    ----------
    parameters
        Declarations by name.
    univariate
        Distributions, with whether they are of one number.
    random
        Names of all that may depend on what was drawn: the parameters, and variables of the block.
    """

    parameters: Mapping[str, Declaration]
    univariate: Mapping[str, bool]
    random: frozenset[str]

    def is_random(self, *texts: str) -> bool:
        """Whether the value of an expression may depend on what was drawn."""
        return any(not values_in(text).isdisjoint(self.random) for text in texts)

    def reference(self, left: str) -> tuple[Declaration, list[str], bool]:
        """The parameter on the left of ``~``, its indices, and whether ``to_vector`` is around it."""
        match = _REFERENCE.fullmatch(left)
        if match is None or match.group(2) not in self.parameters or bool(match.group(1)) != bool(match.group(4)):
            raise NotGenerativeError(f"{left} is given a distribution, and is not a parameter")
        indices = split_top(match.group(3)) if match.group(3) is not None else []
        return self.parameters[match.group(2)], indices, bool(match.group(1))

    def draw(self, tilde: Tilde) -> str:
        """Code that draws what stands on the left."""
        if tilde.distribution not in self.univariate:
            raise NotGenerativeError(f"{tilde.distribution} has no random numbers")
        parameter, indices, as_vector = self.reference(tilde.left)
        if not self.univariate[tilde.distribution]:
            return self._together(tilde, several=len(parameter.array) == len(indices) + 1)
        left = parameter.rank - sum(not _is_several(index) for index in indices)
        if left == 0:
            return self._element(tilde, parameter, tilde.left, tilde.arguments)
        arguments = [f"{AT}({a}, {_INDEX})" for a in tilde.arguments]
        if left == 1 and not as_vector:
            element = f"{parameter.name}[{', '.join(_element_indices(indices, parameter.rank))}]"
            body = self._element(tilde, parameter, element, arguments)
            drawn = f"for ({_INDEX} in 1 : num_elements({tilde.left})) {{ {body} }}"
            return drawn + self._sorted(tilde, parameter, indices)
        if left == 2 and as_vector and parameter.kind == "matrix" and not any(map(_is_several, indices)):
            matrix = parameter.name + (f"[{', '.join(indices)}]" if indices else "")
            element = f"{parameter.name}[{', '.join([*indices, _ROW, _COLUMN])}]"
            body = self._element(tilde, parameter, element, arguments)
            # the number of the element is counted: stanc makes products of integers real numbers (--O1)
            return (
                f"{{ int {_INDEX} = 0; for ({_COLUMN} in 1 : cols({matrix})) {{ for ({_ROW} in 1 : rows({matrix})) {{ "
                f"{_INDEX} += 1; {body} }} }} }}"
            )
        raise NotGenerativeError(f"the elements of {tilde.left} are not plain")

    def _together(self, tilde: Tilde, *, several: bool) -> str:
        """Code that draws a vector or a matrix at once, or each of several."""
        left = f"{tilde.left}[{_INDEX}]" if several else tilde.left
        size = [f"rows({left})"] if tilde.distribution in _SIZED else []
        call = f"{tilde.distribution}_rng({', '.join([*size, *tilde.arguments])})"
        draw = f"{_once(f'{FLAT}({left})[1]')} {left} = {call};"
        return f"for ({_INDEX} in 1 : size({tilde.left})) {{ {draw} }}" if several else draw

    def _sorted(self, tilde: Tilde, parameter: Declaration, indices: Sequence[str]) -> str:
        """Code that puts the elements of an ordered vector in order: equally distributed, any order is as likely.

        Where they are not equally distributed the draw stays as it is, to be refused if it is out of order.
        """
        if parameter.type not in ("ordered", "positive_ordered") or len(indices) != len(parameter.array):
            return ""
        same = " && ".join([f"{SAME}({a})" for a in tilde.arguments] or ["1"])
        count = f"lgamma(num_elements({tilde.left}) + 1)"
        return f" if ({same}) {{ {tilde.left} = sort_asc({tilde.left}); {LOG_MASS} -= {count}; }}"

    def _element(self, tilde: Tilde, parameter: Declaration, element: str, arguments: Sequence[str]) -> str:
        """Draw one number, again until it lies within its bounds."""
        stated = Interval(tilde.low, tilde.high)
        positive = parameter.type == "positive_ordered"
        declared = Interval("0" if positive else parameter.lower, parameter.upper)
        # A declared bound leaves the density as it is, not divided by the mass within the bound. Where that mass is
        # the same for all values of the other parameters, to draw again is right; elsewhere the whole draw is refused.
        bounds, mass = [stated], "0"
        if not self.is_random(*tilde.arguments, tilde.low, tilde.high, parameter.lower, parameter.upper):
            bounds.append(declared)
            mass = log_mass_of_bounds(tilde.distribution, arguments, declared, stated)
        call = f"{tilde.distribution}_rng({', '.join(arguments)})"
        draw = f"{_once(element)} {element} = {call};"
        outside = [f"{element} < {bound.low}" for bound in bounds if bound.low]
        outside += [f"{element} > {bound.high}" for bound in bounds if bound.high]
        if not outside:
            return draw
        counted = "" if mass == "0" else f" {LOG_MASS} += {mass};"
        return (
            f"{draw} for ({_TRY} in 1 : {TRIES}) {{ "
            f"if ({' || '.join(outside)}) {{ {element} = {call}; }} else {{ break; }} }} "
            f"if ({' || '.join(outside)}) {{ {FAILED} = 1; }}{counted}"
        )


def _once(element: str) -> str:
    """Fail where a number was drawn before: two distributions of one number are no recipe."""
    return f"if (!is_nan({element})) {{ {FAILED} = 1; }}"


def _is_several(index: str) -> bool:
    """Whether an index is a range or a list, not one number."""
    return index == "" or index.startswith("{") or len(split_top(index, ":")) == 2


def _element_indices(indices: Sequence[str], rank: int) -> list[str]:
    """Indices of element number ``_INDEX`` of a reference with one range, or with its last index left out."""
    if len(indices) < rank:
        return [*indices, _INDEX]
    return [_moved(index) if _is_several(index) else index for index in indices]


def _moved(index: str) -> str:
    if index.startswith("{"):
        return f"{index}[{_INDEX}]"
    start = split_top(index, ":")[0] if index else ""
    return f"{start} + {_INDEX} - 1" if start else _INDEX
