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
from pathtemp.engines.default.chains import Chains
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


def run(seed: int, *, batch: int | None = None) -> pt.Fit:
    settings = DEFAULT.replace(batch=batch)
    return pt.temper(problem("mixture_1d").model, seed=seed, budget=BUDGET, settings=settings, progress=False)


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


def test_same_seed_same_draws_and_nothing_compiled() -> None:
    first = run(0)
    with compilations() as events:
        second = run(0)
    assert_same(first, second)
    assert not events


@pytest.mark.slow
def test_another_seed_other_draws() -> None:
    """Seeds far apart and negative ones are allowed."""
    fits = [fit(0), *(run(seed) for seed in (1, 2**40 + 5, -1))]
    assert len({made.log_marginal_likelihood.value for made in fits}) == len(fits)
    for group in ("posterior", "base"):
        draws = np.concatenate([np.unique(getattr(made, group)["theta"].values) for made in fits])
        assert len(np.unique(draws)) == len(draws)


@pytest.mark.slow
def test_batches_do_not_change_a_chains_draws() -> None:
    whole, batched = fit(0), run(0, batch=16)
    assert whole.posterior.sizes == batched.posterior.sizes
    # Other batches are other programs, whose rounding differs; it grows from round to round, yet no draw is another.
    np.testing.assert_allclose(whole.path["a"], batched.path["a"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(whole.posterior["theta"], batched.posterior["theta"], rtol=1e-6, atol=1e-6)
    assert whole.log_marginal_likelihood.value == pytest.approx(batched.log_marginal_likelihood.value, abs=1e-6)


@pytest.fixture
def compiled_by_round(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Number of compilations so far at the end of every round."""
    counts: list[int] = []
    right = Chains.round

    def counted(self: Chains) -> Record:
        record = right(self)
        counts.append(len(events))
        return record

    monkeypatch.setattr(Chains, "round", counted)
    with compilations() as events:
        yield counts


def test_no_round_after_the_first_compiles_anything(compiled_by_round: list[int]) -> None:
    """A model never seen before: everything is compiled by the end of the first adaptive round.

    It is a copy of the shared one, so that the programs come from the folder of compiled ones.
    """
    pt.temper(pt.testing.mixture_1d().model, seed=0, budget=BUDGET, modes="off", progress=False)
    assert len(compiled_by_round) >= 6
    assert compiled_by_round[0] > 0
    assert compiled_by_round[-1] == compiled_by_round[0], compiled_by_round


@pytest.mark.slow
def test_extending_by_a_budget_compiles_no_round_and_is_the_same_every_time(compiled_by_round: list[int]) -> None:
    more = []
    for _ in range(2):
        made = run(0)
        rounds = len(compiled_by_round)
        more.append(made.extend(budget=30_000))
        assert len(compiled_by_round) > rounds
        assert compiled_by_round[-1] == compiled_by_round[rounds]
        assert more[-1].counts.gradients > made.counts.gradients
    assert_same(*more)
