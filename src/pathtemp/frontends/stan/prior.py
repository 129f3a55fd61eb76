"""The prior of a plain Stan program as its ``alternative model`` block, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathtemp.frontends.stan.declarations import declared_names, is_declaration, parse_declarations, type_of
from pathtemp.frontends.stan.forward import try_forward
from pathtemp.frontends.stan.program import ALTERNATIVE, FLAG, Program, assemble, closing, own, parse, quoted
from pathtemp.frontends.stan.source import Source, without_comments
from pathtemp.frontends.stan.split import Line, Split, proper_part, split_program
from pathtemp.frontends.stan.statements import Statement, parse_statements
from pathtemp.frontends.stan.sums import with_open_sums


def find_prior(program: Program, info: dict[str, Any]) -> tuple[Split, Program | None, Source | None]:
    """The prior of a program; the program with it as alternative model; and a program that draws from it.

    The last two are None where the prior is not proper, and where it is no recipe for draws; of a prior that is proper
    in part they are that part.
    """
    program = with_open_sums(program)
    split = split_program(program, info)
    if not split.proper:
        return _in_part(program, info, split)
    whole: Program | None = with_prior(program, split)
    assert whole is not None
    forward, _ = try_forward(whole, ALTERNATIVE)
    if forward is None:
        careful = split_program(program, info, as_constants=False)
        if careful.lines != split.lines:
            split, whole = careful, with_prior(program, careful) if careful.proper else None
            forward = None if whole is None else try_forward(whole, ALTERNATIVE)[0]
    return split, whole, forward


def _in_part(program: Program, info: dict[str, Any], split: Split) -> tuple[Split, Program | None, Source | None]:
    """An improper prior with its proper part, where there is one that can be drawn from."""
    declared = parse_declarations(without_comments(program.body("parameters")))
    kept = frozenset[str]() if split.why_not or declared is None else proper_part(split, declared)
    if not kept:
        return split, None, None
    part = split_program(program, info, only=kept)
    whole = with_prior(program, part)
    forward, _ = try_forward(whole, ALTERNATIVE, only=kept)
    return (split, None, None) if forward is None else (replace(split, part=part), whole, forward)


def with_prior(program: Program, split: Split) -> Program:
    """The program with its prior as alternative model, which computes nothing that the prior does not need."""
    block, text = program.blocks.get("model"), program.source.text
    pieces = [(text, program.source.places), own(f"{ALTERNATIVE} {{")]
    if block is None:
        return parse(assemble([*pieces, own("}")]))
    changed = text[: block.body] + split.body + text[block.end :]
    same = Program(Source(changed, program.source.places), program.blocks)
    return parse(assemble([*pieces, quoted(same, "model"), closing(same, "model")]))


def without_unused(program: Program, split: Split) -> Program:
    """The program whose transformed parameters are computed for the model only, where the prior uses none of them.

    They may cost far more than the prior, and fail where it has mass. Constrained ones are checked, and stay.
    """
    name = "transformed parameters"
    body = program.body(name)
    statements = parse_statements(without_comments(body))
    declared = [s for s in statements if s.body is None and is_declaration(s.text)]
    names = {n for s in declared for n, _ in declared_names(s.text)}
    kinds = [parse_declarations(s.text) for s in declared]
    plain = all(d.type == d.kind and not (d.lower or d.upper) for kind in kinds if kind for d in kind)
    if not names or names & split.uses or None in kinds or not plain:
        return program
    for statement in reversed(statements):
        body = body[: statement.start] + _for_model(statement, body) + body[statement.end :]
    block, text = program.blocks[name], program.source.text
    return parse(Source(text[: block.body] + body + text[block.end :], program.source.places))


def _for_model(statement: Statement, body: str) -> str:
    """Code of a statement that is carried out where the model is asked for; a declaration stays one."""
    text = body[statement.start : statement.end]
    if statement.body is not None or not is_declaration(statement.text):
        return f"if ({FLAG} == 1) {{ {text} }}"
    defined = [(name, value) for name, value in declared_names(statement.text) if value]
    if not defined:
        return text
    names = ", ".join(name for name, _ in declared_names(statement.text))
    values = " ".join(f"{name} = {value};" for name, value in defined)
    return f"{type_of(statement.text)}{names}; if ({FLAG} == 1) {{ {values} }}"


def described(split: Split, *, why_not: str = "", exact: bool = False) -> str:
    """What the base of a program is, in words, the lines of its prior below.

    ``why_not`` says why the prior is not the base; it is empty where it is.
    """
    lines = [str(line) for line in split.lines]
    if split.uniform:
        lines.append(f"uniform within bounds: {', '.join(split.uniform)}")
    lines += _mixed(split)
    if why_not:
        head = f"no base in the program: {why_not}; pt.temper finds one"
        return "\n".join([head, *(["of the parameters it says:"] if lines else []), *lines])
    drawn = "drawn exactly" if exact else "a density without exact draws"
    where = f", {places(split.lines)}" if split.lines else ""
    return "\n".join([f"the prior{where}, {drawn}", *lines])


def _mixed(split: Split) -> list[str]:
    """What is said of statements that hold prior and data, on a line of its own."""
    return [f"prior and data in one statement, counted as likelihood: {places(split.mixed)}"] if split.mixed else []


def described_in_part(split: Split) -> str:
    """What the base of a program is whose prior is proper in part, in words, the lines of that part below."""
    part = split.part
    assert part is not None
    where = f", {places(part.lines)}" if part.lines else ""
    uniform = [name for name in part.uniform if name in part.kept]
    head = f"the prior of {', '.join(sorted(part.kept))}{where}, drawn exactly; {why_improper(split)}"
    last = [f"uniform within bounds: {', '.join(uniform)}"] if uniform else []
    return "\n".join([f"{head}; pt.temper finds a law of the rest", *map(str, part.lines), *last, *_mixed(split)])


def places(lines: Sequence[Line]) -> str:
    """Line numbers in words, with the files they are of.

    >>> from pathtemp.frontends.stan.source import Place
    >>> places([Line(Place("a.stan", 3), "x"), Line(Place("a.stan", 4), "y"), Line(Place("a.stan", 7), "z")])
    'lines 3-4, 7 of a.stan'
    """
    files: dict[str, list[int]] = {}
    for place in (line.place for line in lines if line.place is not None):
        files.setdefault(place.file, []).append(place.line)
    return " and ".join(f"{_ranges(numbers)} of {file}" for file, numbers in files.items())


def _ranges(numbers: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    word = "line" if len(spans) == 1 and spans[0][0] == spans[0][1] else "lines"
    return f"{word} {', '.join(str(a) if a == b else f'{a}-{b}' for a, b in spans)}"


def why_improper(split: Split, names: Sequence[str] = ()) -> str:
    """Why a prior is not the base: what nothing is said of, or what the text could not be split by."""
    if split.why_not:
        return f"its prior cannot be told from its likelihood, for {split.why_not}"
    silent = ", ".join(names or split.silent)
    return f"it gives no proper distribution to {silent}"
