"""`make test-versions`: a fast part of the suite on every Python here, and once with the lowest versions allowed.

Every Python from ``requires-python`` on that PATH or pyenv knows gets an environment of its own below ``.venvs``, with
the newest versions that pip finds. One more has the lowest Python, and the lowest version that pyproject.toml allows of
every direct dependency. A last one has ArviZ 1.0 or later, which PyMC 5 does not go with, and so no PyMC. An
environment is made anew when pyproject.toml or its Python has changed; its log is beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venvs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
AT_ONCE = min(2, os.cpu_count() or 1)

EXTRAS = ("plots", "paper", "numpyro", "pymc", "stan")
"""The extras that the fast part needs."""

FAST_PART = (
    "tests/test_declared.py",
    "tests/test_layout.py",
    "tests/test_links.py",
    "tests/test_draws.py",
    "tests/test_diagnostics.py",
    "tests/test_storage.py",
    "tests/estimators/test_khat.py",
    "tests/kernels/test_transport.py",
    "tests/kernels/test_compilation.py",
    "tests/kernels/test_joint_nuts.py::test_one_transition_from_the_exact_law_stays_in_it",
    "tests/kernels/test_joint_nuts.py::test_gradients_are_counted_as_they_are_spent",
    "tests/test_temper.py::TestOneRun",
    "tests/frontends/test_numpyro.py::test_the_target_is_the_density_that_nuts_samples",
    "tests/frontends/test_pymc.py::test_densities_gradients_and_constrained_values_are_those_of_pymc",
    "tests/frontends/test_pymc.py::test_gradients_stay_finite_in_the_tails_of_a_censored_normal",
    "tests/frontends/stan/test_stan_source.py",
)
"""What each environment runs: units, kernels, estimators, gates, files, front ends, and a run from end to end."""

FROM_CACHE = (
    "tests/test_temper.py::TestOneRun",
    "tests/kernels/test_joint_nuts.py::test_one_transition_from_the_exact_law_stays_in_it",
)
"""What runs once more, with programs that come from the cache: JAX 0.5 crashes there, and 0.6 may compute otherwise."""

IN_ARVIZ = ("-m", "programs_full", "tests/frontends/test_arviz.py")
"""What runs with the ArviZ that is there: before 1.0 where PyMC 5 is, and after it in an environment of its own."""

WITH_NEW_ARVIZ = ("arviz>=1.0",)
ARVIZ_PYTHON = (3, 12)
"""That environment asks for it, and for a Python that ArviZ 1.0 goes with."""

SHOWN = ("jax", "numpy", "scipy", "xarray", "h5netcdf", "arviz-stats", "arviz")
"""The packages whose versions are printed."""

Version = tuple[int, ...]


@dataclass(frozen=True)
class Python:
    """An interpreter of this machine."""

    version: Version
    place: Path

    @property
    def minor(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


@dataclass(frozen=True)
class Environment:
    """A Python, the versions pinned in it, the extras and further packages that it gets, and the tests that it runs."""

    name: str
    python: Python
    pins: tuple[str, ...] = ()
    extras: tuple[str, ...] = EXTRAS
    more: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = (FAST_PART, FROM_CACHE, IN_ARVIZ)

    @property
    def folder(self) -> Path:
        return PLACE / self.name

    @property
    def log(self) -> Path:
        return PLACE / f"{self.name}.log"

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"


@dataclass(frozen=True)
class Outcome:
    """What came of an environment: a line to print, and whether it is as it should be."""

    line: str
    fine: bool


def lowest_python() -> Version:
    """The lower bound of ``requires-python``."""
    return tuple(int(part) for part in PROJECT["requires-python"].removeprefix(">=").split("."))


def claimed() -> set[str]:
    """The Pythons that the classifiers name, such as 3.12."""
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"])
    return {match[1] for match in found if match}


def requirements() -> list[str]:
    """Every direct dependency that an environment gets, with its lower bound."""
    extras = PROJECT["optional-dependencies"]
    pytest = [text for text in extras["dev"] if text.startswith("pytest>=")]
    return [*PROJECT["dependencies"], *(text for name in EXTRAS for text in extras[name]), *pytest]


def lowest_pins() -> tuple[str, ...]:
    """The lower bound of every direct dependency as a pin."""
    return tuple(pin(text) for text in requirements())


def pin(requirement: str) -> str:
    """``name[extra]>=1.2`` as ``name==1.2``.

    >>> pin("arviz-stats[xarray]>=0.8")
    'arviz-stats==0.8'
    """
    match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
    if match is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} should be a name and a lower bound, as in 'jax>=0.5'")
    return f"{match[1]}=={match[2]}"


def pythons() -> list[Python]:
    """The newest release of every Python 3.x that is new enough, lowest first."""
    candidates = [path for folder in os.get_exec_path() for path in Path(folder).glob("python3*")]
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True).stdout.strip()
        candidates += Path(root).glob("versions/*/bin/python3")
    newest: dict[str, Python] = {}
    for path in candidates:
        if re.fullmatch(r"python3(\.\d+)?", path.name) and (found := asked(path)):
            known = newest.get(found.minor)
            newest[found.minor] = found if known is None or known.version < found.version else known
    return sorted(newest.values(), key=lambda python: python.version)


def asked(path: Path) -> Python | None:
    """The Python at a path, where it is a CPython release that is new enough; pyenv's shims may lead nowhere."""
    question = (
        "import sys; release = sys.implementation.name == 'cpython' and sys.version_info[3] == 'final';"
        "print(*sys.version_info[:3], release and not sys.abiflags)"
    )
    answer = subprocess.run([path, "-c", question], capture_output=True, text=True)
    if answer.returncode:
        return None
    *numbers, good = answer.stdout.split()
    version = tuple(int(number) for number in numbers)
    return Python(version, path) if good == "True" and version >= lowest_python() else None


