"""The Stan programs of the tests: where they are, and models of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.augment import augment
from pathtemp.frontends.stan.build import build_programs
from pathtemp.frontends.stan.program import merge, parse, without_alternative
from pathtemp.frontends.stan.source import Source, read_source
from pathtemp.model import Model

FOLDER = Path(__file__).parent / "programs"
INCLUDE = FOLDER / "include"
EXAMPLES = Path(__file__).parents[3] / "examples" / "stan"
MERGED = ("cauchy_pair", "nasty", "eight_schools")
PLAIN = ("every_type", "typed_base")
EVERYTHING = tuple(sorted(path.stem for path in FOLDER.glob("*.stan")))


def path(name: str) -> Path:
    """File of a program."""
    return FOLDER / f"{name}.stan"


def load(name: str, **options: Any) -> Model:
    """Model of a program with the data beside it."""
    data = FOLDER / f"{name}.json"
    options.setdefault("data", data if data.exists() else None)
    return from_stan(path(name), include_paths=[INCLUDE], **options)


def source(name: str) -> Source:
    """What is compiled for a program."""
    program = parse(read_source(path(name), [INCLUDE]))
    return merge(program) if program.has_alternative else without_alternative(program)


def augmented(name: str) -> str:
    """The augmented program."""
    return augment(path(name), include_paths=[INCLUDE])


def build_default_programs() -> None:
    """Compile what the default suite needs, as many at a time as there are cores."""
    programs = [(source(name), f"{name}.stan") for name in (*MERGED, *PLAIN)]
    text = augmented("cauchy_pair")
    build_programs([*programs, (without_alternative(parse(read_source(text))), "cauchy_pair_augmented.stan")])
