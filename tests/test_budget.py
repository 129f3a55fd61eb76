"""A budget is kept to: whatever the base, with and without a search for modes, from the smallest that is taken."""

from __future__ import annotations

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tempered import PRICE, problem, unsampled_model

import pathtemp as pt
from pathtemp.engines.default.anneal import Allowance, MovesShape, anneal, equilibrate
from pathtemp.model import price as pricing
from pathtemp.model.model import Model
from pathtemp.model.price import density_price
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import Settings

SETTINGS = Settings(chains=16, iterations=16)
ROUND = 16 * 16 * (1 + SETTINGS.orbit * PRICE)
CALL = MovesShape(moves=3, leapfrogs=4, acceptance=0.8, batch=None)


def model(base: str) -> Model:
    return unsampled_model(2)[0] if base == "density" else problem("mixture_1d").model


def temper(base: str, budget: float, modes: Any) -> pt.Fit:
    # One size of the buffers, so that one compiled round serves all budgets.
    return pt.temper(model(base), settings=SETTINGS, draws=4, budget=budget, modes=modes, progress=False)


def least(base: str, modes: Any) -> float:
    """The least that is taken, as the refusal of less says."""
    with pytest.raises(pt.InputError, match="budget: 10 gradient equivalents are too few") as refusal:
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
    for budget in (least(base, modes), 15_000, *([60_000] if modes == "off" else [])):
        spent = temper(base, budget, modes).counts.cost(PRICE)
        assert spent <= budget
        # A round, and what is kept back for the verdict and for a look at the draws, may be left.
        assert spent >= budget - 2 * ROUND - (0.3 if modes == "auto" else 0.1) * budget


@pytest.mark.parametrize("price", [1 / 16, 1.0])
def test_whatever_a_density_costs(price: float) -> None:
    """And it is what the settings say: the more densities cost, the fewer there are."""
    fit = pt.temper(
        model("density"),
        settings=SETTINGS.replace(density_price=price),
        draws=4,
        budget=20_000,
        modes="off",
        progress=False,
    )
    assert fit.counts.cost(price) <= 20_000
    assert fit.settings.density_price == price  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["margin", "path"])
def test_margins_and_paths_are_within_theirs(name: str) -> None:
    how: dict[str, Any] = {"settings": Settings(chains=8, iterations=8), "budget": 20_000, "progress": False}
    if name == "margin":
        fit: pt.Fit = pt.divide_and_conquer(pt.testing.funnel().model, margin="y", **how)
    else:
        fit = pt.path_sample(lambda theta, lam: -0.5 * jnp.sum(theta**2) * jnp.exp(-2 * lam), 2, **how)
    spent = fit.counts.cost(fit.settings.density_price)  # type: ignore[union-attr, arg-type]
    assert 18_000 < spent <= 20_000


def test_the_ratio_of_times_is_rounded_to_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few classes, far from the ratios that are usual: the next run, and another machine, find the same."""
    monkeypatch.setattr(pricing, "DEAR", 2e-4)
    monkeypatch.setattr(pricing, "quickest", lambda evaluate: evaluate())
    assert density_price(lambda: 0.01, lambda: 0.03, count=1) == 0.25
    assert density_price(lambda: 0.01, lambda: 0.3, count=1) == 1 / 16
    assert density_price(lambda: 0.01, lambda: 0.011, count=1) == 1.0
    # Below a fifth of a millisecond the gradient is not looked at.
    assert density_price(lambda: 0.01, lambda: 1 / 0, count=100) == 0.25


def test_a_price_beyond_a_gradient_is_refused() -> None:
    with pytest.raises(pt.InputError, match="density_price: a density costs no more than a gradient, 1, and it is 2"):
        Settings(density_price=2)
    with pytest.raises(pt.InputError, match="density_price: it must be a positive number"):
        Settings(density_price=0)


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
    fit = temper("sampler", 15_000, "auto")
    for budget in (2 * ROUND, 30_000):
        longer = fit.extend(budget=budget)
        assert fit.counts.cost(PRICE) < longer.counts.cost(PRICE) <= fit.counts.cost(PRICE) + budget
        fit = longer


@pytest.mark.parametrize("budget", [1, ROUND])
def test_extensions_that_hold_no_round_are_refused(budget: float) -> None:
    with pytest.raises(pt.InputError, match=r"extend: budget must be 563 gradient equivalents at least"):
        temper("density", 15_000, "auto").extend(budget=budget)


def far_and_dear(seed: Any, number: Any, theta: Any, energies: Any, lam: Any, chart: Any, step: Any) -> Any:
    """Moves of the largest cost along a path so long that no pass comes to its end."""
    fresh = np.random.default_rng(int(number))
    steps = jnp.asarray(CALL.moves * CALL.leapfrogs)
    return fresh.normal(size=theta.shape), fresh.normal(scale=1e6, size=energies.shape), step, steps, jnp.asarray(0.8)


@pytest.mark.parametrize("most", [0.0, 1_000.0, 3_000.0])
def test_the_annealing_pass_stops_before_its_limit(most: float) -> None:
    rng = np.random.default_rng(0)
    theta, energies = rng.normal(size=(32, 2)), rng.normal(scale=1e6, size=(32, 2))
    how: dict[str, Any] = {"full": True, "seed": 0, "shape": CALL, "allowed": Allowance(most)}
    levels, spent = anneal(far_and_dear, (theta, energies), ess=0.5, on_level=lambda lam, n: None, **how)
    assert levels[-1].lam < 1.0
    at_base = equilibrate(far_and_dear, theta, energies, **how)[3]
    for counts in (spent, at_base):
        assert counts.gradients <= max(most, CALL.dearest(32))
        assert counts.gradients > most - CALL.dearest(32)
    how["allowed"] = Allowance(most, price=1.0)
    levels, spent = anneal(far_and_dear, (theta, energies), ess=0.5, on_level=lambda lam, n: None, **how)
    assert spent.cost(1.0) <= max(most, CALL.dearest(32, 1.0))


@pytest.mark.parametrize("price", [0.0, PRICE])
@pytest.mark.parametrize("room", [0, 300, 1_000])
def test_the_search_stops_where_there_is_no_room(room: float, price: float) -> None:
    path = GeometricPath(*(getattr(problem("mixture_1d").model, name) for name in ("log_base", "log_target")))
    search = Search(path, scale=np.ones(problem("mixture_1d").model.dim), seed=0)
    starts = np.random.default_rng(0).normal(scale=30.0, size=(200, len(search.scale)))
    search.room, search.price = room, price
    search.climb(starts, found_by="base", random=True, most_gradients=np.inf)
    search.isolate()
    before = search.counts
    search.scan(starts, gradients=100, drawn=len(starts))
    assert search.counts.gradients <= room
    # Whether two ends are one mode takes a few densities, which are counted and not refused.
    few = 64 * price * len(search.modes)
    assert search.spent <= room + few
    assert search.room == pytest.approx(room - search.spent)
    if price:
        search.refine()
        search.divide()
        assert search.spent <= room + few
    else:
        assert search.counts.densities > before.densities
