"""Two models joined by one path: the ratio of their integrals, and models that cannot be joined."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.testing.calibration import assert_close


def normal(centre: float, scale: float, height: float, *, dim: int = 2) -> Model:
    """An unnormalised normal with integral exp(height) (2 pi)^(dim / 2) scale^dim."""

    def target(x: jax.Array) -> jax.Array:
        return height - 0.5 * jnp.sum(((x - centre) / scale) ** 2)

    return join(target, pt.normal(0.0, 9.0, shape=(dim,)), name=f"normal at {centre:g}")


def test_the_ends_are_the_two_targets() -> None:
    one, two = normal(0.0, 1.0, 0.3), normal(1.0, 0.5, -0.2)
    joined = pt.bridge(one, two)
    at = jnp.array([0.4, -1.0])
    assert float(joined.log_base(at)) == float(one.log_target(at))
    assert float(joined.log_target(at)) == float(two.log_target(at))
    assert joined.sample_base is None
    assert joined.name == "normal at 0 to normal at 1"


@pytest.mark.slow
def test_log_z_is_the_log_ratio_of_the_integrals() -> None:
    joined = pt.bridge(normal(0.0, 1.0, 0.3), normal(1.0, 0.5, -0.2))
    fit = pt.temper(joined, budget=180_000, seed=1, progress=False)
    value, se = fit.log_marginal_likelihood
    assert se < 0.1
    assert_close(value, -0.5 + 2 * np.log(0.5), se)


def test_models_of_other_parameters_are_refused() -> None:
    with pytest.raises(pt.InputError, match=r"model_b: its parameters are theta \(3,\), and those of model_a theta"):
        pt.bridge(normal(0.0, 1.0, 0.0), normal(0.0, 1.0, 0.0, dim=3))
    with pytest.raises(pt.InputError, match="model_a: expected a model"):
        pt.bridge(lambda x: x, normal(0.0, 1.0, 0.0))  # type: ignore[arg-type]
