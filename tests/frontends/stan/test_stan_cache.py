"""The build cache: one build for many processes, nothing half-built, nothing left behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pathtemp.errors import InputError
from pathtemp.frontends.stan import build as building
from pathtemp.frontends.stan import cache_info, clear_cache
from pathtemp.frontends.stan.build import Artifact, CompileError, build, headers_artifact
from pathtemp.frontends.stan.cache import Slot, cache_folder
from pathtemp.frontends.stan.toolchain import Compiler, Stan, find_compiler

PATIENCE = 300
"""Seconds after which something is taken never to happen; a busy machine may need many."""

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


class Watch:
    """Sees when the script of a build begins, and when the last process of it is gone: an open FIFO says both."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "watch"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def script(self, rest: str) -> str:
        """A script whose processes, all of them, hold the FIFO open."""
        return f"exec 9> {self.path}; echo $$ >&9; {rest}"

    def begun(self) -> int:
        """Wait for the script; its process id, which is that of its group too."""
        return int(self._read(PATIENCE))

    def gone(self) -> bool:
        """Whether all processes of the script end."""
        return self._read(PATIENCE) == b""

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._reader], [], [], seconds)
        assert ready, "nothing happened"
        return os.read(self._reader, 100)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


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
    assert [process.wait(timeout=PATIENCE) for process in processes] == [0, 0, 0]
    assert count.read_text() == "x\n"


def test_a_failure_is_told_and_leaves_nothing(own_cache: Path) -> None:
    with pytest.raises(InputError, match=r"the C\+\+ compiler failed on thing.stan: x.cpp:3: error: oh"):
        build([artifact("echo 'x.cpp:3: error: oh'; exit 1")], progress=False)
    with pytest.raises(InputError, match="want of memory"):
        build([artifact("kill -9 $$")], progress=False)
    assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]
    build([artifact("echo fine > OUT")], progress=False)
    assert artifact("").slot.path.exists()


def test_one_failure_ends_what_runs_beside_it(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, watch: Watch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    begun = tmp_path / "begun"
    lasting = artifact(watch.script(f"touch {begun}; sleep 1000"))
    failing = artifact(f"until test -e {begun}; do sleep 0.05; done; exit 3", "b" * 20, "bad.stan")
    with pytest.raises(InputError, match=r"failed on bad\.stan"):
        build([lasting, failing], progress=False)
    assert watch.begun()
    assert watch.gone()
    assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_the_cache_usable(how: signal.Signals, own_cache: Path, watch: Watch) -> None:
    process = start(watch.script("touch OUT; sleep 1000"))
    group = watch.begun()
    process.send_signal(how)
    assert process.wait(timeout=PATIENCE) != 0
    if how is signal.SIGINT:
        assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]
    else:  # a killed process cannot end its compiler, which ends by itself
        os.killpg(group, signal.SIGKILL)
    assert watch.gone()
    assert cache_info() == []
    assert start("echo built > OUT").wait(timeout=PATIENCE) == 0
    assert [entry.name for entry in cache_info()] == ["thing.stan"]


def test_an_interrupt_while_a_compiler_is_being_started_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, watch: Watch
) -> None:
    real = subprocess.Popen

    def slow(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = real(*arguments, **options)
        watch.begun()
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr("pathtemp.frontends.stan.build.subprocess.Popen", slow)
    with pytest.raises(KeyboardInterrupt):
        build([artifact(watch.script("sleep 1000"))], progress=False)
    assert watch.gone()
    assert [p.name for p in (own_cache / "stan").iterdir()] == ["locks"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


@pytest.fixture
def tools() -> tuple[Stan, Compiler]:
    return Stan(Path("/somewhere"), "1"), Compiler(("g++",), "g++ (a system) 12")


def test_headers_are_kept_where_the_compiler_is_gcc_and_the_disk_has_room(
    monkeypatch: pytest.MonkeyPatch, tools: tuple[Stan, Compiler]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=9 << 30))
    headers = headers_artifact(*tools)
    assert headers is not None
    assert headers.slot.file == "stan.hpp.gch"
    assert headers_artifact(tools[0], Compiler(("clang++",), "clang version 17")) is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    assert headers_artifact(*tools) is None


def test_a_program_waits_for_the_headers(tmp_path: Path) -> None:
    order = tmp_path / "order"
    first = artifact(f"sleep 0.3; echo headers >> {order}; echo x > OUT", "c" * 20, "headers")
    then = replace(artifact(f"echo program >> {order}; echo x > OUT"), after=1)
    build([then, first], progress=False)
    assert order.read_text().split() == ["headers", "program"]


def test_without_headers_a_program_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tools: tuple[Stan, Compiler]
) -> None:
    asked: list[bool] = []

    def build_all(*arguments: Any, **options: Any) -> list[Path]:
        asked.append(arguments[4] is not None)
        if asked[-1]:
            raise CompileError("program: the C++ compiler was killed")
        return [Path("program.so")]

    monkeypatch.setattr(building, "find_stan", lambda: tools[0])
    monkeypatch.setattr(building, "require_compiler", lambda: tools[1])
    monkeypatch.setattr(building, "headers_artifact", lambda *_: artifact("", "d" * 20))
    monkeypatch.setattr(building, "_build_all", build_all)
    assert building.build_programs([]) == [Path("program.so")]
    assert asked == [True, False]


