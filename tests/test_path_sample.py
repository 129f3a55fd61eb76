"""Path sampling along any q(theta, lam): errors against standard errors, leave-one-out, refusals."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


def moving(theta: jax.Array, lam: jax.Array) -> jax.Array:
    """A skewed density whose mean moves and whose scale grows: log z = 2 lam + constant."""
    x = (theta - 5.0 * lam) * jnp.exp(-lam)
    return jnp.sum(x - 1.5 * jnp.logaddexp(0.0, x) * 2.0)


def test_a_mean_that_moves_and_a_scale_that_grows() -> None:
    z = []
    for seed in range(4):
        fit = pt.path_sample(moving, 2, (-0.5, 1.0), budget=100_000, chains=32, seed=seed, progress=False)
        assert fit.converged, fit.warnings
        lam = np.array([0.0, 0.5, 1.0])
        error = fit.log_z(lam) - 2.0 * (lam + 0.5)
        assert np.abs(error).max() < 0.1
        z += list(error / fit.log_z.se(lam))
        assert float(fit.posterior["theta"].mean()) > float(fit.base["theta"].mean()) + 4.0
    assert np.sqrt(np.mean(np.square(z))) < 2.0


def test_leave_one_out_is_exact_in_a_conjugate_model() -> None:
    from leave_one_out import data, exact, log_q

    x, y = data()
    truth, z = exact(x, y), []
    for i in range(len(y)):
        fit = pt.path_sample(log_q, 2, args=(x, y, i), budget=40_000, chains=32, seed=i, progress=False)
        value, se = fit.log_marginal_likelihood
        assert fit.converged, fit.warnings
        assert se < 0.05
        z.append((value - truth[i]) / se)
    assert np.abs(z).max() < 4.0
    assert np.sqrt(np.mean(np.square(z))) < 1.7


@pytest.mark.parametrize("marginal", ["min-variance", "constant-kl"])
def test_other_marginals_give_the_same_curve(marginal: str) -> None:
    fit = pt.path_sample(
        moving,
        2,
        (-0.5, 1.0),
        target_marginal=marginal,  # type: ignore[arg-type]
        budget=40_000,
        chains=32,
        progress=False,
    )
    assert abs(float(fit.log_z(1.0)) - 3.0) < 4.0 * float(fit.log_z.se(1.0)) + 0.01


@pytest.mark.parametrize(
    ("log_q", "dim", "options", "message"),
    [
        (3, 2, {}, "log_q: expected a function"),
        (moving, 0, {}, "dim: it must be a whole number"),
        (moving, 2, {"interval": (1.0, 0.0)}, "interval: expected two finite numbers"),
        (moving, 2, {"target_marginal": "flat"}, "target_marginal: expected one of"),
        (moving, 2, {"budget": -1}, "budget: it must be a positive number"),
        (moving, 2, {"budget": 500}, "budget: 500 gradient evaluations are too few"),
        (moving, 2, {"starts": np.zeros((3, 5))}, "starts: expected finite points of shape"),
        (lambda theta, lam: theta, 2, {}, "log_q: it must return one float64 number"),
        (lambda theta: theta[0], 2, {}, "log_q: it fails on a point with 2 coordinates"),
    ],
)
def test_bad_input_is_refused(log_q: object, dim: int, options: dict[str, object], message: str) -> None:
    with pytest.raises(pt.InputError, match=message):
        pt.path_sample(log_q, dim, **options, progress=False)  # type: ignore[arg-type]
