"""Exact draws of a model block that is generative: each parameter given its own distribution.

Such a block, a prior most of all, is a recipe for draws as much as it is a density. :func:`forward_program` writes the
recipe as a Stan program without parameters, whose generated quantities are one draw, the log of the density's mass,
and a number that is not zero where the recipe failed. What is not surely a recipe is left as a density only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pathtemp.errors import InputError
from pathtemp.frontends.stan.build import stanc
from pathtemp.frontends.stan.canonical import canonical, distributions, with_model
from pathtemp.frontends.stan.copies import drawn_copies, inverted
from pathtemp.frontends.stan.declarations import Declaration, declared_names, is_declaration, parse_declarations
from pathtemp.frontends.stan.densities import density_terms
from pathtemp.frontends.stan.dependence import assignments, loop_of, values_in
from pathtemp.frontends.stan.elements import FAILED, FUNCTIONS, Elements, NotGenerativeError
from pathtemp.frontends.stan.mass import LOG_MASS
from pathtemp.frontends.stan.program import Program
from pathtemp.frontends.stan.source import Source, masked
from pathtemp.frontends.stan.statements import Statement, parse_statements, parse_tilde

_HIDDEN_DENSITY = re.compile(r"\w+_lp\s*\(|\btarget\s*\(|\bjacobian\b")
_TOTAL = re.compile(r"target\s*\+=\s*(\w+)")
_LOOP = "pathtemp_k"


def forward_program(program: Program, block: str, only: frozenset[str] | None = None) -> Source:
    """A program whose generated quantities are one exact draw of the parameters under a model block.

    With ``only``, of those parameters; the others are what is zero on the unconstrained scale. Raises
    :class:`NotGenerativeError` where the block is not a sequence of distributions of the parameters.
    """
    whole = canonical(with_model(program, block))
    declarations = parse_declarations(whole.body("parameters"))
    if declarations is None:
        raise NotGenerativeError("a parameter has a type whose values are not plain numbers")
    for name in ("transformed parameters", "model"):
        if hidden := _HIDDEN_DENSITY.search(masked(whole.body(name))):
            raise NotGenerativeError(f"`{hidden.group()}` may change the density")
    transformed = parse_statements(whole.body("transformed parameters"))
    statements = _with_needed(transformed, _inlined(transformed, parse_statements(whole.body("model"))))
    statements = tuple(inner for s in statements for inner in _as_tildes(s))
    copies = drawn_copies(transformed, statements, frozenset(d.name for d in declarations))
    statements = inverted(statements, copies)
    recipe = _Recipe(
        Elements(
            {d.name: d for d in (*declarations, *(copy.declaration for copy in copies))},
            _univariate(whole.body("functions")),
            frozenset(d.name for d in declarations) | _local_names(statements),
        ),
        frozenset() if only is None else frozenset(d.name for d in declarations) - only,
    )
    draws = " ".join(recipe.render(s) for s in recipe.in_order(statements))
    pieces = [
        f"functions {{ {FUNCTIONS}\n{whole.body('functions')} }}",
        f"data {{ {whole.body('data')} }}",
        f"transformed data {{ {whole.body('transformed data')} }}",
        "generated quantities {",
        *(d.code for d in declarations),
        f"real {LOG_MASS} = 0;",
        f"int {FAILED} = 0;",
        f"{{ {draws} }}",
        "}",
    ]
    text = "\n".join(pieces)
    return Source(text, (None,) * (text.count("\n") + 1))


def _inlined(transformed: Sequence[Statement], model: Sequence[Statement]) -> tuple[Statement, ...]:
    """The model, sums that it adds to target replaced by what was added to them, as in ``target += lprior``."""
    found: list[Statement] = []
    totals = {m.group(1) for s in model if s.body is None and (m := _TOTAL.fullmatch(masked(s.text)))}
    for name in totals:
        everything = [*transformed, *model]
        changes = [s for outer in everything for s in outer.walk() if s.body is None and _changes(s.text, name)]
        starts = [s for s in changes if dict(assignments(s.text)).get(name) in ("0", "0.0")]
        others = [s for s in changes if s not in starts and dict(assignments(s.text)).get(name) != ""]
        if len(starts) != 1 or not all(re.match(rf"{name}\s*\+=", s.text) for s in others):
            return tuple(model)
    for statement in (*transformed, *model):
        total = _TOTAL.fullmatch(masked(statement.text)) if statement.body is None else None
        if total is None or total.group(1) not in totals:
            found += _retargeted(statement, totals, keep=statement in model)
    return tuple(found)


def _retargeted(statement: Statement, totals: set[str], *, keep: bool) -> list[Statement]:
    """The statement with sums in ``totals`` called target; of others only that part, unless they are to be kept."""
    if statement.body is not None:
        body = tuple(s for inner in statement.body for s in _retargeted(inner, totals, keep=keep))
        return [Statement(statement.text, body)] if body or keep else []
    changed = next((name for name in totals if _changes(statement.text, name)), None)
    if changed is None:
        return [statement] if keep else []
    if not re.match(rf"{changed}\s*\+=", statement.text):
        return []
    return [Statement(re.sub(rf"^{changed}\s*\+=", "target +=", statement.text))]


def _changes(statement: str, name: str) -> bool:
    return any(name == assigned for assigned, _ in assignments(statement))


def _with_needed(transformed: Sequence[Statement], model: Sequence[Statement]) -> tuple[Statement, ...]:
    """The model, with the transformed parameters that it uses as variables before it."""
    uses = set[str]().union(*(values_in(s.text) for outer in model for s in outer.walk()))
    kept: set[int] = set()
    size = -1
    while size != len(kept):
        size = len(kept)
        for outer in transformed:
            inside = list(outer.walk())
            if any(not uses.isdisjoint(name for name, _ in assignments(s.text)) for s in inside if s.body is None):
                kept.add(id(outer))
                uses |= set[str]().union(*(values_in(s.text) for s in inside))
    needed = (_unconstrained(s) for s in transformed if id(s) in kept)
    return (*(part for parts in needed for part in parts), *model)


def _unconstrained(statement: Statement) -> list[Statement]:
    """A declaration of transformed parameters as one of variables, without its constraint and before its definition."""
    if statement.body is not None or not is_declaration(statement.text):
        return [statement]
    plain = parse_declarations(statement.text)
    if plain is None:
        return [statement]
    made = [Statement(d.code.rstrip(";")) for d in plain]
    return [*made, *(Statement(f"{name} = {value}") for name, value in declared_names(statement.text) if value)]


def _as_tildes(statement: Statement) -> list[Statement]:
    """``target += normal_lpdf(x | 0, 1) + c`` as ``x ~ normal(0, 1)`` and ``target += c``, inside others too."""
    if statement.body is not None:
        return [Statement(statement.text, tuple(s for inner in statement.body for s in _as_tildes(inner)))]
    if not masked(statement.text).startswith("target"):
        return [statement]
    found = []
    for term in density_terms(statement.text):
        if term.distribution:
            found.append(Statement(f"{term.left} ~ {term.distribution}({', '.join(term.arguments)})"))
        else:
            found.append(Statement(f"target += {term.text.removeprefix('+').strip()}"))
    return found


def _local_names(statements: Iterable[Statement]) -> frozenset[str]:
    """Names that may hold values of parameters: variables of the block, and of loops over containers."""
    found: set[str] = set()
    for statement in (inner for outer in statements for inner in outer.walk()):
        if statement.body is None:
            found |= {name for name, _ in assignments(statement.text)}
        elif (loop := loop_of(statement.text)) and len(loop[1]) == 1:
            found.add(loop[0])
    return frozenset(found)


def _univariate(functions: str) -> dict[str, bool]:
    """Whether each built-in distribution is of one number; those that the program defines are not known."""
    own = set(re.findall(r"\breal\s+(\w+)_(?:lpdf|lpmf)\s*\(", functions))
    known = {name: kinds for name, kinds in distributions().items() if "lpdf" in kinds and name not in own}
    # stanc does not list the random numbers of some, such as beta_proportion's.
    return {name: bool({"rng", "cdf"} & kinds) for name, kinds in known.items()}


@dataclass(frozen=True)
class _Recipe:
    """Puts statements in order, and writes them as draws; ``fixed`` parameters are not drawn."""

    elements: Elements
    fixed: frozenset[str] = frozenset()

    @property
    def parameters(self) -> Mapping[str, Declaration]:
        return self.elements.parameters

    def in_order(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements so that no parameter is used before all of it is drawn; raises where that cannot be."""
        spoken = set[str]().union(*(self._drawn(s) | self._assigned(s) for s in statements))
        unsaid = [s for p in self.parameters.values() if p.name not in spoken for s in self._uniform(p)]
        statements = [*unsaid, *statements]
        made = {id(s): self._drawn(s) | self._assigned(s) for s in statements}
        made_by: dict[str, list[Statement]] = {}
        for s in statements:
            for name in made[id(s)]:
                made_by.setdefault(name, []).append(s)
        # A variable of the block that is assigned more than once, and an else after its if, stay in place.
        again = any(len(by) > 1 and name not in self.parameters for name, by in made_by.items())
        movable = not again and not any(s.text.startswith("else") for s in statements)
        waiting, done = list(statements), list[Statement]()
        while waiting:
            ready = (s for s in waiting if self._ready(s, made[id(s)], made_by, done, movable=movable))
            chosen = next(ready, None)
            if chosen is None or (not movable and chosen is not waiting[0]):
                raise NotGenerativeError(f"a parameter is used before it is drawn, in `{waiting[0].text}`")
            waiting = [s for s in waiting if s is not chosen]
            done.append(chosen)
        return done

    def _ready(
        self,
        statement: Statement,
        own: set[str],
        made_by: Mapping[str, list[Statement]],
        done: Sequence[Statement],
        *,
        movable: bool,
    ) -> bool:
        needed = self._used(statement) - own
        needed = needed if movable else needed & set(self.parameters)
        return all(any(s is d for d in done) for name in needed for s in made_by.get(name, ()))

    def _uniform(self, parameter: Declaration) -> list[Statement]:
        """A parameter within bounds of which nothing is said is uniform; its density is one there."""
        name, low, high = parameter.name, parameter.lower, parameter.upper
        if name in self.fixed and parameter.origin:
            return [Statement(f"{name} = {parameter.origin}")]
        left = f"to_vector({name})" if parameter.kind == "matrix" else name
        if low and high and not self.elements.is_random(low, high):
            count = f"num_elements({name}) * " if parameter.rank else ""
            width = f"target += {count}log({high} - ({low}))"
            return [Statement(f"{left} ~ uniform({low}, {high})"), Statement(width)]
        known = {"simplex": "dirichlet(rep_vector(1, {k}))", "corr_matrix": "lkj_corr(1)"}
        if parameter.type not in known or len(parameter.array) > 1:
            raise NotGenerativeError(f"{name} has no distribution")
        size = parameter.sizes[0]
        flat = {"simplex": f"lgamma({size})", "corr_matrix": f"lkj_corr_lpdf(identity_matrix({size}) | 1)"}
        law = known[parameter.type].format(k=size)
        count = f"{parameter.array[0]} * " if parameter.array else ""
        mass = Statement(f"target += -{count}{flat[parameter.type]}")
        if not parameter.array:
            return [Statement(f"{name} ~ {law}"), mass]
        return [Statement(f"for ({_LOOP} in 1 : {parameter.array[0]})", (Statement(f"{name}[{_LOOP}] ~ {law}"),)), mass]

    def _drawn(self, statement: Statement) -> set[str]:
        tildes = (parse_tilde(s.text) for s in statement.walk() if s.body is None)
        return {self.elements.reference(t.left)[0].name for t in tildes if t is not None}

    def _assigned(self, statement: Statement) -> set[str]:
        """Variables of the block to which a statement gives a value; inside another only if they live outside of it."""
        pairs = [pair for s in statement.walk() if s.body is None for pair in assignments(s.text)]
        inner = [s.text for s in statement.walk() if s.body is None and s is not statement and is_declaration(s.text)]
        own = {name for text in inner for name, _ in assignments(text)}
        return {name for name, value in pairs if value} - own

    def _used(self, statement: Statement) -> set[str]:
        """Names that occur anywhere but as what is drawn."""
        used: set[str] = set()
        for s in statement.walk():
            tilde = parse_tilde(s.text) if s.body is None else None
            if tilde is None:
                used |= values_in(s.text) - {n for n, _ in declared_names(s.text) if is_declaration(s.text)}
            else:
                indices = self.elements.reference(tilde.left)[1]
                used |= set[str]().union(*map(values_in, [*tilde.arguments, tilde.low, tilde.high, *indices]))
        return used

    def render(self, statement: Statement, *, inside: bool = False) -> str:
        """The statement, drawing where it had a distribution."""
        if statement.body is not None:
            return f"{statement.text} {{ {' '.join(self.render(s, inside=True) for s in statement.body)} }}"
        tilde = parse_tilde(statement.text)
        if tilde is not None:
            return self.elements.draw(tilde)
        if statement.text.startswith("print"):
            return ""
        if statement.text.startswith("target"):
            if inside or self.elements.is_random(statement.text):  # inside an if, a constant is a density too
                raise NotGenerativeError(f"`{statement.text}` is a density without a name")
            return re.sub(r"^target", LOG_MASS, statement.text) + ";"
        return f"{statement.text};"


def try_forward(program: Program, block: str, only: frozenset[str] | None = None) -> tuple[Source | None, str]:
    """The forward program, checked by stanc, or None with the reason why there is none."""
    try:
        source = forward_program(program, block, only)
        stanc(source, "--info")
    except NotGenerativeError as reason:
        return None, str(reason)
    except InputError as error:
        return None, str(error).partition("\n")[0]
    return source, ""
