"""The blocks of a Stan program, ``alternative model`` among them, and one program for both densities."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pathtemp.errors import InputError
from pathtemp.frontends.stan.source import Place, Source, blank, masked

FLAG = "pathtemp_which"
"""Data flag of the merged program: 1 for the model block, 0 for the alternative model block."""

ALTERNATIVE = "alternative model"
ORDER = (
    "functions",
    "data",
    "transformed data",
    "parameters",
    "transformed parameters",
    "model",
    "generated quantities",
)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Block:
    """One top-level block: offsets into the text of its header, of its body, and of its closing brace."""

    name: str
    head: int
    body: int
    end: int


@dataclass(frozen=True)
class Program:
    """A program and its blocks by name."""

    source: Source
    blocks: dict[str, Block]

    @property
    def has_alternative(self) -> bool:
        """Whether there is an ``alternative model`` block."""
        return ALTERNATIVE in self.blocks

    def body(self, name: str) -> str:
        """Text between the braces of a block; empty where there is no such block."""
        block = self.blocks.get(name)
        return "" if block is None else self.source.text[block.body : block.end]

    def find(self, name: str, *blocks: str) -> Place | None:
        """Where an identifier first occurs in the code of the given blocks."""
        code = masked(self.source.text)
        for block in (self.blocks[b] for b in blocks if b in self.blocks):
            match = re.compile(rf"\b{re.escape(name)}\b").search(code, block.body, block.end)
            if match:
                return self.source.place_at(match.start())
        return None


def parse(source: Source) -> Program:
    """Find the top-level blocks.

    >>> from pathtemp.frontends.stan.source import read_source
    >>> list(parse(read_source("parameters { real x; } alternative model { x ~ normal(0, 5); }")).blocks)
    ['parameters', 'alternative model']
    """
    code = masked(source.text)
    blocks: dict[str, Block] = {}
    words: list[re.Match[str]] = []
    at = depth = body = 0

    def fail(message: str, offset: int) -> InputError:
        return InputError(f"{source.place_at(offset)}: {message}")

    while at < len(code):
        char = code[at]
        if depth == 0 and (word := _WORD.match(code, at)):
            words.append(word)
            at = word.end()
            continue
        if char == "{":
            if depth == 0:
                name = " ".join(word.group() for word in words)
                if name not in (*ORDER, ALTERNATIVE):
                    known = ", ".join((*ORDER, ALTERNATIVE))
                    raise fail(f"{name!r} is not a block of a Stan program; the blocks are {known}", at)
                if name in blocks:
                    raise fail(f"the block {name!r} is given twice", words[0].start())
                body = at + 1
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise fail("this } closes nothing", at)
            if depth == 0:
                blocks[name] = Block(name, words[0].start(), body, at)
                words = []
        elif depth == 0 and not char.isspace():
            raise fail(f"{char!r} stands outside of every block", at)
        at += 1
    if depth > 0:
        raise fail(f"the block {name!r} is never closed", body - 1)
    if words:
        raise fail(f"{words[0].group()!r} stands outside of every block", words[0].start())
    return Program(source, blocks)


def without_alternative(program: Program) -> Source:
    """The plain program, the alternative block blanked: every position is as the user has it."""
    text = program.source.text
    block = program.blocks.get(ALTERNATIVE)
    if block is not None:
        text = text[: block.head] + blank(text[block.head : block.end + 1]) + text[block.end + 1 :]
    return Source(text, program.source.places)


Piece = tuple[str, tuple[Place | None, ...]]


def own(text: str) -> Piece:
    """Lines that pathtemp adds to a program."""
    return text, (None,) * (text.count("\n") + 1)


def quoted(program: Program, name: str) -> Piece:
    """The body of a block as lines of their own, each at the columns where the user has it."""
    if name not in program.blocks:
        return own("")
    block, text = program.blocks[name], program.source.text
    column = block.body - (text.rfind("\n", 0, block.body) + 1)
    first = text.count("\n", 0, block.body)
    body = " " * column + program.body(name)
    return body, program.source.places[first : first + body.count("\n") + 1]


def closing(program: Program, name: str) -> Piece:
    """The closing brace of a block, where the user has it: stanc finds a missing semicolon only there."""
    if name not in program.blocks:
        return own("}")
    end, text = program.blocks[name].end, program.source.text
    return " " * (end - (text.rfind("\n", 0, end) + 1)) + "}", (program.source.place_at(end),)


def assemble(pieces: Iterable[Piece]) -> Source:
    """Join pieces, one below the other."""
    texts, places = zip(*pieces, strict=True)
    return Source("\n".join(texts), tuple(place for part in places for place in part))


def check_reserved(program: Program) -> None:
    """Raise where a program uses the name of the flag."""
    reserved = program.find(FLAG, *program.blocks)
    if reserved is not None:
        raise InputError(f"{reserved}: the name {FLAG} is reserved by pathtemp; rename it")


def merge(program: Program) -> Source:
    """One plain program whose model block is, by the flag ``pathtemp_which``, the model or the alternative.

    Both densities are then one compilation, with the same parameters, transforms and data.

    >>> from pathtemp.frontends.stan.source import read_source
    >>> program = parse(read_source("parameters { real x; } alternative model { x ~ normal(0, 5); }"))
    >>> print(merge(program).text)
    data {
      int<lower=0, upper=1> pathtemp_which;
    }
    parameters {
                 real x;
                         }
    model {
      if (pathtemp_which == 1) {
    <BLANKLINE>
    }
      else {
                                               x ~ normal(0, 5);
                                                                 }
    }
    """
    pieces: list[Piece] = []
    for name in ORDER:
        if name == "data":
            pieces += [own(f"data {{\n  int<lower=0, upper=1> {FLAG};")]
            pieces += [quoted(program, name)] if name in program.blocks else []
            pieces += [closing(program, name)]
        elif name == "model":
            pieces += [own(f"model {{\n  if ({FLAG} == 1) {{"), quoted(program, name), closing(program, name)]
            pieces += [own("  else {"), quoted(program, ALTERNATIVE), closing(program, ALTERNATIVE), own("}")]
        elif name in program.blocks:
            pieces += [own(f"{name} {{"), quoted(program, name), closing(program, name)]
    return assemble(pieces)
