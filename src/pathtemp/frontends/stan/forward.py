"""Exact draws of a model block that is generative: each parameter given its own distribution.

Such a block, a prior most of all, is a recipe for draws as much as it is a density. :func:`forward_program` writes the
recipe as a Stan program without parameters, whose generated quantities are one draw, and a number that is not zero
where the recipe failed. What is not surely a recipe is left as a density only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pathtemp.errors import InputError
from pathtemp.frontends.stan.build import stanc
from pathtemp.frontends.stan.canonical import canonical, distributions, matching, split_top, with_model
from pathtemp.frontends.stan.declarations import Declaration, parse_declarations
from pathtemp.frontends.stan.increments import AT, FLAT
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import Source, masked
from pathtemp.frontends.stan.statements import Statement, Tilde, parse_statements, parse_tilde

TRIES = 10_000
"""Draws of a truncated element before it is given up."""

FAILED = "pathtemp_failed"
"""The last of the generated quantities: 1 where the block proved to be no recipe for draws."""

_INDEX, _ROW, _COLUMN, _TRY = "pathtemp_i", "pathtemp_r", "pathtemp_c", "pathtemp_try"
_WORD = re.compile(r"\b[A-Za-z]\w*")
_HIDDEN_DENSITY = re.compile(r"\w+_lp\s*\(|\btarget\s*\(|\bjacobian\b")
_INCREMENT = re.compile(r"target\s*\+=\s*(\w+)_lu?pdf\s*\(")
_REFERENCE = re.compile(r"(?:(to_vector)\s*\(\s*)?(\w+)\s*(?:\[(.*)\])?\s*(\))?")

_SIZED = ("lkj_corr", "lkj_corr_cholesky")
"""Distributions whose random numbers take the size of the matrix first."""


class NotGenerativeError(Exception):
    """Why a block cannot be drawn from."""


def forward_program(program: Program, block: str) -> Source:
    """A program whose generated quantities are one exact draw of the parameters under a model block.

    Raises :class:`NotGenerativeError` where the block is not a sequence of distributions of the parameters.
    """
    whole = canonical(with_model(program, block))
    declarations = parse_declarations(whole.body("parameters"))
    if declarations is None:
        raise NotGenerativeError("a parameter has a type whose values are not plain numbers")
    for name in ("transformed parameters", "model"):
        if hidden := _HIDDEN_DENSITY.search(masked(whole.body(name))):
            raise NotGenerativeError(f"`{hidden.group()}` may change the density")
    statements = tuple(map(_as_tildes, parse_statements(whole.body("model"))))
    recipe = _Recipe(
        {d.name: d for d in declarations},
        _univariate(whole.body("functions")),
        frozenset(d.name for d in declarations) | _local_names(statements),
    )
    draws = " ".join(recipe.render(s) for s in recipe.in_order(statements))
    pieces = [
        f"functions {{ {_FUNCTIONS}\n{whole.body('functions')} }}",
        f"data {{ {whole.body('data')} }}",
        f"transformed data {{ {whole.body('transformed data')} }}",
        "generated quantities {",
        *(d.code for d in declarations),
        f"int {FAILED} = 0;",
        f"{{ {draws} }}",
        "}",
    ]
    text = "\n".join(pieces)
    return Source(text, (None,) * (text.count("\n") + 1))


def _as_tildes(statement: Statement) -> Statement:
    """``target += normal_lpdf(x | 0, 1)`` as ``x ~ normal(0, 1)``, inside other statements too."""
    if statement.body is not None:
        return Statement(statement.text, tuple(map(_as_tildes, statement.body)))
    code = masked(statement.text)
    match = _INCREMENT.match(code)
    if match is None or matching(code, match.end() - 1) != len(code) - 1:
        return statement
    left, _, arguments = statement.text[match.end() : -1].partition("|")
    return Statement(f"{left.strip()} ~ {match.group(1)}({arguments.strip()})")


def _local_names(statements: Iterable[Statement]) -> frozenset[str]:
    """Names that may hold values of parameters: variables of the block, and of loops over containers."""
    found: set[str] = set()
    for statement in (inner for outer in statements for inner in outer.walk()):
        code = masked(statement.text)
        if statement.body is not None:
            loop = re.fullmatch(r"for\s*\(\s*(\w+)\s+in\b(.*)\)\s*", code, re.DOTALL)
            found |= {loop.group(1)} if loop and len(split_top(loop.group(2), ":")) == 1 else set()
        elif parse_tilde(statement.text) is None and not code.startswith("target"):
            found |= set(_WORD.findall(code.partition("=")[0]))
    return frozenset(found)


_FUNCTIONS = f"""
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
"""


def _univariate(functions: str) -> dict[str, bool]:
    """Whether each built-in distribution is of one number; those that the program defines are not known."""
    own = set(re.findall(r"\breal\s+(\w+)_(?:lpdf|lpmf)\s*\(", functions))
    return {name: "rng" in kinds for name, kinds in distributions().items() if "lpdf" in kinds and name not in own}


@dataclass(frozen=True)
class _Recipe:
    """Draws statements.

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

    def in_order(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements so that no parameter is used before all of it is drawn; raises where that cannot be."""
        spoken = set[str]().union(*(self._drawn(s) for s in statements))
        statements = [*(self._uniform(p) for p in self.parameters.values() if p.name not in spoken), *statements]
        drawn_by = {name: [s for s in statements if name in self._drawn(s)] for name in self.parameters}
        waiting, done = list(statements), list[Statement]()
        # variables of the block may be assigned more than once, and an else belongs to its if: these stay in place
        movable = all(not s.text.startswith("else") if s.body is not None else parse_tilde(s.text) for s in statements)
        while waiting:
            ready = (s for s in waiting if self._ready(s, drawn_by, done))
            chosen = next(ready, None)
            if chosen is None or (not movable and chosen is not waiting[0]):
                raise NotGenerativeError(f"a parameter is used before it is drawn, in `{waiting[0].text}`")
            waiting.remove(chosen)
            done.append(chosen)
        return done

    def _uniform(self, parameter: Declaration) -> Statement:
        """A parameter between two bounds of which nothing is said is uniform."""
        if not (parameter.lower and parameter.upper) or self._is_random(parameter.lower, parameter.upper):
            raise NotGenerativeError(f"{parameter.name} has no distribution")
        left = f"to_vector({parameter.name})" if parameter.kind == "matrix" else parameter.name
        return Statement(f"{left} ~ uniform({parameter.lower}, {parameter.upper})")

    def _ready(self, statement: Statement, drawn_by: Mapping[str, list[Statement]], done: Sequence[Statement]) -> bool:
        own = self._drawn(statement)
        needed = self._used(statement) - own
        return all(s in done for name in needed for s in drawn_by[name])

    def _drawn(self, statement: Statement) -> set[str]:
        tildes = (parse_tilde(s.text) for s in statement.walk() if s.body is None)
        return {self._reference(t.left)[0].name for t in tildes if t is not None}

    def _used(self, statement: Statement) -> set[str]:
        """Parameters that occur anywhere but as what is drawn."""
        used: set[str] = set()
        for s in statement.walk():
            tilde = parse_tilde(s.text) if s.body is None else None
            texts = [s.text] if tilde is None else [*tilde.arguments, tilde.low, tilde.high, *self._indices(tilde.left)]
            used |= _words(*texts) & set(self.parameters)
        return used

    def _is_random(self, *texts: str) -> bool:
        return not _words(*texts).isdisjoint(self.random)

    def _indices(self, left: str) -> list[str]:
        return self._reference(left)[1]

    def _reference(self, left: str) -> tuple[Declaration, list[str], bool]:
        """The parameter on the left of ``~``, its indices, and whether ``to_vector`` is around it."""
        match = _REFERENCE.fullmatch(left)
        if match is None or match.group(2) not in self.parameters or bool(match.group(1)) != bool(match.group(4)):
            raise NotGenerativeError(f"{left} is given a distribution, and is not a parameter")
        indices = split_top(match.group(3)) if match.group(3) is not None else []
        return self.parameters[match.group(2)], indices, bool(match.group(1))

    def render(self, statement: Statement, *, inside: bool = False) -> str:
        """The statement, drawing where it had a distribution."""
        if statement.body is not None:
            return f"{statement.text} {{ {' '.join(self.render(s, inside=True) for s in statement.body)} }}"
        tilde = parse_tilde(statement.text)
        if tilde is not None:
            return self._draw(tilde)
        if statement.text.startswith("print"):
            return ""
        if statement.text.startswith("target"):
            if inside or self._is_random(statement.text):  # inside an if, a constant is a density too
                raise NotGenerativeError(f"`{statement.text}` is a density without a name")
            return ""
        return f"{statement.text};"

    def _draw(self, tilde: Tilde) -> str:
        if tilde.distribution not in self.univariate:
            raise NotGenerativeError(f"{tilde.distribution} has no random numbers")
        parameter, indices, as_vector = self._reference(tilde.left)
        if not self.univariate[tilde.distribution]:
            size = [f"rows({tilde.left})"] if tilde.distribution in _SIZED else []
            call = f"{tilde.distribution}_rng({', '.join([*size, *tilde.arguments])})"
            return f"{_once(f'{FLAT}({tilde.left})[1]')} {tilde.left} = {call};"
        left = parameter.rank - sum(not _is_slice(index) for index in indices)
        if left == 0:
            return self._element(tilde, parameter, tilde.left, tilde.arguments)
        if left == 1 and not as_vector:
            element = f"{parameter.name}[{', '.join(_element_indices(indices, parameter.rank))}]"
            arguments = [f"{AT}({a}, {_INDEX})" for a in tilde.arguments]
            body = self._element(tilde, parameter, element, arguments)
            return f"for ({_INDEX} in 1 : num_elements({tilde.left})) {{ {body} }}"
        if left == 2 and as_vector and parameter.kind == "matrix" and not any(map(_is_slice, indices)):
            matrix = parameter.name + (f"[{', '.join(indices)}]" if indices else "")
            element = f"{parameter.name}[{', '.join([*indices, _ROW, _COLUMN])}]"
            body = self._element(tilde, parameter, element, [f"{AT}({a}, {_INDEX})" for a in tilde.arguments])
            # the number of the element is counted: stanc makes products of integers real numbers (--O1)
            return (
                f"{{ int {_INDEX} = 0; for ({_COLUMN} in 1 : cols({matrix})) {{ for ({_ROW} in 1 : rows({matrix})) {{ "
                f"{_INDEX} += 1; {body} }} }} }}"
            )
        raise NotGenerativeError(f"the elements of {tilde.left} are not plain")

    def _element(self, tilde: Tilde, parameter: Declaration, element: str, arguments: Iterable[str]) -> str:
        """Draw one number, again until it lies within its bounds."""
        low, high = [tilde.low] if tilde.low else [], [tilde.high] if tilde.high else []
        # A declared bound leaves the density as it is, not divided by the mass within the bound. Where that mass is
        # the same for all values of the other parameters, to draw again is right; elsewhere the whole draw is refused.
        if not self._is_random(*tilde.arguments, *low, *high, parameter.lower, parameter.upper):
            low += [parameter.lower] if parameter.lower else []
            high += [parameter.upper] if parameter.upper else []
        call = f"{tilde.distribution}_rng({', '.join(arguments)})"
        draw = f"{_once(element)} {element} = {call};"
        outside = [*(f"{element} < {bound}" for bound in low), *(f"{element} > {bound}" for bound in high)]
        if not outside:
            return draw
        return (
            f"{draw} for ({_TRY} in 1 : {TRIES}) {{ "
            f"if ({' || '.join(outside)}) {{ {element} = {call}; }} else {{ break; }} }} "
            f"if ({' || '.join(outside)}) {{ {FAILED} = 1; }}"
        )


def _once(element: str) -> str:
    """Fail where a number was drawn before: two distributions of one number are no recipe."""
    return f"if (!is_nan({element})) {{ {FAILED} = 1; }}"


def _words(*texts: str) -> set[str]:
    return {word for text in texts for word in _WORD.findall(masked(text))}


def _is_slice(index: str) -> bool:
    return index == "" or len(split_top(index, ":")) == 2


def _element_indices(indices: Sequence[str], rank: int) -> list[str]:
    """Indices of element number ``_INDEX`` of a reference with one slice, or with its last index left out."""
    if len(indices) < rank:
        return [*indices, _INDEX]
    starts = [split_top(index, ":")[0] if _is_slice(index) else "" for index in indices]
    moved = [f"{start} + {_INDEX} - 1" if start else _INDEX for start in starts]
    return [new if _is_slice(index) else index for index, new in zip(indices, moved, strict=True)]


def try_forward(program: Program, block: str) -> tuple[Source | None, str]:
    """The forward program, checked by stanc, or None with the reason why there is none."""
    try:
        source = forward_program(program, block)
        stanc(source, "--info")
    except NotGenerativeError as reason:
        return None, str(reason)
    except InputError as error:
        return None, str(error).partition("\n")[0]
    return source, ""
