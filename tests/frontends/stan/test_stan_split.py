"""The prior of plain programs, found in their text: a table of programs of all kinds, with the lines that are it.

Each file of `priors/` says what is right of it: `// prior` at the end of a line of the prior, and in lines of their own
`// draws` (it can be drawn from), `// density` (it cannot), `// improper: names` (of which it says nothing),
`// kept: names` (those of an improper one whose own prior is proper, and is kept), `// uniform: names` (within bounds,
nothing said) and `// mixed: lines` (prior and data in one statement).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathtemp.frontends.stan import opening
from pathtemp.frontends.stan.build import program_info, stanc
from pathtemp.frontends.stan.prior import described, described_in_part, find_prior, why_improper, without_unused
from pathtemp.frontends.stan.program import merge, parse
from pathtemp.frontends.stan.source import read_source
from pathtemp.frontends.stan.split import split_program

pytestmark = pytest.mark.usefixtures("stanc_available")
TABLE = sorted((Path(__file__).parent / "priors").glob("*.stan"))


def said(text: str, what: str) -> tuple[str, ...]:
    found = re.search(rf"^// {what}: (.*)$", text, re.MULTILINE)
    return tuple(found.group(1).split(", ")) if found else ()


@pytest.mark.parametrize("file", TABLE, ids=lambda file: file.stem)
def test_the_prior_is_found(file: Path) -> None:
    text = file.read_text()
    program = parse(read_source(file))
    split, whole, forward = find_prior(program, program_info(program.source))
    marked = [number for number, row in enumerate(text.splitlines(), 1) if row.endswith("// prior")]
    assert [line.place.line for line in split.lines if line.place] == marked
    assert split.silent == said(text, "improper")
    assert split.uniform == said(text, "uniform")
    assert [str(line.place.line) for line in split.mixed if line.place] == list(said(text, "mixed"))
    kept = set() if split.part is None else split.part.kept
    assert kept == set(said(text, "kept"))
    assert (whole is not None) == (split.proper or bool(kept))
    kind = "improper" if not split.proper else "density" if forward is None else "draws"
    assert f"// {kind}" in text
    if whole is not None:
        stanc(merge(without_unused(whole, split.part or split)), "--info")


def test_what_is_said_of_it() -> None:
    program = parse(read_source(TABLE[0].parent / "half_flat.stan"))
    split, _, _ = find_prior(program, program_info(program.source))
    assert described(split, why_not=why_improper(split)) == (
        "no base in the program: it gives no proper distribution to sigma; pt.temper finds one\n"
        "of the parameters it says:\n"
        "    6  mu ~ normal(m, s);"
    )
    assert described_in_part(split) == (
        "the prior of mu, line 6 of half_flat.stan, drawn exactly; it gives no proper distribution to sigma; pt.temper "
        "finds a law of the rest\n"
        "    6  mu ~ normal(m, s);"
    )
    program = parse(read_source(TABLE[0].parent / "hidden_markov.stan"))
    split = split_program(program, program_info(program.source))
    assert described(split, exact=True).splitlines() == [
        "the prior, lines 6-7 of hidden_markov.stan, drawn exactly",
        "    6  target += normal_lpdf(mu[1] | -1, 1);",
        "    7  target += normal_lpdf(mu[2] | 1, 1);",
        "uniform within bounds: Gamma",
    ]


@pytest.mark.parametrize("error", [IndexError("string index out of range"), ValueError("a bracket is never closed")])
def test_a_program_that_is_not_understood_is_run_without_a_prior(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(opening, "find_prior", fail)
    found = opening.open_program("parameters { real x; } model { x ~ normal(0, 1); }", {}, [])
    assert not found.has_alternative
    assert found.split is not None
    assert why_improper(found.split) == ("its prior cannot be told from its likelihood, for its text is not understood")
