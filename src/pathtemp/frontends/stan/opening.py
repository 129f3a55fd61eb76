"""Whatever a user may give as a Stan program, on its way to compiled programs with data."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pathtemp.errors import InputError
from pathtemp.frontends.stan.bounds import check_bounds
from pathtemp.frontends.stan.build import FORWARD_FLAG, Compilation, CompileError, build_programs, program_info, stanc
from pathtemp.frontends.stan.data import check_data, in_plain_words, observed_names, to_json
from pathtemp.frontends.stan.forward import try_forward
from pathtemp.frontends.stan.library import Instance, StanError
from pathtemp.frontends.stan.nan_data import check_nan
from pathtemp.frontends.stan.parameters import LIBRARIES, check_some
from pathtemp.frontends.stan.prior import find_prior, without_unused
from pathtemp.frontends.stan.program import (
    ALTERNATIVE,
    FLAG,
    Program,
    check_reserved,
    merge,
    parse,
    without_alternative,
)
from pathtemp.frontends.stan.sizes import check_sizes
from pathtemp.frontends.stan.source import Source, program_path, read_source, without_comments
from pathtemp.frontends.stan.split import Split, split_program
from pathtemp.frontends.stan.statements import parse_statements
from pathtemp.model.kinds import where_to

FORWARD = 2
"""Which data is that of the program that draws from the base."""

log = logging.getLogger("pathtemp.stan")


@dataclass(frozen=True)
class Stored:
    """A program that was read before: its text, includes in place, and its name."""

    name: str
    source: Source


@dataclass(frozen=True)
class Opened:
    """A program with its data: text that was parsed, or a library that someone else built.

    Parameters
    ----------
    name
        What messages call it.
    data
        JSON of its data, by what is wanted: 1 for the model, 0 for the alternative model, ``FORWARD`` for draws of
        the alternative model, or of the model where there is no other.
    program, source
        The parsed text, and what is compiled of it; None for a library.
    forward
        A program that draws, where the block is a recipe for draws; it is compiled into the same library.
    library
        The compiled program, where there is one already.
    owner
        A ``bridgestan.StanModel``, which has its data itself.
    split
        The prior of a program without an alternative model, where it was asked for.
    values
        Data by name, as JSON has them.
    integers
        Variables among the draws that hold integers.
    observed
        Data that a statement of the model gives a distribution.
    alternative_is_prior
        Whether the alternative model says the same as the prior of the model.
    """

    name: str
    data: Mapping[int, str]
    program: Program | None = None
    source: Source | None = None
    forward: Source | None = None
    library: Path | None = None
    owner: Any = None
    split: Split | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    integers: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    alternative_is_prior: bool = False

    @property
    def has_alternative(self) -> bool:
        """Whether there is an alternative model to construct, given or the prior."""
        return 0 in self.data

    def instance(self, *, seed: int, which: int = 1) -> Instance:
        """The program, compiled, with its data."""
        assert self.library is not None
        if self.owner is not None:
            return Instance(self.library, owner=self.owner)
        return _instance(self.library, self.data[which], seed, self.source)

    def forward_instance(self, *, seed: int) -> Instance | None:
        """The program that draws, compiled, with the same data."""
        if self.forward is None:
            return None
        assert self.library is not None
        return _instance(self.library, self.data[FORWARD], seed, self.forward)


def _instance(library: Path, data: str, seed: int, source: Source | None) -> Instance:
    key = (library, hashlib.sha256(data.encode()).digest(), seed, source)
    found = _INSTANCES.get(key)
    if found is None:
        try:
            found = _INSTANCES[key] = Instance(library, data, seed=seed, source=source)
        except StanError as error:
            raise InputError(f"data: {in_plain_words(str(error))}") from None
    return found


_INSTANCES: WeakValueDictionary[Any, Instance] = WeakValueDictionary()
"""The same program with the same data is made once, as long as somebody has it."""


class Role(Enum):
    """What a program is opened for."""

    TARGET = "its model block is the target, and the base comes from elsewhere"
    BOTH = "its model block is the target, and its alternative model, or its prior, the base"
    BASE = "its model block is the base"


def check_program(name: str, program: Any) -> None:
    """Raise where the argument of that name is no program."""
    if not (isinstance(program, str | os.PathLike | Stored) or _is_bridgestan(program)):
        raise InputError(
            f"{name}: expected the path or the text of a Stan program, a shared library or a "
            f"bridgestan.StanModel, got a {type(program).__name__}{where_to(program)}"
        )


def _is_bridgestan(program: Any) -> bool:
    return all(hasattr(program, part) for part in ("stanlib", "lib_path", "model"))


def open_program(
    program: Any,
    values: Mapping[str, Any] | None,
    include_paths: Sequence[str | os.PathLike[str]],
    role: Role = Role.BOTH,
) -> Opened:
    """Read a program and check its data, unless they are None; nothing is compiled yet."""
    if _is_bridgestan(program):
        path = Path(program.lib_path)
        return Opened(path.stem, {}, library=path, owner=program)
    if isinstance(program, Stored):
        return _open_source(program.name, program.source, values, role)
    check_program("program", program)
    if isinstance(program, str) and not program.strip():
        raise InputError("program: the text is empty; give a Stan program, or the path of one")
    file = program_path(program)
    if file is not None and file.suffix in LIBRARIES:
        if not file.is_file():
            raise InputError(f"program: there is no shared library {str(file)!r}")
        return Opened(file.stem, {1: to_json(values or {})}, library=file.absolute())
    return _open_source(file.stem if file else "program", read_source(program, include_paths), values, role)


def _open_source(name: str, text: Source, values: Mapping[str, Any] | None, role: Role) -> Opened:
    parsed = parse(text)
    check_reserved(parsed)
    plain = without_alternative(parsed)
    info = program_info(plain)
    entries = {} if values is None else check_data(values, info["inputs"], parsed)
    if values is not None:
        check_bounds(entries, parsed)
        check_sizes(entries, parsed)
        check_nan(entries, parsed)
        check_some(parsed, entries)
    about: dict[str, Any] = {"values": entries, "integers": _integers(info), "observed": observed_names(parsed)}
    data = {1: to_json(entries), FORWARD: to_json({**entries, FORWARD_FLAG: 1})}
    both = data | {which: to_json({**entries, FLAG: which}) for which in (0, 1)}
    if parsed.has_alternative:
        source = merge(parsed)
        stanc(source, "--info")  # errors of the alternative block, before the long compilation
        forward, reason = try_forward(parsed, ALTERNATIVE)
        log.debug("%s: %s", name, reason or "its base can be drawn from")
        return Opened(name, both, parsed, source, forward, alternative_is_prior=_says_the_prior(parsed, info), **about)
    if role is Role.BASE:
        return Opened(name, data, parsed, plain, try_forward(parsed, "model")[0], **about)
    if role is Role.TARGET:
        return Opened(name, data, parsed, plain, **about)
    try:
        split, whole, forward = find_prior(parsed, info)
        source = plain if whole is None else merge(without_unused(whole, split.part or split))
        stanc(source, "--info")
    except (InputError, ValueError, LookupError, AssertionError) as error:
        # Stan knows more ways of writing a program than are read here: it is then run without a prior.
        log.info("%s: the prior was not found: %s", name, error)
        return Opened(name, data, parsed, plain, split=Split("", why_not="its text is not understood"), **about)
    return Opened(name, data if whole is None else both, parsed, source, forward, split=split, **about)


def _says_the_prior(parsed: Program, info: Mapping[str, Any]) -> bool:
    """Whether the alternative model has the statements of the prior, and no other."""
    try:
        split = split_program(parse(without_alternative(parsed)), dict(info))
        there = parse_statements(without_comments(parsed.body(ALTERNATIVE)))
    except (InputError, ValueError, LookupError, AssertionError):
        return False  # written in a way that is not read here
    if not split.proper or any(statement.body is not None for statement in there):
        return False
    prior, given = (sorted("".join(x.text.split()) for x in part) for part in (split.lines, there))
    return prior == given


def _integers(info: Mapping[str, Any]) -> frozenset[str]:
    """Variables that hold integers, among all that draws have."""
    blocks = ("transformed parameters", "generated quantities")
    return frozenset(
        name for block in blocks for name, kind in info.get(block, {}).items() if kind.get("type") == "int"
    )


def compile_programs(opened: Sequence[Opened], *, progress: bool) -> list[Opened]:
    """Compile those that are text, side by side; without their draws where those do not compile."""
    try:
        return _compile(opened, progress=progress)
    except CompileError as error:
        if not any(item.forward for item in opened):
            raise
        log.info("no exact draws: %s", error)
        return _compile([replace(item, forward=None) for item in opened], progress=progress)


def _compile(opened: Sequence[Opened], *, progress: bool) -> list[Opened]:
    wanted = [Compilation(item.source, f"{item.name}.stan", item.forward) for item in opened if item.source is not None]
    libraries = iter(build_programs(wanted, progress=progress) if wanted else [])
    return [item if item.source is None else replace(item, library=next(libraries)) for item in opened]
