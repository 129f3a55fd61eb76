"""From Stan code to a shared library: stanc, the C++ compiler, and the cache between them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pathtemp.errors import InputError
from pathtemp.frontends.stan.cache import Slot, cache_folder, locked
from pathtemp.frontends.stan.source import GENERATED, Source
from pathtemp.frontends.stan.toolchain import WAY_OUT, Compiler, Stan, find_stan, require_compiler
from pathtemp.io.private import private_folder

log = logging.getLogger("pathtemp.stan")
SHIM = Path(__file__).parent / "shim"
FORWARD_FLAG = "pathtemp_forward"
"""Name in the data by which a library is asked for the program that draws."""

LEAST_ROOM = 4 << 30
"""Free bytes on the disk from which Stan's headers are kept in the cache as the compiler has read them, 0.8 GB."""

_HEADERS = "#include <stan/model/model_header.hpp>\n"
_STANC_FLAGS = ("--O1", f"--filename-in-msg={GENERATED}")
_STANC_ERROR = re.compile(rf"['\"]{re.escape(GENERATED)}['\"], line (\d+), column (\d+)")


_NEWER = {
    "sum_to_zero_vector": (2, 36),
    "sum_to_zero_matrix": (2, 37),
    "row_stochastic_matrix": (2, 36),
    "column_stochastic_matrix": (2, 36),
    "jacobian +=": (2, 36),
}
"""What came with a later Stan, by its version: a stanc that lacks it speaks of it in other words."""

_INSTEAD = {"jacobian +=": "write target += in the model block"}
"""What to do without some of it; for types it is another type."""


class CompileError(InputError):
    """What the C++ compiler said when it failed."""


