"""The Stan programs of the tests: where they are, and models of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.augment import augment, augmented_data
from pathtemp.frontends.stan.data import read_data
from pathtemp.frontends.stan.opening import Opened, compile_programs, open_program
from pathtemp.model import Model

FOLDER = Path(__file__).parent / "programs"
INCLUDE = FOLDER / "include"
EXAMPLES = Path(__file__).parents[3] / "examples" / "stan"
DEFAULT = ("cauchy", "nasty", "eight_schools", "every_type", "typed_base")
"""What the default suite compiles, with the augmented Cauchy pair: six programs and no more. One is an example."""

EVERYTHING = tuple(sorted(path.stem for path in FOLDER.glob("*.stan")))
"""All programs but the examples."""


def path(name: str) -> Path:
    """File of a program, of the tests or of the examples."""
    own = FOLDER / f"{name}.stan"
    return own if own.exists() else EXAMPLES / own.name


def data_of(name: str) -> Path | None:
    """The data beside a program."""
    file = path(name).with_suffix(".json")
    return file if file.exists() else None


def load(name: str, **options: Any) -> Model:
    """Model of a program with the data beside it."""
    options.setdefault("data", data_of(name))
    return from_stan(path(name), include_paths=[INCLUDE], **options)


def opened(name: str) -> Opened:
    """A program with its data, not compiled."""
    return open_program(path(name), read_data(data_of(name)), [INCLUDE])


def augmented(name: str) -> str:
    """The augmented program."""
    return augment(path(name), include_paths=[INCLUDE])


def build_default_programs() -> None:
    """Compile what the default suite needs, as many at a time as there are cores."""
    joint = open_program(augmented("cauchy"), {"y": 10.0} | augmented_data(), [])
    compile_programs([*map(opened, DEFAULT), joint], progress=True)
