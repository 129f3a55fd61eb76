"""Densities that are random, have side effects or fail are called so in one sentence, wherever it shows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import pathtemp as pt
from pathtemp.errors import ProgramFailed
from pathtemp.kernels.compilation import compiled_once
from pathtemp.model.inputs import check_density, check_model, naming
from pathtemp.model.model import model as join

BASE = pt.normal(0.0, 2.0, shape=(2,))
POINTS = np.random.default_rng(0).normal(size=(8, 2))


def called(host: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A density that calls Python."""
    return lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float64), x, vmap_method="sequential")


def noisy(rng: np.random.Generator) -> Callable[[Any], Any]:
    return called(lambda x: np.float64(-np.sum(x**2) + rng.normal()))


def counting(calls: list[int]) -> Callable[[Any], Any]:
    def host(x: Any) -> np.ndarray:
        calls.append(1)
        return np.float64(-np.sum(x**2) - len(calls))

    return called(host)


@pytest.mark.parametrize("density", [noisy(np.random.default_rng(1)), counting([])], ids=["random", "counts its calls"])
def test_other_numbers_at_the_same_point_are_told(density: Any) -> None:
    with pytest.raises(pt.InputError, match=r"^target: the log density gave different numbers at the same point"):
        check_model(join(density, BASE), POINTS)


def random_when_traced(rng: np.random.Generator) -> Callable[[Any], Any]:
    return lambda x: -jnp.sum(x**2) + rng.normal()


def changed_when_traced(calls: list[int]) -> Callable[[Any], Any]:
    def density(x: Any) -> Any:
        calls.append(1)
        return jax.lax.cond(x[0] > 0, lambda: -jnp.sum(x**2) * len(calls), lambda: -jnp.sum(x**2))

    return density


def growing(terms: list[int]) -> Callable[[Any], Any]:
    def density(x: Any) -> Any:
        terms.append(1)
        return -sum(jnp.sum(x**2) for _ in terms)

    return density


def with_new_data(rng: np.random.Generator) -> Callable[[Any], Any]:
    return lambda x: -jnp.sum((x - rng.normal(size=2)) ** 2)


@pytest.mark.parametrize(
    "density",
    [
        random_when_traced(np.random.default_rng(1)),
        changed_when_traced([]),
        growing([]),
        with_new_data(np.random.default_rng(1)),
    ],
    ids=["random", "changed", "growing", "with new data"],
)
def test_another_function_each_time_it_is_traced_is_told(density: Any) -> None:
    """Each program of a run would be of another density, and each by itself would be consistent."""
    with pytest.raises(pt.InputError, match=r"^target: the log density is another each time that JAX traces it"):
        check_density("target", density, 2)
    with pytest.raises(pt.InputError, match=r"^log_q: the log density is another each time"):
        pt.path_sample(lambda theta, lam: density(theta) * lam, 2, budget=120_000)


def test_a_tracer_that_is_kept_is_told() -> None:
    kept: list[Any] = []

    def density(x: Any) -> Any:
        kept.append(x)
        return -jnp.sum(kept[0] ** 2)

    with pytest.raises(pt.InputError, match=r"^target: the log density (is another each time|fails on a point)"):
        check_density("target", density, 2)


def test_side_effects_in_order_are_told_and_prints_are_let_through() -> None:
    def writing(x: Any) -> Any:
        io_callback(lambda: None, None)
        return -jnp.sum(x**2)

    def printing(x: Any) -> Any:
        jax.debug.print("{}", x)
        return -jnp.sum(x**2)

    with pytest.raises(pt.InputError, match=r"^target: the log density has side effects \(io_callback\)"):
        check_density("target", writing, 2)
    check_density("target", printing, 2)


def test_constants_and_nan_that_stay_the_same_are_let_through() -> None:
    data = np.array([1.0, np.nan])

    def density(x: Any) -> Any:
        return -jnp.nansum((x - jnp.array(data)) ** 2) + float("nan") * 0.0

    check_density("target", density, 2)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda x: np.zeros(3), ""),
        (lambda x: (_ for _ in ()).throw(RuntimeError("a\x1b[2J\nb" + "x" * 999)), "bxxx"),
        (lambda x: (_ for _ in ()).throw(SystemExit(3)), "SystemExit"),
    ],
    ids=["raises", "another shape", "says too much", "exits"],
)
def test_a_density_that_fails_in_python_is_one_sentence(host: Any, words: str) -> None:
    failing = join(called(host), BASE, name="fails\x07")
    with pytest.raises(pt.SamplingError, match=r"^fails\\x07: the run ended, as the model .* failed \(") as met:
        check_model(failing, POINTS)
    assert words in str(met.value)
    assert str(met.value).isprintable()
    assert len(str(met.value)) < 400


def test_a_failure_keeps_its_words_on_its_way() -> None:
    program, _ = compiled_once(lambda: called(lambda x: 1 / 0), (), (POINTS[0],))
    with pytest.raises(ProgramFailed, match=r"^model: the run ended") as met:
        program(POINTS[0])
    model = join(lambda x: -jnp.sum(x**2), BASE, name="mine")
    with (
        pytest.raises(ProgramFailed, match=r"^mine: the run ended.*; and more$") as named,
        naming(model, more="; and more"),
    ):
        raise met.value
    assert str(pickle.loads(pickle.dumps(named.value))) == str(named.value)
