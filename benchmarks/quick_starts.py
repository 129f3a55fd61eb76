"""Cold and warm seconds of the quick starts of the four languages, as their pages have them.

    python -m benchmarks.quick_starts [--languages jax stan] [--repeat 1]

Each is the first Python block of its page, in a process of its own: first with an empty cache, which compiles
everything, then again with what the first has left. CPU seconds are those of the process and of the compilers that it
starts; on a machine that others use they say more than the wall clock does, and so does warm over cold.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

PAGES = {"jax": "README.md", "stan": "docs/stan.md", "pymc": "docs/pymc.md", "numpyro": "docs/numpyro.md"}
"""The page whose first block is the quick start of a language."""

FILES = {"stan": ("examples/stan/cauchy.stan",)}
"""What a quick start needs beside it."""


@dataclass(frozen=True)
class Spent:
    """Wall and CPU seconds of one process, and the load of the machine when it began."""

    wall: float
    cpu: float
    load: float


def first_block(page: Path) -> str:
    """The first Python block of a page.

    >>> first_block(ROOT / "README.md").splitlines()[0]
    'import jax.numpy as jnp'
    """
    found = re.search(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit(f"{page} has no Python block")
    return found[1]


def run_once(language: str, folder: Path, cache: Path) -> Spent:
    """Run a quick start in a new process."""
    for name in FILES.get(language, ()):
        (folder / Path(name).name).write_bytes((ROOT / name).read_bytes())
    script = folder / "quick_start.py"
    script.write_text(first_block(ROOT / PAGES[language]))
    settings = os.environ | {"XDG_CACHE_HOME": str(cache), "PATHTEMP_CACHE": str(cache / "pathtemp")}
    load, before, began = os.getloadavg()[0], _children(), time.perf_counter()
    done = subprocess.run([sys.executable, script.name], cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{language}: {done.stderr.strip()[-2000:]}")
    return Spent(time.perf_counter() - began, _children() - before, load)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="Cold and warm seconds of the quick starts.")
    parser.add_argument("--languages", nargs="+", choices=list(PAGES), default=list(PAGES))
    parser.add_argument("--repeat", type=int, default=1, help="warm runs of each, of which the quickest is shown (1)")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores; wall (CPU) seconds, and the load of the machine at the start")
    for language in options.languages:
        with tempfile.TemporaryDirectory() as place:
            folder, cache = Path(place), Path(place) / "cache"
            cold = run_once(language, folder, cache)
            warm = min((run_once(language, folder, cache) for _ in range(options.repeat)), key=lambda spent: spent.wall)
        times = "   ".join(
            f"{kind} {spent.wall:6.1f} ({spent.cpu:6.1f}), load {spent.load:4.1f}"
            for kind, spent in (("cold", cold), ("warm", warm))
        )
        print(f"{language:8} {times}   warm / cold {warm.cpu / cold.cpu:.2f} by CPU", flush=True)


if __name__ == "__main__":
    main()
