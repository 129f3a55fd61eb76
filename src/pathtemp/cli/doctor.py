"""``pathtemp doctor``: what of the machine works, and what to install for the rest."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from pathtemp.cli.importing import importing
from pathtemp.errors import InputError
from pathtemp.io.printable import printable

EXTRAS = {"httpstan": "stan", "pymc": "pymc", "numpyro": "numpyro", "matplotlib": "plots"}
"""Libraries that an extra brings."""


COMPILER, CACHE = "C++ compiler", "cache"
"""Names of what a run can do without, the second but for Stan programs."""


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it works, what was found or what to do, and whether it is needed."""

    name: str
    works: bool
    says: str
    needed: bool


def doctor(options: argparse.Namespace) -> int:
    """Look at everything; the exit status is 1 where something needed does not work."""
    findings = [look() for look in LOOKS] + [_extra(library, extra) for library, extra in EXTRAS.items()]
    broken = [f.name for f in findings if f.needed and not f.works]
    if options.json:
        print(json.dumps({"works": not broken, "findings": [asdict(f) for f in findings]}))
    else:
        width = max(len(f.name) for f in findings)
        for finding in findings:
            mark = "ok" if finding.works else "absent" if finding.name in (*EXTRAS, COMPILER) else "BROKEN"
            print(f"{mark:>6}  {finding.name:<{width}}  {printable(finding.says)}")
        slow = (
            "" if all(f.works for f in findings if f.name == CACHE) else ", but for Stan programs, which need the cache"
        )
        print(f"\npathtemp works here{slow}" if not broken else f"\npathtemp does not work here: {', '.join(broken)}")
    return 1 if broken else 0


def _python() -> Finding:
    fine = sys.version_info >= (3, 11)
    return Finding("Python", fine, platform.python_version() + ("" if fine else "; install 3.11 or later"), True)


def _jax() -> Finding:
    try:
        with importing():
            import jax
            import jax.numpy as jnp

            import pathtemp  # noqa: F401  (switches JAX to float64)

        value = jax.jit(lambda x: jnp.sum(x**2))(jnp.arange(3.0))
        devices = ", ".join(f"{d.platform} ({d.device_kind})" for d in jax.devices())
        fine = float(value) == 5.0 and value.dtype == jnp.float64
    except Exception as error:
        return Finding("JAX", False, f"{type(error).__name__}: {error}; run: pip install --upgrade jax", True)
    return Finding("JAX", fine, f"{jax.__version__} on {devices}, {value.dtype}", True)


def _compiler() -> Finding:
    from pathtemp.frontends.stan.toolchain import find_compiler

    try:
        compiler = find_compiler()
    except InputError as error:
        return Finding(COMPILER, False, str(error), False)
    if compiler is not None:
        return Finding(COMPILER, True, compiler.version, False)
    return Finding(COMPILER, False, "needed for Stan; install g++ (Debian: apt-get install g++) or clang++", False)


def _cache() -> Finding:
    from pathtemp.frontends.stan.cache import cache_folder
    from pathtemp.io.private import private_folder

    try:
        folder = private_folder(cache_folder())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except InputError as error:
        return Finding(CACHE, False, str(error).removeprefix("cache: "), False)
    except OSError as error:
        return Finding(CACHE, False, f"{folder}: {error.strerror}; set PATHTEMP_CACHE to another folder", False)
    return Finding(CACHE, True, str(folder), False)


LOOKS: tuple[Callable[[], Finding], ...] = (_python, _jax, _compiler, _cache)
"""What is looked at beside the extras."""


def _extra(library: str, extra: str) -> Finding:
    try:
        return Finding(library, True, version(library), False)
    except PackageNotFoundError:
        return Finding(library, False, f"run: pip install 'pathtemp[{extra}]'", False)