def environments() -> list[Environment]:
    """The lowest versions first, since what fails is most often there."""
    here = pythons()
    lowest = here and here[0].version[:2] == lowest_python()[:2]
    low = [Environment("lowest", here[0], lowest_pins(), parts=(FAST_PART, FROM_CACHE))] if lowest else []
    new = [python for python in here if python.version >= ARVIZ_PYTHON][:1]
    extras = tuple(name for name in EXTRAS if name != "pymc")
    last = [Environment("arviz", python, (), extras, WITH_NEW_ARVIZ, (IN_ARVIZ,)) for python in new]
    return low + [Environment(python.minor, python) for python in here] + last


def run(environment: Environment, *command: str | Path, **variables: str) -> str | None:
    """Run a command of an environment: its output, or None where it failed. The log keeps it."""
    whole = [str(environment.interpreter), "-m", *map(str, command)]
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(whole, cwd=ROOT, env=settings | variables, stdout=-1, stderr=subprocess.STDOUT, text=True)
    with environment.log.open("a") as log:
        log.write(f"$ {' '.join(whole)}\n{done.stdout}\nended with status {done.returncode}\n")
    return None if done.returncode else done.stdout


def install(environment: Environment) -> bool:
    """Make the environment, unless it is there and up to date. Nothing is compiled: a wheel is there or it is not."""
    stamp = environment.folder / "installed"
    content = "\n".join([str(environment.python), *requirements(), *environment.pins, *environment.more])
    if stamp.exists() and stamp.read_text() == content:
        return True
    shutil.rmtree(environment.folder, ignore_errors=True)
    subprocess.run([environment.python.place, "-m", "venv", environment.folder], check=True)
    constraints = environment.folder / "constraints.txt"
    constraints.write_text("\n".join(environment.pins) + "\n")
    pip = ("pip", "install", "--disable-pip-version-check", "--only-binary", ":all:", "--constraint", constraints)
    pytest = [text for text in requirements() if text.startswith("pytest>=")]
    if run(environment, *pip, *pytest, *environment.more, "--editable", f".[{','.join(environment.extras)}]") is None:
        return False
    stamp.write_text(content)
    return True


