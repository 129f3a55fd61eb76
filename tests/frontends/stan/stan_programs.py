"""The Stan programs of the tests: where they are, and models of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import ArrayLike

from pathtemp._types import FloatArray
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.augment import augment
from pathtemp.frontends.stan.data import read_data
from pathtemp.frontends.stan.opening import Opened, compile_programs, open_program
from pathtemp.model.model import Model
from pathtemp.testing.calibration import assert_close

FOLDER = Path(__file__).parent / "programs"
INCLUDE = FOLDER / "include"
EXAMPLES = Path(__file__).parents[3] / "examples" / "stan"
DEFAULT = ("cauchy", "eight_schools")
"""What the default suite compiles, and no more: a program takes half a minute. One is an example."""

MORE = ("nasty", "every_type", "typed_base")
"""What `-m stan_full` compiles for tests of their own, besides building everything."""

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
    compile_programs(list(map(opened, DEFAULT)), progress=True)


def default_and_more() -> list[Any]:
    """Names of programs as parameters of a test: those that the default suite compiles, and marked ones."""
    return [*DEFAULT, *(pytest.param(name, marks=pytest.mark.stan_full) for name in MORE)]


def exact_draws(model: Model, count: int) -> FloatArray:
    """Independent draws of the base on the unconstrained scale, (count, dim)."""
    assert model.sample_base is not None
    return np.asarray(jax.jit(jax.vmap(model.sample_base))(jax.random.split(jax.random.key(1), count)))


def assert_means(draws: ArrayLike, exact: ArrayLike) -> None:
    """Fail unless the means over independent draws, along the first axis, are the exact ones within their errors."""
    values = np.asarray(draws)
    assert_close(values.mean(axis=0), exact, values.std(axis=0, ddof=1) / np.sqrt(len(values)))
