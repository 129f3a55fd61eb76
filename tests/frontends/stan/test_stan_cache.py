"""The build cache: one build for many processes, nothing half-built, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pathtemp.errors import InputError
from pathtemp.frontends.stan import cache_info, clear_cache
from pathtemp.frontends.stan.build import Artifact, build
from pathtemp.frontends.stan.cache import Slot, cache_folder

BUILD = """
import sys
from pathtemp.frontends.stan.build import Artifact, build
from pathtemp.frontends.stan.cache import Slot
slot = Slot("program", "k" * 20, "out")
command = ("sh", "-c", sys.argv[1].replace("OUT", str(slot.workshop / "out")))
build([Artifact(slot, "thing.stan", (command,))], progress=False)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATHTEMP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def artifact(script: str, key: str = "a" * 20, name: str = "thing.stan") -> Artifact:
    slot = Slot("program", key, "out")
    return Artifact(slot, name, (("sh", "-c", script.replace("OUT", str(slot.workshop / "out"))),))


def start(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BUILD, script])


def running(marker: str) -> list[str]:
    """Commands of running processes that contain the marker."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if marker in command and int(entry.parent.name) != os.getpid():
            commands.append(command)
    return commands


def all_gone(marker: str) -> bool:
    """Whether no process has the marker, given a moment for the system to take killed ones away."""
    for _ in range(100):
        if not running(marker):
            return True
        time.sleep(0.05)
    return False


def test_a_thing_is_built_once_and_listed(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo x >> {count}; echo built > OUT; touch OUT.log"
    for _ in range(3):
        build([artifact(script)], progress=False)
    assert count.read_text() == "x\n"
    assert artifact(script).slot.path.read_text() == "built\n"
    (entry,) = cache_info()
    assert (entry.kind, entry.name, entry.key) == ("program", "thing.stan", "a" * 20)
    assert entry.bytes > 0
    assert sorted(p.name for p in artifact(script).slot.folder.iterdir()) == ["entry.json", "out"]
    assert clear_cache() > 0
    assert cache_info() == []
    assert clear_cache() == 0


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, own_cache: Path, tmp_path: Path) -> None:
    assert cache_folder() == own_cache / "stan"
    monkeypatch.delenv("PATHTEMP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform.startswith("linux"):
        assert cache_folder() == tmp_path / "xdg" / "pathtemp" / "stan"


def test_processes_that_want_the_same_thing_build_it_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    processes = [start(f"echo x >> {count}; sleep 0.5; echo built > OUT") for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert count.read_text() == "x\n"


def test_a_failure_is_told_and_leaves_nothing(own_cache: Path) -> None:
    with pytest.raises(InputError, match=r"the C\+\+ compiler failed on thing.stan: x.cpp:3: error: oh"):
        build([artifact("echo 'x.cpp:3: error: oh'; exit 1")], progress=False)
    with pytest.raises(InputError, match="want of memory"):
        build([artifact("kill -9 $$")], progress=False)
    assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]
    build([artifact("echo fine > OUT")], progress=False)
    assert artifact("").slot.path.exists()


def test_one_failure_ends_what_runs_beside_it(own_cache: Path) -> None:
    marker = f"sleep 31.{os.getpid()}"
    with pytest.raises(InputError, match=r"failed on bad\.stan"):
        build([artifact(f"{marker}; true"), artifact("exit 3", "b" * 20, "bad.stan")], progress=False)
    assert all_gone(marker)
    assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_the_cache_usable(how: signal.Signals, own_cache: Path, tmp_path: Path) -> None:
    marker, begun = f"sleep 1{how.value}.{os.getpid()}", tmp_path / "begun"
    process = start(f"touch {begun} OUT; {marker}; true")
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(timeout=60) != 0
    if how is signal.SIGINT:  # a killed process cannot end its compiler, which ends by itself
        assert all_gone(marker)
        assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]
    assert cache_info() == []
    assert start("echo built > OUT").wait(timeout=60) == 0
    assert [entry.name for entry in cache_info()] == ["thing.stan"]


def test_a_damaged_entry_is_built_again() -> None:
    build([artifact("echo built > OUT")], progress=False)
    artifact("").slot.path.unlink()
    build([artifact("echo again > OUT")], progress=False)
    assert artifact("").slot.path.read_text() == "again\n"


def test_what_is_compiled_is_said_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    build([artifact("echo built > OUT")])
    assert "Compiling thing.stan" in capsys.readouterr().err
    build([artifact("echo built > OUT")])
    assert capsys.readouterr().err == ""