def versions(environment: Environment) -> str:
    """The versions of the packages that matter most, as in ``jax 0.5.0  numpy 2.0.0``."""
    question = f"from importlib.metadata import version\nfor name in {SHOWN}: print(name, version(name))"
    answer = subprocess.run([environment.interpreter, "-c", question], capture_output=True, text=True, check=True)
    return "  ".join(answer.stdout.splitlines())


def tried(environment: Environment) -> Outcome:
    """Install and test one environment, and say what came of it."""
    begun = time.monotonic()
    environment.log.unlink(missing_ok=True)
    title = f"{environment.name:6}  Python {'.'.join(map(str, environment.python.version)):7}"
    if not install(environment):
        known = environment.python.minor in claimed()
        claim = "which the classifiers name" if known else "which no classifier names"
        return Outcome(f"{title} ({claim}) could not be set up: {last_line(environment, 'ERROR:')}", fine=not known)
    installed = time.monotonic()
    # Compiling is what takes time. Each environment keeps what it compiled.
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "PATHTEMP_CACHE": str(environment.folder / "cache")}
    first, *others = environment.parts
    fine = run(environment, "pytest", *first, **quick) is not None
    verdict = last_line(environment, r"\d+ (passed|failed|error)") or last_line(environment, "ended with status")
    fine = fine and all(run(environment, "pytest", *part, **quick) is not None for part in others)
    seconds = f"{installed - begun:.0f} s to install, {time.monotonic() - installed:.0f} s to test"
    shown = f"{title} {versions(environment)}  {verdict.split(' in ')[0]}; {seconds}"
    return Outcome(shown if fine else f"{shown}  FAILED", fine)


def exchange(here: list[Environment]) -> Outcome:
    """Let each environment save a fit, and each open those of all: what each reads must be the same to the last bit."""
    fits = [environment.folder / "fit.nc" for environment in here]
    script = ROOT / "tests" / "exchange.py"
    read = []
    for environment, fit in zip(here, fits, strict=True):
        fit.unlink(missing_ok=True)
        subprocess.run([environment.interpreter, script, "save", fit], check=True)
    for environment in here:
        answer = subprocess.run([environment.interpreter, script, "open", *fits], capture_output=True, text=True)
        read += answer.stdout.split() if answer.returncode == 0 else [answer.stderr[-300:]]
    fine = len(set(read)) == 1
    names = ", ".join(environment.name for environment in here)
    return Outcome(
        f"fits saved by one and opened by each of {names}: {'the same' if fine else f'FAILED: {read}'}", fine
    )


def last_line(environment: Environment, pattern: str) -> str:
    """The last line of the log that a pattern is found in."""
    lines = [line for line in environment.log.read_text().splitlines() if re.search(pattern, line)]
    return lines[-1].strip("= ") if lines else ""


def main() -> int:
    """Try every environment, two at a time. 0 where all that is claimed and here works."""
    PLACE.mkdir(exist_ok=True)
    here = environments()
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for environment, outcome in zip(here, pool.map(tried, here), strict=True):
            print(outcome.line, flush=True)
            if not outcome.fine:
                failed.append(environment)
    if working := [environment for environment in here if environment not in failed and environment.folder.exists()]:
        outcome = exchange(working)
        print(outcome.line, flush=True)
        failed += [] if outcome.fine else working
    for minor in sorted(claimed() - {environment.python.minor for environment in here}):
        print(f"{minor:6}  Python {minor} is not on this machine: NOT tested")
    if all(environment.name != "arviz" for environment in here):
        print("arviz   no Python of this machine is new enough for ArviZ 1.0: it is NOT tested")
    if all(environment.name != "lowest" for environment in here):
        print("lowest  the lowest Python is not on this machine: the lowest versions are NOT tested")
    for environment in failed:
        print(f"\n{environment.log.relative_to(ROOT)} ends:\n")
        print("\n".join(environment.log.read_text().splitlines()[-60:]))
    return 1 if failed or not here else 0


if __name__ == "__main__":
    sys.exit(main())
