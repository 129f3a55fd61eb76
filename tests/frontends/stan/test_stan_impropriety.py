from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stan_programs import default_and_more, load

from pathtemp._types import Array, FloatArray
from pathtemp.errors import InputError
from pathtemp.frontends.stan import from_stan
from pathtemp.frontends.stan.impropriety import does_not_fall_off, improper_parameters, moves_freely
from pathtemp.model.bases import Automatic


class Pretended:
    """An instance made of JAX functions: the log density without Jacobian, and the log Jacobian."""

    def __init__(self, names: list[str], density: Callable[[Array], Any], jacobian: Callable[[Array], Any]) -> None:
        self.unconstrained_names, self.dim = names, len(names)
        self._parts = {False: density, True: lambda x: density(x) + jacobian(x)}

    def log_density(self, x: FloatArray, *, jacobian: bool = True) -> float:
        return float(self._parts[jacobian](jnp.asarray(x)))

    def gradient(self, x: FloatArray, *, jacobian: bool = True) -> tuple[float, FloatArray]:
        value, gradient = jax.value_and_grad(self._parts[jacobian])(jnp.asarray(x))
        return float(value), np.asarray(gradient)


NAMES = ["free", "scale", "share.1", "share.2"]


def log_jacobian(x: Array) -> Array:
    """Of a real, a positive number and two shares between 0 and 1."""
    return jnp.asarray(x[1] + jax.nn.log_sigmoid(x[2:]).sum() + jax.nn.log_sigmoid(-x[2:]).sum())


@pytest.mark.parametrize(
    ("density", "improper"),
    [
        (lambda x: -(x[0] ** 2) - jnp.exp(x[1]), []),  # shares are uniform on an interval: proper
        (lambda x: -jnp.exp(x[1]), ["free"]),
        (lambda x: -(x[0] ** 2), ["scale"]),
        (lambda x: -(x[2] ** 2), ["free", "scale"]),
        (lambda x: jnp.nan * x[0], []),  # nothing can be said
        (lambda x: jnp.where(jnp.abs(x[0]) < 5, -jnp.exp(x[1]), -jnp.inf), []),  # a uniform distribution
    ],
)
def test_parameters_of_unbounded_range_that_do_not_enter_are_found(
    density: Callable[[Array], Any], improper: list[str]
) -> None:
    assert improper_parameters(Pretended(NAMES, density, log_jacobian)) == improper  # type: ignore[arg-type]


WALK = ["x.1", "x.2", "x.3", "log_scale", "share"]


def walk(x: Array) -> Array:
    """Three states of a random walk with a scale, the first of which is free."""
    return -0.5 * jnp.sum((jnp.diff(x[:3]) / jnp.exp(x[3])) ** 2) - 2 * x[3] - x[3] ** 2


@pytest.mark.parametrize(
    ("density", "free"),
    [
        (walk, ["x"]),
        (lambda x: walk(x) - x[0] ** 2, []),
        (lambda x: walk(x) - 1e-12 * x[0] ** 2, []),  # a scale of a million is vague, and proper
        (lambda x: -(jnp.sum(x[:3]) ** 2) - jnp.exp(x[3]) + x[3], ["x"]),  # the sum alone
        (lambda x: -((x[1] + x[3]) ** 2) - x[0] ** 2 - x[2] ** 2, ["x", "log_scale"]),
        (lambda x: -1e8 * (x[0] - x[1]) ** 2 - 1e-8 * (x[0] + x[1]) ** 2 - x[2] ** 2 - x[3] ** 2, []),
        (lambda x: jnp.nan * x[0], []),
    ],
)
def test_parameters_that_move_together_without_a_change_are_found(
    density: Callable[[Array], Any], free: list[str]
) -> None:
    """None of them is silent, and along each of them alone the density falls; a share is uniform within its bounds."""
    share = Pretended(WALK, density, lambda x: jax.nn.log_sigmoid(x[4]) + jax.nn.log_sigmoid(-x[4]))
    assert moves_freely(share) == free  # type: ignore[arg-type]
    assert improper_parameters(share) == does_not_fall_off(share) == []  # type: ignore[arg-type]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", default_and_more())
def test_proper_programs_pass(name: str) -> None:
    assert improper_parameters(load(name).log_target.instance) == []  # type: ignore[attr-defined]


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_a_parameter_missing_from_the_alternative_block_is_named_with_the_line() -> None:
    text = """parameters { real x; real<lower=0> s; real<lower=0, upper=1> p; simplex[3] w; }
model { x ~ normal(0, s); s ~ exponential(1); }
alternative model {
  x ~ normal(0, 5);
}
"""
    with pytest.raises(InputError, match="the Stan program, line 3: the alternative model block says nothing of 's'"):
        from_stan(text)


WALK_PROGRAM = """data { int T; vector[T] y; }
parameters { vector[T] x; real<lower=0> q; }
model {
  q ~ normal(0, 1);
  for (t in 2 : T) x[t] ~ normal(x[t - 1], q);
  y ~ normal(x, 1);
}
"""


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_a_random_walk_without_a_first_state_is_not_called_a_proper_prior() -> None:
    data = {"T": 4, "y": [0.1, -0.4, 0.8, 1.1]}
    model = from_stan(WALK_PROGRAM, data=data)
    assert isinstance(model.log_base, Automatic)
    assert not model.base.evidence
    assert "it gives no proper distribution to x;" in str(model.base)
    first = WALK_PROGRAM.replace("model {", "model {\n  x[1] ~ normal(0, 5);", 1)
    assert from_stan(first, data=data).sample_base is not None
