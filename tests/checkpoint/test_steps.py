"""Margins, paths and the paper's engine go on from any round as if they had never stopped, and beyond their budget."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kept_runs import assert_same
from tempered import PAPER_MARGIN, PRICE, easy, neck
from test_resume import Interrupting

import pathtemp as pt
from pathtemp.engines.path.probe import probes_of
from pathtemp.io import writer
from pathtemp.io.checkpoint import before, read_last
from pathtemp.settings import PAPER, Settings
from pathtemp.testing import beta_binomial
from pathtemp.testing.calibration import assert_scores
from pathtemp.verdict.registry import gates

SMALL = Settings(chains=8, iterations=8)
PAPER_TEMPER = PAPER.replace(adaptations=3, stop=False)


def moving(theta: jax.Array, lam: jax.Array, at: jax.Array) -> jax.Array:
    """A normal that moves and widens."""
    return -0.5 * jnp.sum(((theta - at * lam) * jnp.exp(-lam)) ** 2)


def log_law(x: np.ndarray) -> np.ndarray:
    """A target marginal of tau."""
    return -0.5 * np.log(x) ** 2 - np.log(x)


NECK, OTHER = neck(), neck(2.0)
EASY, HARD = easy().model, beta_binomial("hard").model
MARGIN = {"settings": SMALL, "budget": 18000, "seed": 2, "progress": False}
AT = jnp.array([2.0, -1.0])
OWN = pt.Margin(lambda p: jnp.log(p["tau"]), lambda v, p: jnp.exp(v), replaces="tau", name="log tau")


@dataclass(frozen=True)
class Kind:
    """How a run of one kind is begun, resumed, and resumed wrongly."""

    begin: Callable[..., pt.Fit]
    again: Callable[[Path], pt.Fit]
    wrong: Callable[[Path], pt.Fit]


SLOW = ("given margin", "paper's margin", "path")
"""Kinds that are left to the slow tests: another of their sort is in the quick ones."""

KINDS = {
    "margin": Kind(
        lambda **how: pt.divide_and_conquer(NECK, margin="tau", **{**MARGIN, **how}),
        lambda place: pt.resume(place, NECK, progress=False),
        lambda place: pt.resume(place, OTHER, progress=False),
    ),
    "given margin": Kind(
        lambda **how: pt.divide_and_conquer(
            NECK, margin=OWN, interval=(-3.0, 3.0), target_marginal=lambda x: -0.1 * x**2, **{**MARGIN, **how}
        ),
        lambda place: pt.resume(place, NECK, margin=OWN, target_marginal=lambda x: -0.1 * x**2, progress=False),
        lambda place: pt.resume(place, OTHER, margin=OWN, target_marginal=log_law, progress=False),
    ),
    "path": Kind(
        lambda **how: pt.path_sample(moving, 2, (0.0, 1.0), args=(AT,), **{**MARGIN, **how}),
        lambda place: pt.resume(place, log_q=moving, args=(AT,), progress=False),
        lambda place: pt.resume(place, log_q=moving, args=(AT + 1.0,), progress=False),
    ),
    "paper": Kind(
        lambda **how: pt.temper(EASY, **{"settings": PAPER_TEMPER, "seed": 2, "progress": False, **how}),
        lambda place: pt.resume(place, EASY, progress=False),
        lambda place: pt.resume(place, HARD, progress=False),
    ),
    "paper's margin": Kind(
        lambda **how: pt.divide_and_conquer(
            NECK, margin="tau", **{"settings": PAPER_MARGIN, "seed": 2, "progress": False, **how}
        ),
        lambda place: pt.resume(place, NECK, progress=False),
        lambda place: pt.resume(place, OTHER, progress=False),
    ),
}


Kept = tuple[Kind, pt.Fit, list[Path]]


@cache
def finished(name: str) -> pt.Fit:
    """A run of one kind without a checkpoint."""
    return KINDS[name].begin()


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in KINDS],
)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A run of each kind, and copies of its checkpoint as it was after each round."""
    kind, folder = KINDS[request.param], tmp_path_factory.mktemp("kept")
    copies: list[Path] = []
    write = writer.write

    def and_copy(place: Path, record: Any) -> None:
        write(place, record)
        copies.append(folder / f"after-{len(copies)}.nc")
        shutil.copy(place, copies[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "write", and_copy)
        fit = kind.begin(checkpoint=folder / "run.nc")
    same(fit, finished(request.param))
    return kind, fit, copies


def same(one: pt.Fit, other: pt.Fit) -> None:
    """Bit by bit."""
    assert_same(one, other)
    if isinstance(one, pt.MarginFit):
        assert isinstance(other, pt.MarginFit)
        assert one.marginal is not None
        assert other.marginal is not None
        assert one.marginal.without.tobytes() == other.marginal.without.tobytes()
        np.testing.assert_array_equal(one.log_marginal_likelihood, other.log_marginal_likelihood)


def test_it_goes_on_from_any_round(kept: Kept, tmp_path: Path) -> None:
    """From the first and the last; the one before the last is gone on from below."""
    kind, fit, copies = kept
    assert len(copies) >= 3
    for copy in (copies[0], copies[-1]):
        place = Path(shutil.copy(copy, tmp_path / "run.nc"))
        same(fit, kind.again(place))
        place.unlink()
        before(place).unlink(missing_ok=True)


def test_its_fit_opens_again(kept: Kept, tmp_path: Path) -> None:
    """What is checked when a file is opened holds for the fit of every engine."""
    _, fit, _ = kept
    fit.save(tmp_path / "fit.nc")
    same(fit, pt.load(tmp_path / "fit.nc"))


def test_a_cut_file_is_refused_and_the_one_before_is_used(kept: Kept, tmp_path: Path) -> None:
    kind, fit, copies = kept
    content, place = copies[-1].read_bytes(), tmp_path / "run.nc"
    for length in (0, len(content) // 2, len(content) - 1):
        place.write_bytes(content[:length])
        with pytest.raises(pt.InputError, match=r"^resume: .*(cut short|checksum)"):
            kind.again(place)
    shutil.copy(copies[-2], before(place))
    with pytest.warns(UserWarning, match="going on from one round earlier"):
        same(fit, kind.again(place))


def test_another_model_is_refused(kept: Kept) -> None:
    kind, _, copies = kept
    with pytest.raises(pt.InputError, match="are not those in the file; give the model"):
        kind.wrong(copies[1])


@pytest.mark.parametrize("early", [pytest.param(True, marks=pytest.mark.slow), False])
def test_ctrl_c_gives_the_fit_so_far(kept: Kept, tmp_path: Path, early: bool) -> None:
    kind, whole, _ = kept
    place = tmp_path / "run.nc"
    fit = kind.begin(checkpoint=place, progress=Interrupting(2 if early else len(whole.history) - 1))
    assert not fit.converged
    # What going on would open is not complained of.
    told = [check.name for check in fit.diagnostics.checks if not check.passed and check.message]
    assert len(fit.warnings) == len(told)
    assert told[0] == "finished"
    assert all(gates()[name].lasts for name in told[1:])
    assert "The run was interrupted after" in fit.warnings[0]
    assert "pt.resume on its checkpoint" in fit.warnings[0]
    same(whole, kind.again(place))
    if fit.continuation is not None:
        longer = fit.extend(budget=6000)
        assert "finished" not in [check.name for check in longer.diagnostics.checks]


@pytest.mark.parametrize("name", ["margin", pytest.param("path", marks=pytest.mark.slow)])
def test_extending_goes_on_where_the_run_stopped(name: str) -> None:
    one, two = finished(name), KINDS[name].begin()
    round_cost = 8 * 8 * (2.5 + 8 * PRICE)
    longer = one.extend(budget=12.5 * round_cost)
    twice = two.extend(budget=6.2 * round_cost)
    # A margin keeps back what the bridge and the look beyond the interval take for the fit.
    kept_back = PRICE * (8 * 8 + probes_of(8)) if name == "margin" else 0.0
    left = longer.counts.cost(PRICE) - twice.counts.cost(PRICE)
    twice = twice.extend(budget=left + 0.5 * round_cost + kept_back)
    np.testing.assert_array_equal(
        longer.posterior["x" if name == "margin" else "theta"], twice.posterior["x" if name == "margin" else "theta"]
    )
    assert longer.log_z.mean.tobytes() == twice.log_z.mean.tobytes()
    assert longer.counts.gradients == twice.counts.gradients > one.counts.gradients
    # All frozen rounds of the first part are in it.
    first = one.path["a"].values
    np.testing.assert_array_equal(longer.path["a"].values[:, : first.shape[1]], first)


@pytest.mark.slow
def test_errors_shrink_honestly_as_a_margin_is_extended() -> None:
    """64 runs show errors of a third of their size, and a bias of two standard errors, nine times in ten at least."""
    z, ratio = [], []
    for seed in range(64):
        fit = pt.divide_and_conquer(NECK, margin="tau", settings=SMALL, budget=18000, seed=seed, progress=False)
        longer = fit.extend(budget=54_000)
        assert fit.marginal is not None
        assert longer.marginal is not None  # type: ignore[attr-defined]
        if longer.diagnostics.tours == 0:
            # It never came back, and says so: there is no error to judge.
            assert not longer.converged
            continue
        upper, first = longer.marginal.quantile(0.9750021), fit.marginal.quantile(0.9750021)  # type: ignore[attr-defined]
        z.append(float((upper.value - np.exp(1.96)) / upper.se))
        ratio.append(float(upper.se / first.se))
    # Errors are those of eight chains.
    assert_scores(z, df=SMALL.chains - 1)
    # Six times as many frozen rounds: their ratio is .4 in the middle, each known to a quarter, and all to a thirtieth.
    assert np.median(ratio) < 0.75


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"budget": 10}, "extend: budget must be 246 gradient equivalents at least"),
        ({"draws": 10}, "extend: give budget=; that is what this run can"),
        ({}, "extend: give budget=; that is what this run can"),
    ],
)
def test_extensions_that_are_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(pt.InputError, match=message):
        finished("margin").extend(**how)


