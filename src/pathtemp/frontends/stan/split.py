"""The prior of a plain Stan program: the statements of its model block that say how the parameters are distributed.

A statement is the prior's

- where it gives a parameter, or elements of one, a distribution: ``theta ~ normal(mu, tau)``. Its arguments may hold
  parameters, and data as constants (sizes, known scales, covariates). Where they do, the distribution must be one of
  Stan's own, and the only one of those elements: of two, the one without data is the prior.
- or where it does not depend on data at all, be it through transformed parameters, variables of the block, or the
  branch it stands in. A plain number with a distribution is data: ``7 ~ binomial(20, p)``.

All other statements are the likelihood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pathtemp.frontends.stan.canonical import distributions, split_top
from pathtemp.frontends.stan.declarations import Declaration, parse_declarations
from pathtemp.frontends.stan.densities import Term, density_terms
from pathtemp.frontends.stan.dependence import (
    Origins,
    Scoped,
    assignments,
    joined,
    loop_of,
    origins,
    scoped,
    values_in,
)
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import Place, blank, masked, without_comments
from pathtemp.frontends.stan.statements import Statement, parse_statements

_REFERENCE = re.compile(r"(?:to_vector\s*\(\s*)?(\w+)\s*(?:\[(.*)\])?\s*\)?", re.DOTALL)
_JUMP = re.compile(r"(?:break|continue|return)\b")


class Part(Enum):
    """What a statement belongs to."""

    PRIOR = "prior"
    GIVEN = "prior, with data as constants"
    LIKELIHOOD = "likelihood"
    MIXED = "both"


@dataclass(frozen=True)
class Line:
    """A statement, where it stands, the parameters that it gives a distribution, and all that it depends on."""

    place: Place | None
    text: str
    about: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()

    def __str__(self) -> str:
        where = "" if self.place is None else f"{self.place.line:>5}  "
        return f"{where}{' '.join(self.text.split())};"


@dataclass(frozen=True)
class Split:
    """The prior of a program.

    Parameters
    ----------
    body
        The model block with all but the prior, and what it needs, blanked: every position is as the user has it.
    lines
        The statements of the prior.
    silent
        Parameters of unbounded range of which the prior says nothing: it is improper.
    uniform
        Parameters within bounds of which it says nothing.
    mixed
        Statements that hold parts of both; they are counted as likelihood.
    uses
        Names that the prior uses.
    why_not
        Why nothing could be split; empty where all is well.
    part
        Of a prior that is not proper the part that is, for ``kept`` parameters alone, where that can be drawn from.
    kept
        Parameters that a part is about.
    """

    body: str
    lines: tuple[Line, ...] = ()
    silent: tuple[str, ...] = ()
    uniform: tuple[str, ...] = ()
    mixed: tuple[Line, ...] = ()
    uses: frozenset[str] = frozenset()
    why_not: str = ""
    part: Split | None = None
    kept: frozenset[str] = frozenset()

    @property
    def proper(self) -> bool:
        """Whether the text gives every parameter a distribution or a bounded range."""
        return not (self.why_not or self.silent)


def split_program(
    program: Program, info: dict[str, Any], *, as_constants: bool = True, only: frozenset[str] | None = None
) -> Split:
    """Split the model block; ``info`` is what stanc says of the program.

    Without ``as_constants``, a distribution of one number whose arguments hold a container of data is likelihood: it
    may be one of many observations, unless a recipe for draws shows that it is not. With ``only``, the prior is what is
    said of those parameters alone.
    """
    parsed = {name: parse_statements(without_comments(program.body(name))) for name in _BLOCKS}
    declared = parse_declarations(without_comments(program.body("parameters")))
    model, before = parsed["model"], parsed["transformed parameters"]
    known = origins(info, parsed["transformed data"], (*before, *model))
    if declared is None:
        return Split("", why_not="a parameter has a type whose values are not plain numbers")
    hidden = [i for i in scoped(before) if _adds(i)]
    if any(known.has_data(i.statement.text) or known.chosen_by_data(i.headers) for i in hidden):
        return Split("", why_not="the transformed parameters add to the density, by the data")
    ranks = {d.name: d.rank for d in declared} | _copies(info, before)
    everything = [*scoped(before), *scoped(model)]
    judge = _Judge(
        known, ranks, {d.name: (*d.array, *d.sizes) for d in declared}, as_constants, joined(known, everything)
    )
    parts = judge.parts(list(scoped(model)))
    names = frozenset(d.name for d in declared)

    def line(item: Scoped) -> Line:
        texts = values_in(" ".join([item.statement.text, *item.headers]))
        about, used = (frozenset(_needed(everything, found)[1]) & names for found in (judge.stated(item), texts))
        place = program.source.place_at(program.blocks["model"].body + item.statement.start)
        return Line(place, item.statement.text, about, used)

    lines = [(item, line(item)) for item, part in parts if part in (Part.PRIOR, Part.GIVEN)]
    chosen = [(i, found) for i, found in lines if only is None or found.uses | found.about <= only]
    speaking = (*hidden, *(i for i, _ in chosen))
    made, uses = _needed(
        everything, {n for i in speaking for text in (i.statement.text, *i.headers) for n in values_in(text)}
    )
    if any(_adds(i) and known.has_data(i.statement.text) for i in scoped(model) if id(i.statement) in made):
        return Split("", why_not="a variable that it needs comes from a function that adds to the density, by data")
    stated = {n for _, found in chosen for n in found.about} | (uses if hidden else set())
    silent = [d for d in declared if d.name not in stated]
    return Split(
        _render(program.body("model"), model, made | {id(item.statement) for item, _ in chosen}),
        tuple(found for _, found in chosen),
        tuple(d.name for d in silent if not d.bounded),
        tuple(d.name for d in silent if d.bounded),
        tuple(line(item) for item, part in parts if part is Part.MIXED),
        frozenset(uses),
        kept=frozenset() if only is None else only,
    )


def proper_part(split: Split, declared: Sequence[Declaration]) -> frozenset[str]:
    """Parameters of an improper prior whose own prior is proper and depends on none of the others."""
    rest, size = set(split.silent), -1
    while size != len(rest):
        size = len(rest)
        rest |= {d.name for d in declared if not rest.isdisjoint(values_in(f"{d.lower} {d.upper}"))}
        rest |= {name for line in split.lines if not rest.isdisjoint(line.uses | line.about) for name in line.about}
    return frozenset(d.name for d in declared) - rest


_BLOCKS = ("transformed data", "transformed parameters", "model")


@dataclass(frozen=True)
class _Judge:
    """Says what a statement belongs to.

    ``ranks`` are the numbers of indices that lead to one number of a parameter, or of a copy of parameters;
    ``sizes`` are those of the parameters, as code; ``joined`` hold data and parameters side by side.
    """

    known: Origins
    ranks: dict[str, int]
    sizes: dict[str, tuple[str, ...]]
    as_constants: bool
    joined: frozenset[str]

    def parts(self, items: Sequence[Scoped]) -> list[tuple[Scoped, Part]]:
        """Of every statement that adds to the density."""
        terms = [(item, density_terms(item.statement.text)) for item in items]
        found = [(item, own, self._statement(item, own)) for item, own in terms if own]
        prior = [(own, part) for _, own, part in found if part in (Part.PRIOR, Part.GIVEN)]
        headers = {id(own): item.headers for item, own, _ in found}
        # Of several distributions of the same elements those that do not hold data come first.
        order = sorted(prior, key=lambda pair: pair[1] is Part.GIVEN)
        taken: list[tuple[str, str]] = []
        again: set[int] = set()
        for own, part in order:
            lefts = [self._elements(term.left, headers[id(own)]) for term in own if term.left]
            if part is Part.GIVEN and any(_overlap(left, other) for left in lefts if left for other in taken):
                again.add(id(own))
            taken += [left for left in lefts if left]
        return [(item, Part.LIKELIHOOD if id(own) in again else part) for item, own, part in found]

    def stated(self, item: Scoped) -> set[str]:
        """Names that a statement of the prior is about: what it gives a distribution, or all that a density holds."""
        found: set[str] = set()
        for term in density_terms(item.statement.text):
            reference = self._reference(term.left) if term.left else None
            found |= {reference[0]} if reference else values_in(term.left or term.text)
        return found

    def _statement(self, item: Scoped, terms: Sequence[Term]) -> Part:
        parts = {self._term(term, item) for term in terms if not self._is_constant(term)}
        if any(term.left.partition("[")[0].strip() in self.joined for term in terms):
            return Part.MIXED
        if not parts and self.known.chosen_by_data(item.headers):
            return Part.LIKELIHOOD  # constants, or a reject, that data decide upon
        if Part.LIKELIHOOD not in parts:
            return Part.GIVEN if Part.GIVEN in parts else Part.PRIOR
        return Part.LIKELIHOOD if parts == {Part.LIKELIHOOD} else Part.MIXED

    def _is_constant(self, term: Term) -> bool:
        """Whether a term holds neither data nor parameters; it goes with the others of its statement."""
        return not (self.known.has_data(term.text) or self.known.has_parameters(term.text) or term.distribution)

    def _term(self, term: Term, item: Scoped) -> Part:
        known = self.known
        reference = self._reference(term.left) if term.left else None
        if reference is not None:
            if not known.has_observations(*term.arguments):
                return Part.PRIOR
            return Part.GIVEN if self._is_given(term, reference, item.headers) else Part.LIKELIHOOD
        if known.chosen_by_data(item.headers) or re.search(r"\btarget\s*\(", term.text):
            return Part.LIKELIHOOD
        if term.left and known.has_parameters(term.left):
            depends = known.has_data(term.left) or known.has_observations(*term.arguments)
        else:
            observed = bool(term.left) and known.has_parameters(*term.arguments)
            depends = observed or known.has_data(term.text)
        return Part.LIKELIHOOD if depends else Part.PRIOR

    def _is_given(self, term: Term, reference: tuple[str, str], headers: Iterable[str]) -> bool:
        """Whether a distribution of a parameter is one, data in its arguments notwithstanding."""
        if "lpdf" not in distributions().get(term.distribution, ()):
            return False
        name, indices = reference
        loops = [loop[0] for loop in map(loop_of, headers) if loop is not None]
        if not all(variable in values_in(f"x[{indices}]") for variable in loops):
            return False  # the same elements again and again
        single = [index for index in split_top(indices) if index and ":" not in index]
        if self.as_constants or self.ranks[name] > len(single):
            return True
        return not self.known.has_containers(*map(_without_elements, term.arguments))

    def _reference(self, left: str) -> tuple[str, str] | None:
        """Name and indices of the parameter that stands on the left, None where something else does."""
        match = _REFERENCE.fullmatch(left)
        if match is None or match.group(1) not in self.ranks:
            return None
        return match.group(1), (match.group(2) or "").strip()

    def _elements(self, left: str, headers: Iterable[str]) -> tuple[str, str] | None:
        """As :meth:`_reference`, what runs through a whole range as that range, and no index where that is all."""
        found = self._reference(left)
        if found is None:
            return None
        loops = dict(loop for loop in map(loop_of, headers) if loop is not None)
        name, indices = found[0], [index.strip() for index in split_top(found[1])]
        spans = [":".join(loops.get(index) or split_top(index, ":")) for index in indices if index]
        sizes = self.sizes.get(name, ())
        whole = all(span in (":", f"1:{size}") for span, size in zip(spans, sizes, strict=False))
        return name, "" if sizes and whole else ", ".join(spans)


def _without_elements(argument: str) -> str:
    """An argument without what is surely one number: an element by its indices, or a mean of a container."""
    code = re.sub(r"\b(?:mean|sd|variance|min|max|sum)\s*\(\s*\w+\s*\)", "0", masked(argument))
    return re.sub(r"\b\w+\s*\[[^][:]+\]", "0", code)


def _overlap(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two references may be to the same elements: unlike indices are taken to be others."""
    same = not one[1] or not other[1] or "".join(one[1].split()) == "".join(other[1].split())
    return one[0] == other[0] and same


