"""How many planted errors the quick tests notice: a statement of the library is deleted, and the tests are run.

    python -m benchmarks.mutations --count 40 --seed 0

For each place the tests that are named like its file, or that mention it, are run, and a few that run the library from
end to end. They stop at the first failure. Other tests are not run, so the score is a lower bound. Rows go to
benchmarks/results/mutations.csv as they come: the file, the line, its text, and whether it was noticed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pathtemp"
RESULTS = ROOT / "benchmarks" / "results" / "mutations.csv"
LEFT_OUT = ("testing", "demo.py", "_types.py")
"""Parts of the library that are themselves for tests, or hold no statements."""

SECONDS = 240
"""Time for the tests of one place; where it runs out, the place counts as not noticed."""

GENERAL = ("tests/test_temper.py", "tests/test_fit.py", "tests/modes/test_run.py", "tests/checkpoint/test_resume.py")
"""Files of tests that run the library end to end: run last."""


@dataclass(frozen=True)
class Place:
    """A statement: its file, its lines (first and last, from 1), and the name of the function around it."""

    file: Path
    first: int
    last: int
    function: str


def places() -> list[Place]:
    """Every simple statement inside a function of the library, docstrings left out."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if any(str(file.relative_to(SOURCE)).startswith(part) for part in LEFT_OUT):
            continue
        for function in [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.FunctionDef)]:
            found += [
                Place(file, node.lineno, node.end_lineno or node.lineno, function.name)
                for node in function.body
                for node in ast.walk(node)
                if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr | ast.Raise)
                and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            ]
    return sorted(set(found), key=lambda place: (str(place.file), place.first))


def without(place: Place) -> str:
    """The text of the file with the statement deleted."""
    lines = place.file.read_text().splitlines(keepends=True)
    indent = lines[place.first - 1][: len(lines[place.first - 1]) - len(lines[place.first - 1].lstrip())]
    return "".join([*lines[: place.first - 1], f"{indent}pass\n", *lines[place.last :]])


def tests_of(place: Place) -> list[str]:
    """Test files for a place: those named like its file or folder, those that mention it, and the general ones."""
    path = place.file.relative_to(SOURCE).with_suffix("")
    module = ".".join(("pathtemp", *path.parts)).removesuffix(".__init__")
    tokens = {
        word
        for word in (path.name, *path.name.split("_"), *path.parts[-2:-1])
        if len(word) >= 4 and word != "frontends"
    }
    # A name as common as "body" would call for every test.
    words = re.compile(rf"{re.escape(module)}\b" + (rf"|\b{place.function}\b" if "_" in place.function[1:] else ""))
    files = {file: str(file.relative_to(ROOT / "tests")) for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    named = [file for file, text in files.items() if path.name in text]
    named += [file for file, text in files.items() if any(token in text for token in tokens)]
    named += [file for file in files if words.search(file.read_text())]
    listed = [f"tests/{files[file]}" for file in dict.fromkeys(named)]
    return [*listed, *(file for file in GENERAL if file not in listed and (ROOT / file).exists())]


def noticed(place: Place) -> bool:
    """Whether a test fails without the statement; the doctests of its file are run as well."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests", "docs", "examples", "experiments", "benchmarks"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
        for file in ("conftest.py", "pyproject.toml", "README.md", "mkdocs.yml"):
            if (ROOT / file).exists():
                shutil.copy(ROOT / file, copy / file)
        changed = copy / place.file.relative_to(ROOT)
        changed.write_text(without(place))
        command = [sys.executable, "-m", "pytest", "-x", "-q", str(changed.relative_to(copy)), *tests_of(place)]
        environment = os.environ | {"PYTHONPATH": str(copy / "src")}
        try:
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode != 0


def main() -> None:
    """Delete so many statements at random, one at a time, and print how many the tests notice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="K N: every N-th place, from the K-th")
    options = parser.parse_args()
    every = places()
    chosen = np.random.default_rng(options.seed).choice(len(every), options.count, replace=False)
    score = []
    for i in chosen[options.part[0] :: options.part[1]]:
        place = every[i]
        text = place.file.read_text().splitlines()[place.first - 1].strip()
        score.append(noticed(place))
        row = (str(place.file.relative_to(ROOT)), place.first, text, int(score[-1]))
        with RESULTS.open("a", newline="") as out:
            csv.writer(out).writerow(row)
        print(*row, flush=True)
    print(f"{sum(score)} of {len(score)} noticed")


if __name__ == "__main__":
    main()
