"""Which base the path starts from: every reason, on searches whose modes are known."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from pathtemp.engines.default.effort import work_of
from pathtemp.modes import choose
from pathtemp.modes.local import DENSE_DIM, from_covariance
from pathtemp.modes.mixture_base import SAFETY
from pathtemp.modes.mode import Mode
from pathtemp.modes.search import Search
from pathtemp.paths.geometric import GeometricPath
from pathtemp.settings import Settings
from pathtemp.testing import gaussian_mixture

PROBLEM = gaussian_mixture([0.3, 0.7], [[-4.0], [4.0]], scales=[0.5, 1.0], base_scale=5.0)
MODEL = PROBLEM.model
LONG, SHORT = (1.0, 12.0), (1.0, 3.0)
"""(lam reached, length) of the user's path."""


def mode(centre: float, mass: float, *, from_base: int = 50, flat: bool = False) -> Mode:
    law = from_covariance(np.array([centre]), np.eye(1), 0.0)
    return Mode(replace(law, flat=flat), float(np.log(mass)), "base", from_base, from_base)


def search_of(*modes: Mode, starts: int = 100, given_up: int = 0) -> Search:
    search = Search(GeometricPath(MODEL.log_base, MODEL.log_target), scale=np.ones(1), seed=0)
    search.modes, search.starts, search.base_starts, search.given_up = list(modes), starts, starts, given_up
    return search


def draws(first: int, second: int) -> np.ndarray:
    """Points at either mode."""
    return np.repeat([-4.0, 4.0], [first, second])[:, None]


TWO = search_of(mode(-4.0, 0.3), mode(4.0, 0.7))


def test_legs_are_isolated_modes_of_some_mass() -> None:
    search = search_of(mode(-4.0, 0.3), mode(0.0, 0.1, flat=True), mode(4.0, 0.7), mode(9.0, 0.5e-6))
    assert choose.legs(search) == [0, 2]


@pytest.mark.parametrize(
    ("from_base", "held", "expected"),
    [
        ((30, 70), (30, 70), True),
        ((7, 93), (30, 70), True),  # a fifth of its due of 30 is 6
        ((5, 95), (30, 70), False),
        ((30, 70), (8, 92), True),  # a quarter of its due of 30
        ((30, 70), (7, 93), False),
        ((30, 70), (0, 13), True),  # of 13 draws 3.9 are due, too few to tell
        ((30, 70), (0, 14), False),
    ],
)
def test_a_path_is_fair_where_no_mode_gets_much_less_than_its_due(
    from_base: tuple[int, int], held: tuple[int, int], expected: bool
) -> None:
    search = search_of(mode(-4.0, 0.3, from_base=from_base[0]), mode(4.0, 0.7, from_base=from_base[1]))
    assert choose.fair(search, draws(*held)) is expected


def test_a_mode_of_next_to_no_mass_need_not_be_led_to() -> None:
    search = search_of(mode(-4.0, 0.009, from_base=0), mode(4.0, 0.991))
    assert choose.fair(search, draws(1, 99))


def test_a_mixture_is_tried_where_the_path_is_long_unfair_or_does_not_arrive() -> None:
    fair = draws(30, 70)
    assert choose.why_not(MODEL, TWO, LONG, fair) == ""
    assert choose.why_not(MODEL, TWO, SHORT, draws(0, 100)) == ""
    assert choose.why_not(MODEL, TWO, (0.8, 3.0), fair) == ""


@pytest.mark.parametrize("far", [(0.8, 3.0), (1.0, 18.0)])
def test_one_mode_is_worth_a_mixture_where_the_base_is_vague(far: tuple[float, float]) -> None:
    assert choose.why_not(MODEL, search_of(mode(4.0, 1.0)), far, draws(0, 100)) == ""
    _, why = choose.verdict(1, far, (1.0, 1.0), all_reached=True)
    assert why.startswith("a mixture of one mode and 10% of the base as given")


def test_one_mode_is_worth_one_on_a_shorter_path_where_a_density_is_dear() -> None:
    one, path = search_of(mode(4.0, 1.0)), (1.0, 9.0)
    # All draws are of the one mode, which is no wider than its law.
    here = draws(0, 100)
    dear, cheap = (work_of(Settings(effort=effort)).vague for effort in ("light", "full"))
    assert choose.why_not(MODEL, one, path, here, vague=dear) == ""
    assert "found one mode" in choose.why_not(MODEL, one, path, here, vague=cheap)


def test_every_reason_against_a_mixture_is_named() -> None:
    fair = draws(30, 70)
    assert "short, 3" in choose.why_not(MODEL, TWO, SHORT, fair)
    lost = search_of(*TWO.modes, given_up=51)
    assert "no isolated modes" in choose.why_not(MODEL, lost, LONG, fair)
    assert "one mode" in choose.why_not(MODEL, search_of(mode(4.0, 1.0)), LONG, fair)
    assert "cannot be sampled" in choose.why_not(replace(MODEL, sample_base=None), TWO, LONG, fair)
    many = gaussian_mixture([0.5, 0.5], np.zeros((2, DENSE_DIM + 1)), scales=1.0, base_scale=5.0).model
    assert f"beyond {DENSE_DIM} dimensions" in choose.why_not(many, TWO, LONG, fair)


def test_the_mixture_weighs_modes_half_by_mass_and_half_equally() -> None:
    mixed = choose.with_mixture(MODEL, TWO)
    x = np.linspace(-40.0, 40.0, 8001)
    value = np.asarray(jax.jit(jax.vmap(mixed.log_base))(jnp.asarray(x[:, None])))
    user = np.asarray(jax.vmap(MODEL.log_base)(jnp.asarray(x[:, None])))
    assert logsumexp(value) + np.log(x[1] - x[0]) == pytest.approx(0.0, abs=1e-6)
    local = np.exp(value) - SAFETY * np.exp(user)
    # Each law is symmetric about its own mode, and reaches the other side with a share of 2.5%.
    below = np.trapezoid(local[x < 0], x[x < 0]) / (1.0 - SAFETY)
    assert below == pytest.approx(0.5 * 0.3 + 0.25, abs=0.03)
    assert mixed.log_target is MODEL.log_target
    assert mixed.sample_base is not None


@pytest.mark.parametrize(
    ("user", "mixture", "all_reached", "chosen", "words"),
    [
        ((1.0, 10.0), (0.5, 1.0), True, False, "did not reach the target"),
        ((0.5, 1.0), (1.0, 9.0), True, True, "base alone did not reach"),
        ((1.0, 10.0), (1.0, 8.9), True, True, "8.9 against 10"),
        ((1.0, 10.0), (1.0, 9.1), True, False, "10 against 9.1"),
        ((1.0, 10.0), (1.0, 9.1), False, True, "left modes out"),
    ],
)
def test_the_shorter_path_wins_unless_one_does_not_arrive(
    user: tuple[float, float], mixture: tuple[float, float], all_reached: bool, chosen: bool, words: str
) -> None:
    taken, why = choose.verdict(2, user, mixture, all_reached=all_reached)
    assert taken is chosen
    assert words in why
