"""A Stan program goes with the last model that uses it, and code that was compiled for it is told so."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest
from stan_programs import load

from pathtemp.frontends.stan.bridge import StanDensity
from pathtemp.model.model import Model

pytestmark = pytest.mark.usefixtures("toolchain")


def fresh(y: float) -> Model:
    """A model with data that no other test has."""
    return load("cauchy", data={"y": y})


def density_of(model: Model) -> StanDensity:
    assert isinstance(model.log_target, StanDensity)
    return model.log_target


def test_a_program_is_freed_with_its_last_model() -> None:
    one, two = fresh(3.25), fresh(3.25)
    density, instance = weakref.ref(density_of(one)), weakref.ref(density_of(one).instance)
    assert density_of(two) is density()
    del one
    gc.collect()
    assert density() is not None
    assert jnp.isfinite(two.log_target(jnp.zeros(two.dim)))
    del two
    gc.collect()
    assert density() is None
    assert instance() is None


def test_code_that_was_compiled_for_it_finds_nothing() -> None:
    """Its number is not given again: the next program, with other data, has another."""
    model = fresh(3.5)
    number, point = density_of(model).number, jnp.zeros(model.dim)
    program = jax.jit(model.log_target).lower(point).compile()
    assert jnp.isfinite(program(point))
    del model
    gc.collect()
    later = fresh(3.75)
    assert density_of(later).number > number
    with pytest.raises(Exception, match="no Stan density has this number"):
        program(point).block_until_ready()
