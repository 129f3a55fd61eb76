"""The same seed gives the same draws, whatever the batches; and nothing is compiled twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.monitoring
import numpy as np
import pytest
from tempered import BUDGET, fit, problem

import pathtemp as pt
from pathtemp.engine import Engine
from pathtemp.kernels.rounds import Record
from pathtemp.settings import DEFAULT

COMPILED = "/jax/core/compile/backend_compile_duration"
_listening: list[list[str]] = []


def _note(event: str, _: float, **__: object) -> None:
    if event == COMPILED:
        for events in _listening:
            events.append(event)


jax.monitoring.register_event_duration_secs_listener(_note)


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Collect one entry for every program that XLA compiles meanwhile."""
    events: list[str] = []
    _listening.append(events)
    try:
        yield events
    finally:
        _listening.remove(events)


def run(*, seed: int = 0, batch: int | None = None) -> pt.Fit:
    return pt.temper(
        problem("cauchy_pair").model, seed=seed, budget=BUDGET, settings=DEFAULT.replace(batch=batch), progress=False
    )


def assert_same(one: pt.Fit, other: pt.Fit) -> None:
    """Every draw, the path and the curve are equal bit for bit."""
    for group in ("posterior", "base", "path"):
        first, second = getattr(one, group), getattr(other, group)
        assert set(first.data_vars) == set(second.data_vars)
        for name in first.data_vars:
            np.testing.assert_array_equal(first[name], second[name])
    np.testing.assert_array_equal(one.log_z.mean, other.log_z.mean)
    np.testing.assert_array_equal(one.log_z.stderr, other.log_z.stderr)
    assert one.counts == other.counts


def test_the_listener_hears_a_compilation() -> None:
    with compilations() as events:
        jax.jit(lambda x: 3.0 * x + 0.123)(np.ones(3))
    assert events


def test_same_seed_same_draws() -> None:
    assert_same(fit("cauchy_pair", 0), run(seed=0))


def test_another_seed_other_draws() -> None:
    one, two = fit("cauchy_pair", 0), fit("cauchy_pair", 1)
    assert one.log_marginal_likelihood.value != two.log_marginal_likelihood.value
    shared = np.intersect1d(one.posterior["theta"].values, two.posterior["theta"].values)
    assert shared.size == 0
    assert np.intersect1d(one.base["theta"].values, two.base["theta"].values).size == 0


def test_seeds_far_apart_and_negative_are_different_and_allowed() -> None:
    values = {run(seed=seed).log_marginal_likelihood.value for seed in (2**40 + 5, 3, -1)}
    assert len(values) == 3


def test_batches_do_not_change_a_chains_draws() -> None:
    whole, batched = fit("cauchy_pair", 0), run(seed=0, batch=16)
    assert whole.posterior.sizes == batched.posterior.sizes
    np.testing.assert_allclose(whole.path["a"], batched.path["a"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(whole.posterior["theta"], batched.posterior["theta"], rtol=1e-9, atol=1e-9)
    assert whole.log_marginal_likelihood.value == pytest.approx(batched.log_marginal_likelihood.value, abs=1e-9)


@pytest.fixture
def compiled_by_round(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Number of compilations so far at the end of every round."""
    counts: list[int] = []
    right = Engine.round

    def counted(self: Engine) -> Record:
        record = right(self)
        counts.append(len(events))
        return record

    monkeypatch.setattr(Engine, "round", counted)
    with compilations() as events:
        yield counts


def test_no_round_after_the_first_compiles_anything(compiled_by_round: list[int]) -> None:
    """A model never seen before: everything is compiled by the end of the first adaptive round."""
    pt.temper(pt.testing.cauchy_pair(gap=8.0).model, seed=0, budget=BUDGET, progress=False)
    assert len(compiled_by_round) >= 6
    assert compiled_by_round[0] > 0
    assert compiled_by_round[-1] == compiled_by_round[0], compiled_by_round


def test_a_second_run_on_one_model_compiles_no_round(compiled_by_round: list[int]) -> None:
    run(seed=5)
    rounds = len(compiled_by_round)
    f = run(seed=6)
    assert compiled_by_round[-1] == compiled_by_round[rounds]
    assert f.seconds["compile"] < 0.1


def test_extending_by_a_budget_compiles_no_round(compiled_by_round: list[int]) -> None:
    f = run(seed=7)
    rounds = len(compiled_by_round)
    more = f.extend(budget=10_000)
    assert len(compiled_by_round) > rounds
    assert compiled_by_round[-1] == compiled_by_round[rounds]
    assert more.counts.gradients > f.counts.gradients


def test_extending_is_the_same_every_time() -> None:
    assert_same(run(seed=9).extend(budget=10_000), run(seed=9).extend(budget=10_000))
