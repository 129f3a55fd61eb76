"""What compiles a Stan program: Stan as the httpstan wheel carries it, and the machine's C++ compiler."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pathtemp.errors import InputError, MissingExtraError

WAY_OUT = "or give from_stan a bridgestan.StanModel, or the path of a shared library that BridgeStan built"

_DEFINES = (
    "-DSTAN_THREADS",  # an autodiff tape for every thread
    "-D_REENTRANT",
    "-DBOOST_DISABLE_ASSERTS",
    "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
    "-DNO_FPRINTF_OUTPUT",
    "-DEIGEN_NO_DEBUG",
)
_LIBRARIES = ("-ltbb", "-lsundials_cvodes", "-lsundials_idas", "-lsundials_kinsol", "-lsundials_nvecserial")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: the words that call it, and the first line of its ``--version``."""

    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for every file: C++17, position-independent, nothing exported unless marked."""
        flags = (
            "-std=c++17",
            "-O2",
            "-fPIC",
            "-pipe",
            "-w",
            "-fvisibility=hidden",
            "-fvisibility-inlines-hidden",
        )
        # two programs in one process must never share their symbols
        return flags if "clang" in self.version else (*flags, "-fno-gnu-unique")


@dataclass(frozen=True)
class Stan:
    """The Stan that a httpstan wheel carries."""

    folder: Path
    version: str

    @property
    def stanc(self) -> Path:
        """The Stan-to-C++ compiler."""
        return self.folder / "stanc"

    @property
    def libraries(self) -> Path:
        """Folder of the TBB and Sundials libraries."""
        return self.folder / "lib"

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """Flags of C++ that includes Stan's headers; the folder is not among them."""
        return (*_DEFINES, "-ftls-model=initial-exec") if sys.platform.startswith("linux") else _DEFINES

    @property
    def include_flags(self) -> tuple[str, ...]:
        """Where Stan's headers are."""
        return (f"-I{self.folder / 'include'}",)

    def link_flags(self, export_map: Path) -> tuple[str, ...]:
        """Flags that link a program into a shared library which exports nothing but ``bs_*``."""
        where = (f"-L{self.libraries}", f"-Wl,-rpath,{self.libraries}")
        if sys.platform == "darwin":
            return (*where, *_LIBRARIES, "-Wl,-dead_strip", "-Wl,-exported_symbol,_bs_*")
        strict = ("-Wl,--gc-sections", "-Wl,-Bsymbolic", f"-Wl,--version-script={export_map}")
        return (*where, "-Wl,--as-needed", *_LIBRARIES, *strict)


@functools.cache
def find_stan() -> Stan:
    """The installed httpstan; it is never imported."""
    spec = importlib.util.find_spec("httpstan")
    if spec is None or not spec.submodule_search_locations:
        machine = f"{platform.system()} {platform.machine()}"
        if sys.platform == "win32" or (sys.platform.startswith("linux") and platform.machine() != "x86_64"):
            raise InputError(
                f"program: there is no httpstan, and so no Stan compiler from PyPI, for {machine}; "
                f"use Linux x86-64 or macOS, {WAY_OUT}"
            )
        raise MissingExtraError("httpstan", "stan")
    stan = Stan(Path(spec.submodule_search_locations[0]), importlib.metadata.version("httpstan"))
    if not stan.stanc.exists():
        raise InputError(f"program: httpstan {stan.version} came without stanc; reinstall it from a wheel, {WAY_OUT}")
    return stan


def find_compiler() -> Compiler | None:
    """The compiler that ``CXX`` names, else g++, clang++ or c++; None where there is none."""
    wanted = os.environ.get("CXX")
    try:
        given = [shlex.split(wanted)] if wanted else []
    except ValueError as error:
        raise InputError(f"CXX: {wanted!r} is no command ({error}); mend or unset this variable") from None
    for command in given if wanted else [["g++"], ["clang++"], ["c++"]]:
        if command and shutil.which(command[0]):
            return _compiler(tuple(command))
    return None


@functools.cache
def _compiler(command: tuple[str, ...]) -> Compiler:
    answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return Compiler(command, (answer.stdout or answer.stderr).partition("\n")[0])


def require_compiler() -> Compiler:
    """The compiler, or an error that says how to get one."""
    compiler = find_compiler()
    if compiler is None:
        wanted = os.environ.get("CXX")
        what = f"CXX={wanted!r} is not a program" if wanted else "there is no C++ compiler (g++ or clang++)"
        raise InputError(
            f"program: {what}; install one (Debian: apt install g++; macOS: xcode-select --install) {WAY_OUT}"
        )
    return compiler
