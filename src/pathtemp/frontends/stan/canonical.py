"""Programs as stanc writes them: no comments, braces around controlled statements; and what stanc knows by name."""

from __future__ import annotations

import functools

from pathtemp.frontends.stan.build import stanc
from pathtemp.frontends.stan.program import ALTERNATIVE, Program, assemble, closing, own, parse, quoted
from pathtemp.frontends.stan.source import Source, masked, read_source

_CLOSING = {")": "(", "]": "[", "}": "{"}


def canonical(source: Source) -> Program:
    """The program as stanc formats it."""
    text = stanc(source, "--auto-format", "--canonicalize=deprecations,parentheses,braces,strip-comments")
    return parse(read_source(text + "\n"))


def with_model(program: Program, block: str = ALTERNATIVE) -> Source:
    """The program whose model is the given block, without generated quantities."""
    names = [name for name in program.blocks if name not in ("model", "generated quantities", ALTERNATIVE)]
    pieces = [p for name in names for p in (own(f"{name} {{"), quoted(program, name), closing(program, name))]
    return assemble([*pieces, own("model {"), quoted(program, block), closing(program, block)])


@functools.cache
def distributions() -> dict[str, set[str]]:
    """What stanc has for each built-in distribution: lpdf or lpmf, and rng, cdf and ccdf where they are vectorised."""
    rows = stanc(Source("", ()), "--dump-stan-math-distributions").splitlines()
    split = (row.partition(":") for row in rows)
    return {name.strip(): {kind.strip() for kind in kinds.split(",")} for name, _, kinds in split}


def matching(code: str, opening: int) -> int:
    """Position of the bracket that closes the one at ``opening``; strings and comments must be masked.

    >>> matching("f(a[1], {2})", 1)
    11
    """
    stack: list[str] = []
    for at in range(opening, len(code)):
        char = code[at]
        if char in "([{":
            stack.append(char)
        elif char in _CLOSING:
            stack.pop()
            if not stack:
                return at
    raise ValueError("a bracket is never closed")


def split_top(text: str, separator: str = ",") -> list[str]:
    """Split at the separators outside of brackets and strings.

    >>> split_top("a, f(b, c), {d, e}")
    ['a', 'f(b, c)', '{d, e}']
    """
    code = masked(text)
    parts, depth, start = [], 0, 0
    for at, char in enumerate(code):
        depth += (char in "([{") - (char in ")]}")
        if char == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
