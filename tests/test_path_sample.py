"""Path sampling along any q(theta, lam): errors against standard errors, leave-one-out, refusals."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tempered import assert_mean, converged, first_that

import pathtemp as pt
from pathtemp.testing.calibration import ENOUGH, assert_close, assert_rate, assert_scores, combined

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

CHAINS = 32
"""Standard errors are of the jackknife over as many groups."""


def moving(theta: jax.Array, lam: jax.Array) -> jax.Array:
    """A skewed density whose mean moves and whose scale grows: log z = 2 lam + constant.

    x is the logit of a Beta(1, 2), whose mean is digamma(1) - digamma(2) = -1.
    """
    x = (theta - 5.0 * lam) * jnp.exp(-lam)
    return jnp.sum(x - 1.5 * jnp.logaddexp(0.0, x) * 2.0)


LAM = np.array([0.0, 0.5, 1.0])


@cache
def fit(seed: int) -> pt.Fit:
    return pt.path_sample(moving, 2, (-0.5, 1.0), budget=80_000, chains=CHAINS, seed=seed, progress=False)


def test_a_mean_that_moves_and_a_scale_that_grows() -> None:
    made = fit(0)
    assert_close(made.log_z(LAM), 2.0 * (LAM + 0.5), made.log_z.se(LAM), df=CHAINS - 1)
    for draws, lam in ((made.base, -0.5), (made.posterior, 1.0)):
        theta = draws["theta"].values
        assert_mean(theta.mean(axis=2), 5.0 * lam - np.exp(lam))
    assert first_that(converged, fit).warnings == []


@pytest.mark.slow
def test_errors_are_honest() -> None:
    """128 runs show errors of half or twice their size, and a bias of one standard error, 998 times in 1000."""
    fits = [fit(seed) for seed in range(ENOUGH)]
    z = [(made.log_z(LAM) - 2.0 * (LAM + 0.5)) / made.log_z.se(LAM) for made in fits]
    assert_scores(combined(z), df=CHAINS - 1)
    assert_rate(sum(made.converged for made in fits), ENOUGH, at_least=0.9)


@pytest.mark.slow
def test_leave_one_out_is_exact_in_a_conjugate_model() -> None:
    from leave_one_out import data, exact, log_q

    x, y = data()
    values, errors = np.array(
        [
            pt.path_sample(
                log_q, 2, args=(x, y, i), budget=80_000, chains=CHAINS, seed=i, progress=False
            ).log_marginal_likelihood
            for i in range(len(y))
        ]
    ).T
    assert_scores((values - exact(x, y)) / errors, df=CHAINS - 1)
    assert errors.max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("marginal", ["min-variance", "constant-kl"])
def test_other_marginals_give_the_same_curve(marginal: str) -> None:
    made = pt.path_sample(
        moving,
        2,
        (-0.5, 1.0),
        target_marginal=marginal,  # type: ignore[arg-type]
        budget=80_000,
        chains=CHAINS,
        progress=False,
    )
    assert_close(made.log_z(1.0), 3.0, made.log_z.se(1.0), df=CHAINS - 1)


@pytest.mark.parametrize(
    ("log_q", "dim", "options", "message"),
    [
        (3, 2, {}, "log_q: expected a function"),
        (moving, 0, {}, "dim: it must be a whole number"),
        (moving, 2, {"interval": (1.0, 0.0)}, "interval: expected two finite numbers"),
        (moving, 2, {"target_marginal": "flat"}, "target_marginal: expected one of"),
        (moving, 2, {"budget": -1}, "budget: it must be a positive number"),
        (moving, 2, {"budget": 500}, "budget: 500 gradient equivalents are too few"),
        (moving, 2, {"starts": np.zeros((3, 5))}, "starts: expected finite points of shape"),
        (lambda theta, lam: theta, 2, {}, "log_q: it must return one float64 number"),
        (lambda theta: theta[0], 2, {}, "log_q: it fails on a point with 2 coordinates"),
    ],
)
def test_bad_input_is_refused(log_q: object, dim: int, options: dict[str, object], message: str) -> None:
    with pytest.raises(pt.InputError, match=message):
        pt.path_sample(log_q, dim, **options, progress=False)  # type: ignore[arg-type]