def _copies(info: dict[str, Any], before: Sequence[Statement]) -> dict[str, int]:
    """Transformed parameters that only hold parameters, such as a matrix of rows that were declared apart."""
    found: dict[str, int] = {}
    for name, kind in info["transformed parameters"].items():
        pairs = [pair for item in scoped(before) for pair in assignments(item.statement.text) if pair[0] == name]
        values = [value.rpartition(" + ")[2] for _, value in pairs if value]
        plain = [match for match in map(_REFERENCE.fullmatch, values) if match]
        if values and len(plain) == len(values) and all(m.group(1) in info["parameters"] for m in plain):
            found[name] = kind["dimensions"]
    return found


def _adds(item: Scoped) -> bool:
    """Whether a statement that gives values may add to the density as well."""
    return re.search(r"\w_(?:lp|jacobian)\s*\(|\bjacobian\b", masked(item.statement.text)) is not None


def _needed(items: Sequence[Scoped], names: set[str]) -> tuple[set[int], set[str]]:
    """Statements that give values to the names, or to what these depend on, by id; and all those names."""
    made, uses, size = set[int](), set(names), -1
    while size != len(uses) + len(made):
        size = len(uses) + len(made)
        for item in items:
            if not uses.isdisjoint(name for name, _ in assignments(item.statement.text)):
                made.add(id(item.statement))
                uses |= values_in(item.statement.text) | values_in(" ".join(item.headers))
    return made, uses


def _render(body: str, model: Sequence[Statement], kept: set[int]) -> str:
    """The body with only those statements, and the loops and branches around them; a semicolon stands for others."""
    removed: list[tuple[int, int]] = []

    def visit(statements: Sequence[Statement], live: Callable[[Statement], bool]) -> None:
        for at, statement in enumerate(statements):
            following = statements[at + 1 :]
            leads = any(live(s) for s in _branches(following))
            if statement.body is None and _JUMP.match(statement.text):
                continue
            if not live(statement) and not (leads and statement.body is not None):
                removed.append((statement.start, statement.end))
            elif statement.body is not None:
                visit(statement.body, live)

    visit(model, lambda statement: any(id(s) in kept for s in statement.walk()))
    for start, end in removed:
        body = f"{body[:start]};{blank(body[start + 1 : end])}{body[end:]}"
    return body


def _branches(statements: Sequence[Statement]) -> list[Statement]:
    """The ``else`` branches with which a list of statements begins."""
    found = []
    for statement in statements:
        if statement.body is None or not statement.text.startswith("else"):
            break
        found.append(statement)
    return found