def test_what_cannot_be_extended_says_so(tmp_path: Path) -> None:
    fit = finished("paper's margin")
    with pytest.raises(pt.InputError, match="this kind of run cannot go on"):
        fit.extend(budget=20_000)
    fit.save(tmp_path / "fit.nc")
    with pytest.raises(pt.InputError, match="this kind of run cannot go on"):
        pt.load(tmp_path / "fit.nc").extend(budget=20_000)


def test_each_kind_of_file_takes_its_own(tmp_path: Path) -> None:
    margin, path = tmp_path / "margin.nc", tmp_path / "path.nc"
    KINDS["margin"].begin(checkpoint=margin)
    KINDS["path"].begin(checkpoint=path)
    for call, message in (
        (lambda: pt.resume(margin, NECK, log_q=moving), "log_q: the checkpoint is of pt.divide_and_conquer"),
        (lambda: pt.resume(margin, NECK, margin=OWN), "margin: the checkpoint is of 'tau', by its name"),
        (lambda: pt.resume(margin, NECK, target_marginal=log_law), "target_marginal: give the function that the run"),
        (lambda: pt.resume(path), "holds no function; give log_q="),
        (lambda: pt.resume(path, log_q=moving, margin=OWN), "margin: the checkpoint is of pt.path_sample"),
        (lambda: pt.resume(margin), "holds no model"),
    ):
        with pytest.raises(pt.InputError, match=message):
            call()
    with pytest.raises(pt.InputError, match="checkpoint: it is of one margin"):
        pt.divide_and_conquer(NECK, margin=["tau", "x[0]"], checkpoint=tmp_path / "both.nc")


CHILD = """
import sys
sys.path[:0] = [sys.argv[1] + "/../..", sys.argv[1] + "/..", sys.argv[1]]
import conftest
from pathlib import Path
from test_steps import KINDS
from pathtemp.io import writer

write = writer.write
def and_say(place, record):
    write(place, record)
    print(record["state"]["engine"]["chains"]["rounds"], flush=True)

writer.write = and_say
KINDS["margin"].begin(checkpoint=Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_along_a_margin_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "run.nc"
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(5)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    assert read_last(place)["state"]["engine"]["chains"]["rounds"] >= int(told[-1])
    same(finished("margin"), KINDS["margin"].again(place))