def test_a_cut_an_empty_or_a_changed_library_is_built_again() -> None:
    build([artifact("echo built > OUT")], progress=False)
    slot = artifact("").slot
    assert slot.whole()
    for damage in (b"", b"bui", b"bujlt\n"):
        slot.path.write_bytes(damage)
        assert not slot.whole()
        build([artifact("echo again > OUT")], progress=False)
        assert slot.path.read_text() == "again\n"


@pytest.mark.parametrize("meta", ["", "{", "[]", '{"name": 3, "created": "x"}', '{"created": 0}', "[" * 100_000])
def test_a_garbled_entry_is_built_again_and_breaks_no_list(meta: str) -> None:
    build([artifact("echo built > OUT")], progress=False)
    (artifact("").slot.folder / "entry.json").write_text(meta)
    assert [entry.name for entry in cache_info()] == ["(damaged)"]
    build([artifact("echo again > OUT")], progress=False)
    assert artifact("").slot.path.read_text() == "again\n"


def test_an_entry_of_another_key_is_not_taken() -> None:
    build([artifact("echo built > OUT"), artifact("echo other > OUT", "b" * 20)], progress=False)
    slot, other = artifact("").slot, artifact("", "b" * 20).slot
    for file in ("out", "entry.json"):
        (slot.folder / file).write_bytes((other.folder / file).read_bytes())
    assert not slot.whole()


def test_the_cache_is_the_owners_alone(own_cache: Path) -> None:
    before = os.umask(0)
    try:
        build([artifact("echo built > OUT")], progress=False)
    finally:
        os.umask(before)
    for folder in (own_cache, own_cache / "stan", own_cache / "stan" / "locks"):
        assert folder.stat().st_mode & 0o777 == 0o700
    (own_cache / "stan").chmod(0o777)
    build([artifact("echo built > OUT", "b" * 20)], progress=False)
    assert (own_cache / "stan").stat().st_mode & 0o777 == 0o700


def test_nothing_of_another_user_is_run(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build([artifact("echo built > OUT")], progress=False)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not artifact("").slot.whole()
    with pytest.raises(InputError, match="belongs to another user"):
        build([artifact("echo built > OUT")], progress=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_planted_library_is_not_run(own_cache: Path) -> None:
    build([artifact("echo built > OUT")], progress=False)
    slot = artifact("").slot
    for planted in (slot.folder, slot.path, slot.folder / "entry.json"):
        os.chown(planted, 12345, -1)
        assert not slot.whole()
        build([artifact("echo again > OUT")], progress=False)
        assert slot.path.stat().st_uid == os.geteuid()


def test_links_are_not_followed(own_cache: Path, tmp_path: Path) -> None:
    build([artifact("echo built > OUT")], progress=False)
    slot, precious = artifact("").slot, tmp_path / "precious"
    precious.write_text("precious")
    slot.path.unlink()
    slot.path.symlink_to(precious)
    assert not slot.whole()
    build([artifact("echo again > OUT")], progress=False)
    lock = own_cache / "stan" / "locks" / f"program-{'b' * 20}"
    lock.symlink_to(precious)
    with pytest.raises(InputError, match=r"cache: the lock .* cannot be used"):
        build([artifact("echo again > OUT", "b" * 20)], progress=False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    slot.workshop.symlink_to(elsewhere)
    slot.path.unlink()
    build([artifact("echo again > OUT")], progress=False)
    assert precious.read_text() == "precious"
    assert list(elsewhere.iterdir()) == []


def test_a_cache_that_cannot_be_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path / "file"), "/proc/nowhere", str(tmp_path / ("x" * 300))):
        monkeypatch.setenv("PATHTEMP_CACHE", place)
        with pytest.raises(InputError, match=r"^cache: the folder .* cannot be used .*set PATHTEMP_CACHE"):
            build([artifact("echo built > OUT")], progress=False)


def test_a_compiler_with_an_open_quote_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ '-O2")
    with pytest.raises(InputError, match=r"CXX: .* is no command"):
        find_compiler()
