"""Whatever a user may give as a Stan program, on its way to compiled programs with data."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pathtemp.errors import InputError
from pathtemp.frontends.stan.build import FORWARD_FLAG, Compilation, CompileError, build_programs, program_info, stanc
from pathtemp.frontends.stan.data import check_data, to_json
from pathtemp.frontends.stan.forward import try_forward
from pathtemp.frontends.stan.library import Instance, StanError
from pathtemp.frontends.stan.program import ALTERNATIVE, FLAG, Program, merge, parse, without_alternative
from pathtemp.frontends.stan.source import Source, program_path, read_source

FORWARD = 2
"""Which data is that of the program that draws from the base."""

log = logging.getLogger("pathtemp.stan")
LIBRARIES = (".so", ".dylib", ".dll")


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
    """

    name: str
    data: Mapping[int, str]
    program: Program | None = None
    source: Source | None = None
    forward: Source | None = None
    library: Path | None = None
    owner: Any = None

    @property
    def has_alternative(self) -> bool:
        """Whether there is an alternative model to construct."""
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
    if key not in _INSTANCES:
        try:
            _INSTANCES[key] = Instance(library, data, seed=seed, source=source)
        except StanError as error:
            raise InputError(f"data: {' '.join(str(error).split())}") from None
    return _INSTANCES[key]


_INSTANCES: dict[Any, Instance] = {}
"""Instances are never freed, so the same program with the same data is made once."""


def open_program(program: Any, values: Mapping[str, Any], include_paths: Sequence[str | os.PathLike[str]]) -> Opened:
    """Read a program and check its data; nothing is compiled yet."""
    if hasattr(program, "stanlib") and hasattr(program, "lib_path") and hasattr(program, "model"):
        path = Path(program.lib_path)
        return Opened(path.stem, {}, library=path, owner=program)
    if isinstance(program, Stored):
        return _open_source(program.name, program.source, values)
    if not isinstance(program, str | os.PathLike):
        raise InputError(
            "program: expected the path or the text of a Stan program, a shared library or a "
            f"bridgestan.StanModel, got a {type(program).__name__}"
        )
    file = program_path(program)
    if file is not None and file.suffix in LIBRARIES:
        if not file.is_file():
            raise InputError(f"program: there is no shared library {str(file)!r}")
        return Opened(file.stem, {1: to_json(values)}, library=file.absolute())
    return _open_source(file.stem if file else "program", read_source(program, include_paths), values)


def _open_source(name: str, text: Source, values: Mapping[str, Any]) -> Opened:
    parsed = parse(text)
    plain = without_alternative(parsed)
    entries = check_data(values, program_info(plain)["inputs"], parsed)
    data = {1: to_json(entries), FORWARD: to_json({**entries, FORWARD_FLAG: 1})}
    source = plain
    if parsed.has_alternative:
        data |= {which: to_json({**entries, FLAG: which}) for which in (0, 1)}
        source = merge(parsed)
        stanc(source, "--info")  # errors of the alternative block, before the long compilation
    forward, reason = try_forward(parsed, ALTERNATIVE if parsed.has_alternative else "model")
    log.debug("%s: %s", name, reason or "its base can be drawn from")
    return Opened(name, data, parsed, source, forward)


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
