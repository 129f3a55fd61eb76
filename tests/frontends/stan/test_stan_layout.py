from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from stan_programs import load

from pathtemp.frontends.stan.layout import Affine, OneSided
from pathtemp.model.transforms import Interval, Positive


@pytest.mark.usefixtures("compiled")
def test_a_scale_is_known_by_its_transform() -> None:
    layout = load("eight_schools").layout
    assert layout.transforms == {"tau": Positive()}
    assert layout.shapes == {"mu": (), "tau": (), "theta": (8,)}


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_elementwise_constraints_are_known_by_their_transforms() -> None:
    layout = load("every_type").layout
    assert layout.transforms["above"] == OneSided(2.0, 1.0)
    assert layout.transforms["below"] == OneSided(-1.0, -1.0)
    assert layout.transforms["between"] == Interval(-2.0, 3.0)
    assert layout.transforms["shifted"] == Affine(1.0, 2.0)
    assert layout.transforms["positive"] == Positive()
    assert layout.transforms["grid"] == Interval(0.0, 1.0)
    assert set(layout.transforms) == {"above", "below", "between", "shifted", "positive", "grid"}
    assert layout.shapes["vectors"] == (2, 3)
    assert layout.shapes["grid"] == (2, 2)
    assert layout.shapes["M"] == (6,)  # by columns, so not in the order of its shape
    assert layout.shapes["shares"] == (4,)


@pytest.mark.stan_full
@pytest.mark.usefixtures("toolchain")
def test_the_layout_constrains_as_stan_does() -> None:
    model = load("every_type")
    x = np.random.default_rng(1).normal(size=model.dim)
    ours, _ = model.layout.constrain(jnp.asarray(x))
    stan = model.draws(x[None])
    for name in (*model.layout.transforms, "plain", "vectors", "row"):
        np.testing.assert_allclose(ours[name], stan[name][0], rtol=1e-9)


@pytest.mark.parametrize("transform", [OneSided(2.0, -1.0), OneSided(1.0, 1.0), Affine(1.0, -2.0)])
def test_transforms_invert_and_know_their_jacobian(transform: OneSided | Affine) -> None:
    x, step = jnp.asarray(0.3), 1e-6
    y = transform(x)
    assert transform.inv(y) == pytest.approx(0.3)
    slope = (transform(x + step) - transform(x - step)) / (2 * step)
    assert transform.log_abs_det_jacobian(x, y) == pytest.approx(np.log(abs(slope)), abs=1e-8)
