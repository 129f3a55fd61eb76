"""Runs that look for modes: right about shares and log z, honest about what they missed, and none the worse without."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tempered import NARROW, PRICE, first_that, narrow

import pathtemp as pt
from pathtemp.engines.default import modes as modes_stage
from pathtemp.engines.default.engine import TemperEngine
from pathtemp.engines.driver import Driver
from pathtemp.errors import InputError
from pathtemp.io.checkpoint import before
from pathtemp.result.run import Check
from pathtemp.testing.calibration import ENOUGH, FALSE_ALARM, assert_close, assert_rate, assert_scores
from pathtemp.verdict import modes as gates


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


def start_at_the_broad_mode(search: Any, draws: Any, levels: Any, limits: Any, **options: Any) -> None:
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
    assert_scores((shares[:, 0] - 0.3) / shares[:, 1])
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
    # At most a start or two of 64 end where no other does.
    assert 0.0 < modes.unseen < 0.12
    assert modes.power(width=1.0, share=0.5) > 0.9
    assert modes.power(width=1e-6, share=1e-6) < 0.1
    text = str(fit().summary())
    assert "2 known" in text
    assert "found by" in text


def test_starts_are_counted() -> None:
    spent = {record.phase: record.gradients for record in reversed(fit().history)}
    assert spent["modes"] > spent["anneal"]
    assert fit().counts.cost(PRICE) <= NARROW["budget"]


def test_base_draws_are_those_of_the_users_base() -> None:
    draws = fit().base["theta"].values.ravel()
    assert stats.kstest(draws, stats.norm(0.0, 5.0).cdf, method="asymp").pvalue > FALSE_ALARM


def test_a_fit_keeps_its_modes_in_a_file(tmp_path: Path) -> None:
    fit().save(tmp_path / "fit.nc")
    again = pt.load(tmp_path / "fit.nc").modes
    assert str(again) == str(fit().modes)
    assert again.power(width=0.4, share=0.1) == fit().modes.power(width=0.4, share=0.1)
    np.testing.assert_array_equal(again.centre["theta"], fit().modes.centre["theta"])


def test_the_same_seed_gives_the_same_draws() -> None:
    np.testing.assert_array_equal(temper(0).posterior["theta"].values, run(0).posterior["theta"].values)


def test_going_on() -> None:
    more = fit().extend(budget=45_000)
    assert len(more.modes) >= 2
    assert more.counts.gradients > fit().counts.gradients + 10_000
    value, se = more.log_marginal_likelihood
    assert_close(value, 0.0, se)


def near() -> pt.testing.Problem:
    return pt.testing.narrow_mode(2, width=0.5, weight=0.3)


@pytest.mark.slow
def test_a_mode_met_between_rounds_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search knows the broad mode alone; chains started from base draws near the narrow one meet it."""
    monkeypatch.setattr(modes_stage, "find_modes", start_at_the_broad_mode)
    found = pt.temper(near().model, budget=180_000, chains=32, seed=1, progress=False)
    # Chains that start from base draws near the narrow mode are several of 32 in each of the rounds that are looked at.
    assert sorted(found.modes.found_by) == ["base", "draws"]
    value, se = found.log_marginal_likelihood
    assert_close(value, 0.0, se)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("late") / "run.nc"


