"""A budget is kept to: whatever the base, with and without a search for modes, from the smallest that is taken."""

from __future__ import annotations

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tempered import problem, unsampled_model

import pathtemp as pt
from pathtemp.engines.default.anneal import MovesShape, anneal, equilibrate
from pathtemp.model.model import Model
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import Settings

SETTINGS = Settings(chains=16, iterations=16)
ROUND = 16 * 16
CALL = MovesShape(moves=3, leapfrogs=4, acceptance=0.8, batch=None)


def model(base: str) -> Model:
    return unsampled_model(2)[0] if base == "density" else problem("mixture_1d").model


def temper(base: str, budget: float, modes: Any) -> pt.Fit:
    # One size of the buffers, so that one compiled round serves all budgets.
    return pt.temper(model(base), settings=SETTINGS, draws=4, budget=budget, modes=modes, progress=False)


def least(base: str, modes: Any) -> float:
    """The least that is taken, as the refusal of less says."""
    with pytest.raises(pt.InputError, match="budget: 10 gradient evaluations are too few") as refusal:
        temper(base, 10, modes)
    found = re.search(r"give (\d+) at least", str(refusal.value))
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize(
    ("base", "modes"),
    [
        ("density", "auto"),
        pytest.param("density", "off", marks=pytest.mark.slow),
        pytest.param("sampler", "auto", marks=pytest.mark.slow),
        pytest.param("sampler", "off", marks=pytest.mark.slow),
    ],
)
def test_all_that_is_spent_is_within_the_budget(base: str, modes: str) -> None:
    for budget in (least(base, modes), 5_000, *([20_000] if base == "density" else [])):
        spent = temper(base, budget, modes).counts.gradients
        assert spent <= budget
        # A round, and what is kept back for a look at the draws, may be left.
        assert spent >= budget - 2 * ROUND - (0.2 * budget if modes == "auto" else 0.0)


def test_one_evaluation_less_than_the_least_is_refused() -> None:
    with pytest.raises(pt.InputError, match="too few"):
        temper("sampler", least("sampler", "auto") - 1, "auto")


def test_a_budget_that_is_too_small_is_told() -> None:
    """The smallest budget that is taken brings no chain to a base that is only a density."""
    fit = temper("density", least("density", "auto"), "auto")
    assert not fit.converged
    base = next(check for check in fit.diagnostics.checks if check.name == "base")
    assert "its share of the budget was too small" in base.message


@pytest.mark.slow
def test_an_extension_is_kept_to_as_well() -> None:
    fit = temper("sampler", 5_000, "auto")
    for budget in (2 * ROUND, 10_000):
        longer = fit.extend(budget=budget)
        assert fit.counts.gradients < longer.counts.gradients <= fit.counts.gradients + budget
        fit = longer


@pytest.mark.parametrize("budget", [1, ROUND])
def test_extensions_that_hold_no_round_are_refused(budget: float) -> None:
    with pytest.raises(pt.InputError, match=r"extend: budget must be 282 gradient evaluations at least"):
        temper("density", 5_000, "auto").extend(budget=budget)


def far_and_dear(seed: Any, number: Any, theta: Any, energies: Any, lam: Any, chart: Any, step: Any) -> Any:
    """Moves of the largest cost along a path so long that no pass comes to its end."""
    fresh = np.random.default_rng(int(number))
    steps = jnp.asarray(CALL.moves * CALL.leapfrogs)
    return fresh.normal(size=theta.shape), fresh.normal(scale=1e6, size=energies.shape), step, steps, jnp.asarray(0.8)


@pytest.mark.parametrize("most", [0.0, 1_000.0, 3_000.0])
def test_the_annealing_pass_stops_before_its_limit(most: float) -> None:
    rng = np.random.default_rng(0)
    theta, energies = rng.normal(size=(32, 2)), rng.normal(scale=1e6, size=(32, 2))
    how: dict[str, Any] = {"full": True, "seed": 0, "shape": CALL, "most_gradients": most}
    levels, spent = anneal(far_and_dear, (theta, energies), ess=0.5, on_level=lambda lam, n: None, **how)
    assert levels[-1].lam < 1.0
    at_base = equilibrate(far_and_dear, theta, energies, **how)[3]
    for counts in (spent, at_base):
        assert counts.gradients <= max(most, CALL.dearest(32))
        assert counts.gradients > most - CALL.dearest(32)


@pytest.mark.parametrize("room", [0, 300, 1_000])
def test_the_search_stops_where_there_is_no_room(room: float) -> None:
    path = GeometricPath(*(getattr(problem("mixture_1d").model, name) for name in ("log_base", "log_target")))
    search = Search(path, scale=np.ones(problem("mixture_1d").model.dim), seed=0)
    starts = np.random.default_rng(0).normal(scale=30.0, size=(200, len(search.scale)))
    search.room = room
    search.climb(starts, found_by="base", random=True, most_gradients=np.inf)
    search.isolate()
    assert search.counts.gradients <= room
    assert search.room == room - search.counts.gradients
