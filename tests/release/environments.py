"""Empty environments, and what is built to be installed in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

IN_WHEEL = (
    "pathtemp/py.typed",
    "pathtemp/report/style.css",
    "pathtemp/report/rounds.js",
    "pathtemp/frontends/stan/shim/bridge.cpp",
)
"""What is no module, and yet has to be there."""

IN_SDIST = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "mkdocs.yml", "docs", "tests", "src")
"""What it takes to build, test and cite the package from its source."""


@dataclass(frozen=True)
class Built:
    """A wheel and a source distribution."""

    wheel: Path
    sdist: Path


def build(folder: Path) -> Built:
    """Build both from the source tree, the wheel from the source distribution, and see that nothing is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    with tarfile.open(sdist) as archive:
        parts = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 1}
    missing = [name for name in IN_WHEEL if name not in names] + [name for name in IN_SDIST if name not in parts]
    hidden = [name for name in parts if name.startswith(".") and name != ".gitignore"]
    outside = [name for name in names if not name.startswith(("pathtemp/", "pathtemp-"))]
    if missing or hidden or outside:
        raise SystemExit(f"missing: {missing}; not for users: {hidden}; outside the package: {outside}")
    return Built(wheel, sdist)


@dataclass(frozen=True)
class Environment:
    """A Python with nothing in it but what was installed here."""

    folder: Path

    @classmethod
    def fresh(cls, folder: Path) -> Environment:
        """Make it, in place of what was there."""
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        return cls(folder)

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.folder / "bin"

    def install(self, package: Path, *options: str, extras: str = "") -> None:
        """Install a wheel, a source distribution or a source tree."""
        wanted = f"{package}[{extras}]" if extras else str(package)
        # What is imported is compiled then; compiling all of it takes as long as unpacking it.
        quick = ("--quiet", "--disable-pip-version-check", "--no-compile")
        run(self.bin / "python", "-m", "pip", "install", *quick, *options, wanted)

    def run(self, *command: str | Path, cwd: Path) -> str:
        """Run one of its programs in a folder: what it says. Its caches are in the environment."""
        name, *arguments = command
        own = {"XDG_CACHE_HOME": str(self.folder / "cache"), "MPLBACKEND": "Agg"}
        return run(self.bin / name, *arguments, cwd=cwd, **own)


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run a command without the caller's PYTHONPATH: what it says, or an error that shows it."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    whole = [str(part) for part in command]
    done = subprocess.run(whole, cwd=cwd, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"$ {' '.join(whole)}\n{done.stdout}\nended with status {done.returncode}")
    return done.stdout
