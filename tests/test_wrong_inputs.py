"""Whatever is wrong is told in one sentence of pathtemp's own, before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from argument_rows import FREE, parameters, public, rows
from argument_values import Row
from synthetic import cauchy_fit, fit_of
from wrong_inputs import BASE, INF, MODEL, START, THERE, TYPED, along, good, marginal

import pathtemp as pt
from pathtemp.frontends.stan import build as stan_build
from pathtemp.kernels import compilation
from pathtemp.settings import LadderSettings, Settings

mpl.use("Agg")

LONGEST = 200
"""Characters of a sentence."""

TABLE: list[tuple[str, Callable[[], Any], str]] = [
    *((typed, partial(eval, typed, THERE), f".*{re.escape(words)}") for typed, words in TYPED),
    *rows(),
]
"""What is typed, what that calls, and a pattern that the sentence has to match."""


@pytest.fixture(autouse=True)
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was to be compiled, by XLA or by the C++ compiler; nothing is."""
    met: list[str] = []

    def stop(*what: object, **_: object) -> None:
        met.append(str(what))
        raise StopIteration

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compilation, "_order", stop)
    monkeypatch.setattr(stan_build, "build", stop)
    return met


@pytest.mark.parametrize(("typed", "call", "pattern"), TABLE, ids=[f"{n}-{row[0]}" for n, row in enumerate(TABLE)])
def test_what_is_wrong_is_one_sentence(
    typed: str, call: Callable[[], Any], pattern: str, compilations: list[str]
) -> None:
    with pytest.raises(pt.InputError) as refused:
        call()
    plt.close("all")
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) <= LONGEST, message
    assert re.match(pattern, message), message
    assert not compilations


def test_every_argument_has_a_row() -> None:
    lacking = []
    for name, function, known in public():
        wrong = known.wrong if isinstance(known, Row) else known
        lacking += [(name, x) for x in parameters(function) - set(wrong) if (name, x) not in FREE]
        assert set(wrong) <= parameters(function), name
    assert not lacking


@pytest.mark.parametrize(
    "call",
    [
        lambda: pt.temper(MODEL, init=START),
        lambda: pt.temper(MODEL, init=[START, START], progress=False),
        lambda: pt.temper(target=good, base=BASE, progress=False),
        lambda: pt.temper(MODEL, chains=np.int64(8), budget=np.float32(1e5), draws=jnp.int32(4), progress=False),
        lambda: pt.divide_and_conquer(MODEL, margin="tau", progress=False),
        lambda: pt.path_sample(along, 2, progress=False),
    ],
    ids=["init", "more starts", "target", "numbers of NumPy and JAX", "margin", "path"],
)
def test_what_is_right_comes_as_far_as_compiling(call: Callable[[], Any], compilations: list[str]) -> None:
    """The table can fail: the same calls with nothing wrong are let through."""
    with pytest.raises(StopIteration):
        call()
    assert len(compilations) == 1


def test_extreme_values_that_are_right_are_let_through() -> None:
    assert cauchy_fit().log_z(np.array([0.0, 1.0 + 1e-12])).shape == (2,)
    with pytest.warns(UserWarning, match="extrapolated"):
        assert float(marginal().cdf(INF).value) == pytest.approx(1.0, abs=1e-3)
    assert fit_of(MODEL).summary(rows=0)


def test_settings_hold_plain_values_whatever_they_were_given_as() -> None:
    """So that any of them can be written to a file and read again."""
    assert Settings(chains=jnp.int32(8), acceptance=np.float32(0.5)) == Settings(chains=8, acceptance=0.5)  # type: ignore[arg-type]
    assert type(Settings(chains=np.int64(8)).chains) is int
    assert LadderSettings(ladder=np.array([0.0, 0.5, 1.0])).ladder == (0.0, 0.5, 1.0)  # type: ignore[arg-type]
