"""What CONTRIBUTING.md promises of the source: small files and functions, one loop, one place for random streams."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pathtemp"

LINES, FUNCTION, PARAMETERS = 400, 60, 8
"""Lines of a module, lines of code of a function, and its parameters, at most."""

PUBLIC = {"temper", "divide_and_conquer", "path_sample", "resume"}
"""Ways in: they take all that a user may choose, by name. Their signature does not count as code."""

SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, str]:
    """The text of each module of the package, by its path in it."""
    return {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def functions(text: str) -> Iterator[Function]:
    """All functions of a module, those inside others too."""
    yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function))


def lines_of_code(text: str) -> set[int]:
    """Numbers of the lines that hold more than a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {line for t in tokens if t.type not in SILENT for line in range(t.start[0], t.end[0] + 1)}


def length(function: Function, code: set[int]) -> int:
    """Lines of code of a function, without its docstring, and without the signature of a way in."""
    first, body = function.lineno, function.body
    if ast.get_docstring(function) is not None:
        code = code - set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    if function.name in PUBLIC:
        first = body[0].lineno
    return sum(first <= line <= (function.end_lineno or 0) for line in code)


def parameters(function: Function) -> int:
    """Parameters of a function, but self and cls."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def too_large(text: str) -> list[str]:
    """What of a module is larger than it may be."""
    code, found = lines_of_code(text), []
    if len(text.splitlines()) > LINES:
        found.append(f"{len(text.splitlines())} lines")
    for function in functions(text):
        if length(function, code) > FUNCTION:
            found.append(f"{function.name}: {length(function, code)} lines")
        if parameters(function) > PARAMETERS and function.name not in PUBLIC:
            found.append(f"{function.name}: {parameters(function)} parameters")
    return found


def places(pattern: str) -> set[str]:
    """Modules with a line of code that matches, doctests and comments not counted."""
    found = set()
    for name, text in modules().items():
        rows, code = text.splitlines(), lines_of_code(text)
        lines = [row for i, row in enumerate(rows, 1) if i in code and not row.lstrip().startswith((">>>", "...", "#"))]
        if any(re.search(pattern, row) for row in lines):
            found.add(name)
    return found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(a, b, *, c): ...\n", 0),
        ("def f(a, b, c, d, e, f, g, *, h, i): ...\n", 1),
        ("class A:\n    def f(self, a, b, c, d, e, f, g, h): ...\n", 0),
        ("def f():\n" + "    x = 1\n" * 59, 0),
        ("def f():\n" + "    x = 1\n" * 60, 1),
        ('def f():\n    """A\n    b."""\n' + "    x = 1\n    # why\n\n" * 59, 0),
        ("def temper(" + ", ".join("abcdefghijk") + "):\n    '''A.'''\n" + "    x = 1\n" * 60, 0),
        ("x = 1\n" * 401, 1),
    ],
)
def test_what_is_too_large_is_seen(text: str, count: int) -> None:
    assert len(too_large(text)) == count


def test_nothing_is_too_large() -> None:
    assert {name: found for name, text in modules().items() if (found := too_large(text))} == {}


def test_there_is_one_loop() -> None:
    """One module runs rounds and stops, one makes records, one writes checkpoints; workers send records on as told."""
    assert places(r"\bengine\.(round|adapt|keep|freeze)\(") == {"engines/driver.py"}
    assert places(r"while \(run := ") == {"engines/driver.py"}
    assert places(r"\bRoundRecord\((?!\*\*)") == {"engines/driver.py"}
    assert places(r"\bDiagnostics\(") <= {"verdict/diagnostics.py", "result/run.py"}
    assert places(r"\bWriter\(") <= {"engines/driver.py", "io/writer.py"}
    assert places(r"burnt_in = True") == {"engines/driver.py"}


def test_random_streams_are_named_in_one_place() -> None:
    drawn = r"default_rng\(|RandomState\(|SeedSequence\(|PRNGKey\(|random\.key\(|random\.seed\("
    assert places(drawn) == {"seeds.py"}
    assert places(r"np\.random\.(normal|uniform|rand|randn|choice|integers|permutation)\(") == set()


def test_names_say_what_they_are() -> None:
    """Words that a reader has to guess the meaning of are no names of modules, classes and functions."""
    guessed = {"most", "least", "warm", "look", "strange", "glance", "again", "keeper", "cover", "hopeless"}
    named = {part.removesuffix(".py") for name in modules() for part in name.split("/")}
    for text in modules().values():
        named |= {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {name for name in named if name.lower().strip("_") in guessed} == set()


def test_each_folder_says_what_lives_in_it() -> None:
    for folder in {path.parent for path in SOURCE.rglob("*.py")} - {SOURCE}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_the_map_of_the_contributing_guide_is_true() -> None:
    """Each file and folder that it names is there, and it names each folder of the package."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    guide = text.partition("## How the house is laid out")[2].partition("## Style")[0]
    rows = [row for row in guide.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w./]+)`", row.split("|")[1])}
    assert all((SOURCE / name).exists() for name in named), named
    top = {path.name + ("/" if path.is_dir() else "") for path in SOURCE.iterdir() if path.name[0] not in "_."}
    unsaid = {name for name in top if name not in named and not any(n.startswith(name) for n in named)}
    assert unsaid == {"errors.py", "py.typed"}
    elsewhere = {name for name in re.findall(r"`([\w./]+\.py|[\w/]+/)`", guide) if "/" in name}
    assert {name for name in elsewhere if not ((SOURCE / name).exists() or (ROOT / name).exists())} == set()
