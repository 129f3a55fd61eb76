"""Runs that look for modes: right about shares and log z, honest about what they missed, and none the worse without."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp.checkpoint.carry_out import Continuation
from pathtemp.checkpoint.file import before
from pathtemp.errors import InputError
from pathtemp.modes import gates
from pathtemp.modes import run as modes_run
from pathtemp.run import Check

PROBLEM = pt.testing.narrow_mode(2, width=0.1, weight=0.3)
"""From few base draws does an ascent lead to the narrow mode; its share at lam = 1 is .3, and log z = 0."""


def temper(seed: int = 0, **options: Any) -> pt.Fit:
    given = {"budget": 30_000, "chains": 32, "progress": False} | options
    return pt.temper(PROBLEM.model, seed=seed, **given)


@cache
def fit(seed: int = 0) -> pt.Fit:
    return temper(seed)


def start_at_the_broad_mode(search: Any, draws: Any, levels: Any, **options: Any) -> None:
    search.climb(np.full((4, 2), -2.0), found_by="base", random=True, most_gradients=1e4)


def test_errors_are_as_large_as_they_say() -> None:
    log_z, shares = [], []
    for seed in range(6):
        evidence, modes = fit(seed).log_marginal_likelihood, fit(seed).modes
        assert len(modes) == 2
        narrow = int(np.argmax(modes.log_density))
        log_z.append(evidence.value / evidence.se)
        shares.append((modes.share[narrow] - 0.3) / modes.share_se[narrow])
    for z in (log_z, shares):
        assert np.mean(np.square(z)) < 3.0
    assert np.max([fit(seed).log_marginal_likelihood.se for seed in range(6)]) < 0.05


def test_the_modes_are_described() -> None:
    modes = fit().modes
    assert modes.mixture
    assert "mixture of 2 modes" in modes.why
    assert set(modes.found_by) <= {"base", "annealing", "scan"}
    np.testing.assert_allclose(np.sort(modes.centre["theta"][:, 0]), [-2.0, 8.0], atol=0.05)
    assert modes.share.sum() == pytest.approx(1.0)
    assert modes.visits.min() >= 5
    assert modes.unseen <= 0.01
    text = str(fit().summary())
    assert "2 known" in text
    assert "found by" in text


def test_starts_are_counted() -> None:
    spent = {record.phase: record.gradients for record in reversed(fit().history)}
    assert spent["modes"] > spent["anneal"]
    assert fit().counts.gradients <= 30_000


def test_base_draws_are_those_of_the_users_base() -> None:
    draws = fit().base["theta"].values.reshape(-1, 2)
    assert 4.5 < draws.std() < 5.5
    assert np.abs(draws.mean(axis=0)).max() < 0.5


def test_a_fit_keeps_its_modes_in_a_file(tmp_path: Path) -> None:
    fit().save(tmp_path / "fit.nc")
    again = pt.load(tmp_path / "fit.nc").modes
    assert str(again) == str(fit().modes)
    np.testing.assert_array_equal(again.centre["theta"], fit().modes.centre["theta"])


def test_the_same_seed_gives_the_same_draws() -> None:
    np.testing.assert_array_equal(temper(0).posterior["theta"].values, fit(0).posterior["theta"].values)


def test_going_on() -> None:
    more = temper(7).extend(budget=15_000)
    assert len(more.modes) == 2
    assert more.counts.gradients > 35_000


def test_a_mode_met_between_rounds_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search knows the broad mode alone; chains started from base draws near the narrow one meet it."""
    monkeypatch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
    found = pt.temper(NEAR.model, budget=60_000, chains=32, seed=1, progress=False)
    assert sorted(found.modes.found_by) == ["base", "draws"]
    evidence = found.log_marginal_likelihood
    assert abs(evidence.value) < 4.0 * evidence.se + 0.02


