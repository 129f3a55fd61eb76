"""Named, shaped and constrained variables in one flat vector."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.transforms import Interval, Positive

LAYOUT = Layout({"mu": (), "tau": (2,), "p": (2, 2)}, {"tau": Positive(), "p": Interval(-1.0, 3.0)})
FLAT = jnp.array([0.3, -0.5, 1.2, 0.1, -2.0, 0.7, 3.0])


def test_unravel_and_ravel_are_inverse_and_in_order() -> None:
    parts = LAYOUT.unravel(FLAT)
    assert list(parts) == ["mu", "tau", "p"]
    assert [v.shape for v in parts.values()] == [(), (2,), (2, 2)]
    np.testing.assert_array_equal(parts["p"], [[0.1, -2.0], [0.7, 3.0]])
    np.testing.assert_array_equal(LAYOUT.ravel(parts), FLAT)
    assert LAYOUT.dim == 7


def test_constrain_and_unconstrain_are_inverse() -> None:
    variables, _ = LAYOUT.constrain(FLAT)
    assert np.all(np.asarray(variables["tau"]) > 0)
    assert np.all((np.asarray(variables["p"]) > -1) & (np.asarray(variables["p"]) < 3))
    np.testing.assert_allclose(LAYOUT.unconstrain(variables), FLAT, rtol=1e-10)


def test_variables_come_in_any_order() -> None:
    variables, _ = LAYOUT.constrain(FLAT)
    np.testing.assert_allclose(LAYOUT.unconstrain(dict(reversed(variables.items()))), FLAT, rtol=1e-10)


def test_log_jacobian_against_automatic_differentiation() -> None:
    def constrained(flat: jax.Array) -> jax.Array:
        return LAYOUT.ravel(LAYOUT.constrain(flat)[0])

    expected = np.linalg.slogdet(np.asarray(jax.jacobian(constrained)(FLAT)))[1]
    assert float(LAYOUT.constrain(FLAT)[1]) == pytest.approx(expected)


def test_constrain_draws_is_constrain_for_each() -> None:
    draws = np.random.default_rng(0).normal(size=(5, 7))
    together = LAYOUT.constrain_draws(draws)
    for i, flat in enumerate(draws):
        for name, value in LAYOUT.constrain(jnp.asarray(flat))[0].items():
            np.testing.assert_allclose(together[name][i], value, rtol=1e-12)


def test_a_transform_of_an_unknown_variable_is_refused() -> None:
    with pytest.raises(InputError, match="sigma"):
        Layout({"mu": ()}, {"sigma": Positive()})


@pytest.mark.parametrize(("transform", "low", "high"), [(Positive(), 0.0, np.inf), (Interval(2.0, 5.0), 2.0, 5.0)])
def test_transforms(transform: Positive | Interval, low: float, high: float) -> None:
    x = jnp.linspace(-4.0, 4.0, 9)
    y = transform(x)
    assert np.all((np.asarray(y) > low) & (np.asarray(y) < high))
    np.testing.assert_allclose(transform.inv(y), x, atol=1e-10)
    slope = jax.vmap(jax.grad(transform))(x)
    np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y), jnp.log(slope), rtol=1e-10, atol=1e-12)


def test_interval_keeps_a_finite_jacobian_far_out() -> None:
    for x in (-800.0, 800.0):
        assert np.isfinite(float(Interval().log_abs_det_jacobian(jnp.asarray(x), Interval()(jnp.asarray(x)))))
