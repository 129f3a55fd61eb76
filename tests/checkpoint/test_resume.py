"""A run goes on from any round as if it had never stopped, and nothing else is taken for a checkpoint."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafted import resealed
from kept_runs import SMALL, assert_same, run_keeping, two_modes
from tempered import NARROW, first_that, narrow

import pathtemp as pt
from pathtemp.engines.driver import Driver
from pathtemp.io import atomic
from pathtemp.io.checkpoint import before, read, read_last
from pathtemp.model.model import Model
from pathtemp.result.run import RoundRecord

Kept = tuple[Model, pt.Fit, list[Path]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A run that found two modes and started its path from them, with its checkpoint after each round."""
    model = narrow().model

    def run(seed: int) -> tuple[pt.Fit, list[Path]]:
        with pytest.MonkeyPatch.context() as patch:
            return run_keeping(model, tmp_path_factory.mktemp("auto"), patch, seed=seed, **NARROW)

    fit, copies = first_that(lambda made: made[0].modes is not None and made[0].modes.mixture, run)
    return model, fit, copies


def test_it_goes_on_from_any_round(kept: Kept, tmp_path: Path) -> None:
    model, fit, copies = kept
    assert len(copies) > 8
    for copy in (copies[1], copies[len(copies) // 2], copies[-2]):
        place = Path(shutil.copy(copy, tmp_path / "run.nc"))
        assert_same(fit, pt.resume(place, model, progress=False))
        place.unlink()
        before(place).unlink(missing_ok=True)


@pytest.mark.slow
def test_it_goes_on_from_every_round(kept: Kept, tmp_path: Path) -> None:
    model, fit, copies = kept
    for number, copy in enumerate(copies):
        assert_same(fit, pt.resume(shutil.copy(copy, tmp_path / f"run-{number}.nc"), model, progress=False))


@pytest.mark.slow
def test_without_modes_and_without_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = two_modes()
    settings = SMALL.replace(log_z_se=0.5)
    options = {"modes": "off", "draws": 100, "seed": 5, "settings": settings}
    fit, copies = run_keeping(model, tmp_path, monkeypatch, **options)
    assert len(copies) < 1000
    for copy in (copies[-10], copies[-1]):
        assert_same(fit, pt.resume(copy, model, progress=False))


MADE_ANEW: dict[str, set[str]] = {
    "Driver": {
        "progress",
        "_model",
        "_keep",
        "_plan",
        "_interrupts",
        "_until",
        "_ripe",
        "_begun",
        "_before",
        "_round_seconds",
        "_may_begin_again",
    },
    "TemperEngine": {"_model", "_plan", "start", "price", "density_price", "_verdict"},
    "Chains": {
        "model",
        "seed",
        "settings",
        "must_draw",
        "path",
        "full",
        "leapfrogs",
        "devices",
        "_start",
        "_seed",
        "_round",
    },
    "ModeSearch": {"_model", "_seed", "_budget"},
    "Search": {"path", "room", "price"},
    "Trace": {"_chains", "_shown"},
    "Rows": {"most"},
}
"""Attributes that the model, the plan or a compilation gives again."""


def persistent_parts(thing: Any) -> list[Any]:
    """A thing whose class names its state, and all such things in it."""
    if not hasattr(type(thing), "persistent_fields"):
        return []
    return [thing, *(part for name in thing.persistent_fields for part in persistent_parts(getattr(thing, name)))]


def test_every_attribute_is_kept_or_made_anew(kept: Kept) -> None:
    model, _, copies = kept
    fit = pt.resume(copies[-1], model, progress=False)
    assert isinstance(fit.continuation, Driver)
    parts = persistent_parts(fit.continuation)
    assert set(MADE_ANEW) < {type(part).__name__ for part in parts}
    for part in parts:
        name = type(part).__name__
        stored = {
            field for field in part.persistent_fields if not isinstance(getattr(type(part), field, None), property)
        }
        assert set(vars(part)) == stored | MADE_ANEW.get(name, set()), name


class Interrupting:
    """A display that presses Ctrl-C in one round, or during the annealing pass."""

    def __init__(self, at: int) -> None:
        self._at, self._rounds = at, 0

    def round(self, record: RoundRecord) -> None:
        self._rounds += 1
        if self._rounds == self._at:
            os.kill(os.getpid(), signal.SIGINT)

    def anneal(self, lam: float, gradients: int) -> None:
        if self._at == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def start(self, budget: int) -> None: ...

    def compile(self, name: str) -> None: ...

    def finish(self) -> None: ...


@pytest.mark.parametrize("at", [pytest.param(5, marks=pytest.mark.slow), 14])
def test_ctrl_c_gives_the_fit_so_far(kept: Kept, tmp_path: Path, at: int) -> None:
    model, whole, _ = kept
    place = tmp_path / "run.nc"
    options = {"seed": whole.seed, "progress": Interrupting(at), "checkpoint": place, **NARROW}
    fit = pt.temper(model, **options)  # type: ignore[arg-type]
    assert not fit.converged
    # One thing is said, not what all the gates miss of a run that has only begun.
    assert len(fit.warnings) == 1
    assert "The run was interrupted after" in fit.warnings[0]
    assert "NOT converged, as it was interrupted" in str(fit.summary())
    assert "(interrupted)" in repr(fit)
    # The round under way is finished, and a look at its draws adds a line.
    assert at <= len(fit.history) <= at + 1
    assert_same(whole, pt.resume(place, model, progress=False))
    longer = fit.extend(budget=9000)
    assert "finished" not in [check.name for check in longer.diagnostics.checks]


def test_ctrl_c_before_the_first_round_is_an_interrupt(kept: Kept, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        pt.temper(kept[0], progress=Interrupting(0), **NARROW)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_finished_run_stays_as_it_is_and_can_be_extended(kept: Kept) -> None:
    model, fit, copies = kept
    again = pt.resume(copies[-1], model, progress=False)
    assert_same(fit, again)
    assert again.extend(budget=9000).counts.gradients > fit.counts.gradients


def test_a_truncated_file_is_refused_and_the_one_before_is_used(kept: Kept, tmp_path: Path) -> None:
    model, fit, copies = kept
    content = copies[-1].read_bytes()
    place = tmp_path / "run.nc"
    for length in (0, 100, len(content) // 2, len(content) - 1):
        place.write_bytes(content[:length])
        with pytest.raises(pt.InputError, match=r"^resume: .*(cut short|checksum)"):
            pt.resume(place, model, progress=False)
    shutil.copy(copies[-2], before(place))
    with pytest.warns(UserWarning, match="going on from one round earlier"):
        assert_same(fit, pt.resume(place, model, progress=False))


def test_a_flipped_bit_is_seen(kept: Kept, tmp_path: Path) -> None:
    _, _, copies = kept
    content, rng = copies[-1].read_bytes(), np.random.default_rng(0)
    for at in [0, 9, 48, len(content) - 100, *rng.integers(len(content), size=30).tolist()]:
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "run.nc").write_bytes(flipped)
        with pytest.raises(pt.InputError, match=r"does not match its checksum|cut short or damaged"):
            read(tmp_path / "run.nc")


def test_nothing_but_the_checksum_sees_it(kept: Kept, tmp_path: Path) -> None:
    """Sealed again, a record with other numbers is read as if nothing had happened: the test above can fail."""

    def other_numbers(parts: dict[str, np.ndarray]) -> None:
        parts["float64"][::1000] ^= 1

    assert read(resealed(kept[2][-1], tmp_path / "run.nc", other_numbers, "checkpoint"))["state"]


def record_with(old: str, new: str) -> Callable[[dict[str, np.ndarray]], None]:
    def edit(parts: dict[str, np.ndarray]) -> None:
        text = parts["record"].tobytes().decode()
        assert old in text
        parts["record"] = np.frombuffer(text.replace(old, new, 1).encode(), np.uint8)

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        record_with('"class": "TemperPlan"', '"class": "Popen"'),
        record_with('"budget": 90000', '"budget": "many"'),
        record_with('"plan"', '"plans"'),
        record_with('"state"', '"stage"'),
        record_with("{", '{"list": [' * 100_000),
        lambda parts: parts.pop("record"),
        lambda parts: parts.update(float64=parts["float64"][1:]),
        lambda parts: parts.update(nonsense=parts["float64"]),
    ],
)
def test_a_checkpoint_made_up_is_refused(kept: Kept, tmp_path: Path, edit: Any) -> None:
    with pytest.raises(pt.InputError, match=r"^resume: .* cannot be read by this version") as refused:
        read(resealed(kept[2][-1], tmp_path / "run.nc", edit, "checkpoint"))
    assert len(str(refused.value)) < 500


def test_foreign_files_and_models_are_refused(kept: Kept, tmp_path: Path) -> None:
    model, fit, copies = kept
    with pytest.raises(pt.InputError, match="there is no file"):
        pt.resume(tmp_path / "none.nc", model)
    with pytest.raises(pt.InputError, match="holds no model"):
        pt.resume(copies[0])
    saved = tmp_path / "fit.nc"
    fit.save(saved)
    with pytest.raises(pt.InputError, match=r"a saved fit; pt\.load opens it"):
        pt.resume(saved, model)
    with pytest.raises(pt.InputError, match="is the checkpoint of a run"):
        pt.load(copies[0])
    with pytest.raises(pt.InputError, match="with 2 unconstrained parameters, and this one has 1"):
        pt.resume(copies[0], target=lambda x: -(x[0] ** 2), base=pt.normal(0.0, 1.0, shape=(1,)))
    with pytest.raises(pt.InputError, match="not those in the file"):
        pt.resume(copies[0], target=lambda x: -(x @ x), base=pt.normal(0.0, 6.0, shape=(2,)))


def test_an_old_checkpoint_is_not_overwritten(kept: Kept, tmp_path: Path) -> None:
    place = tmp_path / "run.nc"
    place.write_text("precious")
    with pytest.raises(pt.InputError, match="is there already"):
        pt.temper(kept[0], checkpoint=place, progress=False)
    with pytest.raises(pt.InputError, match="there is no folder"):
        pt.temper(kept[0], checkpoint=tmp_path / "no" / "run.nc", progress=False)
    assert place.read_text() == "precious"


def test_a_full_disk_stops_no_run(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, whole, _ = kept
    place, written = tmp_path / "run.nc", []

    def fsync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > 6:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with pytest.warns(UserWarning, match=r"No space left on device\) and is as it was before; the run goes on"):
        fit = pt.temper(model, seed=whole.seed, progress=False, checkpoint=place, **NARROW)
    assert_same(whole, fit)
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.nc", "run.nc.before"]
    assert_same(whole, pt.resume(place, model, progress=False))


CHILD = """
import sys
sys.path[:0] = [sys.argv[1] + "/../..", sys.argv[1] + "/.."]
import conftest
from tempered import NARROW, narrow
import pathtemp as pt
from pathtemp.io import writer

write = writer.write
def and_say(place, record):
    write(place, record)
    print(record["state"]["engine"]["chains"]["counts"].gradients, flush=True)

writer.write = and_say
pt.temper(narrow().model, seed=int(sys.argv[3]), progress=False, checkpoint=sys.argv[2], **NARROW)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_goes_on(kept: Kept, tmp_path: Path) -> None:
    """No finished round is lost; `python -m benchmarks.never_lost` does this fifty times."""
    model, whole, copies = kept
    place = tmp_path / "run.nc"
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(place), str(whole.seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(len(copies) // 2)]
        assert all(told), f"the child ended by itself with status {child.wait()}"
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    assert read_last(place)["state"]["engine"]["chains"]["counts"].gradients >= int(told[-1])
    assert_same(whole, pt.resume(place, model, progress=False))