@pytest.fixture(scope="module")
def late(place: Path) -> pt.Fit:
    """A run whose search knows the broad mode alone, and which looks at its draws only at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modes_stage, "find_modes", start_at_the_broad_mode)
        patch.setattr(modes_stage, "SEARCHED_AFTER", ())
        return pt.temper(near().model, budget=90_000, chains=32, seed=1, progress=False, checkpoint=place)


def unknown(fit: pt.Fit) -> Check:
    return next(check for check in fit.diagnostics.checks if check.name == "unknown modes")


def test_a_mode_met_too_late_is_told(late: pt.Fit) -> None:
    assert sorted(late.modes.found_by) == ["base", "draws"]
    assert not unknown(late).passed
    assert "start a new run" in unknown(late).message
    assert "modes=" in unknown(late).message
    assert not late.converged
    # The look is a part of the run, and of its budget.
    assert late.history[-1].phase == "modes"
    assert late.counts.cost(PRICE) <= 90_000


def test_asking_changes_nothing(late: pt.Fit) -> None:
    assert isinstance(late.continuation, Driver)
    first, second = (late.continuation.engine.fit(late.history) for _ in range(2))
    assert first.counts == second.counts == late.counts
    assert repr(first.diagnostics.checks) == repr(second.diagnostics.checks) == repr(late.diagnostics.checks)
    assert repr(first.modes) == repr(second.modes) == repr(late.modes)


@pytest.mark.slow
def test_it_goes_on_from_before_and_after_the_look(late: pt.Fit, place: Path, tmp_path: Path) -> None:
    for kept in (before(place), place):
        again = pt.resume(Path(shutil.copy(kept, tmp_path / "run.nc")), near().model, progress=False)
        assert again.counts == late.counts
        assert repr(again.diagnostics.checks) == repr(late.diagnostics.checks)
        assert repr(again.modes) == repr(late.modes)
        assert again.posterior["theta"].values.tobytes() == late.posterior["theta"].values.tobytes()


def test_a_look_is_made_once_for_the_rounds_there_are(late: pt.Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(late.continuation, Driver)
    engine = late.continuation.engine
    assert isinstance(engine, TemperEngine)
    looked: list[float] = []
    monkeypatch.setattr(modes_stage.ModeSearch, "_late_search", lambda self, theta, room, *_: looked.append(room) or [])
    assert not engine.finish(late.continuation, 1e6)
    assert looked == []


def test_more_rounds_do_not_make_a_mode_known(late: pt.Fit) -> None:
    """The base still does not know it, so the verdict still says so, whatever the rounds did.

    Last of those that share the run: it goes on with it.
    """
    for budget in (6_000, 90_000):
        late = late.extend(budget=budget)
        assert not unknown(late).passed
        assert unknown(late).value >= 1
        assert not late.converged


@pytest.mark.slow
@pytest.mark.parametrize("starts_from_the_modes", [True, False])
def test_without_a_budget_a_run_begins_again_with_it(
    starts_from_the_modes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modes_stage, "find_modes", start_at_the_broad_mode)
    monkeypatch.setattr(modes_stage, "SEARCHED_AFTER", ())
    if not starts_from_the_modes:
        monkeypatch.setattr(modes_stage.choose, "why_not", lambda *_, **__: "as the test wants it")
    found = pt.temper(near().model, chains=32, seed=1, progress=False)
    assert found.modes.mixture == starts_from_the_modes
    # Of the second turn, whose base knows both.
    assert sorted(found.modes.found_by) == ["base", "draws"]
    assert unknown(found).passed
    phases = [record.phase for record in found.history]
    assert "adapt" in phases[phases.index("sample") :]
    assert_close(found.log_marginal_likelihood.value, 0.0, found.log_marginal_likelihood.se)


@pytest.mark.slow
def test_a_run_that_knew_the_mode_is_left_alone() -> None:
    assert unknown(fit()).passed


@pytest.mark.slow
def test_a_point_near_a_mode_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes_stage, "find_modes", start_at_the_broad_mode)
    modes = temper(modes=[[7.9, 0.1]]).modes
    assert sorted(modes.found_by) == ["base", "given"]


@pytest.mark.slow
def test_without_a_base() -> None:
    def log_q(x):
        parts = jnp.array([jnp.log(0.3) - 0.5 * jnp.sum((x - 20.0) ** 2), jnp.log(0.7) - 0.5 * jnp.sum((x + 9.0) ** 2)])
        return jnp.logaddexp(parts[0], parts[1]) - jnp.log(2 * jnp.pi)

    with pytest.warns(UserWarning, match="no base was given"):
        made = pt.temper(target=log_q, dim=2, budget=90_000, chains=32, seed=0, progress=False)
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
    assert gates.check_unseen(0.05, 64).passed
    assert not gates.check_unseen(0.11, 40).passed
    visits, expected = np.array([400, 3, 0]), np.array([0.9, 0.1, 1e-5])
    assert not gates.check_visits(visits, expected).passed
    assert gates.check_visits(visits[[0, 2]], expected[[0, 2]]).passed
    assert not gates.check_unknown(np.array([0.2])).passed
    assert gates.check_unknown(np.array([1e-4])).passed
