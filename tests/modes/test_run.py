"""Runs that look for modes: right about shares and log z, honest about what they missed, and none the worse without."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tempered import NARROW, first_that, narrow

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.modes import gates
from pathtemp.modes import run as modes_run
from pathtemp.testing.calibration import ENOUGH, FALSE_ALARM, assert_close, assert_rate, assert_scores


def temper(seed: int = 0, **options: Any) -> pt.Fit:
    return pt.temper(narrow().model, seed=seed, **{**NARROW, "progress": False, **options})


@cache
def run(seed: int) -> pt.Fit:
    return temper(seed)


def fit() -> pt.Fit:
    """The first run that found both modes and started its path from them, as nearly all do."""
    return first_that(lambda made: len(made.modes) == 2 and made.modes.mixture, run)


def narrow_share(made: pt.Fit) -> tuple[float, float]:
    narrow = int(np.argmax(made.modes.log_density))
    return float(made.modes.share[narrow]), float(made.modes.share_se[narrow])


def start_at_the_broad_mode(search: Any, draws: Any, levels: Any, **options: Any) -> None:
    search.climb(np.full((4, 2), -2.0), found_by="base", random=True, most_gradients=1e4)


def test_one_run_is_right() -> None:
    value, se = fit().log_marginal_likelihood
    assert_close(value, 0.0, se)
    share, share_se = narrow_share(fit())
    assert_close(share, 0.3, share_se)


@pytest.mark.slow
def test_errors_are_as_large_as_they_say() -> None:
    """128 runs show errors of half or twice their size, and a bias of one standard error, 998 times in 1000."""
    fits = [run(seed) for seed in range(ENOUGH)]
    found = [made for made in fits if len(made.modes) == 2]
    assert_rate(len(found), ENOUGH, at_least=0.98)
    assert_scores([made.log_marginal_likelihood.value / made.log_marginal_likelihood.se for made in found])
    shares = np.array([narrow_share(made) for made in found])
    # Measured over 64 runs these errors are too small by a factor of 1.45; twice is seen.
    assert_scores((shares[:, 0] - 0.3) / shares[:, 1], spread=(0.85, 1.55))
    assert_rate(sum(made.converged for made in fits), ENOUGH, at_least=0.9)


def test_the_modes_are_described() -> None:
    modes = fit().modes
    assert modes.mixture
    assert "mixture of 2 modes" in modes.why
    assert set(modes.found_by) <= {"base", "annealing", "scan"}
    # Ascents end within a hundredth of a scale of the top.
    np.testing.assert_allclose(np.sort(modes.centre["theta"][:, 0]), [-2.0, 8.0], atol=0.1)
    assert modes.share.sum() == pytest.approx(1.0)
    assert modes.visits.min() > 0
    assert modes.unseen == 0.0 or modes.starts.min() == 1
    text = str(fit().summary())
    assert "2 known" in text
    assert "found by" in text


def test_starts_are_counted() -> None:
    spent = {record.phase: record.gradients for record in reversed(fit().history)}
    assert spent["modes"] > spent["anneal"]
    assert fit().counts.gradients <= 1.05 * NARROW["budget"]


def test_base_draws_are_those_of_the_users_base() -> None:
    draws = fit().base["theta"].values.ravel()
    assert stats.kstest(draws, "norm", args=(0.0, 5.0), method="asymp").pvalue > FALSE_ALARM


def test_a_fit_keeps_its_modes_in_a_file(tmp_path: Path) -> None:
    fit().save(tmp_path / "fit.nc")
    again = pt.load(tmp_path / "fit.nc").modes
    assert str(again) == str(fit().modes)
    np.testing.assert_array_equal(again.centre["theta"], fit().modes.centre["theta"])


def test_the_same_seed_gives_the_same_draws() -> None:
    np.testing.assert_array_equal(temper(0).posterior["theta"].values, run(0).posterior["theta"].values)


def test_going_on() -> None:
    more = fit().extend(budget=15_000)
    assert len(more.modes) >= 2
    assert more.counts.gradients > fit().counts.gradients + 10_000
    value, se = more.log_marginal_likelihood
    assert_close(value, 0.0, se)


def near() -> pt.testing.Problem:
    return pt.testing.narrow_mode(2, width=0.5, weight=0.3)


@pytest.mark.slow
def test_a_mode_met_between_rounds_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search knows the broad mode alone; chains started from base draws near the narrow one meet it."""
    monkeypatch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
    found = pt.temper(near().model, budget=60_000, chains=32, seed=1, progress=False)
    # Chains that start from base draws near the narrow mode are several of 32 in each of the rounds that are looked at.
    assert sorted(found.modes.found_by) == ["base", "draws"]
    value, se = found.log_marginal_likelihood
    assert_close(value, 0.0, se)


@pytest.mark.slow
def test_a_mode_met_too_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
    monkeypatch.setattr(modes_run, "LOOK_AT", ())
    found = pt.temper(near().model, budget=60_000, chains=32, seed=1, progress=False)
    check = next(check for check in found.diagnostics.checks if check.name == "unknown modes")
    assert not check.passed
    assert not found.converged


@pytest.mark.slow
def test_a_point_near_a_mode_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
    modes = temper(modes=[[7.9, 0.1]]).modes
    assert sorted(modes.found_by) == ["base", "given"]


@pytest.mark.slow
def test_without_a_base() -> None:
    def log_q(x):
        parts = jnp.array([jnp.log(0.3) - 0.5 * jnp.sum((x - 20.0) ** 2), jnp.log(0.7) - 0.5 * jnp.sum((x + 9.0) ** 2)])
        return jnp.logaddexp(parts[0], parts[1]) - jnp.log(2 * jnp.pi)

    with pytest.warns(UserWarning, match="no base was given"):
        made = pt.temper(target=log_q, dim=2, budget=30_000, chains=32, seed=0, progress=False)
    value, se = made.log_marginal_likelihood
    assert_close(value, 0.0, se)
    assert_close(made.modes.share, [0.7, 0.3], made.modes.share_se)
    assert "no base was given" in made.modes.why


def test_a_target_without_modes_needs_a_base() -> None:
    with pytest.raises(InputError, match="give base="):
        pt.temper(target=lambda x: jnp.sum(x), dim=2, progress=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"modes": "yes"}, "modes"),
        ({"modes": np.zeros((1, 3))}, "modes"),
        ({"modes": [[np.nan, 0.0]]}, "modes"),
        ({"dim": 2}, "dim"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        temper(**options)


def test_gates() -> None:
    assert gates.check_unseen(0.0, 64).passed
    assert not gates.check_unseen(0.1, 40).passed
    visits, expected = np.array([400, 3, 0]), np.array([0.9, 0.1, 1e-5])
    assert not gates.check_visits(visits, expected).passed
    assert gates.check_visits(visits[[0, 2]], expected[[0, 2]]).passed
    assert not gates.check_unknown(np.array([0.2])).passed
    assert gates.check_unknown(np.array([1e-4])).passed
