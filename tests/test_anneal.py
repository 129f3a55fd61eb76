"""The annealing pass: its levels, what it resamples, and what its particles say of the path."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from pathtemp._types import FloatArray
from pathtemp.engines.default.anneal import (
    LOST,
    Allowance,
    Level,
    MovesShape,
    anneal,
    equilibrate,
    host_delta,
    make_moves,
    next_lam,
    replace_lost,
    resample,
)
from pathtemp.paths.geometric import LOG_ZERO, GeometricPath
from pathtemp.result.run import Counts
from pathtemp.testing import gaussian_scale
from pathtemp.testing.calibration import assert_close

PROBLEM = gaussian_scale(2)
PATH = GeometricPath(PROBLEM.model.log_base, PROBLEM.model.log_target)
PARTICLES, ESS, RUNS = 128, 0.5, 48
Moves = Callable[..., Any]


SHAPE = MovesShape(moves=4, leapfrogs=3, acceptance=0.8, batch=None)


@cache
def moves() -> Moves:
    """One program for all runs; the points without density that it met, of which there are none, are left out."""
    whole = make_moves(PATH, SHAPE)
    return jax.jit(lambda *given: whole(*given)[:5], compiler_options={"xla_backend_optimization_level": 0})


def energies_of(theta: FloatArray) -> FloatArray:
    """(log base, log target) of the normals, by hand."""
    square = np.sum(theta**2, axis=1)
    return np.column_stack([-np.log(2 * np.pi) - 0.5 * square, -np.log(2 * np.pi) - 5.0 * square])


def passed(rng: np.random.Generator, chosen: Moves, **options: Any) -> tuple[list[Level], Counts]:
    theta = rng.normal(size=(PARTICLES, 2))
    settings = {"allowed": Allowance(1e9), "on_level": lambda _lam, _spent: None} | options
    seed = int(rng.integers(2**31))
    return anneal(chosen, (theta, energies_of(theta)), full=True, ess=ESS, seed=seed, shape=SHAPE, **settings)


def log_z(levels: list[Level]) -> float:
    """Log z(1) - log z(0): importance sampling from each level to the next."""
    steps = pairwise(levels)
    return float(sum(logsumexp((b.lam - a.lam) * a.delta) - np.log(PARTICLES) for a, b in steps))


@cache
def runs(seed: int) -> list[list[Level]]:
    return [passed(np.random.default_rng([seed, run]), moves())[0] for run in range(RUNS)]


def test_the_densities_are_those_written_out_here() -> None:
    theta = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(jax.vmap(PATH.energies)(jnp.asarray(theta)), energies_of(theta), rtol=1e-12)


def test_levels_rise_to_one_by_steps_of_one_effective_sample_size() -> None:
    for levels in runs(1)[:4]:
        lam = [level.lam for level in levels]
        assert lam[0] == 0.0
        assert lam[-1] == 1.0
        assert np.all(np.diff(lam) > 0)
        for here, there in pairwise(levels):
            w = np.exp((there.lam - here.lam) * (here.delta - here.delta.max()))
            share = w.sum() ** 2 / (w**2).sum() / PARTICLES
            assert share == pytest.approx(ESS, abs=1e-6) if there.lam < 1 else share >= ESS
            np.testing.assert_allclose(there.energies, energies_of(there.theta), rtol=1e-9)
            np.testing.assert_allclose(there.delta, there.energies[:, 1] - there.energies[:, 0])


def ratios(found: list[list[Level]]) -> FloatArray:
    """The estimates of z(1) / z(0) over the exact one."""
    assert PROBLEM.log_z is not None
    return np.exp([log_z(levels) - PROBLEM.log_z_end for levels in found])


def assert_right(found: list[list[Level]]) -> None:
    """The mean ratio is one, and the particles at the target have its variance of .1: runs are independent."""
    squares = np.array([np.mean(levels[-1].theta ** 2) for levels in found])
    for values, exact in ((ratios(found), 1.0), (squares, 0.1)):
        assert_close(values.mean(), exact, values.std(ddof=1) / np.sqrt(len(values)), df=len(values) - 1)


def test_log_z_and_the_last_particles_are_right() -> None:
    assert_right(runs(1))


def test_moves_at_another_lam_would_be_seen() -> None:
    def at_half_of_it(seed: Any, number: Any, theta: Any, energies: Any, lam: Any, *rest: Any) -> Any:
        return moves()(seed, number, theta, energies, 0.5 * lam, *rest)

    wrong = [passed(np.random.default_rng([2, run]), at_half_of_it)[0] for run in range(RUNS)]
    with pytest.raises(AssertionError, match="standard errors"):
        assert_right(wrong)


def test_the_budget_stops_it_short_of_the_target() -> None:
    seen: list[tuple[float, int]] = []
    rng = np.random.default_rng(3)
    levels, spent = passed(rng, moves(), allowed=Allowance(1.0), on_level=lambda lam, spent: seen.append((lam, spent)))
    assert len(levels) == 2
    assert 0 < levels[-1].lam < 1
    assert seen == [(levels[-1].lam, spent.gradients)]
    assert spent.densities == 4 * PARTICLES
    # Four moves of one to three leapfrogs.
    assert 4 * PARTICLES <= spent.gradients <= 12 * PARTICLES


def test_particles_far_from_the_base_are_brought_to_it() -> None:
    rng = np.random.default_rng(4)
    theta = 5.0 + 0.1 * rng.normal(size=(PARTICLES, 2))
    new, energies, rhat, spent = equilibrate(
        moves(), theta, energies_of(theta), full=True, seed=int(rng.integers(2**31)), shape=SHAPE, allowed=Allowance()
    )
    np.testing.assert_allclose(energies, energies_of(new), rtol=1e-9)
    assert_close(new.mean(axis=0), 0.0, 1.0 / np.sqrt(PARTICLES))
    assert_close((new**2).mean(axis=0), 1.0, np.sqrt(2.0 / PARTICLES))
    # 30 calls of four moves, each nearly a fresh draw: R-hat of 128 chains is 1.01 at most.
    assert rhat < 1.1
    assert spent.densities == 60 * 4 * PARTICLES


def test_the_next_level_has_the_effective_sample_size_or_is_the_target() -> None:
    delta = np.array([0.0, -np.log(3.0)])
    # Weights 1 and 3^-step: (1 + w)^2 / (1 + w^2) / 2 is .8 at w = 1/3, one whole step.
    assert next_lam(delta, 0.0, 0.8 - 1e-9) == 1.0
    assert next_lam(4.0 * delta, 0.2, 0.8) == pytest.approx(0.45, abs=1e-9)
    assert next_lam(np.array([0.0, LOG_ZERO]), 0.0, 0.9) > 0.0


def test_systematic_resampling_copies_each_as_often_as_its_weight_says() -> None:
    rng = np.random.default_rng(5)
    weight = rng.exponential(size=50)
    weight[7] = 0.0
    with np.errstate(divide="ignore"):
        count = np.bincount(resample(rng, np.log(weight)), minlength=50)
    due = 50 * weight / weight.sum()
    assert np.all((count >= np.floor(due)) & (count <= np.ceil(due)))
    assert count[7] == 0


def test_only_lost_particles_are_replaced() -> None:
    log_weight = np.array([0.0, -LOST + 1.0, -LOST - 1.0, -1.0, -np.inf])
    index = replace_lost(np.random.default_rng(6), log_weight)
    np.testing.assert_array_equal(index[[0, 1, 3]], [0, 1, 3])
    assert set(index[[2, 4]]) <= {0, 3}


def test_delta_is_bounded_where_the_target_has_no_density() -> None:
    assert host_delta(np.array([[-1.0, -np.inf], [-1.0, -3.0]])).tolist() == [LOG_ZERO + 1.0, -2.0]
