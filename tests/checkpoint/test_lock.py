"""A checkpoint belongs to one run at a time, and to whoever comes when its owner is gone."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pathtemp.errors import InputError
from pathtemp.io import lock
from pathtemp.io.checkpoint import new_place, place_of
from pathtemp.io.lock import lock_of, working

HOLDER = """
import signal, sys
from pathlib import Path
from pathtemp.io.lock import working
for end in signal.SIGTERM, signal.SIGHUP:
    signal.signal(end, signal.SIG_DFL)  # nohup ignores the second
with working(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


def holder(place: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(place)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "mine\n"
    return child


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_lock_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.nc.lock")
    with pytest.raises(InputError, match="no ordinary file"):
        new_place(tmp_path / "run.nc")


@pytest.mark.parametrize("name", ["", "x" * 250, b"run.nc"])
def test_names_that_no_checkpoint_can_have_are_refused(name: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """One of 250 characters leaves no room for that of the checkpoint before it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^checkpoint: (.* is no name of a file|its name is empty)"):
        new_place(name)
    assert not list(tmp_path.iterdir())


ENDS = [
    signal.SIGKILL,
    pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("end", ENDS)
def test_one_process_at_a_time_and_a_dead_one_is_followed(
    end: signal.Signals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "run.nc"
    with holder(place) as child:
        with pytest.raises(InputError, match=f"is being written by process {child.pid} on "), working(place):
            pass
        with pytest.raises(InputError, match="is being written by process"):
            new_place(place)
        child.send_signal(end)
        assert child.wait() == -end
    assert lock_of(place).exists()
    with caplog.at_level(logging.WARNING, "pathtemp"), working(place):
        assert json.loads(lock_of(place).read_text())["process"] == os.getpid()
    assert [f"was left by process {child.pid} on" in record.getMessage() for record in caplog.records] == [True]
    assert not lock_of(place).exists()


def test_a_lock_given_back_leaves_nothing_to_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "run.nc"
    with holder(place) as child:
        child.communicate()
    with working(place):
        pass
    assert os.listdir(tmp_path) == []
    assert caplog.records == []


def test_one_run_of_a_process_at_a_time(tmp_path: Path) -> None:
    refused = []

    def second() -> None:
        try:
            with working(tmp_path / "run.nc"):
                pass
        except InputError as error:
            refused.append(str(error))

    with working(tmp_path / "run.nc"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert ["another run of this process" in message for message in refused] == [True]


def test_a_new_run_does_not_overwrite_what_came_meanwhile(tmp_path: Path) -> None:
    place = new_place(tmp_path / "run.nc")
    place.write_text("of a run that began and ended in the meantime")
    with pytest.raises(InputError, match="was written by another run in the meantime"), working(place):
        place.write_text("lost")
    assert place.read_text() != "lost"


def test_a_run_that_goes_on_later_does_not_either(tmp_path: Path) -> None:
    place = new_place(tmp_path / "run.nc")
    with working(place):
        place.write_text("one")
    with working(place):
        place.write_text("two")
    place.unlink()
    with working(place):
        place.write_text("three")
    os.utime(place, (1, 1))
    with pytest.raises(InputError, match="was written by another run"), working(place):
        pass
    lock.take_as_it_is(place)
    with working(place):
        pass


def test_where_nothing_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without locks of the system the owner is asked for; on another host it is always thought to live."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    place = tmp_path / "run.nc"
    for process, host, free in (
        (2**22 + 1, lock.socket.gethostname(), True),
        (os.getppid(), lock.socket.gethostname(), False),
        (2**22 + 1, "elsewhere", False),
    ):
        lock_of(place).write_text(json.dumps({"process": process, "host": host}))
        if free:
            with working(place):
                pass
        else:
            with pytest.raises(InputError, match=f"by process {process} on {host}"), working(place):
                pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    lock_of(tmp_path / "run.nc").symlink_to(precious)
    with pytest.raises(InputError, match="is no file that can be opened"), working(tmp_path / "run.nc"):
        pass
    assert precious.read_text() == "precious"


def test_a_name_of_another_owner_cannot_reach_the_terminal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lock_of(tmp_path / "run.nc").write_text(json.dumps({"process": "\x1b[2J", "host": "\u202e" * 1000}))
    with working(tmp_path / "run.nc"):
        pass
    message = caplog.records[0].getMessage()
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize("name", ["x" * 300 + "/run.nc", "nul\0", "lone \ud800", 3, None])
def test_names_that_no_file_can_have(name: object) -> None:
    with pytest.raises(InputError, match=r"^checkpoint: "):
        new_place(name)  # type: ignore[arg-type]


def test_a_folder_holds_its_own(tmp_path: Path) -> None:
    assert place_of(tmp_path).parent == tmp_path.resolve()