def stanc(source: Source, *flags: str) -> str:
    """Standard output of stanc; an error of the program is raised with the user's file and line."""
    folder = private_folder(cache_folder())
    with tempfile.TemporaryDirectory(prefix="stanc-", dir=folder) as scratch:
        file = Path(scratch) / GENERATED
        file.write_text(source.text, encoding="utf-8")
        command = [str(find_stan().stanc), *_STANC_FLAGS, *flags, str(file)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise InputError(_explain(answer.stderr, source))
    return answer.stdout


def _explain(report: str, source: Source) -> str:
    """The place, what stanc says of it, and the line with a mark under the column."""
    at = _STANC_ERROR.search(report)
    said = " ".join(report.rpartition("----\n")[2].split()) or report.strip()
    place = source.place(int(at.group(1))) if at else None
    if at is None or place is None:
        return f"program: stanc says: {source.translate(report).strip()}"
    column = int(at.group(2))
    row = source.line(int(at.group(1)))
    newer = next((word for word in _NEWER if re.search(rf"\b{re.escape(word)}", row)), None)
    if newer is not None and (version := _stanc_version()) < _NEWER[newer]:
        came, ours = (".".join(map(str, v)) for v in (_NEWER[newer], version))
        instead = _INSTEAD.get(newer, "use another type")
        said = f"{newer} came with Stan {came}, and this is Stan {ours}; {instead}, {WAY_OUT}"
    return f"{place}, column {column}: {said}\n    {row}\n    {' ' * column}^"


def _stanc_version() -> tuple[int, int]:
    """Version of Stan, major and minor."""
    answer = subprocess.run([str(find_stan().stanc), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v(\d+)\.(\d+)", answer.stdout)
    return (0, 0) if found is None else (int(found.group(1)), int(found.group(2)))


def program_info(source: Source) -> dict[str, Any]:
    """Types of the data and of the parameters, as ``stanc --info`` has them."""
    info: dict[str, Any] = json.loads(stanc(source, "--info"))
    return info


@dataclass(frozen=True)
class Artifact:
    """Something to compile: its place in the cache, and the commands that fill it, one after the other.

    The first of them is run ``after`` so many commands of others.
    """

    slot: Slot
    name: str
    commands: tuple[tuple[str, ...], ...]
    sources: tuple[tuple[str, str], ...] = ()
    after: int = 0


@dataclass(frozen=True)
class Compilation:
    """A plain Stan program to compile, what to call it, and the program that draws from its base."""

    source: Source
    name: str
    forward: Source | None = None

    def code(self) -> str:
        """C++ of both programs as one: most of the time goes into headers, which are then read once."""
        code = _derived(stanc(self.source, "--name=pathtemp_model", "--print-cpp"), "density")
        start = ["#include <stan/model/model_header.hpp>", (SHIM / "bases.hpp").read_text()]
        if self.forward is None:
            return "\n".join([*start, *code, _NO_DRAWS])
        forward = _derived(stanc(self.forward, f"--name={FORWARD_FLAG}_model", "--print-cpp"), "draws")
        both = [*_renamed(forward, "forward"), *_renamed(code, "density")]
        return "\n".join([*start, *both, (SHIM / "forward.cpp").read_text()])


_NO_DRAWS = """
void pathtemp_draw(const stan::model::model_base&, std::uint64_t, Eigen::VectorXd&, std::ostream*) {
  throw std::logic_error("this program does not draw");
}
"""


def _derived(code: str, what: str) -> list[str]:
    """C++ of a program that has a "density" or "draws", derived from the base that compiles no more than that."""
    return [f"#define model_base_crtp pathtemp_{what}_base", code, "#undef model_base_crtp"]


def _renamed(code: Sequence[str], what: str) -> list[str]:
    """C++ of a program, the names that stanc leaves global made its own."""
    names = ("stan_model", "new_model", "get_stan_profile_data")
    return [*(f"#define {n} pathtemp_{what}_{n}" for n in names), *code, *(f"#undef {n}" for n in names)]


def build_programs(programs: Sequence[Compilation], *, progress: bool = True) -> list[Path]:
    """Shared libraries of several programs, compiled side by side unless the cache has them."""
    stan = find_stan()
    codes = [program.code() for program in programs]
    compiler = require_compiler()
    shim, headers = _shim(stan, compiler), headers_artifact(stan, compiler)
    try:
        return _build_all(programs, codes, (stan, compiler), shim, headers, progress=progress)
    except CompileError as error:
        if headers is None or headers.slot.path.exists():
            raise
        log.info("no precompiled headers: %s", error)
        return _build_all(programs, codes, (stan, compiler), shim, None, progress=progress)


def _build_all(
    programs: Sequence[Compilation],
    codes: Sequence[str],
    tools: tuple[Stan, Compiler],
    shim: Artifact,
    headers: Artifact | None,
    *,
    progress: bool,
) -> list[Path]:
    artifacts = [_program(code, p.name, *tools, shim, headers) for code, p in zip(codes, programs, strict=True)]
    shared = [bridge_artifact(tools[1])]
    if not all(artifact.slot.whole() for artifact in artifacts):
        shared += [shim, *([headers] if headers else [])]
    build([*shared, *artifacts], progress=progress)
    return [artifact.slot.path for artifact in artifacts]


def headers_artifact(stan: Stan, compiler: Compiler) -> Artifact | None:
    """Stan's headers, read once for all programs: most of the time of a compilation goes into them.

    None where the compiler is clang++, which does this another way, or the disk has no room for it.
    """
    flags = (*compiler.flags, *stan.compile_flags)
    slot = Slot("headers", _key(_HEADERS, stan.version, str(stan.folder), compiler.version, *flags), "stan.hpp.gch")
    if "clang" in compiler.version:
        return None
    if not slot.path.exists() and shutil.disk_usage(_existing(cache_folder())).free < LEAST_ROOM:
        return None
    source, output = str(slot.workshop / "stan.hpp"), str(slot.workshop / slot.file)
    command = (*compiler.command, *flags, *stan.include_flags, "-x", "c++-header", source, "-o", output)
    return Artifact(slot, "Stan's headers", (command,), (("stan.hpp", _HEADERS),))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _shim(stan: Stan, compiler: Compiler) -> Artifact:
    source = SHIM / "model_api.cpp"
    flags = (*compiler.flags, *stan.compile_flags)
    slot = Slot("shim", _key(source.read_text(), stan.version, compiler.version, *flags), "shim.o")
    output = str(slot.workshop / slot.file)
    command = (*compiler.command, *flags, *stan.include_flags, "-c", str(source), "-o", output)
    return Artifact(slot, source.name, (command,))


def _program(
    code: str, name: str, stan: Stan, compiler: Compiler, shim: Artifact, headers: Artifact | None
) -> Artifact:
    flags = (*compiler.flags, *stan.compile_flags)
    slot = Slot("program", _key(code, shim.slot.key, *flags), "program.so")
    read_before = ("-include", str(headers.slot.folder / "stan.hpp")) if headers else ()
    obj = str(slot.workshop / "program.o")
    compile_ = (
        *compiler.command,
        *flags,
        *stan.include_flags,
        *read_before,
        "-c",
        str(slot.workshop / "program.cpp"),
        "-o",
        obj,
    )
    link = (*compiler.command, "-shared", obj, str(shim.slot.path), "-o", str(slot.workshop / slot.file))
    commands = (compile_, (*link, *stan.link_flags(SHIM / "export.map")))
    return Artifact(slot, name, commands, (("program.cpp", code),), after=1 if headers else 0)


def bridge_artifact(compiler: Compiler) -> Artifact:
    """The library that XLA calls, for the jaxlib that is installed."""
    import jax

    source = SHIM / "bridge.cpp"
    slot = Slot(
        "bridge",
        _key(source.read_text(), importlib.metadata.version("jaxlib"), compiler.version, *compiler.flags),
        "bridge.so",
    )
    include = f"-I{jax.ffi.include_dir()}"
    output = str(slot.workshop / slot.file)
    command = (*compiler.command, *compiler.flags, "-shared", include, str(source), "-o", output, "-lpthread")
    return Artifact(slot, source.name, (command,))


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def build(artifacts: Sequence[Artifact], *, progress: bool = True) -> None:
    """Build what the cache lacks, all at once; safe against other processes that want the same."""
    wanted = {artifact.slot: artifact for artifact in artifacts if not artifact.slot.whole()}
    with contextlib.ExitStack() as stack:
        for slot in sorted(wanted, key=lambda slot: (slot.kind, slot.key)):  # one order for all: no deadlock
            stack.enter_context(locked(slot))
        missing = [artifact for artifact in wanted.values() if not artifact.slot.whole()]
        if missing:
            with _announced(missing, progress):
                _build_missing(missing)


def _build_missing(artifacts: Sequence[Artifact]) -> None:
    with _held_interrupts() as check_interrupt:
        _build_in_workshops(artifacts, check_interrupt)


@contextlib.contextmanager
def _held_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until the given function is called: it must not fall between a process and the list of them."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: None
        return
    came = threading.Event()

    def check() -> None:
        if came.is_set():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    check()


def _build_in_workshops(artifacts: Sequence[Artifact], check_interrupt: Callable[[], None]) -> None:
    try:
        for artifact in artifacts:
            artifact.slot.open_workshop()
            for file, text in artifact.sources:
                (artifact.slot.workshop / file).write_text(text, encoding="utf-8")
        for stage in range(max(artifact.after + len(artifact.commands) for artifact in artifacts)):
            active = [a for a in artifacts if a.after <= stage < a.after + len(a.commands)]
            _run_together(active, stage, check_interrupt)
            for artifact in active:
                if stage + 1 == artifact.after + len(artifact.commands):
                    artifact.slot.publish(artifact.name)
    finally:
        for artifact in artifacts:
            artifact.slot.discard()


def _run_together(artifacts: Sequence[Artifact], stage: int, check_interrupt: Callable[[], None]) -> None:
    """Run one command of each, as many at once as there are cores; an interrupt leaves no process behind."""
    waiting = list(artifacts)
    running: dict[str, tuple[Artifact, subprocess.Popen[bytes]]] = {}
    try:
        while waiting or running:
            check_interrupt()
            while waiting and len(running) < (os.cpu_count() or 1):
                artifact = waiting.pop(0)
                running[artifact.slot.key] = artifact, _start(artifact, stage)
            for key, (artifact, process) in list(running.items()):
                if process.poll() is not None:
                    del running[key]
                    if process.returncode != 0:
                        said = _log(artifact).read_text(errors="replace")
                        raise CompileError(_compile_failure(artifact.name, process.returncode, said))
            time.sleep(0.02)
    finally:
        for _, process in running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(artifact: Artifact, stage: int) -> subprocess.Popen[bytes]:
    with _log(artifact).open("wb") as output:
        return subprocess.Popen(
            artifact.commands[stage - artifact.after],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(artifact.slot.workshop)},
            start_new_session=True,
        )


def _log(artifact: Artifact) -> Path:
    return artifact.slot.workshop / "log"


def _compile_failure(name: str, code: int, log: str) -> str:
    if code == -signal.SIGKILL or "Killed" in log:
        return f"program: the C++ compiler was killed on {name}, most likely for want of memory (2 GiB)"
    errors = [row for row in log.splitlines() if "error" in row.lower()] or log.splitlines()[-3:]
    return f"program: the C++ compiler failed on {name}: " + "; ".join(errors[:3])


@contextlib.contextmanager
def _announced(artifacts: Sequence[Artifact], progress: bool) -> Iterator[None]:
    """Say on standard error what is being compiled, with a spinner and the time where there is a terminal."""
    if not progress:
        yield
        return
    programs = [artifact.name for artifact in artifacts if artifact.slot.kind == "program"]
    names = ", ".join(dict.fromkeys(programs)) or "the bridge between Stan and XLA"
    once = " and what all Stan programs share" if any(a.slot.kind == "shim" for a in artifacts) else ""
    console = Console(stderr=True)
    message = f"Compiling {names}{once}: up to a minute, once; it is kept in the cache."
    if console.is_terminal:
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as shown:
            shown.add_task(message, total=None)
            yield
    else:
        console.print(message, soft_wrap=True, highlight=False)
        yield