NEAR = pt.testing.narrow_mode(2, width=0.5, weight=0.3)
"""Chains that start from base draws near its narrow mode meet it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("late") / "run.nc"


@pytest.fixture(scope="module")
def late(place: Path) -> pt.Fit:
    """A run whose search knows the broad mode alone, and which looks at its draws only at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
        patch.setattr(modes_run, "LOOK_AT", ())
        return pt.temper(NEAR.model, budget=30_000, chains=32, seed=1, progress=False, checkpoint=place)


def unknown(fit: pt.Fit) -> Check:
    return next(check for check in fit.diagnostics.checks if check.name == "unknown modes")


def test_a_mode_met_too_late_is_told(late: pt.Fit) -> None:
    assert sorted(late.modes.found_by) == ["base", "draws"]
    assert not unknown(late).passed
    assert "run anew" in unknown(late).message
    assert "modes=" in unknown(late).message
    assert not late.converged
    # The look is a part of the run, and of its budget.
    assert late.history[-1].phase == "modes"
    assert late.counts.gradients <= 30_000


def test_asking_changes_nothing(late: pt.Fit) -> None:
    assert isinstance(late.continuation, Continuation)
    run = late.continuation._run
    first, second = run.result(), run.result()
    assert first.counts == second.counts == late.counts
    assert repr(first.diagnostics.checks) == repr(second.diagnostics.checks) == repr(late.diagnostics.checks)
    assert repr(first.modes) == repr(second.modes) == repr(late.modes)


def test_it_goes_on_from_before_and_after_the_look(late: pt.Fit, place: Path, tmp_path: Path) -> None:
    for kept in (before(place), place):
        again = pt.resume(Path(shutil.copy(kept, tmp_path / "run.nc")), NEAR.model, progress=False)
        assert again.counts == late.counts
        assert repr(again.diagnostics.checks) == repr(late.diagnostics.checks)
        assert repr(again.modes) == repr(late.modes)
        assert again.posterior["theta"].values.tobytes() == late.posterior["theta"].values.tobytes()


def test_a_look_is_made_once_for_the_rounds_there_are(late: pt.Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(late.continuation, Continuation)
    run = late.continuation._run
    assert isinstance(run, modes_run.ModesRun)
    looked: list[float] = []
    monkeypatch.setattr(modes_run.ModesRun, "_look", lambda self, theta, room: looked.append(room) or [])
    run._look_at_draws()
    assert looked == []


def test_more_rounds_do_not_make_a_mode_known(late: pt.Fit) -> None:
    """The base still does not know it, so the verdict still says so, whatever the rounds did.

    Last of those that share the run: it goes on with it.
    """
    for budget in (2_000, 30_000):
        late = late.extend(budget=budget)
        assert not unknown(late).passed
        assert unknown(late).value >= 1
        assert not late.converged


def test_runs_that_knew_the_mode_are_left_alone() -> None:
    for seed in range(2):
        assert unknown(fit(seed)).passed


def test_a_point_near_a_mode_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes_run, "find_modes", start_at_the_broad_mode)
    modes = temper(modes=[[7.9, 0.1]]).modes
    assert sorted(modes.found_by) == ["base", "given"]


def test_off_looks_for_nothing() -> None:
    assert temper(modes="off", budget=10_000).modes is None


def test_without_a_base() -> None:
    def log_q(x):
        parts = jnp.array([jnp.log(0.3) - 0.5 * jnp.sum((x - 20.0) ** 2), jnp.log(0.7) - 0.5 * jnp.sum((x + 9.0) ** 2)])
        return jnp.logaddexp(parts[0], parts[1]) - jnp.log(2 * jnp.pi)

    with pytest.warns(UserWarning, match="no base was given"):
        made = pt.temper(target=log_q, dim=2, budget=30_000, chains=32, seed=0, progress=False)
    evidence = made.log_marginal_likelihood
    assert abs(evidence.value) < 4.0 * evidence.se + 0.02
    assert made.modes.share[0] == pytest.approx(0.7, abs=4 * made.modes.share_se[0])
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
