"""The registry of gates: what fits are judged by is in it, and the documentation says what it says."""

from __future__ import annotations

import ast
from pathlib import Path

import pathtemp
from pathtemp.verdict.registry import gates

SOURCE = Path(str(pathtemp.__file__)).parent
PAGE = (SOURCE.parents[1] / "docs" / "verdict.md").read_text()


def test_every_gate_is_documented_as_it_is() -> None:
    for name, gate in gates().items():
        assert gate.row in PAGE, name


def test_the_documentation_names_no_other_gate() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert {row.split(" | ")[0].removeprefix("| ") for row in rows} - {"gate"} == set(gates())


def test_every_gate_has_a_remedy_on_the_page_for_runs_that_did_not_converge() -> None:
    page = (SOURCE.parents[1] / "docs" / "not-converged.md").read_text()
    rows = [line.removeprefix("| ").partition(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    assert {name for row in rows for name in row.split(", ")} - {"what failed"} == set(gates())


def test_every_gate_asks_a_question_and_gives_advice() -> None:
    for gate in gates().values():
        assert gate.question
        assert gate.advice
        assert gate.check.__doc__


def test_checks_are_made_by_gates_alone() -> None:
    """No module but those of the gates makes a Check; files are read by the codec, which names no class."""
    makers = set()
    for path in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id == "Check" for call in calls):
            makers.add(path.relative_to(SOURCE).as_posix())
    assert makers == {"verdict/registry.py", "verdict/draws.py", "verdict/modes.py"}
