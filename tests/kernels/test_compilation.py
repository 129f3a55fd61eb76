"""What is compiled: data are handed to programs, and what was begun in the background is what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.kernels import compilation
from pathtemp.kernels.compilation import LEAST_DATA, begin_compiling, compiled_once


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was compiled or begun before."""
    for name in ("_programs", "_begun"):
        monkeypatch.setattr(compilation, name, type(getattr(compilation, name))())


def density(rows: int, seed: int = 0) -> tuple[Callable[[Any], Any], np.ndarray]:
    """A density that closes over a matrix with so many rows and two columns."""
    x = np.random.default_rng(seed).normal(size=(rows, 2))
    on_device = jnp.asarray(x)
    return lambda theta: jnp.sum(on_device @ theta) - jnp.sum((on_device @ theta) ** 2), x


def made(log_density: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda theta: {"value": jax.vmap(log_density)(theta), "gradient": jax.vmap(jax.grad(log_density))(theta)}


@pytest.mark.parametrize("rows", [LEAST_DATA // 2 - 1, LEAST_DATA // 2])
def test_data_are_handed_to_a_program_and_small_constants_stay_in_it(rows: int) -> None:
    log_density, x = density(rows)
    theta = np.random.default_rng(1).normal(size=(3, 2))
    out = compiled_once(made, (log_density,), (theta,))[0](theta)
    np.testing.assert_allclose(out["value"], (theta @ x.T).sum(axis=1) - ((theta @ x.T) ** 2).sum(axis=1))
    np.testing.assert_allclose(out["gradient"], x.sum(axis=0) - 2.0 * (theta @ x.T) @ x)
    lowered = compilation._order(made, (log_density,), (theta,), ()).lower()
    # A matrix inside of a program is written out in its text.
    written = len(lowered.program.as_text()) > 8 * rows
    assert (written, len(lowered.data)) == ((True, 0) if 2 * rows < LEAST_DATA else (False, 1))


def test_other_data_of_the_same_shape_give_the_same_program() -> None:
    orders = [compilation._order(made, (density(LEAST_DATA, seed)[0],), (np.zeros((3, 2)),), ()) for seed in (0, 1)]
    assert len({order.lower().program.as_text() for order in orders}) == 1


def test_donated_arguments_are_still_donated_beside_data() -> None:
    log_density, _ = density(LEAST_DATA)
    theta = jax.device_put(np.ones((3, 2)))
    program, _ = compiled_once(lambda f: lambda x: x + jax.vmap(f)(x)[:, None], (log_density,), (theta,), donate=(0,))
    program(theta)
    assert theta.is_deleted()


def test_what_was_begun_is_what_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    how = (lambda n: lambda x: n * x, (2.0,), (np.ones(3),))
    begin_compiling(*how)
    begin_compiling(*how)
    (begun,) = compilation._begun.values()
    program, _ = compiled_once(*how)
    assert program(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert program.args[0] is begun.result().args[0]
    assert compiled_once(*how)[0].args[0] is program.args[0]
    begin_compiling(*how)
    assert not compilation._begun


def test_few_programs_wait_for_who_began_them() -> None:
    for n in range(compilation.MOST_BEGUN + 2):
        begin_compiling(lambda n: lambda x: n * x, (n,), (np.ones(3),))
    assert len(compilation._begun) == compilation.MOST_BEGUN


def test_what_goes_wrong_in_the_background_is_raised_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no memory")

    how = (lambda n: lambda x: n * x, (2.0,), (np.ones(3),))
    monkeypatch.setattr(compilation._Lowered, "compile", fails)
    begin_compiling(*how)
    with pytest.raises(RuntimeError, match="no memory"):
        compiled_once(*how)
